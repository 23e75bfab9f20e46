//! `change_settings`: options that decisions depend on are events, so that a replay decides alike
//! without any configuration file.

use super::Decision;
use super::inventories::known_class;
use crate::command::ChangeSettings;
use crate::decide::Draft;
use crate::event::{Event, Unchanged};

pub(super) fn change(draft: &mut Draft<'_>, command: &ChangeSettings) -> Decision {
    let mut settings = draft.state.settings().clone();
    if let Some(classes) = &command.overlap_classes {
        // A misspelt class would silently be covered, or not be.
        classes
            .named()
            .into_iter()
            .flatten()
            .try_for_each(|class| known_class(&draft.state, class))?;
        settings.overlap_classes = classes.clone();
    }
    if let Some(rule) = command.same_host_moves {
        settings.same_host_moves = rule;
    }
    if settings == *draft.state.settings() {
        return Ok(Some(Unchanged::NoChange));
    }
    draft.emit(Event::SettingsChanged(settings));
    Ok(None)
}
