//! The texts that commands carry: projects, users, types, reasons. Each has its limit.

use super::plan::malformed;
use crate::command::{Command, ConsumerWrite};
use crate::limits::{COMMAND_QUERY_BYTES, NAME_CHARS, REASON_CHARS};
use crate::refusal::Cause;

/// Checks the length of every text of a command.
///
/// # Errors
/// The first that is empty or too long.
pub(super) fn check(command: &Command) -> Result<(), Cause> {
    match command {
        Command::ReplaceAllocations(it) => it.consumers.iter().try_for_each(owner),
        Command::Reshape(it) => it.allocations.iter().try_for_each(owner),
        Command::Claim(it) => {
            name("project_id", &it.project_id)?;
            name("user_id", &it.user_id)?;
            kind(it.consumer_type.as_deref())?;
            query(it.candidates.as_deref())
        }
        Command::Reschedule(it) => {
            reason(Some(&it.reason))?;
            query(it.candidates.as_deref())
        }
        Command::Resize(it) => query(it.candidates.as_deref()),
        Command::Revert(it) => reason(it.reason.as_deref()),
        Command::Fail(it) => reason(Some(&it.reason)),
        Command::Release(it) => reason(it.reason.as_deref()),
        Command::ReleasePart(it) => reason(it.reason.as_deref()),
        Command::ReleaseAll(it) => reason(it.reason.as_deref()),
        Command::ReleaseAndReserve(it) => reason(it.reason.as_deref()),
        Command::Retire(it) => reason(it.reason.as_deref()),
        Command::SetQuota(it) => {
            it.project_id.as_deref().map_or(Ok(()), |id| name("project_id", id))
        }
        Command::SkipEvent(it) => {
            name("view", &it.view)?;
            some("reason", &it.reason)?;
            reason(Some(&it.reason))
        }
        Command::Unretire(it) => reason(it.reason.as_deref()),
        _ => Ok(()),
    }
}

fn owner(write: &ConsumerWrite) -> Result<(), Cause> {
    // Who lets go of everything need not say whose it was.
    if !write.allocations.is_empty() {
        name("project_id", &write.project_id)?;
        name("user_id", &write.user_id)?;
    }
    at_most("project_id", &write.project_id, NAME_CHARS)?;
    at_most("user_id", &write.user_id, NAME_CHARS)?;
    kind(write.consumer_type.as_deref())
}

fn kind(consumer_type: Option<&str>) -> Result<(), Cause> {
    let Some(text) = consumer_type else { return Ok(()) };
    name("consumer_type", text)?;
    // Placement's form (API reference, 1.38). What has no type is told as `unknown`, which so can
    // be nobody's type.
    let good = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if text.bytes().all(good) {
        return Ok(());
    }
    Err(malformed(format!("consumer_type {text:?} has other than A-Z, 0-9 and _")))
}

fn reason(reason: Option<&str>) -> Result<(), Cause> {
    at_most("reason", reason.unwrap_or_default(), REASON_CHARS)
}

fn query(text: Option<&str>) -> Result<(), Cause> {
    let Some(text) = text else { return Ok(()) };
    if text.is_empty() {
        return Err(malformed("candidates is an empty query".into()));
    }
    if text.len() > COMMAND_QUERY_BYTES {
        return Err(malformed(format!("candidates has more than {COMMAND_QUERY_BYTES} bytes")));
    }
    Ok(())
}

fn name(field: &str, text: &str) -> Result<(), Cause> {
    some(field, text)?;
    at_most(field, text, NAME_CHARS)
}

fn some(field: &str, text: &str) -> Result<(), Cause> {
    if text.is_empty() {
        return Err(malformed(format!("{field} is empty")));
    }
    Ok(())
}

fn at_most(field: &str, text: &str, limit: usize) -> Result<(), Cause> {
    if text.chars().count() > limit {
        return Err(malformed(format!("{field} has more than {limit} characters")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::*;
    use crate::refusal::Cause;

    #[test]
    fn a_text_that_is_empty_or_too_long_changes_nothing() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        let of = || holding(&[(1, &[("VCPU", 1)])]);
        for (project_id, user_id) in [("", "u"), ("p", ""), (&*"x".repeat(256), "u")] {
            let mut one = write(1, of());
            one.project_id = project_id.into();
            one.user_id = user_id.into();
            let refusal = world.refused(crate::command::Command::ReplaceAllocations(
                crate::command::ReplaceAllocations {
                    via: crate::command::Via::Put,
                    consumers: vec![one],
                },
            ));
            assert!(matches!(refusal.cause, Cause::Malformed { .. }));
        }
        world.ok(claim(1, &[of()]));
        world.ok(to_migration(1, 2));
        world.ok(claim(1, &[of()]));
        world.refused(reschedule(1, &"x".repeat(1025), &[]));
        world.ok(reschedule(1, &"x".repeat(1024), &[]));
    }
}
