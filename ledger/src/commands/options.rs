//! Ordered options: the first that fits is taken, and it is told why the ones before it were not.
//! So two schedulers never race for a host and no client loops on a conflict.

use super::plan::malformed;
use crate::amounts::Holding;
use crate::decide::Draft;
use crate::ids::ConsumerUuid;
use crate::limits;
use crate::refusal::{Cause, PassedOver, Refusal};
use crate::search::Searched;

/// Shortages, classes and providers that are told of one option that was passed over.
const SHORTAGES_EACH: usize = 4;

/// Which option was taken and why the others were not.
pub(super) struct Taken<'p> {
    pub(super) option: u32,
    pub(super) passed_over: &'p [PassedOver],
}

/// The options of a command: those it came with, or those that a search found for its query.
pub(super) struct Wanted<'c> {
    options: &'c [Holding],
    search: Option<(&'c str, &'c Searched)>,
    /// Since the search something may have become free.
    is_stale: bool,
}

impl<'c> Wanted<'c> {
    /// # Errors
    /// If there are options and a query, or a query that was not searched for yet.
    pub(super) fn of(
        draft: &Draft<'_>,
        consumer: ConsumerUuid,
        options: &'c [Holding],
        query: Option<&'c str>,
        searched: Option<&'c Searched>,
    ) -> Result<Self, Refusal> {
        let Some(query) = query else {
            check(options)?;
            return Ok(Self { options, search: None, is_stale: false });
        };
        if !options.is_empty() {
            return Err(malformed("both options and candidates are given".into()).into());
        }
        let searched = searched.ok_or(Cause::SearchAgain)?;
        if !searched.options.is_empty() {
            check(&searched.options)?;
        }
        let is_stale = is_stale(draft, consumer, searched);
        Ok(Self { options: &searched.options, search: Some((query, searched)), is_stale })
    }

    /// Tries the options. Why none of them fits is told only if that is still true of the whole
    /// cloud.
    ///
    /// # Errors
    /// The attempt's own, [`Cause::NoCandidate`] or [`Cause::SearchAgain`].
    pub(super) fn take<T>(
        &self,
        attempt: impl FnOnce(&'c [Holding]) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let taken = match self.search {
            Some((query, searched)) if searched.options.is_empty() => {
                Err(no_candidate(query, searched))
            }
            _ => attempt(self.options),
        };
        taken.map_err(|refusal| if self.is_stale { Cause::SearchAgain.into() } else { refusal })
    }
}

/// Whether something may fit now, and for this consumer, that was not found. What the commands
/// before it in its own list did is not asked: a search sees the state before the list.
fn is_stale(draft: &Draft<'_>, consumer: ConsumerUuid, searched: &Searched) -> bool {
    let as_of = searched.as_of;
    let mut changed = draft
        .state
        .moves()
        .of(consumer)
        .map(|entry| entry.changed_sequence)
        .filter(|&at| at > as_of);
    changed.any(|at| at <= draft.before.sequence)
        || draft.before.roomier > as_of
        || (!searched.complete && draft.before.sequence > as_of)
}

fn no_candidate(query: &str, searched: &Searched) -> Refusal {
    let steps = searched.steps.iter().take(limits::STEPS_TOLD).cloned().collect();
    Cause::NoCandidate { query: query_told(query).to_owned(), steps }.into()
}

/// A query as a refusal tells it.
pub(crate) fn query_told(query: &str) -> &str {
    let mut end = query.len().min(limits::QUERY_TOLD_BYTES);
    // 0 is a boundary.
    while !query.is_char_boundary(end) {
        end -= 1;
    }
    &query[..end]
}

/// Notes an option that was passed over, as long as there is room to tell it.
pub(super) fn pass_over(passed_over: &mut Vec<PassedOver>, option: u32, refusal: &Refusal) {
    if passed_over.len() < limits::OPTIONS_TOLD {
        passed_over.push(PassedOver {
            option,
            cause: shortened(&refusal.cause),
            shortages: refusal.shortages.iter().take(SHORTAGES_EACH).cloned().collect(),
        });
    }
}

