//! `resize`: opens a move and claims its destination at once, as comment 14 of Launchpad bug
//! 1790204 asks of the conductor.
//!
//! The source goes to the migration. Then the consumer's own host is tried first, where only the
//! larger of both sides counts; it must be a resize, and the host not among `ignore_hosts`. If it
//! does not fit there, that host is ignored, and the other options are tried in order. Once a
//! destination fits, up to `max_attempts - 1` alternates on further hosts are looked for among the
//! options; finding none is no error. They hold nothing: `reschedule` takes the next that then
//! still fits. If nothing fits, nothing changes.

use super::Decision;
use super::claim::{self, Destination, claim_one};
use super::host::{host_of, hosts, roots};
use super::move_to_migration::open;
use super::options::{Taken, Wanted, charge, count, pass_over};
use super::plan::malformed;
use crate::amounts::Holding;
use crate::command::{MoveKind, MoveToMigration, Resize};
use crate::decide::{Draft, too_large};
use crate::event::{Alternate, Move};
use crate::ids::ProviderUuid;
use crate::limits;
use crate::refusal::{Cause, PassedOver, Refusal, Shortage};
use crate::state::ProviderId;
use std::collections::BTreeSet;

pub(super) fn decide(draft: &mut Draft<'_>, command: &Resize) -> Decision {
    check(command)?;
    let mut trial = draft.trial();
    let this = open(
        &mut trial,
        &MoveToMigration {
            consumer: command.consumer,
            migration: command.migration,
            kind: command.kind,
        },
    )?;
    let wanted = Wanted::of(
        draft,
        command.consumer,
        &command.options,
        command.candidates.as_deref(),
        command.searched.as_ref(),
    )?;
    wanted.take(|options| {
        let found = Search::new(&trial, command, options, &this).run()?;
        let this = Move { alternates: found.alternates, ..this.clone() };
        let owner = this.owner.clone();
        let taken = Taken { option: found.option, passed_over: &found.passed_over };
        // The search numbers these very options.
        let option = &options[found.option as usize];
        let destination = Some(Destination { this, reason: None });
        claim_one(&mut trial, command.consumer, &owner, option, destination, taken)
    })?;
    draft.accept(trial);
    Ok(None)
}

fn check(command: &Resize) -> Result<(), Refusal> {
    if command.max_attempts == 0 || command.max_attempts > limits::ATTEMPTS {
        let most = limits::ATTEMPTS;
        return Err(malformed(format!("max_attempts is not between 1 and {most}")).into());
    }
    if command.ignore_hosts.len() > limits::HOSTS_IGNORED {
        return Err(too_large("hosts to ignore", limits::HOSTS_IGNORED));
    }
    Ok(())
}

/// Where to go.
struct Found {
    option: u32,
    alternates: Vec<Alternate>,
    passed_over: Vec<PassedOver>,
}

/// The search among the options, on a state in which the move is open.
struct Search<'s, 'd> {
    draft: &'s Draft<'d>,
    command: &'s Resize,
    options: &'s [Holding],
    this: &'s Move,
    source: BTreeSet<ProviderId>,
    ignored: BTreeSet<ProviderId>,
    passed_over: Vec<PassedOver>,
    last: Vec<Shortage>,
}

