//! Events in words: what changed from what to what, on one line.

mod causes;

pub(crate) use causes::{cause_words, passed_over_words, shortage_words};

use crate::names::Names;
use crate::roles::{Role, kind_word, role_in};
use crate::units::{amount, ratio};
use ledger::allocation_event;
use ledger::amounts::{Holding, Inventory, Resources};
use ledger::command::{Limit, Via};
use ledger::event::{
    AllocationEvent, ConsumerChange, Event, Finding, InventoryBeforeAfter, Move, MoveState,
    Overlap, Unchanged, Wishes,
};

/// What an event says, on one line.
pub(crate) fn event_words(event: &Event, names: &Names) -> String {
    match event {
        Event::Genesis(body) => format!("ledger {} begins", body.ledger_id),
        allocation_event!(body) => allocation_words(body, names),
        Event::Reshaped(body) => {
            let inventories = body.inventories.iter().map(|change| {
                format!(
                    "{} {}",
                    names.provider(change.provider),
                    inventories_words(&change.changes)
                )
            });
            joined(inventories.chain([allocation_words(&body.allocations, names)]), "; ")
        }
        Event::InventoryChanged(body) => {
            format!("{} {}", names.provider(body.provider), inventories_words(&body.changes))
        }
        Event::EventSkipped(body) => {
            format!("view {} passes over event {}: {}", body.view, body.sequence, body.reason)
        }
        Event::QuotaChanged(body) => {
            let whose = body
                .project_id
                .as_deref()
                .map_or("each project".into(), |id| format!("project {id}"));
            let limits = body.limits.iter().map(|change| {
                let words = [change.before, change.after].map(limit_words);
                format!("{} {} -> {}", change.class, words[0], words[1])
            });
            format!("limits of {whose}: {}", joined(limits, ", "))
        }
        Event::RetirementChanged(body) => {
            let place = names.provider(body.provider);
            let (before, after) = (wishes_words(&body.before), wishes_words(&body.after));
            let reason = body.reason.as_ref().map(|reason| format!("; reason: {reason}"));
            format!(
                "{place}: goes once it is free: {before} -> {after}{}",
                reason.unwrap_or_default()
            )
        }
        Event::TraitsChanged(body) => {
            format!(
                "{} traits {}",
                names.provider(body.provider),
                added_removed(&body.added, &body.removed)
            )
        }
        Event::AggregatesChanged(body) => format!(
            "{} aggregates {}",
            names.provider(body.provider),
            added_removed(&body.added, &body.removed)
        ),
        Event::ProviderCreated(body) => {
            let parent = body.parent.map(|parent| format!(" under {}", names.provider(parent)));
            format!("{} ({}) made{}", body.name, body.provider, parent.unwrap_or_default())
        }
        Event::ProviderUpdated(body) => {
            let parent = |id: Option<_>| id.map_or("none".to_owned(), |id| names.provider(id));
            let (before, after) = (parent(body.parent_before), parent(body.parent));
            format!("name {} -> {}, parent {before} -> {after}", body.name_before, body.name)
        }
        Event::ProviderDeleted(body) => format!("{} ({}) removed", body.name, body.provider),
        Event::TraitCreated(body) | Event::ResourceClassCreated(body) => {
            format!("{} made", body.name)
        }
        Event::TraitDeleted(body) | Event::ResourceClassDeleted(body) => {
            format!("{} removed", body.name)
        }
        Event::ResourceClassRenamed(body) => format!("{} -> {}", body.name_before, body.name),
        Event::Rejected(body) => rejected_words(body, names),
        Event::RefusalsSuppressed(body) => {
            format!("{} refusals were not recorded one by one", body.total)
        }
        Event::SearchFailed(body) => search_words(body),
        Event::Answered(body) => {
            let answers = body.answers.iter().chain(body.of_list.iter().flatten());
            let answers = joined(answers.map(unchanged_words), ", ");
            format!("{} changed nothing: {answers}", body.command)
        }
        Event::Erased(body) => {
            let sequences = joined(body.sequences.iter().map(u64::to_string), ", ");
            format!("who asked for event {sequences} was erased: {}", body.reason)
        }
        // Settings, and kinds that are newer than these words: the body says it.
        other => other.body_json().to_string(),
    }
}

