//! Invariants 3, 4 and 5 over random interleavings: moves by the ledger's commands and by plain
//! Placement calls, with the request id of the move or another; chains of moves; sources and
//! destinations that shrink, inventories that do; a provider that hosts share; a limit of the project.

use crate::amounts::{Holding, Inventory};
use crate::command::*;
use crate::decide::decide;
use crate::event::{Event, MoveState};
use crate::ids::{ConsumerUuid, ProviderUuid};
use crate::stamp::{Actor, Stamp};
use crate::state::State;
use crate::time::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use uuid::Uuid;

const SERVERS: u128 = 4;
const HOSTS: u128 = 3;
/// Lends its disk to all hosts.
const STORAGE: u128 = 3;
/// Migration consumers of each server, so that moves can follow on moves.
const MIGRATIONS: u128 = 2;
const REQUESTS: [Option<&str>; 4] = [None, Some(""), Some("req-a"), Some("req-b")];

#[derive(Clone, Debug)]
enum Step {
    Claim(Wish),
    Put(u128, Wish),
    /// One side of a move, or both, lets go of a part.
    Shrink(u128, u32),
    Open(u128, u128),
    Resize(u128, u128, Wish),
    Confirm(u128),
    Revert(u128),
    HostChanged(u128, u128),
    Fail(u128),
    Reschedule(u128, Option<Wish>),
    DoubleUp(Wish),
    Release(u128, bool),
    PostOver(u128, u128),
    PostBack(u128, u128),
    Delete(u128),
    Inventory(u128, u32),
    /// A part of what a consumer holds of a host goes.
    Part(u128, u128, u32),
    Add(u128, i64),
    Quota(Option<u64>),
    Setting(bool),
}

/// What a server asks for, on a host or if need be on the next, and of the shared storage.
#[derive(Clone, Debug)]
struct Wish {
    who: u128,
    host: u128,
    vcpus: u32,
    disk: u32,
}

impl Wish {
    fn on(&self, host: u128) -> Holding {
        let mut wanted = Holding::from([(provider(host), [("VCPU".into(), self.vcpus)].into())]);
        if self.disk > 0 {
            wanted.insert(provider(STORAGE), [("DISK_GB".into(), self.disk)].into());
        }
        wanted
    }

    fn options(&self) -> Vec<Holding> {
        vec![self.on(self.host), self.on((self.host + 1) % HOSTS)]
    }
}

fn wish() -> impl Strategy<Value = Wish> {
    (0..SERVERS, 0..HOSTS, 1..5u32, 0..4u32).prop_map(|(who, host, vcpus, disk)| Wish {
        who,
        host,
        vcpus,
        disk,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..SERVERS;
    let anybody = 0..SERVERS * (1 + MIGRATIONS);
    let anybody_too = anybody.clone();
    let which = 0..MIGRATIONS;
    prop_oneof![
        2 => wish().prop_map(Step::Claim),
        3 => wish().prop_map(|wish| Step::Put(wish.who, wish)),
        1 => (anybody.clone(), wish()).prop_map(|(who, wish)| Step::Put(who, wish)),
        2 => (anybody.clone(), 1..4u32).prop_map(|(who, by)| Step::Shrink(who, by)),
        1 => (who.clone(), which.clone()).prop_map(|(who, n)| Step::Open(who, n)),
        2 => (which.clone(), wish()).prop_map(|(n, wish)| Step::Resize(wish.who, n, wish)),
        2 => who.clone().prop_map(Step::Confirm),
        2 => who.clone().prop_map(Step::Revert),
        1 => (who.clone(), 0..HOSTS).prop_map(|(who, host)| Step::HostChanged(who, host)),
        1 => who.clone().prop_map(Step::Fail),
        1 => wish().prop_map(|wish| Step::Reschedule(wish.who, Some(wish))),
        1 => who.clone().prop_map(|who| Step::Reschedule(who, None)),
        1 => wish().prop_map(Step::DoubleUp),
        1 => (anybody.clone(), any::<bool>()).prop_map(|(who, ended)| Step::Release(who, ended)),
        3 => (who.clone(), which.clone()).prop_map(|(who, n)| Step::PostOver(who, n)),
        2 => (who, which).prop_map(|(who, n)| Step::PostBack(who, n)),
        1 => anybody.prop_map(Step::Delete),
        1 => (0..=STORAGE, 1..5u32).prop_map(|(on, half)| Step::Inventory(on, half * 2)),
        2 => (anybody_too, 0..HOSTS, 1..3u32).prop_map(|(who, on, by)| Step::Part(who, on, by)),
        1 => (0..HOSTS, -2..3i64).prop_map(|(on, by)| Step::Add(on, by)),
        1 => proptest::option::of(0..16u64).prop_map(Step::Quota),
        1 => any::<bool>().prop_map(Step::Setting),
    ]
}

/// A step and the request id it comes with; mostly one and the same.
fn steps() -> impl Strategy<Value = Vec<(Step, usize)>> {
    let request = prop_oneof![4 => Just(2usize), 1 => 0..REQUESTS.len()];
    proptest::collection::vec((step(), request), 1..60)
}

fn provider(number: u128) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(0xa0 + number))
}