impl<'s, 'd> Search<'s, 'd> {
    fn new(
        draft: &'s Draft<'d>,
        command: &'s Resize,
        options: &'s [Holding],
        this: &'s Move,
    ) -> Self {
        Self {
            draft,
            command,
            options,
            this,
            source: hosts(&draft.state, &this.source),
            ignored: roots(&draft.state, &command.ignore_hosts),
            passed_over: Vec::new(),
            last: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Found, Refusal> {
        let numbered = (0u32..).zip(self.options);
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            numbered.partition(|(_, option)| self.is_here(option));
        let mut elsewhere = elsewhere.into_iter();
        let mut taken = self.first(&mut here.into_iter())?;
        if taken.is_none() {
            taken = self.first(&mut elsewhere)?;
        }
        let Some((option, holding)) = taken else {
            return Err(Refusal {
                shortages: self.last,
                passed_over: self.passed_over,
                options: count(self.options),
                ..Refusal::because(Cause::NoOptionFits)
            });
        };
        let alternates = self.alternates(holding, &mut elsewhere)?;
        Ok(Found { option, alternates, passed_over: self.passed_over })
    }

    /// Whether all of an option's providers, sharing ones aside, are in the source's tree.
    fn is_here(&self, option: &Holding) -> bool {
        let hosts = hosts(&self.draft.state, option);
        !hosts.is_empty() && hosts.is_subset(&self.source)
    }

    /// The next option that fits.
    fn first<'c>(
        &mut self,
        options: &mut impl Iterator<Item = (u32, &'c Holding)>,
    ) -> Result<Option<(u32, &'c Holding)>, Refusal> {
        for (number, option) in options {
            charge(self.draft, option)?;
            match self.try_one(option) {
                Ok(()) => return Ok(Some((number, option))),
                Err(refusal) => self.pass_over(number, &refusal),
            }
        }
        Ok(None)
    }

    /// Further hosts in order, each once, on which the next option fits.
    fn alternates<'c>(
        &mut self,
        taken: &Holding,
        options: &mut impl Iterator<Item = (u32, &'c Holding)>,
    ) -> Result<Vec<Alternate>, Refusal> {
        let mut seen = vec![self.host(taken)];
        let mut found = Vec::new();
        for (number, option) in options {
            if found.len() + 1 >= self.command.max_attempts as usize {
                break;
            }
            let host = self.host(option);
            if seen.contains(&host) {
                continue;
            }
            charge(self.draft, option)?;
            match (self.try_one(option), host) {
                (Ok(()), Some(host)) => {
                    found.push(Alternate { host, holding: option.clone() });
                    seen.push(Some(host));
                }
                (Ok(()), None) => {}
                (Err(refusal), _) => self.pass_over(number, &refusal),
            }
        }
        Ok(found)
    }

    fn try_one(&self, option: &Holding) -> Result<(), Refusal> {
        let host = || self.host(option).unwrap_or_default();
        if self.command.kind != MoveKind::Resize && self.is_here(option) {
            return Err(Cause::SameHost { host: host() }.into());
        }
        if !hosts(&self.draft.state, option).is_disjoint(&self.ignored) {
            return Err(Cause::HostIgnored { host: host() }.into());
        }
        let destination = Some(Destination { this: self.this.clone(), reason: None });
        claim::check(self.draft, self.this.instance, &self.this.owner, option, destination)
    }

    fn pass_over(&mut self, number: u32, refusal: &Refusal) {
        pass_over(&mut self.passed_over, number, refusal);
        if !refusal.shortages.is_empty() {
            self.last.clone_from(&refusal.shortages);
        }
    }

    fn host(&self, option: &Holding) -> Option<ProviderUuid> {
        host_of(&self.draft.state, option)
    }
}

#[cfg(test)]
mod tests {
    use crate::amounts::Holding;
    use crate::command::{Command, MoveKind, Resize};
    use crate::commands::testing::*;
    use crate::event::{Event, MoveState};
    use crate::refusal::Cause;

    fn on(host: u128, vcpus: u32) -> Holding {
        holding(&[(host, &[("VCPU", vcpus)])])
    }

    /// Hosts 1 to 4 with 8 VCPU; server 1 holds 2 of host 1.
    fn cloud() -> World {
        let mut world = (1..=4).fold(World::new(), |world, host| world.host(host, &[("VCPU", 8)]));
        world.ok(claim(1, &[on(1, 2)]));
        world
    }

    fn with(options: &[Holding], change: impl FnOnce(&mut Resize)) -> Command {
        let Command::Resize(mut it) = resize(1, 9, options) else { panic!("no resize") };
        change(&mut it);
        Command::Resize(it)
    }

    fn hosts(world: &World) -> Vec<u128> {
        let alternates = world.latest_move(1).alternates;
        let number = |host: crate::ids::ProviderUuid| host.0.as_u128() - provider(0).0.as_u128();
        alternates.iter().map(|alternate| number(alternate.host)).collect()
    }

    /// Launchpad bug 1790204, case A1, in one command.
    #[test]
    fn on_its_own_full_host_the_larger_of_both_counts() {
        let small: &[(&str, u32)] = &[("VCPU", 1), ("MEMORY_MB", 2048), ("DISK_GB", 1028)];
        let big: &[(&str, u32)] = &[("VCPU", 2), ("MEMORY_MB", 2048), ("DISK_GB", 1028)];
        for (end, left) in [(confirm(1), big), (revert(1), small)] {
            let all = [("VCPU", 2), ("MEMORY_MB", 8192), ("DISK_GB", 1028)];
            let mut world = World::new().host(1, &all);
            world.ok(claim(1, &[holding(&[(1, small)])]));
            let kinds = world.kinds(resize(1, 9, &[holding(&[(1, big)])]));
            assert_eq!(kinds, ["MovedToMigration", "Claimed"]);
            let held = ["VCPU", "MEMORY_MB", "DISK_GB"].map(|class| world.held(1, class));
            assert_eq!(held, [2, 2048, 1028]);
            let body = world.last_body();
            assert_eq!((body.host, body.option), (Some(provider(1)), Some(0)));
            // Case A3: source and destination of one provider do not cancel out.
            assert_eq!(body.moves[0].source, holding(&[(1, small)]));
            assert_eq!(body.moves[0].destination, holding(&[(1, big)]));
            world.ok(end);
            assert_eq!((world.holds(1), world.holds(9)), (holding(&[(1, left)]), Holding::new()));
        }
    }

    #[test]
    fn the_own_host_comes_first_wherever_it_stands_and_alternates_are_kept_in_order() {
        let mut world = cloud();
        world.ok(resize(1, 9, &[on(2, 4), on(3, 9), on(1, 4), on(4, 4), on(2, 5)]));
        assert_eq!(world.holds(1), on(1, 4));
        assert_eq!(world.held(1, "VCPU"), 4);
        assert_eq!(hosts(&world), [2, 4], "max_attempts is 3: the destination and two more");
        let passed_over = world.last_body().passed_over;
        assert_eq!((passed_over.len(), passed_over[0].option), (1, 1));
        assert_eq!(passed_over[0].cause, Cause::Capacity);
        assert_eq!((world.held(2, "VCPU"), world.held(4, "VCPU")), (0, 0), "they hold nothing");
    }

    #[test]
    fn finding_no_alternate_is_no_error_and_none_is_looked_for_beyond_max_attempts() {
        let mut world = cloud();
        world.ok(resize(1, 9, &[on(1, 4)]));
        assert!(hosts(&world).is_empty());
        let mut world = cloud();
        world.ok(with(&[on(1, 4), on(2, 4)], |it| it.max_attempts = 1));
        assert!(hosts(&world).is_empty());
        for attempts in [0, 17] {
            let refusal = cloud().refused(with(&[on(1, 4)], |it| it.max_attempts = attempts));
            assert!(matches!(refusal.cause, Cause::Malformed { .. }));
        }
    }

    #[test]
    fn an_own_host_that_is_ignored_or_too_small_is_passed_over() {
        let mut world = cloud();
        world.ok(with(&[on(1, 4), on(2, 4), on(3, 4)], |it| it.ignore_hosts = vec![provider(1)]));
        assert_eq!((world.holds(1), hosts(&world)), (on(2, 4), vec![3]));
        assert_eq!(
            world.last_body().passed_over[0].cause,
            Cause::HostIgnored { host: provider(1) }
        );
        let mut world = cloud();
        world.ok(claim(5, &[on(1, 5)]));
        world.ok(resize(1, 9, &[on(1, 4), on(2, 4)]));
        assert_eq!(world.holds(1), on(2, 4));
        let shortage = &world.last_body().passed_over[0].shortages[0];
        assert_eq!((shortage.needed, shortage.free), (4, 3), "the own 2 do not stand in the way");
    }

    #[test]
    fn only_a_resize_may_stay_on_its_host() {
        for kind in [MoveKind::Migration, MoveKind::LiveMigration, MoveKind::Evacuation] {
            let mut world = cloud();
            world.ok(with(&[on(1, 2), on(2, 2)], |it| it.kind = kind));
            assert_eq!(world.holds(1), on(2, 2));
            let refusal = cloud().refused(with(&[on(1, 2)], |it| it.kind = kind));
            assert_eq!(refusal.passed_over[0].cause, Cause::SameHost { host: provider(1) });
        }
    }

    #[test]
    fn if_nothing_fits_nothing_changes_and_each_option_is_told() {
        let mut world = cloud();
        let refusal = world.refused(resize(1, 9, &[on(1, 9), on(2, 10)]));
        assert_eq!(refusal.cause, Cause::NoOptionFits);
        let told: Vec<_> = refusal.passed_over.iter().map(|it| it.shortages[0].needed).collect();
        assert_eq!(told, [9, 10]);
        assert_eq!((world.holds(1), world.holds(9)), (on(1, 2), Holding::new()));
        assert_eq!(world.state.moves().len(), 0);
        world.refused(resize(1, 9, &[]));
    }

    #[test]
    fn a_child_of_the_own_tree_is_the_own_host_and_shared_storage_is_none() {
        let mut world = cloud();
        world.ok(Command::CreateProvider(crate::command::CreateProvider {
            uuid: provider(11),
            name: "numa".into(),
            parent: Some(provider(1)),
        }));
        world = world.host(20, &[("DISK_GB", 100)]);
        world.ok(inventory(11, "VGPU", 2));
        world.ok(Command::SetTraits(crate::command::SetTraits {
            provider: provider(20),
            generation: None,
            traits: vec!["MISC_SHARES_VIA_AGGREGATE".into()],
        }));
        let here = holding(&[(1, &[("VCPU", 3)]), (11, &[("VGPU", 1)]), (20, &[("DISK_GB", 5)])]);
        let there = holding(&[(2, &[("VCPU", 3)]), (20, &[("DISK_GB", 5)])]);
        world.ok(resize(1, 9, &[there.clone(), here.clone()]));
        assert_eq!(world.holds(1), here);
        assert_eq!(world.last_body().host, Some(provider(1)));
        assert_eq!(hosts(&world), [2]);
        assert_eq!(world.kinds(reschedule(1, "no", &[])), ["DestinationReleased", "Claimed"]);
        assert_eq!(world.holds(1), there);
    }

    fn inventory(number: u128, class: &str, total: u32) -> Command {
        Command::ChangeInventories(crate::command::ChangeInventories {
            provider: provider(number),
            generation: None,
            change: crate::command::InventoryChange::Create(
                class.into(),
                crate::amounts::Inventory::of(total),
            ),
            may_reserve_all: true,
        })
    }

    /// Launchpad bugs 1712850 and 1712411, cases A5 and B6: host after host fails.
    #[test]
    fn reschedule_takes_the_next_alternate_that_still_fits() {
        let mut world = cloud();
        world.ok(with(&[on(1, 4), on(2, 4), on(3, 4), on(4, 4)], |it| it.max_attempts = 4));
        assert_eq!(hosts(&world), [2, 3, 4]);
        world.ok(claim(5, &[on(2, 5)]));
        assert_eq!(world.kinds(reschedule(1, "NUMA", &[])), ["DestinationReleased", "Claimed"]);
        let body = world.last_body();
        assert_eq!((body.option, body.passed_over.len()), (Some(1), 1));
        assert_eq!((world.holds(1), hosts(&world)), (on(3, 4), vec![4]));
        assert_eq!((world.held(1, "VCPU"), world.held(3, "VCPU")), (2, 4));
        world.ok(reschedule(1, "PCI", &[]));
        assert_eq!((world.holds(1), hosts(&world)), (on(4, 4), vec![]));
        assert_eq!(world.held(3, "VCPU"), 0);
        assert_eq!(world.kinds(reschedule(1, "spawn", &[])), ["DestinationReleased"]);
        assert_eq!(world.latest_move(1).state, MoveState::Open);
        world.ok(revert(1));
        let held: Vec<u64> = (1..=4).map(|host| world.held(host, "VCPU")).collect();
        assert_eq!(held, [2, 5, 0, 0]);
    }

    #[test]
    fn if_no_alternate_fits_any_more_the_failed_destination_goes_all_the_same() {
        let mut world = cloud();
        world.ok(resize(1, 9, &[on(2, 4), on(3, 4)]));
        world.ok(claim(5, &[on(3, 5)]));
        assert_eq!(world.kinds(reschedule(1, "spawn", &[])), ["DestinationReleased"]);
        assert_eq!(world.last_body().passed_over[0].cause, Cause::Capacity);
        let this = world.latest_move(1);
        assert_eq!((this.state, this.alternates), (MoveState::Open, vec![]));
        assert_eq!((world.held(2, "VCPU"), world.holds(9)), (0, on(1, 2)));
    }

    /// Launchpad bugs 1709902 and 1721652, case B3: the source's host is never heard of again.
    #[test]
    fn an_evacuation_ends_without_the_dead_host() {
        let mut world = cloud();
        world.ok(with(&[on(1, 2), on(2, 2)], |it| it.kind = MoveKind::Evacuation));
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (2, 2));
        world.ok(confirm(1));
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (0, 2));
        let this = world.latest_move(1);
        assert_eq!((this.kind, this.state), (MoveKind::Evacuation, MoveState::Confirmed));
    }

    /// After a revert the same migration opens the next attempt, without the old alternates.
    #[test]
    fn alternates_end_with_their_attempt() {
        let mut world = cloud();
        world.ok(resize(1, 9, &[on(1, 4), on(2, 4)]));
        world.ok(revert(1));
        assert!(hosts(&world).is_empty());
        world.ok(resize(1, 9, &[on(1, 4)]));
        let this = world.latest_move(1);
        assert_eq!((this.attempt, this.alternates.len()), (2, 0));
        assert!(matches!(world.events.last(), Some(Event::Claimed(_))));
    }
}