/// A cause that names no more than a few things: 32 options of many long names each would not fit
/// into the event of the one that was taken.
fn shortened(cause: &Cause) -> Cause {
    match cause {
        Cause::NoInventory { classes, providers } => Cause::NoInventory {
            classes: classes.iter().take(SHORTAGES_EACH).cloned().collect(),
            providers: providers.iter().take(SHORTAGES_EACH).copied().collect(),
        },
        cause => cause.clone(),
    }
}

/// Checks a list of options: at least one, none empty, not too many.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(options: &[Holding]) -> Result<(), Refusal> {
    if options.is_empty() || options.iter().any(Holding::is_empty) {
        return Err(malformed("an option asks for nothing".into()).into());
    }
    if options.len() > limits::OPTIONS {
        return Err(crate::decide::too_large("options", limits::OPTIONS));
    }
    Ok(())
}

/// How many options there are.
pub(super) fn count(options: &[Holding]) -> u32 {
    u32::try_from(options.len()).unwrap_or(u32::MAX)
}

/// Counts the work of trying an option.
///
/// # Errors
/// See [`Draft::charge`].
pub(super) fn charge(draft: &Draft<'_>, option: &Holding) -> Result<(), Refusal> {
    draft.charge(1 + option.values().map(|resources| resources.len()).sum::<usize>())
}

/// Takes the first option for which `attempt` succeeds. What `attempt` adds to the draft is kept
/// for that one only.
///
/// # Errors
/// With a single option its own refusal, else [`Cause::NoOptionFits`] with all that was passed over.
pub(super) fn take_first<'a>(
    draft: &mut Draft<'a>,
    options: &[Holding],
    mut attempt: impl FnMut(&mut Draft<'a>, &Holding, Taken<'_>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    check(options)?;
    let mut passed_over: Vec<PassedOver> = Vec::new();
    let mut last = None;
    for (number, option) in (0u32..).zip(options) {
        charge(draft, option)?;
        let mut trial = draft.trial();
        match attempt(&mut trial, option, Taken { option: number, passed_over: &passed_over }) {
            Ok(()) => {
                draft.accept(trial);
                return Ok(());
            }
            Err(refusal) => {
                pass_over(&mut passed_over, number, &refusal);
                last = Some(refusal);
            }
        }
    }
    match last {
        Some(refusal) if options.len() == 1 => Err(refusal),
        Some(refusal) => Err(Refusal {
            passed_over,
            options: count(options),
            shortages: refusal.shortages,
            ..Refusal::because(Cause::NoOptionFits)
        }),
        None => Err(Refusal::because(Cause::NoOptionFits)),
    }
}

#[cfg(test)]
mod tests {
    use crate::amounts::Holding;
    use crate::command::Command;
    use crate::commands::testing::*;
    use crate::decide::Decided;
    use crate::refusal::{Cause, Refusal};
    use crate::search::Searched;

    fn on(host: u128, vcpus: u32) -> Holding {
        holding(&[(host, &[("VCPU", vcpus)])])
    }

    fn cloud() -> World {
        (1..=3).fold(World::new(), |world, host| world.host(host, &[("VCPU", 8)]))
    }

    /// A claim of server `number` for which this was found.
    fn found(number: u128, searched: Option<Searched>) -> Command {
        let Command::Claim(mut it) = claim(number, &[]) else { panic!("no claim") };
        it.candidates = Some("resources=VCPU:4".into());
        it.searched = searched;
        Command::Claim(it)
    }

    /// All that there was, at the sequence that the world is at.
    fn all(world: &World, options: &[Holding]) -> Searched {
        Searched {
            options: options.to_vec(),
            as_of: world.state.sequence(),
            complete: true,
            steps: vec!["VCPU:4: 0 left".into()],
            problem: None,
        }
    }

    #[track_caller]
    fn searches_again(answer: Result<Decided, Refusal>) {
        assert_eq!(answer.map(|_| ()).unwrap_err().cause, Cause::SearchAgain);
    }

    #[test]
    fn a_query_has_to_be_searched_for_first() {
        let mut world = cloud();
        searches_again(world.try_(found(1, None)));
        let searched = all(&world, &[on(2, 4)]);
        world.ok(found(1, Some(searched)));
        assert_eq!(world.holds(1), on(2, 4));
        // Who cannot claim at all is told so without a search.
        let refusal = world.refused(found(1, None));
        assert_eq!(refusal.cause, Cause::HoldsAlready { consumer: consumer(1) });
    }