fn search_words(body: &ledger::event::SearchFailed) -> String {
    let cut = if body.query_cut { " ..." } else { "" };
    let groups = body.groups.iter().map(|group| {
        let steps =
            group.steps.iter().map(|step| format!("{}: {} left", step.condition, step.left));
        let name = if group.suffix.is_empty() {
            String::new()
        } else {
            format!("group {}: ", group.suffix)
        };
        format!("{name}{} considered; {}", group.considered, joined(steps, "; "))
    });
    let told = joined(groups, " | ");
    format!("nothing found at event {} for {}{cut}: {told}", body.searched_at, body.query)
}

fn limit_words(limit: Option<Limit>) -> String {
    match limit {
        None => "none".into(),
        Some(Limit::Unlimited) => "unlimited".into(),
        Some(Limit::AtMost(limit)) => limit.to_string(),
    }
}

fn wishes_words(wishes: &Wishes) -> String {
    let whole = wishes.whole.then(|| "the provider".to_owned());
    let all: Vec<String> = whole.into_iter().chain(wishes.classes.iter().cloned()).collect();
    if all.is_empty() { "nothing".into() } else { all.join(", ") }
}

fn rejected_words(body: &ledger::event::Rejected, names: &Names) -> String {
    let mut parts = vec![format!("{} refused: {}", body.command, cause_words(&body.cause, names))];
    parts.extend(body.shortages.iter().map(|shortage| shortage_words(shortage, names)));
    if let [only] = &body.asked[..] {
        parts.push(format!("asked for {}: {}", only.consumer, holding_words(&only.holding, names)));
    } else if !body.asked.is_empty() {
        parts.push(format!("asked for {} consumers", body.asked.len()));
    }
    parts.extend(body.passed_over.iter().map(|option| passed_over_words(option, names)));
    joined(parts, "; ")
}

fn allocation_words(body: &AllocationEvent, names: &Names) -> String {
    let mut parts: Vec<String> =
        body.consumers.iter().map(|change| consumer_words(change, &body.moves, names)).collect();
    parts.extend(body.moves.iter().map(move_words));
    parts.extend(body.option.map(|option| match body.host {
        Some(host) => format!("option {option} taken, on {}", names.provider(host)),
        None => format!("option {option} taken"),
    }));
    // Where nothing was taken, an event names a host because the server is there now.
    let arrived = body.host.filter(|_| body.option.is_none());
    parts.extend(arrived.map(|host| format!("the server is on {}", names.provider(host))));
    parts.extend(body.moves.iter().filter_map(|this| alternates_words(this, names)));
    parts.extend(body.passed_over.iter().map(|option| passed_over_words(option, names)));
    parts.extend(body.reason.as_ref().map(|reason| format!("reason: {reason}")));
    parts.extend(body.finding.map(|finding| format!("LOOK: {}", finding_words(finding))));
    joined(parts, "; ")
}

fn alternates_words(this: &Move, names: &Names) -> Option<String> {
    let hosts: Vec<String> =
        this.alternates.iter().map(|alternate| names.provider(alternate.host)).collect();
    (!hosts.is_empty()).then(|| format!("alternates {}", hosts.join(", ")))
}

/// A consumer's change: `instance I: compute1 VCPU 0 -> 2, DISK_GB 0 -> 20 GB`.
pub(crate) fn consumer_words(change: &ConsumerChange, moves: &[Move], names: &Names) -> String {
    let role =
        moves.iter().find_map(|this| role_in(this, change.consumer)).unwrap_or(Role::Consumer);
    let holdings = change.holdings.iter().map(|holding| {
        let amounts = holding.amounts.iter().map(|held| {
            let after = amount(&held.class, held.after.into());
            if held.before == held.after {
                format!("{} {after}", held.class)
            } else {
                format!("{} {} -> {after}", held.class, held.before)
            }
        });
        format!("{} {}", names.provider(holding.provider), joined(amounts, ", "))
    });
    let mut words = format!("{} {}: {}", role.word(), change.consumer, joined(holdings, ", "));
    if let Some(link) = &change.link {
        let Overlap::Max(_) = link.overlap;
        words.push_str(" (overlap: max)");
    }
    words
}

