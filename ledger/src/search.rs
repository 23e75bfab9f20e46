//! Commands that name a candidates query instead of options.
//!
//! The ledger does not search: whoever submits the command does, on a view of some sequence, and
//! hands over what was found ([`Searched`]). The decision is made on the state as it is then. If
//! nothing that was found fits any more and something may have become free since the search, the
//! refusal would not be true: the command is answered [`Cause::SearchAgain`], which is never
//! recorded, and its sender searches anew. Choice and claim are thus one atomic step.
//!
//! [`Cause::SearchAgain`]: crate::refusal::Cause::SearchAgain

use crate::amounts::Holding;
use crate::command::{Command, MoveKind, SameHostMoves};
use crate::commands::host::{hosts, is_sharing, root, roots};
use crate::event::{Move, MoveState};
use crate::ids::ConsumerUuid;
use crate::state::{GivenBack, ProviderId, State, given_back, given_back_to_request};
use std::collections::BTreeSet;

/// What was found for a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Searched {
    /// The candidates in order; at most [`crate::limits::OPTIONS`].
    pub options: Vec<Holding>,
    /// The sequence of the state that was searched.
    pub as_of: u64,
    /// Whether these are all there were.
    pub complete: bool,
    /// If there was none: how many were left after each condition, in words. At most
    /// [`crate::limits::STEPS_TOLD`].
    pub steps: Vec<String>,
    /// Why the query cannot be answered: it names what does not exist. A command with an id is
    /// refused by the ledger for it, so that its id has that outcome.
    pub problem: Option<String>,
}

/// What a search on behalf of a command has to heed beside the query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// What counts as free for this consumer alone: the larger of both sides of its move counts.
    pub given_back: Vec<GivenBack>,
    /// Roots of the trees to be tried before all others.
    pub first: BTreeSet<ProviderId>,
    /// Roots of the trees to be tried after all others.
    pub last: BTreeSet<ProviderId>,
    /// Roots of the trees that are out of the question.
    pub ignored: BTreeSet<ProviderId>,
}

impl Command {
    /// The candidates query that it names.
    pub fn query(&self) -> Option<&str> {
        match self {
            Self::Claim(it) => it.candidates.as_deref(),
            Self::Resize(it) => it.candidates.as_deref(),
            Self::Reschedule(it) => it.candidates.as_deref(),
            _ => None,
        }
    }

    /// What was found for its query.
    pub(crate) fn found(&self) -> Option<&Searched> {
        match self {
            Self::Claim(it) => it.searched.as_ref(),
            Self::Resize(it) => it.searched.as_ref(),
            Self::Reschedule(it) => it.searched.as_ref(),
            _ => None,
        }
    }

    /// Hands over what was found for its query.
    pub fn searched(&mut self, found: Searched) {
        match self {
            Self::Claim(it) => it.searched = Some(found),
            Self::Resize(it) => it.searched = Some(found),
            Self::Reschedule(it) => it.searched = Some(found),
            _ => {}
        }
    }

    /// The terms of a search on its behalf in a state.
    pub fn search_terms(&self, state: &State) -> Terms {
        match self {
            Self::Claim(it) => open_move(state, it.consumer)
                .map(|this| of_destination(state, this, None))
                .unwrap_or_default(),
            Self::Resize(it) => {
                let source = hosts(state, &state.holding_of(it.consumer));
                let mut ignored = roots(state, &it.ignore_hosts);
                if it.kind != MoveKind::Resize {
                    ignored.extend(&source);
                }
                let first = source.difference(&ignored).copied().collect();
                let given_back = given_back(state, it.consumer, None);
                Terms { given_back, first, ignored, ..Terms::default() }
            }
            Self::Reschedule(it) => {
                let mut live = state.moves().live_of_instance(it.consumer);
                let this = match it.move_id {
                    Some(id) => live.find(|entry| entry.this.id == id),
                    None => live.next(),
                };
                match this {
                    Some(entry) => rescheduled(state, &entry.this),
                    None => building(state, it.consumer),
                }
            }
            _ => Terms::default(),
        }
    }
}

