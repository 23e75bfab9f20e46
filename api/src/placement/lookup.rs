//! Finding in a view what a path names.

use std::sync::Arc;

use ledger::ids::{ConsumerUuid, ProviderUuid};
use ledger::state::{Provider, ProviderId, State};
use uuid::Uuid;

use crate::app::App;
use crate::http::failure::Failure;
use crate::http::request::Request;

/// A uuid in its canonical form (lower case, 8-4-4-4-12). Placement compares uuids as they are
/// spelled and keeps canonical ones, so no other spelling ever names anything.
#[must_use]
pub fn canonical(text: &str) -> Option<Uuid> {
    let upper = text.bytes().any(|b| b.is_ascii_uppercase());
    if text.len() != 36 || upper {
        return None;
    }
    Uuid::try_parse(text).ok()
}

/// The id of a provider, if the text could be one.
#[must_use]
pub fn provider_uuid(text: &str) -> Option<ProviderUuid> {
    canonical(text).map(ProviderUuid)
}

/// The id of a consumer, if the text could be one.
#[must_use]
pub fn consumer_uuid(text: &str) -> Option<ConsumerUuid> {
    canonical(text).map(ConsumerUuid)
}

/// A provider.
#[must_use]
pub fn provider<'a>(view: &'a State, text: &str) -> Option<(ProviderId, &'a Arc<Provider>)> {
    let uuid = provider_uuid(text)?;
    Some((view.provider_id(uuid)?, view.provider(uuid)?))
}

/// A provider that has to exist.
///
/// # Errors
/// 404 in the words of most routes.
pub fn known_provider<'a>(
    view: &'a State,
    text: &str,
) -> Result<(ProviderId, &'a Arc<Provider>), Failure> {
    provider(view, text).ok_or_else(|| Failure::not_found(unknown_provider(text)).let_through())
}

/// The provider that the path of a write names. Whether it exists is asked here, before the body
/// is read, as Placement does; but not for a write with a command id: that one is asked of the
/// ledger as it is, so that its id has one outcome, also where it is that there is no provider.
///
/// # Errors
/// 404 in the words of most routes.
pub fn provider_to_write(app: &App, request: &Request) -> Result<ProviderUuid, Failure> {
    let text = request.param(0);
    if request.is_named() {
        return provider_uuid(text).ok_or_else(|| Failure::not_found(unknown_provider(text)));
    }
    known_provider(&app.view(), text).map(|(_, provider)| provider.uuid)
}

/// The sentence about a provider that does not exist.
#[must_use]
pub fn unknown_provider(text: &str) -> String {
    format!("No resource provider with uuid {text} found")
}

/// The 404 of routes that say it twice.
#[must_use]
pub fn unknown_provider_twice(text: &str, between: &str) -> Failure {
    let sentence = unknown_provider(text);
    Failure::not_found(format!("{sentence}{between}{sentence}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_uuids_name_anything() {
        assert!(canonical("0123abcd-0123-abcd-0123-abcd0123abcd").is_some());
        for text in
            ["0123ABCD-0123-abcd-0123-abcd0123abcd", "0123abcd0123abcd0123abcd0123abcd", "foo", ""]
        {
            assert!(canonical(text).is_none(), "{text}");
        }
    }
}
