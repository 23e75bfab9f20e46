//! Refusals about traits and resource classes.

use ledger::refusal::Cause;

use super::About;
use crate::http::failure::Failure;

pub(super) fn told(cause: &Cause, about: About<'_>) -> Option<Failure> {
    let failure = match (cause, about) {
        (Cause::TraitsNotFound { traits }, _) => {
            Failure::not_found(format!("No such trait(s): {}.", traits.join(", ")))
        }
        (Cause::TraitInUse { name }, _) => {
            Failure::conflict(format!("The trait {name} is in use by a resource provider."))
        }
        (Cause::TraitStandard { name }, _) => {
            Failure::bad_request(format!("Cannot delete standard trait {name}."))
        }
        (Cause::ClassNotFound { class }, _) => {
            Failure::not_found(format!("No such resource class {class}.")).let_through()
        }
        (Cause::ClassExists { class }, About::RenameClass) => {
            Failure::conflict(format!("Resource class already exists: {class}"))
        }
        (Cause::ClassExists { class }, _) => {
            Failure::conflict(format!("Conflicting resource class already exists: {class}"))
        }
        (Cause::ClassStandard { class }, About::RenameClass) => {
            Failure::bad_request(format!("Cannot update standard resource class {class}"))
        }
        (Cause::ClassStandard { class }, _) => Failure::bad_request(format!(
            "Error in delete resource class: Cannot delete standard resource class {class}."
        )),
        (Cause::ClassInUse { class }, _) => Failure::conflict(format!(
            "Error in delete resource class: Cannot delete resource class {class}. Class is in use in inventory."
        )),
        _ => return None,
    };
    Some(failure)
}