impl Terms {
    /// The terms of a plain search with a request id, in a state. With the setting
    /// `same_host_moves: max` it is given back what the sources hold of the moves that this request
    /// opened and that are open; their hosts come last. It grants nothing: the claim decides.
    pub fn of_request(state: &State, request_id: Option<&str>) -> Self {
        let request_id = request_id.filter(|id| !id.is_empty());
        let Some(id) =
            request_id.filter(|_| state.settings().same_host_moves == SameHostMoves::Max)
        else {
            return Self::default();
        };
        let given_back = given_back_to_request(state, id);
        let providers = given_back.iter().map(|given| given.provider);
        let last = providers.filter(|&id| !is_sharing(state, id)).filter_map(|id| root(state, id));
        Self { last: last.collect(), given_back, ..Self::default() }
    }
}

fn open_move(state: &State, consumer: ConsumerUuid) -> Option<&Move> {
    let this = &state.moves().live_of_instance(consumer).next()?.this;
    (this.state == MoveState::Open).then_some(this)
}

/// The destination that is given up has failed: its host is out of the question.
fn rescheduled(state: &State, this: &Move) -> Terms {
    let mut terms = of_destination(state, this, Some(this.instance));
    terms.ignored.extend(hosts(state, &this.destination));
    terms
}

/// A server without a move gives up all it holds, and its host has failed.
fn building(state: &State, consumer: ConsumerUuid) -> Terms {
    let Some(row) = state.consumer(consumer) else { return Terms::default() };
    let of = |held: &crate::state::Allocation| GivenBack {
        provider: held.provider,
        class: held.class,
        amount: u64::from(held.amount),
    };
    let given_back = match row.link {
        None => row.allocations.iter().map(of).collect(),
        Some(_) => Vec::new(),
    };
    let ignored = hosts(state, &state.holding(&row.allocations));
    Terms { given_back, ignored, ..Terms::default() }
}

