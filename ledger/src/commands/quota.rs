//! Quota: an optional limit of what a project holds of a class, checked in the same decision as the
//! claim, so that nothing slips in between. What a project holds may be above its limit (the limit
//! came later): then it may shrink, and not grow.

use super::Decision;
use super::inventories::known_class;
use super::plan::{Planned, malformed};
use crate::command::SetQuota;
use crate::decide::Draft;
use crate::event::{Event, LimitChange, QuotaChanged, Unchanged};
use crate::ids::{ConsumerUuid, LinkId};
use crate::limits;
use crate::refusal::{Cause, Refusal};
use crate::state::quotas::{Member, OfProjects, add_alone, add_group};
use crate::state::{Allocations, Group, State};
use std::collections::{BTreeMap, HashMap, HashSet};

/// `set_quota`.
pub(super) fn set(draft: &mut Draft<'_>, command: &SetQuota) -> Decision {
    let state = &draft.state;
    let project = command.project_id.as_deref();
    if command.limits.is_empty() {
        return Err(malformed("no limit is named".into()).into());
    }
    let mut changes = Vec::new();
    for (class, &after) in &command.limits {
        known_class(state, class)?;
        let id = state.classes().id(class).unwrap_or_default();
        let before = state.limit_set(project, id);
        if before != after {
            changes.push(LimitChange { class: class.clone(), before, after });
        }
    }
    if changes.is_empty() {
        return Ok(Some(Unchanged::NoChange));
    }
    if state.quota_count().saturating_add(changes.len()) > limits::QUOTAS {
        return Err(crate::decide::too_large("limits of projects", limits::QUOTAS));
    }
    let project_id = command.project_id.clone();
    draft.emit(Event::QuotaChanged(QuotaChanged { project_id, limits: changes }));
    Ok(None)
}

/// Checks that no project comes above a limit by a plan, or goes further above it.
///
/// # Errors
/// [`Cause::Quota`] with the figures of the first.
pub(super) fn check(state: &State, plan: &[Planned]) -> Result<(), Refusal> {
    if !state.has_quotas() {
        return Ok(());
    }
    let projects = Projects::of(state, plan);
    let (gone, come) = (before(state, plan, &projects), after(state, plan, &projects));
    for (&(project, class), &come) in &come {
        let gone = gone.get(&(project, class)).copied().unwrap_or(0);
        let name = projects.name(project);
        let Some(limit) = state.limit_of(name, class).filter(|_| come > gone) else { continue };
        let held = state.held_by_project(name, class);
        let after = held.saturating_sub(gone).saturating_add(come);
        if after > limit {
            let (project_id, class) = (name.to_owned(), state.classes().name(class).to_string());
            return Err(Cause::Quota { project_id, class, limit, held, after }.into());
        }
    }
    Ok(())
}

/// Numbers for the projects of a plan and of whom it is linked with; some may be new.
struct Projects<'a> {
    names: Vec<&'a str>,
}

impl<'a> Projects<'a> {
    fn of(state: &'a State, plan: &'a [Planned]) -> Self {
        let mut names: Vec<&str> = plan.iter().map(|it| &*it.owner.project_id).collect();
        let groups = groups(state, plan);
        let members = groups.values().flat_map(|group| &group.members).copied();
        let rows = plan.iter().map(|it| it.consumer).chain(members);
        names.extend(
            rows.filter_map(|it| state.consumer(it)).map(|row| name_of(state, row.project)),
        );
        names.sort_unstable();
        names.dedup();
        Self { names }
    }

    fn number(&self, name: &str) -> u32 {
        let place = self.names.binary_search(&name).unwrap_or_default();
        u32::try_from(place).unwrap_or(u32::MAX)
    }

    fn name(&self, number: u32) -> &'a str {
        self.names[number as usize]
    }
}

fn name_of(state: &State, project: u32) -> &str {
    state.projects().name(project)
}

/// The link groups that a plan touches, with their members before it.
fn groups(state: &State, plan: &[Planned]) -> BTreeMap<LinkId, Group> {
    let mut found = BTreeMap::new();
    for planned in plan {
        if let Some(link) = &planned.link {
            let covered = || state.covered(&link.overlap);
            let fresh = || Group { covered: covered(), members: Default::default() };
            let group = || state.link(link.group).map_or_else(fresh, |group| (**group).clone());
            found.entry(link.group).or_insert_with(group);
        }
        let link = state.consumer(planned.consumer).and_then(|row| row.link);
        if let Some((id, group)) = link.and_then(|id| Some((id, state.link(id)?))) {
            found.entry(id).or_insert_with(|| (**group).clone());
        }
    }
    found
}

/// What the consumers of a plan and their groups count for before it.
fn before(state: &State, plan: &[Planned], projects: &Projects) -> OfProjects {
    let mut held = OfProjects::new();
    for row in plan.iter().filter_map(|planned| state.consumer(planned.consumer)) {
        if row.link.is_none() {
            add_alone(&mut held, projects.number(name_of(state, row.project)), &row.allocations);
        }
    }
    for group in groups(state, plan).values() {
        let rows = group.members.iter().filter_map(|member| state.consumer(*member));
        let members: Vec<Member> = rows
            .map(|row| Member {
                project: projects.number(name_of(state, row.project)),
                allocations: &row.allocations,
            })
            .collect();
        add_group(&mut held, group, &members);
    }
    held
}

