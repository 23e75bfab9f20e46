//! `create_resource_class`, `rename_resource_class`, `delete_resource_class` (Placement API
//! reference, "Resource classes").

use super::Decision;
use super::traits::is_custom_name;
use crate::command::{Named, RenameResourceClass};
use crate::decide::{Draft, too_large};
use crate::event::{Event, Name, Renamed, Unchanged};
use crate::limits;
use crate::refusal::Cause;

pub(super) fn create(draft: &mut Draft<'_>, command: &Named) -> Decision {
    if !is_custom_name(&command.name) {
        return Err(Cause::NameInvalid { name: command.name.clone() }.into());
    }
    if draft.state.classes().id(&command.name).is_some() {
        return Err(Cause::ClassExists { class: command.name.clone() }.into());
    }
    if draft.state.classes().numbers() >= limits::CLASSES {
        return Err(too_large("resource classes", limits::CLASSES));
    }
    draft.emit(Event::ResourceClassCreated(Name { name: command.name.clone() }));
    Ok(None)
}

pub(super) fn rename(draft: &mut Draft<'_>, command: &RenameResourceClass) -> Decision {
    let class = custom(draft, &command.name)?;
    if !is_custom_name(&command.new_name) {
        return Err(Cause::NameInvalid { name: command.new_name.clone() }.into());
    }
    if command.new_name == command.name {
        return Ok(Some(Unchanged::NoChange));
    }
    if draft.state.classes().id(&command.new_name).is_some() {
        return Err(Cause::ClassExists { class: command.new_name.clone() }.into());
    }
    let event = Renamed { name_before: class, name: command.new_name.clone() };
    draft.emit(Event::ResourceClassRenamed(event));
    Ok(None)
}

pub(super) fn delete(draft: &mut Draft<'_>, command: &Named) -> Decision {
    let class = custom(draft, &command.name)?;
    let id = draft.state.classes().id(&class);
    if id.is_some_and(|id| draft.state.classes().entry(id).users > 0) {
        return Err(Cause::ClassInUse { class }.into());
    }
    draft.emit(Event::ResourceClassDeleted(Name { name: class }));
    Ok(None)
}

fn custom(draft: &Draft<'_>, name: &str) -> Result<String, Cause> {
    let class = name.to_owned();
    let Some(id) = draft.state.classes().id(name) else {
        return Err(Cause::ClassNotFound { class });
    };
    if draft.state.classes().entry(id).standard {
        return Err(Cause::ClassStandard { class });
    }
    Ok(class)
}

#[cfg(test)]
mod tests {
    use crate::amounts::Holding;
    use crate::command::{
        ChangeSettings, Command, Limit, Named, OverlapClasses, RenameResourceClass, SetQuota,
    };
    use crate::commands::testing::*;
    use crate::event::MoveState;
    use crate::refusal::Cause;

    fn create(name: &str) -> Command {
        Command::CreateResourceClass(Named { name: name.into() })
    }

    fn rename(name: &str, new_name: &str) -> Command {
        let (name, new_name) = (name.into(), new_name.into());
        Command::RenameResourceClass(RenameResourceClass { name, new_name })
    }

    fn covers(classes: OverlapClasses) -> Command {
        let overlap_classes = Some(classes);
        Command::ChangeSettings(ChangeSettings { overlap_classes, ..ChangeSettings::default() })
    }

    fn on(host: u128, class: &str, amount: u32) -> Holding {
        holding(&[(host, &[(class, amount)])])
    }

    /// A host of 10 `CUSTOM_A`; server 1 holds 4 there and is resized there to 5.
    fn linked(classes: OverlapClasses) -> World {
        let mut world = World::new();
        world.ok(create("CUSTOM_A"));
        let mut world = world.host(1, &[("CUSTOM_A", 10)]);
        world.ok(covers(classes));
        world.ok(claim(1, &[on(1, "CUSTOM_A", 4)]));
        world.ok(to_migration(1, 9));
        world.ok(claim(1, &[on(1, "CUSTOM_A", 5)]));
        world
    }

    fn these() -> std::collections::BTreeSet<String> {
        ["CUSTOM_A".to_owned()].into()
    }