fn consumer(number: u128) -> ConsumerUuid {
    ConsumerUuid(Uuid::from_u128(0xc000 + number))
}

fn migration(who: u128, which: u128) -> u128 {
    SERVERS * (1 + which) + who
}

fn plain(via: Via, writes: Vec<(u128, Holding)>) -> Command {
    let consumers = writes.into_iter().map(|(who, allocations)| ConsumerWrite {
        consumer: consumer(who),
        allocations,
        project_id: "p".into(),
        user_id: "u".into(),
        consumer_type: None,
        generation: GenerationCheck::Unchecked,
    });
    Command::ReplaceAllocations(ReplaceAllocations { via, consumers: consumers.collect() })
}

/// What is left of a holding when some of each amount goes; what would be nothing stays.
fn shrunk(state: &State, who: u128, by: u32) -> Holding {
    let mut left = state.holding_of(consumer(who));
    for amount in left.values_mut().flat_map(BTreeMap::values_mut) {
        *amount = amount.saturating_sub(by).max(1);
    }
    left
}

fn command(step: &Step, state: &State) -> Command {
    match step.clone() {
        Step::Claim(wish) => Command::Claim(Claim {
            consumer: consumer(wish.who),
            project_id: "p".into(),
            user_id: "u".into(),
            consumer_type: None,
            options: wish.options(),
            candidates: None,
            searched: None,
        }),
        Step::Put(who, wish) => plain(Via::Put, vec![(who, wish.on(wish.host))]),
        Step::Shrink(who, by) => plain(Via::Put, vec![(who, shrunk(state, who, by))]),
        Step::Open(who, which) => Command::MoveToMigration(MoveToMigration {
            consumer: consumer(who),
            migration: consumer(migration(who, which)),
            kind: MoveKind::Resize,
        }),
        Step::Resize(who, which, wish) => Command::Resize(Resize {
            consumer: consumer(who),
            migration: consumer(migration(who, which)),
            kind: MoveKind::Resize,
            options: wish.options(),
            candidates: None,
            searched: None,
            ignore_hosts: Vec::new(),
            max_attempts: 2,
        }),
        Step::Confirm(who) => Command::Confirm(Confirm { consumer: consumer(who), move_id: None }),
        Step::Revert(who) => {
            Command::Revert(Revert { consumer: consumer(who), move_id: None, reason: None })
        }
        Step::HostChanged(who, host) => Command::HostChanged(HostChanged {
            consumer: consumer(who),
            move_id: None,
            host: provider(host),
        }),
        Step::Fail(who) => {
            Command::Fail(Fail { consumer: consumer(who), move_id: None, reason: "test".into() })
        }
        Step::Reschedule(who, wish) => Command::Reschedule(Reschedule {
            consumer: consumer(who),
            move_id: None,
            reason: "test".into(),
            options: wish.map(|wish| wish.options()).unwrap_or_default(),
            candidates: None,
            searched: None,
        }),
        Step::DoubleUp(wish) => Command::DoubleUp(DoubleUp {
            consumer: consumer(wish.who),
            kind: MoveKind::Evacuation,
            options: wish.options(),
        }),
        Step::Release(who, ended) => {
            Command::Release(Release { consumer: consumer(who), ended, reason: None })
        }
        Step::PostOver(who, which) => hand_over(state, who, migration(who, which)),
        Step::PostBack(who, which) => hand_over(state, migration(who, which), who),
        Step::Delete(who) => plain(Via::Delete, vec![(who, Holding::new())]),
        Step::Inventory(on, total) => Command::ChangeInventories(ChangeInventories {
            provider: provider(on),
            generation: None,
            change: InventoryChange::Update(class_of(on).into(), Inventory::of(total)),
            may_reserve_all: true,
        }),
        Step::Part(who, on, amount) => Command::ReleasePart(ReleasePart {
            consumer: consumer(who),
            provider: provider(on),
            class: "VCPU".into(),
            amount,
            reason: None,
        }),
        Step::Add(on, total) => Command::AddInventory(AddInventory {
            provider: provider(on),
            class: "VCPU".into(),
            total,
            reserved: 0,
        }),
        Step::Quota(limit) => Command::SetQuota(SetQuota {
            project_id: Some("p".into()),
            limits: [("VCPU".to_owned(), limit.map(Limit::AtMost))].into(),
        }),
        Step::Setting(max) => {
            let rule = if max { SameHostMoves::Max } else { SameHostMoves::Sum };
            let change =
                ChangeSettings { same_host_moves: Some(rule), ..ChangeSettings::default() };
            Command::ChangeSettings(change)
        }
    }
}

