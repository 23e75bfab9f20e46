//! Random command histories: a small cloud whose servers are made, moved and removed.

use super::{consumer, holding, make_provider, provider};
use ledger::amounts::{Holding, Inventory};
use ledger::command::{
    ChangeInventories, Claim, Command, Confirm, ConsumerWrite, CreateProvider, DeleteProvider,
    DoubleUp, Fail, GenerationCheck, HostChanged, InventoryChange, MoveKind, MoveToMigration,
    Named, ParentChange, Release, RenameResourceClass, ReplaceAllocations, Reschedule, Resize,
    Revert, SetTraits, UpdateProvider, Via,
};
use ledger::state::State;
use proptest::prelude::*;

const PROVIDERS: u128 = 4;
const CONSUMERS: u128 = 6;
/// Migrations are numbered from here on.
const MIGRATIONS: u128 = 100;

/// One random step. Its numbers are turned into commands against the state of the moment, so
/// that many are accepted; a refused one is as good a part of history.
#[derive(Clone, Debug)]
pub struct Step {
    pub what: u8,
    pub who: u128,
    pub on: u128,
    pub amount: u32,
    pub variant: u8,
}

pub fn step() -> impl Strategy<Value = Step> {
    (0..20u8, 0..CONSUMERS, 0..PROVIDERS, 1..6u32, 0..4u8)
        .prop_map(|(what, who, on, amount, variant)| Step { what, who, on, amount, variant })
}

/// The providers that every history begins with. The last one has one class less.
pub fn beginning() -> Vec<Command> {
    let mut commands = Vec::new();
    for number in 0..PROVIDERS {
        let all = [("VCPU", 10), ("MEMORY_MB", 4_096), ("DISK_GB", 12)];
        let has = if number + 1 == PROVIDERS { &all[..2] } else { &all[..] };
        commands.extend(make_provider(number, has));
    }
    commands
}

/// The commands of a step.
pub fn commands(step: &Step, state: &State) -> Vec<Command> {
    let who = consumer(step.who);
    let migration = consumer(MIGRATIONS + step.who * 4 + u128::from(step.variant));
    let kind = MoveKind::Resize;
    let wanted = wanted(step);
    match step.what {
        0..=3 => vec![claim(step, wanted)],
        4 => vec![Command::MoveToMigration(MoveToMigration { consumer: who, migration, kind })],
        5 => vec![Command::Resize(Resize {
            consumer: who,
            migration,
            kind,
            options: vec![wanted.clone(), holding(provider(0), &[("VCPU", 1)])],
            candidates: None,
            searched: None,
            ignore_hosts: Vec::new(),
            max_attempts: 2,
        })],
        6 => vec![Command::DoubleUp(DoubleUp { consumer: who, kind, options: vec![wanted] })],
        7 => vec![Command::Confirm(Confirm { consumer: who, move_id: None })],
        8 if step.variant < 2 => vec![Command::HostChanged(HostChanged {
            consumer: who,
            move_id: None,
            host: provider(step.on),
        })],
        8 => vec![Command::Fail(Fail {
            consumer: who,
            move_id: None,
            reason: "no such image".into(),
        })],
        9 => vec![Command::Revert(Revert { consumer: who, move_id: None, reason: None })],
        10 => vec![Command::Reschedule(Reschedule {
            consumer: who,
            move_id: None,
            reason: "no NUMA cell fits".into(),
            options: vec![wanted],
            candidates: None,
            searched: None,
        })],
        11 => vec![Command::Release(Release {
            consumer: who,
            ended: step.variant == 0,
            reason: None,
        })],
        12 => vec![replace(Via::Put, vec![write(step, wanted)])],
        13 => vec![replace(Via::Delete, vec![write(step, Holding::new())])],
        14 => hand_over(step, state),
        15 => inventories(step),
        16 => providers(step),
        17 => classes(step),
        18 => vec![Command::SetTraits(SetTraits {
            provider: provider(step.on),
            generation: None,
            traits: vec!["HW_CPU_X86_AVX2".into()],
        })],
        _ => vec![claim(step, wanted.clone()), replace(Via::Put, vec![write(step, wanted)])],
    }
}

