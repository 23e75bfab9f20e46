//! Making the stream, and judging one that is there.

use super::Source;
use super::fault::Fault;
use super::inspect::{self, Verdict};
use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, RetentionPolicy, StorageType};
use async_nats::jetstream::{Context, ErrorCode};
use std::collections::HashMap;
use std::time::Duration;

/// The key under which the stream's metadata names its ledger.
pub(super) const LEDGER_KEY: &str = "allocd-ledger-id";

/// The server remembers message ids for so long. Expectations make it needless; two minutes, the
/// server's default, would be a great many ids while a stream is filled.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(1);

/// The stream as it was found or made: publishing goes on after `last`.
pub(super) struct Ready {
    pub(super) info: Info,
    pub(super) last: u64,
}

/// Sees to it that the stream is there and holds nothing but the ledger's events.
///
/// # Errors
/// [`Fault`] if the server does not answer, or the stream belongs to somebody else.
pub(super) async fn prepare(source: &Source, context: &Context) -> Result<Ready, Fault> {
    let name = &source.options.stream;
    let stream = match context.get_stream(name).await {
        Ok(stream) => stream,
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(said)
                if said.error_code() == ErrorCode::STREAM_NOT_FOUND =>
            {
                if source.board.published() > 0 {
                    source.board.damaged(&format!("stream {name} is gone"));
                }
                return make(source, context, source.options.first_sequence).await;
            }
            _ => return Err(Fault::server("asking for the stream")(&error)),
        },
    };
    match inspect::judge(source, &stream).await? {
        Verdict::Good => {
            let info = stream.cached_info().clone();
            let last = info.state.last_sequence;
            let known = source.board.published();
            if last < known {
                source.board.damaged(&format!(
                    "stream {name} ends at {last} and {known} was acknowledged: it is an older copy"
                ));
            }
            Ok(Ready { info, last })
        }
        Verdict::Foreign { begins, from, what } if from - begins > source.options.refilled => {
            source.board.cut(&format!("stream {name} {what}"), from);
            replace(source, context, from).await
        }
        Verdict::Foreign { what, .. } | Verdict::Damaged(what) => {
            source.board.damaged(&format!("stream {name} {what}"));
            replace(source, context, source.options.first_sequence).await
        }
        Verdict::NotOurs(what) => Err(Fault::NotOurs(format!(
            "stream {name} {what}; remove it or choose another name, nothing is published until then"
        ))),
    }
}

/// Makes the stream anew. The server can take nothing off a stream's end, and what is foreign
/// stands where an event belongs.
async fn replace(source: &Source, context: &Context, first: u64) -> Result<Ready, Fault> {
    let name = &source.options.stream;
    context.delete_stream(name).await.map_err(|e| Fault::server("removing the stream")(&e))?;
    make(source, context, first).await
}

async fn make(source: &Source, context: &Context, first: u64) -> Result<Ready, Fault> {
    let first = first.max(1);
    let stream =
        context.create_stream(config(source, first)).await.map_err(|error| match error.kind() {
            CreateStreamErrorKind::JetStream(said)
                if said.error_code() == ErrorCode::STREAM_SUBJECT_OVERLAP =>
            {
                Fault::NotOurs(format!(
                    "another stream has the subjects {}; nothing is published until it is gone",
                    source.options.subjects()
                ))
            }
            _ => Fault::server("making the stream")(&error),
        })?;
    let info = stream.cached_info().clone();
    let last = info.state.last_sequence;
    if last.checked_add(1) != Some(first) || info.state.messages != 0 {
        return Err(Fault::Changed(format!("a new stream ends at {last}, not before {first}")));
    }
    tracing::info!(stream = source.options.stream, first, "made the stream");
    Ok(Ready { info, last })
}

fn config(source: &Source, first: u64) -> Config {
    let options = &source.options;
    Config {
        name: options.stream.clone(),
        description: Some("Events of an allocd ledger: message n is event n".into()),
        subjects: vec![options.subjects()],
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        discard: DiscardPolicy::Old,
        num_replicas: options.replicas,
        duplicate_window: DUPLICATE_WINDOW,
        deny_delete: options.protected,
        deny_purge: options.protected,
        allow_direct: true,
        metadata: HashMap::from([(LEDGER_KEY.to_owned(), source.ledger_id.to_string())]),
        first_sequence: Some(first),
        ..Config::default()
    }
}