fn hand_over(state: &State, from: u128, to: u128) -> Command {
    let whole = state.holding_of(consumer(from));
    plain(Via::Post, vec![(from, Holding::new()), (to, whole)])
}

fn class_of(number: u128) -> &'static str {
    if number == STORAGE { "DISK_GB" } else { "VCPU" }
}

/// What is held of each provider.
type Held = Vec<u64>;

fn held(state: &State) -> Held {
    (0..=STORAGE)
        .map(|on| state.provider(provider(on)).map_or(0, |row| row.inventories[0].held))
        .collect()
}

fn capacity(state: &State, on: usize) -> u64 {
    let row = state.provider(provider(on as u128)).unwrap();
    row.inventories[0].inventory.capacity() as u64
}

/// A state, and commands that are decided on it one after the other.
struct World {
    state: State,
    number: u64,
}

impl World {
    fn new() -> Self {
        let genesis = crate::event::Genesis {
            ledger_id: Default::default(),
            hash: String::new(),
            encoding: String::new(),
            base_sequence: 0,
            base_hash: Default::default(),
            base_state_digest: Default::default(),
            standard_classes: ["VCPU", "DISK_GB"].map(str::to_owned).to_vec(),
            standard_traits: vec!["MISC_SHARES_VIA_AGGREGATE".to_owned()],
        };
        let mut state = State::default();
        state.apply(1, Timestamp::from_micros(1), &Event::Genesis(genesis));
        let mut world = Self { state, number: 1 };
        for on in 0..=STORAGE {
            world.begin_with(on);
        }
        world
    }

    fn begin_with(&mut self, on: u128) {
        let uuid = provider(on);
        let traits =
            if on == STORAGE { vec!["MISC_SHARES_VIA_AGGREGATE".to_owned()] } else { vec![] };
        let all = [(class_of(on).to_owned(), Inventory::of(6))].into();
        let list = [
            Command::CreateProvider(CreateProvider { uuid, name: format!("{on}"), parent: None }),
            Command::ChangeInventories(ChangeInventories {
                provider: uuid,
                generation: None,
                change: InventoryChange::ReplaceAll(all),
                may_reserve_all: true,
            }),
            Command::SetTraits(SetTraits { provider: uuid, generation: None, traits }),
        ];
        for command in list {
            self.decide(&command, None).expect("a beginning");
        }
    }

