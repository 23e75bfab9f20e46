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
                this.map(|entry| rescheduled(state, &entry.this)).unwrap_or_default()
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
