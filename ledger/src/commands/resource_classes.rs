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
