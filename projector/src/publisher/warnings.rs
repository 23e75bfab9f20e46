//! What an operator should know of a stream and its server before it hurts: that the server may
//! drop events, or that others may write where they belong. Nothing of it stops publishing.

use async_nats::ServerInfo;
use async_nats::jetstream::stream::{Config, RetentionPolicy};

/// What is to be said; empty: nothing.
pub(super) fn warnings(config: &Config, server: &ServerInfo, first: u64) -> Vec<String> {
    let mut said = Vec::new();
    let name = &config.name;
    if let Some(begins) = config.first_sequence.filter(|begins| *begins > first.max(1)) {
        said.push(format!(
            "stream {name} begins at event {begins}: older events are in the ledger only; remove \
             the stream to have it filled from the first event again"
        ));
    }
    for (limit, set) in limits(config) {
        if set {
            said.push(format!(
                "stream {name} has {limit}: the server may drop events that nobody has read; \
                 readers then need the ledger"
            ));
        }
    }
    if !matches!(config.retention, RetentionPolicy::Limits) {
        said.push(format!(
            "stream {name} has a retention by interest or as a work queue: the server drops \
             events once they are acknowledged"
        ));
    }
    if !config.deny_purge || !config.deny_delete {
        said.push(format!(
            "messages can be removed from stream {name}: deny_purge and deny_delete are off"
        ));
    }
    if config.sources.as_ref().is_some_and(|sources| !sources.is_empty()) {
        said.push(format!("stream {name} has sources: what is not the ledger's may come into it"));
    }
    if !server.auth_required {
        said.push(format!(
            "the NATS server asks nobody for a login: anybody who reaches it can publish to \
             stream {name} and send commands"
        ));
    }
    said
}

fn limits(config: &Config) -> [(&'static str, bool); 5] {
    [
        ("max_msgs", config.max_messages > 0),
        ("max_bytes", config.max_bytes > 0),
        ("max_age", !config.max_age.is_zero()),
        ("max_msgs_per_subject", config.max_messages_per_subject > 0),
        ("max_msg_size", config.max_message_size > 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sound() -> (Config, ServerInfo) {
        let config =
            Config { name: "S".into(), deny_purge: true, deny_delete: true, ..Config::default() };
        (config, ServerInfo { auth_required: true, ..ServerInfo::default() })
    }

    #[test]
    fn a_stream_as_we_make_it_on_a_guarded_server_needs_no_warning() {
        let (config, server) = sound();
        assert_eq!(warnings(&config, &server, 1), Vec::<String>::new());
    }

    #[test]
    fn whatever_may_drop_or_add_events_is_told() {
        type Change = fn(&mut Config, &mut ServerInfo);
        let change: [(&str, Change); 7] = [
            ("begins at event 7", |config, _| config.first_sequence = Some(7)),
            ("max_msgs", |config, _| config.max_messages = 100),
            ("max_bytes", |config, _| config.max_bytes = 100),
            ("max_age", |config, _| config.max_age = Duration::from_secs(60)),
            ("deny_purge", |config, _| config.deny_purge = false),
            ("retention", |config, _| config.retention = RetentionPolicy::WorkQueue),
            ("anybody", |_, server| server.auth_required = false),
        ];
        for (word, change) in change {
            let (mut config, mut server) = sound();
            change(&mut config, &mut server);
            let told = warnings(&config, &server, 1);
            assert!(told.len() == 1 && told[0].contains(word), "{word}: {told:?}");
        }
    }
}
