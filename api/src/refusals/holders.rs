//! Those who hold what stands in a command's way, in words. Who may list a provider's allocations
//! reads who they are, everybody else how many.

use ledger::refusal::{Holder, Holders, Refusal};

use crate::http::auth::Identity;
use crate::http::policy::Policy;

/// The policy rule that guards names of consumers on a provider.
const RULE: &str = "placement:resource_providers:allocations:list";

/// Takes the names out of a refusal for a caller who may not see them.
pub fn hide(refusal: &mut Refusal, policy: &Policy, caller: &Identity) {
    if let Some(holders) = &mut refusal.held_by
        && policy.check(RULE, caller, None).is_err()
    {
        holders.first.clear();
    }
}

/// What is appended to a refusal's sentence; empty if it is not about holders.
pub(super) fn words(refusal: &Refusal) -> String {
    let Some(holders) = &refusal.held_by else { return String::new() };
    let Holders { provider, class, consumers, moves, more, first } = &**holders;
    let of = match (class, provider) {
        (Some(class), Some(provider)) => format!("{class} on {provider}"),
        (Some(class), None) => class.clone(),
        (None, _) => "it".to_owned(),
    };
    let mut words = match (consumers, more) {
        (1, false) => format!(" 1 consumer holds {of}"),
        (count, false) => format!(" {count} consumers hold {of}"),
        (count, true) => format!(" At least {count} consumers hold {of}"),
    };
    words += &match moves {
        0 => String::new(),
        1 => ", 1 live move among them".to_owned(),
        moves => format!(", {moves} live moves among them"),
    };
    if !first.is_empty() {
        let named: Vec<String> = first.iter().map(holder).collect();
        words += &format!(": {}", named.join(", "));
        match consumers.saturating_sub(first.len() as u64) {
            0 if !more => {}
            others if !more => words += &format!(" and {others} more"),
            _ => words += " and more",
        }
    }
    words + "."
}

fn holder(holder: &Holder) -> String {
    let Holder { consumer, amount, move_id } = holder;
    let told = [amount.map(|amount| amount.to_string()), move_id.map(|id| format!("move {id}"))];
    let told: Vec<String> = told.into_iter().flatten().collect();
    match told.is_empty() {
        true => consumer.to_string(),
        false => format!("{consumer} ({})", told.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::ids::{ConsumerUuid, MoveId};
    use ledger::refusal::Cause;

    fn held_by(more: bool) -> Refusal {
        let holder = |number, amount, moves: Option<u128>| Holder {
            consumer: ConsumerUuid(uuid::Uuid::from_u128(number)),
            amount,
            move_id: moves.map(|id| MoveId(uuid::Uuid::from_u128(id))),
        };
        Refusal::because(Cause::ProviderInUse).held_by(Holders {
            consumers: 2,
            moves: 1,
            more,
            first: vec![holder(1, None, Some(9)), holder(2, Some(4), None)],
            ..Holders::default()
        })
    }

    #[test]
    fn counts_come_first_and_then_who_it_is() {
        let id = |number: u128| uuid::Uuid::from_u128(number);
        let (one, two, nine) = (id(1), id(2), id(9));
        let told = format!(
            " 2 consumers hold it, 1 live move among them: {one} (move {nine}), {two} (4)."
        );
        assert_eq!(words(&held_by(false)), told);
        assert!(words(&held_by(true)).starts_with(" At least 2 consumers hold it"));
        assert!(words(&held_by(true)).ends_with(" (4) and more."));
        assert_eq!(words(&Refusal::because(Cause::ProviderInUse)), "");
    }
}
