//! Ordered options: the first that fits is taken, and it is told why the ones before it were not.
//! So two schedulers never race for a host and no client loops on a conflict.

use super::plan::malformed;
use crate::amounts::Holding;
use crate::decide::Draft;
use crate::limits;
use crate::refusal::{Cause, PassedOver, Refusal};

/// Which option was taken and why the others were not.
pub(super) struct Taken {
    pub(super) option: u32,
    pub(super) passed_over: Vec<PassedOver>,
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
    if options.is_empty() || options.iter().any(Holding::is_empty) {
        return Err(malformed("an option asks for nothing".into()).into());
    }
    if options.len() > limits::OPTIONS {
        return Err(crate::decide::too_large("options", limits::OPTIONS));
    }
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
                if passed_over.len() < limits::OPTIONS_TOLD {
                    passed_over.push(PassedOver {
                        option: number,
                        cause: refusal.cause.clone(),
                        shortages: refusal.shortages.iter().take(4).cloned().collect(),
                    });
                }
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
