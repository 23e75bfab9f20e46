//! One file for each command, with its tests beside it. What several need is in `plan` (who holds
//! what after a command, and whether it fits) and `naming` (what plain Placement traffic means).

mod add_inventory;
mod aggregates;
mod claim;
mod confirm;
mod double_up;
mod fail;
mod find_move;
mod holders;
pub(crate) mod host;
mod host_changed;
mod inventories;
mod move_to_migration;
mod naming;
mod note_failed_search;
pub(crate) mod options;
mod plan;
mod providers;
mod quota;
mod release;
mod release_all;
mod release_and_reserve;
mod release_part;
mod replace_allocations;
mod reschedule;
mod reshape;
mod resize;
mod resource_classes;
mod retire;
mod retire_when_free;
mod revert;
mod settings;
mod sides;
mod size;
mod skip_event;
#[cfg(test)]
pub(crate) mod testing;
mod texts;
mod traits;

use crate::command::Command;
use crate::decide::Draft;
use crate::event::Unchanged;
use crate::refusal::Refusal;

/// Why the command changed nothing (`None`: it did change something), or why it is refused.
pub(crate) type Decision = Result<Option<Unchanged>, Refusal>;

/// Decides one command on a draft. What was to go once it is free goes with the command that frees
/// it.
pub(crate) fn decide(draft: &mut Draft<'_>, command: &Command) -> Decision {
    size::check(command)?;
    texts::check(command)?;
    draft.charge(1)?;
    if let Some(what) = command.found().and_then(|found| found.problem.clone()) {
        return Err(plan::malformed(what).into());
    }
    let first = draft.events.len();
    let decision =
        decide_one(draft, command).map_err(|refusal| holders::named(&draft.state, refusal))?;
    retire_when_free::sweep(draft, first);
    Ok(decision)
}

fn decide_one(draft: &mut Draft<'_>, command: &Command) -> Decision {
    match command {
        Command::CreateProvider(it) => providers::create(draft, it),
        Command::UpdateProvider(it) => providers::update(draft, it),
        Command::DeleteProvider(it) => providers::delete(draft, it),
        Command::ChangeInventories(it) => inventories::change(draft, it),
        Command::SetTraits(it) => traits::set(draft, it),
        Command::SetAggregates(it) => aggregates::set(draft, it),
        Command::CreateTrait(it) => traits::create(draft, it),
        Command::DeleteTrait(it) => traits::delete(draft, it),
        Command::CreateResourceClass(it) => resource_classes::create(draft, it),
        Command::RenameResourceClass(it) => resource_classes::rename(draft, it),
        Command::DeleteResourceClass(it) => resource_classes::delete(draft, it),
        Command::ReplaceAllocations(it) => replace_allocations::decide(draft, it),
        Command::Reshape(it) => reshape::decide(draft, it),
        Command::Claim(it) => claim::decide(draft, it),
        Command::DoubleUp(it) => double_up::decide(draft, it),
        Command::MoveToMigration(it) => move_to_migration::decide(draft, it),
        Command::Reschedule(it) => reschedule::decide(draft, it),
        Command::Confirm(it) => confirm::decide(draft, it),
        Command::Revert(it) => revert::decide(draft, it),
        Command::Resize(it) => resize::decide(draft, it),
        Command::HostChanged(it) => host_changed::decide(draft, it),
        Command::Fail(it) => fail::decide(draft, it),
        Command::Release(it) => release::decide(draft, it),
        Command::ReleasePart(it) => release_part::decide(draft, it),
        Command::ReleaseAll(it) => release_all::decide(draft, it),
        Command::ReleaseAndReserve(it) => release_and_reserve::decide(draft, it),
        Command::AddInventory(it) => add_inventory::decide(draft, it),
        Command::Retire(it) => retire::decide(draft, it),
        Command::SetQuota(it) => quota::set(draft, it),
        Command::Unretire(it) => retire_when_free::withdraw(draft, it),
        Command::ChangeSettings(it) => settings::change(draft, it),
        Command::SkipEvent(it) => skip_event::decide(draft, it),
        Command::NoteFailedSearch(it) => note_failed_search::decide(draft, it),
    }
}
