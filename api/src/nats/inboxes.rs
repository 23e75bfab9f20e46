//! Where answers may go. A client names the subject of its answer itself, and the broker does not
//! check that the client could publish there: without a bound, whoever may only ask queries could
//! have the server write to the stream of events or to a bucket in his place.

use async_nats::HeaderMap;
use serde::Deserialize;

/// Where clients wait for answers unless the operator says otherwise.
const DEFAULT: &str = "_INBOX.";
/// Replies of clients in other accounts: the broker makes these subjects itself, and takes them
/// from no client.
const OTHER_ACCOUNTS: &str = "_R_.";
/// What the ledger publishes to, and what the broker reserves (`$JS.`, `$KV.`, `$SYS.`, `$SRV.`,
/// `$O.`): never an inbox, whatever the operator says.
const RESERVED: [&str; 2] = ["$", "alloc.v1."];
/// Characters of a subject at most, far above what clients make (60 or so).
const LENGTH: usize = 512;
/// The broker's word on who asks from another account.
const REQUEST_INFO: &str = "Nats-Request-Info";

/// The subjects that answers may go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inboxes {
    prefixes: Vec<String>,
}

/// Who asks, as far as the broker or the client says. No proof of anything: it only decides whose
/// turn it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Caller(String);

impl Default for Inboxes {
    fn default() -> Self {
        Self { prefixes: vec![DEFAULT.to_owned()] }
    }
}

impl Inboxes {
    /// Reads a list of prefixes, separated by commas. A prefix is whole tokens: `_INBOX_nova` is
    /// the same as `_INBOX_nova.`.
    ///
    /// # Errors
    /// Why one of them cannot be an inbox.
    pub fn parse(list: &str) -> Result<Self, &'static str> {
        let prefixes = list.split(',').map(|text| prefix(text.trim()));
        Ok(Self { prefixes: prefixes.collect::<Result<_, _>>()? })
    }

    /// Whether an answer may go to `subject`.
    #[must_use]
    pub fn take(&self, subject: &str) -> bool {
        self.rest(subject).is_some()
    }

    /// Who asks with this reply subject and these headers: the account if the broker says it, else
    /// the inbox that all answers of one connection go to.
    #[must_use]
    pub fn caller(&self, reply: Option<&str>, headers: Option<&HeaderMap>) -> Caller {
        let Some(reply) = reply else { return Caller::default() };
        if reply.starts_with(OTHER_ACCOUNTS) {
            return headers.and_then(account).unwrap_or_else(|| Caller(OTHER_ACCOUNTS.to_owned()));
        }
        let Some(rest) = self.rest(reply) else { return Caller::default() };
        let prefix = &reply[..reply.len() - rest.len()];
        // Clients that make an inbox for each request share one place.
        let own = rest.split_once('.').map_or("", |(own, _)| own);
        Caller(format!("{prefix}{own}"))
    }

    /// What follows the prefix.
    fn rest<'a>(&self, subject: &'a str) -> Option<&'a str> {
        if subject.len() > LENGTH || !subject.split('.').all(is_token) {
            return None;
        }
        let mut prefixes =
            self.prefixes.iter().map(String::as_str).chain(std::iter::once(OTHER_ACCOUNTS));
        prefixes.find_map(|prefix| subject.strip_prefix(prefix))
    }
}

impl Caller {
    /// Where all share who cannot be kept apart.
    #[must_use]
    pub fn others() -> Self {
        Self(String::new())
    }
}

fn prefix(text: &str) -> Result<String, &'static str> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.is_empty() {
        return Err("an inbox prefix is empty, and answers could go anywhere");
    }
    if !text.split('.').all(is_token) {
        return Err(
            "an inbox prefix is a subject of whole tokens without wildcards, such as _INBOX.",
        );
    }
    let prefix = format!("{text}.");
    let reserved = |other: &&str| prefix.starts_with(*other) || other.starts_with(&prefix);
    if RESERVED.iter().any(reserved) {
        return Err("answers never go to subjects of the ledger (alloc.v1.) or the broker ($...)");
    }
    Ok(prefix)
}

/// A token of a subject that can be published to.
fn is_token(token: &str) -> bool {
    !token.is_empty()
        && !token.contains(|c: char| c.is_whitespace() || c.is_control() || "*>".contains(c))
}

/// The account that the broker names.
fn account(headers: &HeaderMap) -> Option<Caller> {
    #[derive(Deserialize)]
    struct Info {
        acc: String,
    }
    let info: Info = serde_json::from_str(headers.get(REQUEST_INFO)?.as_str()).ok()?;
    Some(Caller(format!("account {}", info.acc.chars().take(LENGTH).collect::<String>())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_go_to_inboxes_only() {
        let inboxes = Inboxes::default();
        for subject in ["_INBOX.a", "_INBOX.a.b", "_R_.x.y"] {
            assert!(inboxes.take(subject), "{subject}");
        }
        for subject in [
            "alloc.v1.event.Claimed.x.-",
            "alloc.v1.command.release",
            "$KV.alloc_usage.evil",
            "$JS.API.STREAM.DELETE.ALLOC_EVENTS",
            "$SYS.REQ.SERVER.PING",
            "$SRV.PING",
            "_INBOX",
            "_INBOX.",
            "_INBOXES.a",
            "_INBOX.>",
            "_INBOX.a.*",
            "_INBOX..a",
            "_INBOX.a b",
            "inbox.a",
            "",
        ] {
            assert!(!inboxes.take(subject), "{subject}");
        }
        assert!(!inboxes.take(&format!("_INBOX.{}", "a".repeat(LENGTH))));
    }

    #[test]
    fn an_operator_may_name_other_inboxes_but_none_that_opens_the_ledger() {
        let inboxes = Inboxes::parse("_INBOX_nova., _INBOX_neutron").expect("prefixes");
        assert!(inboxes.take("_INBOX_nova.a") && inboxes.take("_INBOX_neutron.a.b"));
        assert!(!inboxes.take("_INBOX.a"));
        for wrong in [
            "",
            ".",
            "_INBOX.,",
            "*",
            ">",
            "_INBOX.>",
            "$KV",
            "$JS.API",
            "$SRV.",
            "$x",
            "alloc",
            "alloc.v1",
            "alloc.v1.event",
            "a b",
            "a..b",
        ] {
            assert!(Inboxes::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Inboxes::parse("alloc.v2").is_ok() && Inboxes::parse("allocations").is_ok());
    }

    #[test]
    fn a_caller_is_a_connections_inbox_or_an_account() {
        let inboxes = Inboxes::default();
        let caller = |reply: &str| inboxes.caller(Some(reply), None);
        assert_eq!(caller("_INBOX.one.1"), caller("_INBOX.one.2"));
        assert_ne!(caller("_INBOX.one.1"), caller("_INBOX.two.1"));
        assert_eq!(caller("_INBOX.once"), caller("_INBOX.twice"));
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_INFO, r#"{"acc":"NOVA","rtt":1}"#);
        let told = |reply: &str| inboxes.caller(Some(reply), Some(&headers));
        assert_eq!(told("_R_.a.b"), Caller("account NOVA".to_owned()));
        assert_eq!(told("_INBOX.one.1"), caller("_INBOX.one.1"), "anybody can write that header");
    }
}