fn wanted(step: &Step) -> Holding {
    let mut wanted = holding(provider(step.on), &[("VCPU", step.amount), ("MEMORY_MB", 512)]);
    if step.variant == 1 {
        // Disk on a provider that another host may use too.
        wanted.entry(provider(0)).or_default().insert("DISK_GB".into(), step.amount);
    }
    wanted
}

fn claim(step: &Step, wanted: Holding) -> Command {
    Command::Claim(Claim {
        consumer: consumer(step.who),
        project_id: format!("project-{}", step.variant % 2),
        user_id: format!("user-{}", step.who % 2),
        consumer_type: (step.variant > 1).then(|| "INSTANCE".to_owned()),
        options: vec![wanted],
        candidates: None,
        searched: None,
    })
}

fn write(step: &Step, allocations: Holding) -> ConsumerWrite {
    ConsumerWrite {
        consumer: consumer(step.who),
        allocations,
        project_id: format!("project-{}", step.variant % 2),
        user_id: "user-0".into(),
        consumer_type: (step.variant == 2).then(|| "VOLUME".to_owned()),
        generation: GenerationCheck::Unchecked,
    }
}

fn replace(via: Via, consumers: Vec<ConsumerWrite>) -> Command {
    Command::ReplaceAllocations(ReplaceAllocations { via, consumers })
}

/// What plain clients do to open a move or to revert it: one consumer gets what another held.
fn hand_over(step: &Step, state: &State) -> Vec<Command> {
    let migration = consumer(MIGRATIONS + step.who * 4 + u128::from(step.variant));
    let who = consumer(step.who);
    let (from, to) =
        if step.amount.is_multiple_of(2) { (who, migration) } else { (migration, who) };
    let holds = state.holding_of(from);
    let mut giver = write(step, Holding::new());
    giver.consumer = from;
    let mut receiver = write(step, holds);
    receiver.consumer = to;
    vec![replace(Via::Post, vec![giver, receiver])]
}

fn inventories(step: &Step) -> Vec<Command> {
    let inventory =
        Inventory { reserved: u32::from(step.variant), ..Inventory::of(step.amount * 4) };
    let change = match step.variant {
        0 => InventoryChange::Create("CUSTOM_LICENSE".into(), inventory),
        1 => InventoryChange::Update("VCPU".into(), inventory),
        2 => InventoryChange::Delete("CUSTOM_LICENSE".into()),
        _ => InventoryChange::Update("DISK_GB".into(), inventory),
    };
    vec![Command::ChangeInventories(ChangeInventories {
        provider: provider(step.on),
        generation: None,
        change,
        may_reserve_all: true,
    })]
}

fn providers(step: &Step) -> Vec<Command> {
    let uuid = provider(10 + step.on);
    let name = format!("extra-{}", step.on);
    vec![match step.variant {
        0 | 1 => Command::CreateProvider(CreateProvider { uuid, name, parent: None }),
        2 => Command::DeleteProvider(DeleteProvider { uuid }),
        _ => Command::UpdateProvider(UpdateProvider {
            uuid,
            name: format!("{name}-renamed"),
            parent: ParentChange::Set(Some(provider(0))),
            may_reparent: true,
        }),
    }]
}

fn classes(step: &Step) -> Vec<Command> {
    let name = "CUSTOM_LICENSE".to_owned();
    vec![match step.variant {
        0 | 1 => Command::CreateResourceClass(Named { name }),
        2 => Command::RenameResourceClass(RenameResourceClass {
            name,
            new_name: "CUSTOM_SEAT".into(),
        }),
        _ => Command::DeleteResourceClass(Named { name: "CUSTOM_SEAT".into() }),
    }]
}