    /// The rule of a link group goes by class, whatever the class is called by then.
    #[test]
    fn a_class_renamed_while_linked_counts_as_before() {
        for (classes, held) in
            [(OverlapClasses::Only(these()), 5), (OverlapClasses::AllBut(these()), 9)]
        {
            for (end, left) in [(confirm(1), 5), (revert(1), 4)] {
                let mut world = linked(classes.clone());
                assert_eq!(world.held(1, "CUSTOM_A"), held);
                world.ok(rename("CUSTOM_A", "CUSTOM_B"));
                assert_eq!(world.held(1, "CUSTOM_B"), held);
                // A side that lets go of some stays linked by the rule that it had.
                world.ok(put(1, on(1, "CUSTOM_B", 5)));
                assert_eq!(world.held(1, "CUSTOM_B"), held);
                world.ok(end);
                assert_eq!(world.held(1, "CUSTOM_B"), left);
            }
        }
    }

    #[test]
    fn settings_and_quotas_follow_a_rename() {
        let mut world = linked(OverlapClasses::AllBut(these()));
        world.ok(Command::SetQuota(SetQuota {
            project_id: None,
            limits: [("CUSTOM_A".to_owned(), Some(Limit::AtMost(12)))].into(),
        }));
        world.ok(rename("CUSTOM_A", "CUSTOM_B"));
        let setting = &world.state.settings().overlap_classes;
        assert_eq!(*setting, OverlapClasses::AllBut(["CUSTOM_B".to_owned()].into()));
        let quota = world.refused(claim(2, &[on(1, "CUSTOM_B", 4)])).cause;
        assert!(matches!(quota, Cause::Capacity | Cause::Quota { .. }), "{quota:?}");
        world.ok(confirm(1));
        // Both sides of the next move count, as the setting says.
        world.ok(to_migration(1, 8));
        world.refused(claim(1, &[on(1, "CUSTOM_B", 6)]));
        world.ok(claim(1, &[on(1, "CUSTOM_B", 5)]));
        assert_eq!(world.held(1, "CUSTOM_B"), 10);
    }

    /// A class that takes the name of one that was removed is not meant by a rule of the old one.
    #[test]
    fn the_name_of_a_removed_class_says_nothing_of_its_next_bearer() {
        let mut world = World::new();
        world.ok(create("CUSTOM_OLD"));
        world.ok(create("CUSTOM_A"));
        world.ok(covers(OverlapClasses::AllBut(["CUSTOM_OLD".to_owned()].into())));
        world.ok(Command::DeleteResourceClass(Named { name: "CUSTOM_OLD".into() }));
        world.ok(rename("CUSTOM_A", "CUSTOM_OLD"));
        let mut world = world.host(1, &[("CUSTOM_OLD", 4)]);
        world.ok(claim(1, &[on(1, "CUSTOM_OLD", 4)]));
        world.ok(resize(1, 9, &[on(1, "CUSTOM_OLD", 4)]));
        assert_eq!(world.held(1, "CUSTOM_OLD"), 4);
    }

    /// What a live move holds is spelled with today's names, and ends as it stands.
    #[test]
    fn the_sides_of_a_move_follow_a_rename() {
        for (end, left, state) in
            [(confirm(1), 2, MoveState::Confirmed), (revert(1), 1, MoveState::Reverted)]
        {
            let mut world = World::new();
            world.ok(create("CUSTOM_A"));
            let mut world = world.host(1, &[("CUSTOM_A", 8)]).host(2, &[("CUSTOM_A", 8)]);
            world.ok(claim(1, &[on(1, "CUSTOM_A", 2)]));
            world.ok(double_up(1, &[on(2, "CUSTOM_A", 2)]));
            world.ok(rename("CUSTOM_A", "CUSTOM_B"));
            let this = world.latest_move(1);
            assert_eq!(this.source, on(1, "CUSTOM_B", 2));
            assert_eq!(this.destination, on(2, "CUSTOM_B", 2));
            world.ok(end);
            assert_eq!(world.holds(1), on(left, "CUSTOM_B", 2));
            assert_eq!(world.latest_move(1).state, state);
        }
    }
}