    #[test]
    fn what_others_took_since_makes_a_refusal_true_and_what_they_let_go_does_not() {
        let mut world = cloud();
        world.ok(claim(5, &[on(1, 5)]));
        world.ok(claim(6, &[on(2, 5)]));
        let searched = all(&world, &[on(3, 4)]);
        world.ok(claim(7, &[on(3, 5)]));
        assert_eq!(world.refused(found(1, Some(searched.clone()))).cause, Cause::Capacity);
        world.ok(release(6, false));
        searches_again(world.try_(found(1, Some(searched))));
        let again = all(&world, &[on(2, 4)]);
        world.ok(found(1, Some(again)));
        assert_eq!(world.holds(1), on(2, 4));
    }

    #[test]
    fn nothing_found_is_told_with_its_steps_unless_there_is_room_since() {
        let mut world = cloud();
        world.ok(claim(5, &[on(1, 5)]));
        let nothing = all(&world, &[]);
        let Cause::NoCandidate { query, steps } =
            world.refused(found(1, Some(nothing.clone()))).cause
        else {
            panic!("another cause")
        };
        assert_eq!((query.as_str(), steps.len()), ("resources=VCPU:4", 1));
        world.ok(shrink(1, "VCPU", 16));
        searches_again(world.try_(found(1, Some(nothing))));
    }

    #[test]
    fn a_list_cut_short_makes_no_refusal_true_once_anything_happened() {
        let mut world = cloud();
        let part = Searched { complete: false, ..all(&world, &[on(3, 4)]) };
        world.ok(claim(7, &[on(3, 5)]));
        searches_again(world.try_(found(1, Some(part))));
        let part = Searched { complete: false, ..all(&world, &[on(3, 4)]) };
        assert_eq!(world.refused(found(1, Some(part))).cause, Cause::Capacity);
    }

    /// What the source holds is given back to a search: if it changed since, search again.
    #[test]
    fn a_move_that_changed_since_the_search_is_searched_for_again() {
        let mut world = World::new().host(1, &[("VCPU", 4)]);
        world.ok(claim(1, &[on(1, 2)]));
        let before = all(&world, &[]);
        world.ok(to_migration(1, 9));
        searches_again(world.try_(found(1, Some(before))));
        let now = all(&world, &[on(1, 4)]);
        world.ok(found(1, Some(now)));
        assert_eq!(world.held(1, "VCPU"), 4);
    }

    /// A search sees the state before the list that its command is in.
    #[test]
    fn what_a_list_itself_changed_is_no_reason_to_search_again() {
        let mut world = cloud();
        world.ok(claim(5, &[on(1, 5)]));
        let nothing = all(&world, &[]);
        let refusal = world.list(&[release(5, false), found(1, Some(nothing))]).map(|_| ());
        assert!(matches!(refusal.unwrap_err().cause, Cause::NoCandidate { .. }));
    }

    #[test]
    fn options_beside_a_query_are_refused() {
        let mut world = cloud();
        let Command::Claim(mut it) = found(1, Some(all(&world, &[on(1, 4)]))) else { panic!() };
        it.options = vec![on(1, 4)];
        assert!(matches!(world.refused(Command::Claim(it)).cause, Cause::Malformed { .. }));
        assert!(matches!(world.refused(claim(1, &[])).cause, Cause::Malformed { .. }));
    }

    /// However long the reasons are, the option that fits is taken.
    #[test]
    fn reasons_are_bounded() {
        let mut world = cloud();
        let name = |number: usize| format!("CUSTOM_{number:0>248}");
        for number in 0..100 {
            let name = name(number);
            world.ok(Command::CreateResourceClass(crate::command::Named { name }));
        }
        let much: Holding = [(provider(1), (0..100).map(|n| (name(n), 1)).collect())].into();
        let mut options = vec![much; 40];
        options.push(on(2, 1));
        let decided = world.ok(claim(1, &options));
        let bytes = decided.events[0].encode_body().unwrap().len();
        assert!(bytes < 100_000, "{bytes} bytes");
    }
}
