//! Refusals about resource providers.

use ledger::ids::ProviderUuid;
use ledger::refusal::Cause;

use super::About;
use crate::http::failure::{CANNOT_DELETE_PARENT, DUPLICATE_NAME, Failure, PROVIDER_INUSE};

const NO_PARENT: &str = "Object action create failed because: parent provider UUID does not exist.";

pub(super) fn told(cause: &Cause, about: About<'_>) -> Option<Failure> {
    match about {
        About::CreateProvider { uuid, name } => create(cause, uuid, name),
        About::UpdateProvider(uuid) => update(cause, uuid),
        About::DeleteProvider(uuid) => delete(cause, uuid),
        _ => None,
    }
}

fn create(cause: &Cause, uuid: ProviderUuid, name: &str) -> Option<Failure> {
    let unable = |why: &str| {
        Some(Failure::bad_request(format!(
            "Unable to create resource provider \"{name}\", {uuid}: {why}"
        )))
    };
    match cause {
        Cause::ProviderExists { provider } => duplicate(format!("uuid: {provider}")),
        Cause::ProviderNameExists { name } => duplicate(format!("name: {name}")),
        Cause::ProviderNameInvalid => {
            unable("Object action create failed because: name is required")
        }
        Cause::ParentNotFound { .. } => unable(NO_PARENT),
        Cause::ParentIsSelf => unable(
            "Object action create failed because: parent provider UUID cannot be same as UUID. \
             Please set parent provider UUID to None if there is no parent.",
        ),
        _ => None,
    }
}

fn update(cause: &Cause, uuid: ProviderUuid) -> Option<Failure> {
    let unable = |why: &str| {
        Some(Failure::bad_request(format!("Unable to save resource provider {uuid}: {why}")))
    };
    match cause {
        Cause::ProviderNotFound { provider } => {
            Some(Failure::not_found(unknown_provider(provider)).let_through())
        }
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

fn delete(cause: &Cause, uuid: ProviderUuid) -> Option<Failure> {
    match cause {
        Cause::ProviderNotFound { provider } => {
            Some(Failure::not_found(format!("{} for delete", unknown_provider(provider))))
        }
        Cause::ProviderHasChildren => {
            let message = format!(
                "Unable to delete parent resource provider {uuid}: It has child resource providers."
            );
            Some(Failure::conflict(message).code(CANNOT_DELETE_PARENT))
        }
        Cause::ProviderInUse => {
            let message = format!(
                "Unable to delete resource provider {uuid}: Resource provider has allocations."
            );
            Some(Failure::conflict(message).code(PROVIDER_INUSE))
        }
        _ => None,
    }
}

fn unknown_provider(provider: &ProviderUuid) -> String {
    format!("No resource provider with uuid {provider} found")
}

fn duplicate(what: String) -> Option<Failure> {
    Some(
        Failure::conflict(format!("Conflicting resource provider {what} already exists."))
            .code(DUPLICATE_NAME),
    )
}