    /// Decides a command and takes its events in; none: it is refused.
    fn decide(&mut self, command: &Command, request_id: Option<&str>) -> Option<Vec<Event>> {
        self.number += 1;
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&self.number.to_be_bytes());
        let now = Timestamp::from_micros(self.number as i64);
        let stamp = Stamp {
            seed,
            received_at: now,
            actor: Actor::default(),
            request_id: request_id.map(str::to_owned),
            command_id: None,
        };
        let decided = decide(&self.state, std::slice::from_ref(command), &stamp, now).ok()?;
        self.state = decided.state;
        Some(decided.events)
    }
}

/// How a rule counts what is held: taken along with the events, asked for after each step.
trait Rule: Default {
    fn after(&mut self, state: &State, events: &[Event]) -> Held;
}

/// The ledger's own: of a link group the largest amount that its members have now.
#[derive(Default)]
struct Largest;

impl Rule for Largest {
    fn after(&mut self, state: &State, _: &[Event]) -> Held {
        held(state)
    }
}

/// One that looks as good at first: when overlap is granted it is remembered how much that is, and
/// as long as both sides are there so much is subtracted from their sum.
#[derive(Default)]
struct Subtracted {
    overlaps: BTreeMap<(ConsumerUuid, ConsumerUuid), Held>,
}

impl Subtracted {
    fn amounts(state: &State, who: ConsumerUuid) -> Held {
        let holding = state.holding_of(who);
        let of = |on| holding.get(&provider(on)).map_or(0, |all| all.values().copied().sum());
        (0..=STORAGE).map(|on| u64::from(of(on))).collect()
    }
}

impl Rule for Subtracted {
    fn after(&mut self, state: &State, events: &[Event]) -> Held {
        let linked = |a, b| {
            let link = |who| state.consumer(who).and_then(|row| row.link);
            link(a).is_some() && link(a) == link(b)
        };
        self.overlaps.retain(|(a, b), _| linked(*a, *b));
        for event in events {
            let Event::Claimed(body) = event else { continue };
            let [claimed, source] = &body.consumers[..] else { continue };
            let (claimed, source) = (claimed.consumer, source.consumer);
            if linked(claimed, source) {
                let (a, b) = (Self::amounts(state, claimed), Self::amounts(state, source));
                let both = a.into_iter().zip(b).map(|(a, b)| a.min(b)).collect();
                self.overlaps.insert((claimed, source), both);
            }
        }
        let mut sum = vec![0u64; STORAGE as usize + 1];
        for (_, row) in state.consumers() {
            let amounts = Self::amounts(state, row.uuid);
            sum.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += amount);
        }
        for overlap in self.overlaps.values() {
            sum.iter_mut().zip(overlap).for_each(|(sum, both)| *sum = sum.saturating_sub(*both));
        }
        sum
    }
}

fn keeps_the_invariants<R: Rule>(steps: &[(Step, usize)]) -> Result<(), TestCaseError> {
    let mut world = World::new();
    let mut rule = R::default();
    let mut before = rule.after(&world.state, &[]);
    for (step, request) in steps {
        let then = world.state.clone();
        let command = command(step, &then);
        let Some(events) = world.decide(&command, REQUESTS[*request]) else { continue };
        let told = |what: &str| TestCaseError::fail(format!("{step:?}: {what}"));
        world.state.check_invariants().map_err(|wrong| told(&format!("{wrong:?}")))?;
        let after = rule.after(&world.state, &events);
        for on in 0..after.len() {
            let fits = after[on] <= capacity(&world.state, on) || after[on] <= before[on];
            if !fits && !matches!(step, Step::Inventory(..) | Step::Add(..)) {
                return Err(told(&format!("{} held of provider {on}", after[on])));
            }
        }
        if never_raises(step) && after.iter().zip(&before).any(|(after, before)| after > before) {
            return Err(told(&format!("raises what is held from {before:?} to {after:?}")));
        }
        ends_exactly(step, &then, &world.state).map_err(|what| told(&what))?;
        stays_within_its_quota(step, &then, &world.state).map_err(|what| told(&what))?;
        before = after;
    }
    Ok(())
}

