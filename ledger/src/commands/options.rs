//! Ordered options: the first that fits is taken, and it is told why the ones before it were not.
//! So two schedulers never race for a host and no client loops on a conflict.

use super::plan::malformed;
use crate::amounts::Holding;
use crate::decide::Draft;
use crate::ids::ConsumerUuid;
use crate::limits;
use crate::refusal::{Cause, PassedOver, Refusal};
use crate::search::Searched;

/// Which option was taken and why the others were not.
pub(super) struct Taken {
    pub(super) option: u32,
    pub(super) passed_over: Vec<PassedOver>,
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
    let mut end = query.len().min(limits::QUERY_TOLD_BYTES);
    while !query.is_char_boundary(end) {
        end -= 1;
    }
    let steps = searched.steps.iter().take(limits::STEPS_TOLD).cloned().collect();
    Cause::NoCandidate { query: query[..end].to_owned(), steps }.into()
}

/// Notes an option that was passed over, as long as there is room to tell it.
pub(super) fn pass_over(passed_over: &mut Vec<PassedOver>, option: u32, refusal: &Refusal) {
    if passed_over.len() < limits::OPTIONS_TOLD {
        passed_over.push(PassedOver {
            option,
            cause: refusal.cause.clone(),
            shortages: refusal.shortages.iter().take(4).cloned().collect(),
        });
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

/// Takes the first option for which `attempt` succeeds. What `attempt` adds to the draft is kept
/// for that one only.
///
/// # Errors
/// With a single option its own refusal, else [`Cause::NoOptionFits`] with all that was passed over.
pub(super) fn take_first<'a>(
    draft: &mut Draft<'a>,
    options: &[Holding],
    mut attempt: impl FnMut(&mut Draft<'a>, &Holding, Taken) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    check(options)?;
    let mut passed_over: Vec<PassedOver> = Vec::new();
    let mut last = None;
    for (number, option) in (0u32..).zip(options) {
        let mut trial = draft.trial();
        match attempt(
            &mut trial,
            option,
            Taken { option: number, passed_over: passed_over.clone() },
        ) {
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
            shortages: refusal.shortages,
            ..Refusal::because(Cause::NoOptionFits)
        }),
        None => Err(Refusal::because(Cause::NoOptionFits)),
    }
}