/// Where a move stands: `resize 0193... attempt 1 claimed`.
pub(crate) fn move_words(this: &Move) -> String {
    let inferred = if this.inferred { " (inferred)" } else { "" };
    let (kind, state) = (kind_word(this.kind), this.state.name());
    format!("{kind} {} attempt {} {state}{inferred}", this.id, this.attempt)
}

/// A holding: `compute1 VCPU 2, DISK_GB 20 GB`.
pub(crate) fn holding_words(holding: &Holding, names: &Names) -> String {
    if holding.is_empty() {
        return "nothing".into();
    }
    joined(
        holding.iter().map(|(provider, held)| {
            format!("{} {}", names.provider(*provider), resources_words(held))
        }),
        ", ",
    )
}

/// Amounts by class: `VCPU 2, DISK_GB 20 GB`.
pub(crate) fn resources_words(resources: &Resources) -> String {
    joined(
        resources.iter().map(|(class, &held)| format!("{class} {}", amount(class, held.into()))),
        ", ",
    )
}

fn inventories_words(changes: &[InventoryBeforeAfter]) -> String {
    joined(
        changes.iter().map(|change| match (change.before, change.after) {
            (Some(before), Some(after)) if before == after => {
                format!("{} as before ({})", change.class, inventory_words(&after))
            }
            (before, after) => {
                let words = |side: Option<Inventory>| {
                    side.map_or("none".to_owned(), |side| inventory_words(&side))
                };
                format!("{} {} -> {}", change.class, words(before), words(after))
            }
        }),
        ", ",
    )
}

fn inventory_words(inventory: &Inventory) -> String {
    let Inventory { total, reserved, min_unit, max_unit, step_size, allocation_ratio } = *inventory;
    let mut words = format!("total {total} reserved {reserved} ratio {}", ratio(allocation_ratio));
    if min_unit != 1 {
        words.push_str(&format!(" min_unit {min_unit}"));
    }
    if max_unit != ledger::limits::AMOUNT {
        words.push_str(&format!(" max_unit {max_unit}"));
    }
    if step_size != 1 {
        words.push_str(&format!(" step_size {step_size}"));
    }
    format!("[{words}]")
}

fn added_removed(added: &[String], removed: &[String]) -> String {
    let signed = |sign: char, names: &[String]| {
        names.iter().map(|name| format!("{sign}{name}")).collect::<Vec<_>>()
    };
    let all = [signed('+', added), signed('-', removed)].concat();
    if all.is_empty() { "unchanged".into() } else { all.join(" ") }
}

fn unchanged_words(answer: &Unchanged) -> String {
    match answer {
        Unchanged::NoChange => "nothing to change".into(),
        Unchanged::AlreadyEnded { move_id, state, sequence } => {
            format!("move {move_id} was {} by event {sequence} already", state.name())
        }
    }
}

/// What an operator should look at.
pub(crate) fn finding_words(finding: Finding) -> &'static str {
    match finding {
        Finding::RunsWithoutAllocation => {
            "the source is gone and the instance holds nothing: a server may run without an allocation"
        }
        Finding::ForeignRequestId => {
            "claimed under another request id than the one that opened the move"
        }
        Finding::DeleteFoundNothing => "a DELETE during the move found nothing to delete",
        Finding::ReleasedOwnerEnded => "released, because the instance's end is on record",
        Finding::MigrationOverwritten => {
            "the migration's holding was overwritten with something else"
        }
    }
}

/// Which call something came by.
pub(crate) fn via_words(via: Via) -> &'static str {
    match via {
        Via::Put => "PUT /allocations/{consumer}",
        Via::Post => "POST /allocations",
        Via::Delete => "DELETE /allocations/{consumer}",
        Via::Reshaper => "POST /reshaper",
        Via::Command => "a command of the ledger's own API",
    }
}

/// How a move ended or stands, for a sentence.
pub(crate) fn state_words(state: MoveState) -> &'static str {
    match state {
        MoveState::Open => "open: the source is held, no destination is",
        MoveState::Claimed => "claimed: source and destination are both held",
        MoveState::Confirmed => "confirmed: the destination stayed",
        MoveState::Reverted => "reverted: the source stayed",
        MoveState::Abandoned => "abandoned: it ended without a confirm or a revert",
    }
}

/// Texts with something between them.
pub(crate) fn joined(parts: impl IntoIterator<Item = String>, between: &str) -> String {
    parts.into_iter().collect::<Vec<_>>().join(between)
}