/// What they count for after it.
fn after(state: &State, plan: &[Planned], projects: &Projects) -> OfProjects {
    let mut held = OfProjects::new();
    for planned in plan.iter().filter(|planned| planned.link.is_none()) {
        add_alone(&mut held, projects.number(&planned.owner.project_id), &planned.after);
    }
    let planned: HashSet<ConsumerUuid> = plan.iter().map(|planned| planned.consumer).collect();
    let mut coming: HashMap<LinkId, Vec<&Planned>> = HashMap::new();
    for planned in plan {
        if let Some(link) = &planned.link {
            coming.entry(link.group).or_default().push(planned);
        }
    }
    for (id, group) in groups(state, plan) {
        let stay = group.members.iter().filter(|member| !planned.contains(member));
        let rows = stay.filter_map(|member| state.consumer(*member));
        let staying = rows.map(|row| (name_of(state, row.project), &row.allocations));
        let coming = coming.get(&id).into_iter().flatten();
        let coming = coming.map(|it| (&*it.owner.project_id, &it.after));
        let members: Vec<Member> = staying
            .chain(coming)
            .map(|(project, allocations): (&str, &Allocations)| Member {
                project: projects.number(project),
                allocations,
            })
            .collect();
        add_group(&mut held, &group, &members);
    }
    held
}

#[cfg(test)]
mod tests {
    use crate::command::{Command, Limit, OverlapClasses, SetQuota};
    use crate::commands::testing::*;
    use crate::refusal::Cause;

    fn quota(project: Option<&str>, class: &str, limit: Option<Limit>) -> Command {
        Command::SetQuota(SetQuota {
            project_id: project.map(str::to_owned),
            limits: [(class.to_owned(), limit)].into(),
        })
    }

    fn at_most(limit: u64) -> Option<Limit> {
        Some(Limit::AtMost(limit))
    }

    fn on(host: u128, amount: u32) -> crate::amounts::Holding {
        holding(&[(host, &[("VCPU", amount)])])
    }

    fn of(project: &str, who: u128, allocations: crate::amounts::Holding) -> Command {
        let consumers = vec![crate::command::ConsumerWrite {
            project_id: project.into(),
            ..write(who, allocations)
        }];
        let via = crate::command::Via::Put;
        Command::ReplaceAllocations(crate::command::ReplaceAllocations { via, consumers })
    }

    #[test]
    fn claims_of_every_kind_stay_below_the_limit() {
        let mut world = World::new().host(1, &[("VCPU", 100)]).host(2, &[("VCPU", 100)]);
        world.ok(claim(1, &[on(1, 3)]));
        assert_eq!(world.kinds(quota(Some("p"), "VCPU", at_most(6))), ["QuotaChanged"]);
        let told = Cause::Quota {
            project_id: "p".into(),
            class: "VCPU".into(),
            limit: 6,
            held: 3,
            after: 7,
        };
        for over in [claim(2, &[on(1, 4)]), put(2, on(1, 4)), double_up(1, &[on(2, 4)])] {
            assert_eq!(world.refused(over).cause, told);
        }
        assert_eq!(world.refused(post(&[(2, on(1, 2)), (3, on(2, 2))])).cause, told);
        world.ok(of("other", 2, on(1, 50)));
        world.ok(put(3, on(2, 3)));
        world.ok(release(1, false));
        world.ok(claim(4, &[on(1, 4), on(1, 3)]));
        assert!(world.kinds(quota(Some("p"), "VCPU", at_most(6))).is_empty());
    }

    #[test]
    fn of_ordered_options_the_first_within_the_limit_is_taken() {
        let mut world = World::new().host(1, &[("VCPU", 100)]);
        world.ok(quota(Some("p"), "VCPU", at_most(3)));
        world.ok(claim(1, &[on(1, 4), on(1, 3)]));
        let body = world.last_body();
        assert_eq!(body.option, Some(1));
        assert!(matches!(body.passed_over[0].cause, Cause::Quota { .. }));
    }

    #[test]
    fn what_is_over_the_limit_may_shrink_and_not_grow() {
        let mut world = World::new().host(1, &[("VCPU", 100)]);
        world.ok(put(1, on(1, 10)));
        world.ok(put(2, on(1, 10)));
        world.ok(quota(None, "VCPU", at_most(5)));
        world.ok(put(1, on(1, 10)));
        world.ok(put(1, on(1, 9)));
        assert!(matches!(world.refused(put(1, on(1, 10))).cause, Cause::Quota { .. }));
        // Within one write it may pass from one consumer to another.
        world.ok(post(&[(1, on(1, 10)), (2, on(1, 9))]));
    }

