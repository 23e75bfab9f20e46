//! The border that no panic crosses. A panic is a defect of this program; it costs the command,
//! view or request that met it, and neither the process nor anybody else's.
//!
//! Each border calls [`caught`] and decides what may survive: nothing half-changed. Caught panics
//! are counted by [`Place`] for the metrics, and [`report`] puts each in the log.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// The borders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Deciding a command and encoding its events.
    Decide,
    /// Taking a batch to the disk and to the readers.
    Commit,
    /// Answering one of those who wait for a batch.
    Answer,
    /// Writing a checkpoint.
    Checkpoint,
    /// Folding the log into a state.
    Fold,
    /// Building or folding a view.
    View,
    /// Answering a request over HTTP.
    Http,
    /// Answering a message on NATS.
    Nats,
    /// Work beside the requests: what watches, publishes and keeps buckets.
    Background,
}

impl Place {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 9] = [
        Self::Decide,
        Self::Commit,
        Self::Answer,
        Self::Checkpoint,
        Self::Fold,
        Self::View,
        Self::Http,
        Self::Nats,
        Self::Background,
    ];

    /// Its name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decide => "decide",
            Self::Commit => "commit",
            Self::Answer => "answer",
            Self::Checkpoint => "checkpoint",
            Self::Fold => "fold",
            Self::View => "view",
            Self::Http => "http",
            Self::Nats => "nats",
            Self::Background => "background",
        }
    }
}

/// Caught panics since the start of the process, in the order of [`Place::ALL`].
static CAUGHT: [AtomicU64; Place::ALL.len()] = [const { AtomicU64::new(0) }; Place::ALL.len()];

/// Caught panics since the start of the process, by place.
pub fn counts() -> impl Iterator<Item = (Place, u64)> {
    Place::ALL.into_iter().zip(CAUGHT.iter().map(|count| count.load(Ordering::Relaxed)))
}

thread_local! {
    /// Where this thread panicked last, noted by the hook of [`report`].
    static PANICKED_AT: Cell<Option<String>> = const { Cell::new(None) };
}

/// What a panic said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    /// Its message.
    pub what: String,
    /// The place in the source, if [`report`] was called.
    pub at: Option<String>,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some(at) => write!(f, "{} ({at})", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Runs `work`; a panic in it becomes an error and is counted. The caller vouches that nothing
/// which `work` had half-changed is used afterwards.
///
/// # Errors
/// What the panic said.
pub fn caught<T>(place: Place, work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| noted(place, &*payload))
}

/// Counts a panic that was caught otherwise, as around a future, and tells what it said.
pub fn noted(place: Place, payload: &(dyn std::any::Any + Send)) -> Panicked {
    for (one, count) in Place::ALL.iter().zip(&CAUGHT) {
        if *one == place {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
    Panicked { what: said(payload).to_owned(), at: PANICKED_AT.take() }
}

fn said(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without words")
}

/// Has every panic of this process written to the log, within the span of the request that met
/// it, instead of to standard error.
pub fn report() {
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string);
        let backtrace = std::backtrace::Backtrace::capture();
        let captured = backtrace.status() == std::backtrace::BacktraceStatus::Captured;
        tracing::error!(
            what = said(panic.payload()),
            at = at.as_deref().unwrap_or("unknown"),
            thread = std::thread::current().name().unwrap_or("unnamed"),
            backtrace = captured.then(|| tracing::field::display(&backtrace)),
            "panicked: a defect of this program",
        );
        PANICKED_AT.set(at);
    }));
}

/// Panics if the environment variable `ALLOCD_TEST_PANIC` plants a panic at `place` for what was
/// asked with `request_id`: `PLACE=REQUEST-ID`, several separated by commas, such as
/// `decide=req-1b5b2e3a-4c5d-4e6f-8a9b-0c1d2e3f4a5b`. It is for tests of the borders alone: builds
/// without debug assertions do not have it, and no option or file sets it.
#[inline]
pub fn planted(place: &str, request_id: Option<&str>) {
    #[cfg(debug_assertions)]
    planting::check(place, request_id);
    #[cfg(not(debug_assertions))]
    let _ = (place, request_id);
}

#[cfg(debug_assertions)]
mod planting {
    use std::sync::LazyLock;

    static PLANTED: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
        let text = std::env::var("ALLOCD_TEST_PANIC").unwrap_or_default();
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        pairs.map(|(place, id)| (place.to_owned(), id.to_owned())).collect()
    });

    pub(super) fn check(place: &str, request_id: Option<&str>) {
        let Some(request_id) = request_id else { return };
        // In the crate's own tests the request id alone says it: they share one environment.
        let by_id = cfg!(test) && request_id.strip_prefix("panic-in-") == Some(place);
        if by_id || PLANTED.iter().any(|(at, id)| at == place && id == request_id) {
            panic!("planted for a test: {place}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_words_and_is_counted() {
        let count = || counts().find(|(place, _)| *place == Place::Checkpoint).map(|(_, n)| n);
        let before = count();
        assert_eq!(caught(Place::Checkpoint, || 1), Ok(1));
        assert_eq!(count(), before);
        let number = 7;
        let told = caught(Place::Checkpoint, || panic!("no {number}")).map(|()| 0).unwrap_err();
        assert_eq!(told.what, "no 7");
        let told = caught(Place::Checkpoint, || panic!("no")).map(|()| 0).unwrap_err();
        assert_eq!(told.what, "no");
        assert_eq!(count(), before.map(|count| count + 2));
    }
}