/// Opening, confirming and reverting by whichever call, and letting go.
fn never_raises(step: &Step) -> bool {
    matches!(
        step,
        Step::Open(..)
            | Step::Confirm(_)
            | Step::Revert(_)
            | Step::Fail(_)
            | Step::PostOver(..)
            | Step::PostBack(..)
            | Step::HostChanged(..)
            | Step::Delete(_)
            | Step::Release(..)
            | Step::Shrink(..)
            | Step::Part(..)
    )
}

/// A confirm leaves exactly the destination and a revert exactly the source, as they then stood.
fn ends_exactly(step: &Step, before: &State, after: &State) -> Result<(), String> {
    let (Step::Confirm(who) | Step::Revert(who)) = step else { return Ok(()) };
    let Some(entry) = before.moves().live_of_instance(consumer(*who)).next() else { return Ok(()) };
    let Some(ended) = after.moves().get(entry.this.id) else { return Ok(()) };
    let Some(migration) = entry.this.migration else { return Ok(()) };
    let left = |consumer| after.holding_of(consumer);
    let expected = match ended.this.state {
        MoveState::Confirmed => before.holding_of(consumer(*who)),
        MoveState::Reverted => before.holding_of(migration),
        _ => return Ok(()),
    };
    if left(consumer(*who)) != expected || !left(migration).is_empty() {
        return Err(format!("left {:?} instead of {expected:?}", left(consumer(*who))));
    }
    Ok(())
}

/// The project holds no more than its limit, unless it held as much before.
fn stays_within_its_quota(step: &Step, before: &State, after: &State) -> Result<(), String> {
    let vcpu = after.classes().id("VCPU").expect("a class");
    let held = [before, after].map(|state| state.held_by_project("p", vcpu));
    match after.limit_of("p", vcpu) {
        Some(limit) if held[1] > limit.max(held[0]) && !matches!(step, Step::Quota(_)) => {
            Err(format!("leaves the project with {held:?} of {limit}"))
        }
        _ => Ok(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn held_never_goes_above_capacity_and_ends_never_raise_it(steps in steps()) {
        keeps_the_invariants::<Largest>(&steps)?;
    }
}

/// The same interleavings find out a rule that subtracts what was remembered as overlap: once one
/// side shrinks it counts too little, and an end raises it.
#[test]
fn a_rule_that_subtracts_a_remembered_overlap_would_be_found_out() {
    let config = Config { cases: 2_000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let found = runner.run(&steps(), |steps| keeps_the_invariants::<Subtracted>(&steps));
    let told = found.expect_err("the interleavings do not tell the rules apart").to_string();
    assert!(told.contains("raises what is held") || told.contains("held of provider"), "{told}");
}

/// The example of Launchpad bug 1790204 when the source shrinks before the end: that it lets go is
/// never refused, and takes nothing from the destination.
#[test]
fn a_source_that_shrinks_first_leaves_the_destination_whole() {
    let mut world = World::new();
    let four = || Wish { who: 0, host: 0, vcpus: 4, disk: 0 };
    let mut held_after = |step: Step| {
        let command = command(&step, &world.state);
        assert!(world.decide(&command, Some("req-a")).is_some(), "{step:?}");
        held(&world.state)[0]
    };
    held_after(Step::Setting(true));
    held_after(Step::Inventory(0, 4));
    assert_eq!(held_after(Step::Put(0, four())), 4);
    assert_eq!(held_after(Step::PostOver(0, 0)), 4);
    assert_eq!(held_after(Step::Put(0, four())), 4, "of both sides the larger counts");
    assert_eq!(held_after(Step::Shrink(migration(0, 0), 2)), 4);
    assert_eq!(held_after(Step::Delete(migration(0, 0))), 4);
}
