//! Structured logs. Each line of a request stands in the request's span, which has its id.

use std::io::IsTerminal;
use std::sync::Arc;

use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

use crate::repeats::{Bounded, Repeats};

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// Starts logging to standard error; lines that repeat are bounded. `filter` is a level or a list of `target=level`.
///
/// # Errors
/// If the filter cannot be understood, logging was started before, or there is no thread for it.
pub fn start(
    format: LogFormat,
    filter: &str,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let filter = EnvFilter::try_new(filter)?;
    ledger::panics::report();
    let repeats = Arc::new(Repeats::default());
    let layer = fmt::layer().with_writer(std::io::stderr);
    let layer = match format {
        LogFormat::Human => layer.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => {
            layer.json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
        }
    };
    let bounded = Bounded(Arc::clone(&repeats));
    tracing_subscriber::registry().with(layer).with(bounded).with(filter).try_init()?;
    std::thread::Builder::new().name("log".into()).spawn(move || repeats.tell())?;
    Ok(())
}
