//! Refusals about resource providers.

use ledger::refusal::Cause;

use super::About;
use crate::http::failure::{CANNOT_DELETE_PARENT, DUPLICATE_NAME, Failure, PROVIDER_INUSE};

const NO_PARENT: &str = "Object action create failed because: parent provider UUID does not exist.";

pub(super) fn told(cause: &Cause, about: About<'_>) -> Option<Failure> {
    match about {
        About::CreateProvider { uuid, name } => {
            let unable = |why: &str| {
                let message =
                    format!("Unable to create resource provider \"{name}\", {uuid}: {why}");
                Some(Failure::bad_request(message))
            };
            match cause {
                Cause::ProviderExists { provider } => duplicate(format!("uuid: {provider}")),
                Cause::ProviderNameExists { name } => duplicate(format!("name: {name}")),
                Cause::ProviderNameInvalid => {
                    unable("Object action create failed because: name is required")
                }
                Cause::ParentNotFound { .. } => unable(NO_PARENT),
                Cause::ParentIsSelf => unable(
                    "Object action create failed because: parent provider UUID cannot be same as UUID. Please set \
                     parent provider UUID to None if there is no parent.",
                ),
                _ => None,
            }
        }
        About::UpdateProvider(uuid) => {
            let unable = |why: &str| {
                Some(Failure::bad_request(format!(
                    "Unable to save resource provider {uuid}: {why}"
                )))
            };
            match cause {
                Cause::ProviderNotFound { provider } => Some(Failure::not_found(format!(
                    "No resource provider with uuid {provider} found"
                ))),
                Cause::ProviderNameExists { name } => duplicate(name.clone()),
                Cause::ParentNotFound { .. } => unable(NO_PARENT),
                Cause::ReparentForbidden => unable(
                    "Object action update failed because: re-parenting a provider is not currently allowed.",
                ),
                Cause::UnparentForbidden => unable(
                    "Object action update failed because: un-parenting a provider is not currently allowed.",
                ),
                Cause::Loop | Cause::ParentIsSelf => unable(
                    "Object action update failed because: creating loop in the provider tree is not allowed.",
                ),
                _ => None,
            }
        }
        About::DeleteProvider(uuid) => {
            let unable = |why: &str| Failure::conflict(format!("Unable to delete {why}"));
            match cause {
                Cause::ProviderNotFound { provider } => Some(Failure::not_found(format!(
                    "No resource provider with uuid {provider} found for delete"
                ))),
                Cause::ProviderHasChildren => {
                    let why = format!(
                        "parent resource provider {uuid}: It has child resource providers."
                    );
                    Some(unable(&why).code(CANNOT_DELETE_PARENT))
                }
                Cause::ProviderInUse => {
                    let why =
                        format!("resource provider {uuid}: Resource provider has allocations.");
                    Some(unable(&why).code(PROVIDER_INUSE))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn duplicate(what: String) -> Option<Failure> {
    Some(
        Failure::conflict(format!("Conflicting resource provider {what} already exists."))
            .code(DUPLICATE_NAME),
    )
}
