//! What happens in an interleaving, and how often.

use super::world::{HOSTS, MIGRATIONS, SERVERS};
use proptest::prelude::*;

/// Request ids that steps come with.
pub(super) const REQUESTS: [Option<&str>; 4] = [None, Some(""), Some("req-a"), Some("req-b")];

/// One step. To add a command: a step here, its strategy in [`step`], the command that it makes in
/// `commands.rs`, and if it never raises what is held, a line in `checks.rs`.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Claim(Wish),
    Put(u128, Wish),
    /// One side of a move, or both, lets go of a part.
    Shrink(u128, u32),
    /// What is held grows by so much, of the class with this number among those held.
    Grow(u128, usize, u32),
    /// A port comes: bandwidth of the network card, or a device below a host.
    Attach(u128, Option<u128>),
    Open(u128, u128),
    Resize(u128, u128, Wish),
    Confirm(u128),
    /// Of the oldest live move instead of the latest.
    ConfirmOldest(u128),
    Revert(u128),
    HostChanged(u128, u128),
    Fail(u128),
    Reschedule(u128, Option<Wish>),
    DoubleUp(Wish),
    /// A plain call that holds the same on a host beside what is held.
    DoublePlain(u128, u128),
    Release(u128, bool),
    ReleaseAndReserve(u128, u128),
    /// All that is held of a provider, or of so many consumers.
    ReleaseAll(u128, Option<u32>),
    PostOver(u128, u128),
    PostBack(u128, u128),
    Delete(u128),
    Part(u128, u128, u32),
    Inventory(u128, u32),
    Units(u128, (u32, u32, u32)),
    Add(u128, i64),
    /// An inventory goes, at once or when it is free.
    Drop(u128, bool),
    Retire(u128, bool),
    Unretire(u128),
    SameHost(bool),
    Overlap(usize, usize),
    Quota(Option<u64>),
    /// A class of a host's tree goes to another of its providers, or to another host; somebody may
    /// be left out of it.
    Reshape(Reshaping),
    CreateClass(usize),
    RenameClass(usize, usize),
    DeleteClass(usize),
    CreateTrait,
    DeleteTrait,
    Traits(u128, bool),
    Aggregates(u128),
    CreateProvider(u128),
    DeleteProvider(u128),
    /// A provider is hung below another, or becomes a root.
    Hang(u128, Option<u128>),
    SkipEvent,
    FailedSearch,
}

/// See [`Step::Reshape`].
#[derive(Clone, Debug)]
pub(super) struct Reshaping {
    pub(super) host: u128,
    pub(super) class: usize,
    pub(super) abroad: bool,
    pub(super) emptied: Option<u128>,
}

/// What a server asks for, on a host or if need be on the next, and of the shared storage.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) who: u128,
    pub(super) host: u128,
    pub(super) vcpus: u32,
    pub(super) disk: u32,
    pub(super) vgpus: u32,
    pub(super) custom: u32,
}

fn wish() -> impl Strategy<Value = Wish> {
    let devices = prop_oneof![2 => Just((0, 0)), 1 => (0..3u32, 0..3u32)];
    (0..SERVERS, 0..HOSTS, 1..5u32, 0..4u32, devices).prop_map(
        |(who, host, vcpus, disk, (vgpus, custom))| Wish { who, host, vcpus, disk, vgpus, custom },
    )
}