fn of_destination(state: &State, this: &Move, gives_up: Option<ConsumerUuid>) -> Terms {
    let (source, gives_up) = match this.migration {
        Some(migration) => (migration, gives_up),
        None => (this.instance, Some(this.instance)),
    };
    let mut terms = Terms { given_back: given_back(state, source, gives_up), ..Terms::default() };
    if this.kind != MoveKind::Resize {
        terms.ignored = hosts(state, &this.source);
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{ChangeSettings, OverlapClasses, Resize};
    use crate::commands::testing::*;

    fn on(host: u128, vcpus: u32) -> Holding {
        holding(&[(host, &[("VCPU", vcpus)])])
    }

    fn cloud() -> World {
        (1..=3).fold(World::new(), |world, host| world.host(host, &[("VCPU", 8), ("DISK_GB", 100)]))
    }

    /// (host, amount) of VCPU, and of nothing else.
    fn back(world: &World, terms: &Terms) -> Vec<(u128, u64)> {
        let vcpu = world.state.classes().id("VCPU").unwrap();
        let told = terms.given_back.iter().map(|given| {
            assert_eq!(given.class, vcpu);
            (number(world, given.provider), given.amount)
        });
        told.collect()
    }

    fn number(world: &World, host: ProviderId) -> u128 {
        let row = world.state.provider_row(host).unwrap();
        row.uuid.0.as_u128() - provider(0).0.as_u128()
    }

    fn numbers(world: &World, hosts: &BTreeSet<ProviderId>) -> Vec<u128> {
        hosts.iter().map(|&host| number(world, host)).collect()
    }

    #[test]
    fn a_resize_is_given_back_its_source_and_looks_at_its_own_host_first() {
        let mut world = cloud();
        world.ok(claim(1, &[on(1, 2)]));
        for (kind, first, ignored) in [
            (MoveKind::Resize, vec![1], vec![3]),
            (MoveKind::Migration, vec![], vec![1, 3]),
            (MoveKind::Evacuation, vec![], vec![1, 3]),
        ] {
            let Command::Resize(it) = resize(1, 9, &[]) else { panic!("no resize") };
            let command = Command::Resize(Resize { kind, ignore_hosts: vec![provider(3)], ..it });
            let terms = command.search_terms(&world.state);
            assert_eq!(back(&world, &terms), [(1, 2)]);
            let told = (numbers(&world, &terms.first), numbers(&world, &terms.ignored));
            assert_eq!(told, (first, ignored));
        }
    }

    #[test]
    fn a_claim_is_given_back_the_source_of_its_open_move_only() {
        let mut world = cloud();
        assert_eq!(claim(1, &[]).search_terms(&world.state), Terms::default());
        world.ok(claim(1, &[on(1, 2)]));
        assert_eq!(claim(1, &[]).search_terms(&world.state), Terms::default());
        world.ok(to_migration(1, 9));
        assert_eq!(back(&world, &claim(1, &[]).search_terms(&world.state)), [(1, 2)]);
        assert_eq!(claim(2, &[]).search_terms(&world.state), Terms::default());
    }

    /// What the destination holds goes first, and its host has failed.
    #[test]
    fn a_reschedule_is_given_back_both_sides_and_leaves_the_failed_host_out() {
        let mut world = cloud();
        world.ok(claim(1, &[on(1, 2)]));
        world.ok(resize(1, 9, &[on(1, 4)]));
        let terms = reschedule(1, "x", &[]).search_terms(&world.state);
        assert_eq!(
            (back(&world, &terms), numbers(&world, &terms.ignored)),
            (vec![(1, 4)], vec![1])
        );
        world.ok(reschedule(1, "x", &[on(2, 5)]));
        let terms = reschedule(1, "x", &[]).search_terms(&world.state);
        let told = (back(&world, &terms), numbers(&world, &terms.ignored));
        assert_eq!(told, (vec![(1, 2), (2, 5)], vec![2]));
    }

    /// A class that the max() rule leaves out is not given back by the source, but by who lets go.
    #[test]
    fn classes_outside_the_max_rule_are_not_given_back() {
        let mut world = cloud();
        world.ok(Command::ChangeSettings(ChangeSettings {
            overlap_classes: Some(OverlapClasses::AllBut(["DISK_GB".to_owned()].into())),
            ..ChangeSettings::default()
        }));
        let both = holding(&[(1, &[("VCPU", 2), ("DISK_GB", 5)])]);
        world.ok(claim(1, std::slice::from_ref(&both)));
        let of_resize = resize(1, 9, &[]).search_terms(&world.state);
        assert_eq!(back(&world, &of_resize), [(1, 2)]);
        world.ok(resize(1, 9, std::slice::from_ref(&both)));
        let terms = reschedule(1, "x", &[]).search_terms(&world.state);
        let amounts: Vec<u64> = terms.given_back.iter().map(|given| given.amount).collect();
        assert_eq!(amounts, [2, 5]);
    }

    /// Of several moves that one request opened the largest counts, never the sum; and only with
    /// max, and only while they are open.
    #[test]
    fn a_request_is_given_back_the_largest_of_its_open_moves() {
        let mut world = cloud();
        for (server, host, vcpus) in [(1, 1, 2), (2, 1, 3), (3, 2, 1)] {
            world.ok(put(server, on(host, vcpus)));
        }
        world.request_id = Some("req-a".into());
        for server in [1, 2, 3] {
            let whole = world.holds(server);
            world.ok(post(&[(server, Holding::new()), (server + 10, whole)]));
        }
        assert_eq!(Terms::of_request(&world.state, Some("req-a")), Terms::default());
        world.ok(Command::ChangeSettings(ChangeSettings {
            same_host_moves: Some(SameHostMoves::Max),
            ..ChangeSettings::default()
        }));
        let terms = Terms::of_request(&world.state, Some("req-a"));
        let told = (back(&world, &terms), numbers(&world, &terms.last));
        assert_eq!(told, (vec![(1, 3), (2, 1)], vec![1, 2]));
        for other in [None, Some(""), Some("req-b"), Some("req-")] {
            assert_eq!(Terms::of_request(&world.state, other), Terms::default());
        }
        world.ok(put(2, on(3, 3)));
        assert_eq!(back(&world, &Terms::of_request(&world.state, Some("req-a"))), [(1, 2), (2, 1)]);
        world.ok(post(&[(11, Holding::new()), (1, on(1, 2))]));
        assert_eq!(back(&world, &Terms::of_request(&world.state, Some("req-a"))), [(2, 1)]);
    }
}