    #[test]
    fn a_project_of_its_own_limit_does_not_obey_that_of_all() {
        let mut world = World::new().host(1, &[("VCPU", 100)]);
        world.ok(quota(None, "VCPU", at_most(2)));
        world.ok(quota(Some("big"), "VCPU", at_most(20)));
        world.ok(quota(Some("free"), "VCPU", Some(Limit::Unlimited)));
        world.ok(of("big", 1, on(1, 20)));
        world.ok(of("free", 2, on(1, 30)));
        assert!(matches!(world.refused(of("new", 3, on(1, 3))).cause, Cause::Quota { .. }));
        world.ok(of("new", 3, on(1, 2)));
        // Without its own limit, that of all holds again.
        world.ok(quota(Some("big"), "VCPU", None));
        assert!(matches!(world.refused(of("big", 4, on(1, 1))).cause, Cause::Quota { .. }));
        world.ok(quota(None, "VCPU", None));
        world.ok(of("big", 4, on(1, 1)));
        assert!(!world.state.has_quotas() || world.state.quota_count() == 1);
    }

    #[test]
    fn a_consumer_that_changes_its_project_counts_for_the_new_one() {
        let mut world = World::new().host(1, &[("VCPU", 100)]);
        world.ok(quota(Some("q"), "VCPU", at_most(4)));
        world.ok(of("p", 1, on(1, 5)));
        assert!(matches!(world.refused(of("q", 1, on(1, 5))).cause, Cause::Quota { .. }));
        world.ok(of("q", 1, on(1, 4)));
        world.ok(of("p", 2, on(1, 9)));
        assert!(matches!(world.refused(of("q", 3, on(1, 1))).cause, Cause::Quota { .. }));
    }

    /// On one host the larger side counts, as in usages; on two both do.
    #[test]
    fn a_move_counts_once_where_its_sides_overlap() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        world.ok(quota(Some("p"), "VCPU", at_most(4)));
        world.ok(claim(1, &[on(1, 2)]));
        world.ok(to_migration(1, 9));
        let Cause::Quota { held, after, .. } = world.refused(claim(1, &[on(2, 4)])).cause else {
            panic!("another cause")
        };
        assert_eq!((held, after), (2, 6));
        world.ok(claim(1, &[on(1, 4)]));
        world.ok(confirm(1));
        world.ok(to_migration(1, 9));
        world.ok(claim(1, &[on(1, 1)]));
        // Another cannot have what a revert will need again.
        assert!(matches!(world.refused(claim(2, &[on(2, 1)])).cause, Cause::Quota { .. }));
        world.ok(revert(1));
        assert_eq!(world.holds(1), on(1, 4));
    }

    /// Somebody else's limit must not keep a server from going back to where it was.
    #[test]
    fn a_revert_is_never_refused_for_a_limit() {
        let mut world = World::new().host(1, &[("VCPU", 16)]);
        world.ok(claim(1, &[on(1, 4)]));
        world.ok(quota(Some("p"), "VCPU", at_most(4)));
        world.ok(to_migration(1, 9));
        world.ok(of("q", 9, on(1, 4)));
        world.ok(claim(2, &[on(1, 4)]));
        world.ok(revert(1));
        assert_eq!((world.holds(1), world.holds(2)), (on(1, 4), on(1, 4)));
    }

    #[test]
    fn classes_outside_the_max_rule_add_up() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        world.ok(Command::ChangeSettings(crate::command::ChangeSettings {
            overlap_classes: Some(OverlapClasses::AllBut(["VCPU".to_owned()].into())),
            ..Default::default()
        }));
        world.ok(claim(1, &[on(1, 2)]));
        world.ok(quota(Some("p"), "VCPU", at_most(4)));
        world.ok(to_migration(1, 9));
        assert!(matches!(world.refused(claim(1, &[on(1, 3)])).cause, Cause::Quota { .. }));
        world.ok(claim(1, &[on(1, 2)]));
    }

    #[test]
    fn limits_are_in_a_checkpoint_and_what_projects_hold_is_counted_anew() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        world.ok(quota(Some("p"), "VCPU", at_most(4)));
        world.ok(claim(1, &[on(1, 3)]));
        let dir = tempfile::tempdir().unwrap();
        let path = world.state.write_checkpoint(dir.path()).unwrap();
        let read = crate::state::checkpoint::read_checkpoint(&path).unwrap();
        assert_eq!(read.digest(), world.state.digest());
        read.check_invariants().unwrap();
        world.state = read;
        assert!(matches!(world.refused(claim(2, &[on(1, 2)])).cause, Cause::Quota { held: 3, .. }));
    }

    #[test]
    fn a_limit_of_what_is_not_there_is_refused() {
        let mut world = World::new();
        let told = world.refused(quota(None, "NOPE", at_most(1))).cause;
        assert_eq!(told, Cause::ClassNotFound { class: "NOPE".into() });
        let nothing = SetQuota { project_id: None, limits: Default::default() };
        let told = world.refused(Command::SetQuota(nothing)).cause;
        assert!(matches!(told, Cause::Malformed { .. }));
        let told = world.refused(quota(Some(""), "VCPU", at_most(1))).cause;
        assert!(matches!(told, Cause::Malformed { .. }));
    }
}