/// Steps about what is held and moved.
fn moving() -> impl Strategy<Value = Step> {
    let who = 0..SERVERS;
    let anybody = 0..SERVERS * (1 + MIGRATIONS);
    let which = 0..MIGRATIONS;
    let host = 0..HOSTS;
    let releases = prop_oneof![
        2 => (anybody.clone(), 1..4u32).prop_map(|(who, by)| Step::Shrink(who, by)),
        1 => (anybody.clone(), any::<bool>()).prop_map(|(who, ended)| Step::Release(who, ended)),
        1 => anybody.clone().prop_map(Step::Delete),
        1 => (anybody.clone(), 0..8u128, 1..3u32).prop_map(|(who, on, by)| Step::Part(who, on, by)),
        1 => (anybody.clone(), host.clone()).prop_map(|(who, on)| Step::ReleaseAndReserve(who, on)),
        1 => (0..8u128, proptest::option::of(0..3u32))
            .prop_map(|(on, most)| Step::ReleaseAll(on, most)),
    ];
    let doubles = prop_oneof![
        2 => wish().prop_map(Step::DoubleUp),
        2 => (who.clone(), host.clone()).prop_map(|(who, on)| Step::DoublePlain(who, on)),
        2 => (anybody.clone(), 0..4usize, 1..3u32).prop_map(|(who, n, by)| Step::Grow(who, n, by)),
        2 => (anybody.clone(), proptest::option::of(host.clone()))
            .prop_map(|(who, on)| Step::Attach(who, on)),
        1 => who.clone().prop_map(Step::ConfirmOldest),
    ];
    prop_oneof![
        2 => wish().prop_map(Step::Claim),
        3 => wish().prop_map(|wish| Step::Put(wish.who, wish)),
        1 => (anybody, wish()).prop_map(|(who, wish)| Step::Put(who, wish)),
        1 => (who.clone(), which.clone()).prop_map(|(who, n)| Step::Open(who, n)),
        2 => (which.clone(), wish()).prop_map(|(n, wish)| Step::Resize(wish.who, n, wish)),
        2 => who.clone().prop_map(Step::Confirm),
        2 => who.clone().prop_map(Step::Revert),
        1 => (who.clone(), host).prop_map(|(who, host)| Step::HostChanged(who, host)),
        1 => who.clone().prop_map(Step::Fail),
        1 => wish().prop_map(|wish| Step::Reschedule(wish.who, Some(wish))),
        1 => who.clone().prop_map(|who| Step::Reschedule(who, None)),
        3 => (who.clone(), which.clone()).prop_map(|(who, n)| Step::PostOver(who, n)),
        2 => (who, which).prop_map(|(who, n)| Step::PostBack(who, n)),
        4 => doubles,
        5 => releases,
    ]
}

/// Steps about providers, classes and settings.
fn meanwhile() -> impl Strategy<Value = Step> {
    let on = 0..8u128;
    let spare = 8..10u128;
    let class = 0..3usize;
    let units = (1..4u32, 1..5u32, 1..4u32);
    let reshaping = (0..HOSTS, 0..3usize, any::<bool>(), proptest::option::weighted(0.2, 0..8u128))
        .prop_map(|(host, class, abroad, emptied)| Reshaping { host, class, abroad, emptied });
    let providers = prop_oneof![
        spare.clone().prop_map(Step::CreateProvider),
        spare.clone().prop_map(Step::DeleteProvider),
        (prop_oneof![4..10u128, spare.clone()], proptest::option::of(0..HOSTS))
            .prop_map(|(on, below)| Step::Hang(on, below)),
        (on.clone(), any::<bool>()).prop_map(|(on, now)| Step::Drop(on, now)),
        (prop_oneof![on.clone(), spare], any::<bool>())
            .prop_map(|(on, free)| Step::Retire(on, free)),
        on.clone().prop_map(Step::Unretire),
        on.clone().prop_map(Step::Unretire),
    ];
    let names = prop_oneof![
        2 => class.clone().prop_map(Step::CreateClass),
        4 => (class.clone(), class.clone()).prop_map(|(from, to)| Step::RenameClass(from, to)),
        1 => class.clone().prop_map(Step::DeleteClass),
        1 => Just(Step::CreateTrait),
        1 => Just(Step::DeleteTrait),
        1 => (3..5u128, any::<bool>()).prop_map(|(on, shares)| Step::Traits(on, shares)),
        1 => on.clone().prop_map(Step::Aggregates),
    ];
    let marks = prop_oneof![Just(Step::SkipEvent), Just(Step::FailedSearch)];
    prop_oneof![
        2 => (on.clone(), 1..5u32).prop_map(|(on, half)| Step::Inventory(on, half * 2)),
        2 => (on.clone(), units).prop_map(|(on, units)| Step::Units(on, units)),
        2 => (on, -2..3i64).prop_map(|(on, by)| Step::Add(on, by)),
        2 => any::<bool>().prop_map(Step::SameHost),
        2 => (0..3usize, class).prop_map(|(rule, class)| Step::Overlap(rule, class)),
        2 => proptest::option::of(0..16u64).prop_map(Step::Quota),
        4 => reshaping.prop_map(Step::Reshape),
        2 => providers,
        3 => names,
        1 => marks,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![5 => moving(), 2 => meanwhile()]
}

/// Steps, each with the number of the request id that it comes with; mostly one and the same.
pub(super) fn steps() -> impl Strategy<Value = Vec<(Step, usize)>> {
    let request = prop_oneof![4 => Just(2usize), 1 => 0..REQUESTS.len()];
    proptest::collection::vec((step(), request), 1..60)
}
