//! Lines of the log that repeat: what a peer can cause a thousand times a second is written once,
//! and then once a second with its count.
//!
//! This stands before everything that is logged, so no place that logs has to think of it.

use std::fmt::{self, Write};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// How often what repeats is written.
const EVERY: Duration = Duration::from_secs(1);
/// Different lines of one place in the code that are written within that time: each may tell
/// something else. More are counted only, since a peer can make every line another one.
const DIFFERENT: usize = 8;
/// Bytes of a line that are kept to tell what repeated.
const KEPT: usize = 300;
/// The counts come under this name, and are never counted themselves.
const TARGET: &str = "allocd::repeated";

/// The filter. Lines below INFO pass: whoever asks for these wants them all.
#[derive(Debug, Default)]
pub struct Repeats {
    places: Mutex<FxHashMap<Identifier, Place>>,
    held_back: Condvar,
}

/// A place in the code that logged something within the last second.
#[derive(Debug)]
struct Place {
    level: Level,
    since: Instant,
    lines: Vec<Line>,
    others: u64,
}

#[derive(Debug)]
struct Line {
    text: String,
    again: u64,
}

/// What was held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    level: Level,
    text: String,
    times: u64,
}

impl Repeats {
    /// Whether a line is to be written now.
    fn passes(&self, place: Identifier, level: Level, text: String, now: Instant) -> bool {
        let mut places = self.places.lock();
        let place = places.entry(place).or_insert_with(|| Place {
            level,
            since: now,
            lines: Vec::new(),
            others: 0,
        });
        if let Some(line) = place.lines.iter_mut().find(|line| line.text == text) {
            line.again += 1;
        } else if place.lines.len() < DIFFERENT {
            place.lines.push(Line { text, again: 0 });
            // The thread that counts also forgets what did not repeat.
            self.held_back.notify_one();
            return true;
        } else {
            place.others += 1;
        }
        false
    }

    /// What was held back for a second, and is to be told now.
    fn due(&self, now: Instant) -> Vec<Summary> {
        let mut all = Vec::new();
        self.places.lock().retain(|_, place| {
            if now.saturating_duration_since(place.since) < EVERY {
                return true;
            }
            place.since = now;
            let summary =
                |text: &str, times| Summary { level: place.level, text: text.to_owned(), times };
            let repeated = place.lines.iter().filter(|line| line.again > 0);
            all.extend(repeated.map(|line| summary(&line.text, line.again)));
            if place.others > 0 {
                let like = place.lines.last().map_or("", |line| &line.text);
                all.push(summary(&format!("others such as {like}"), place.others));
            }
            place.others = 0;
            place.lines.retain(|line| line.again > 0);
            place.lines.iter_mut().for_each(|line| line.again = 0);
            !place.lines.is_empty()
        });
        all
    }

    /// Writes what was held back, for ever. It sleeps while nothing is.
    pub fn tell(&self) {
        loop {
            let mut places = self.places.lock();
            while places.is_empty() {
                self.held_back.wait(&mut places);
            }
            drop(places);
            std::thread::sleep(EVERY);
            for Summary { level, text, times } in self.due(Instant::now()) {
                match level {
                    Level::ERROR => tracing::error!(target: TARGET, times, "again: {text}"),
                    Level::WARN => tracing::warn!(target: TARGET, times, "again: {text}"),
                    _ => tracing::info!(target: TARGET, times, "again: {text}"),
                }
            }
        }
    }
}

/// Shared, since one thread writes what was held back.
#[derive(Clone, Debug)]
pub struct Bounded(pub std::sync::Arc<Repeats>);

impl<S: Subscriber> Layer<S> for Bounded {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO || metadata.target() == TARGET {
            return true;
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.passes(metadata.callsite(), *metadata.level(), text.0, Instant::now())
    }
}

/// A line's message and fields, cut.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // It says that the text is full; what is there is kept.
        let _ = match field.name() {
            "message" => write!(self, "{value:?} "),
            name => write!(self, "{name}={value:?} "),
        };
    }
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = KEPT.saturating_sub(self.0.len());
        let end = (0..=part.len().min(room)).rev().find(|end| part.is_char_boundary(*end));
        self.0.push_str(&part[..end.unwrap_or(0)]);
        if part.len() > room { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::Arc;
    use tracing_subscriber::fmt::MakeWriter;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    fn logged(log: impl FnOnce()) -> (String, Arc<Repeats>) {
        let (lines, repeats) = (Lines::default(), Arc::new(Repeats::default()));
        let layer = tracing_subscriber::fmt::layer().with_writer(lines.clone()).with_ansi(false);
        let subscriber =
            tracing_subscriber::registry().with(layer).with(Bounded(Arc::clone(&repeats)));
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(lines.0.lock().clone()).expect("UTF-8");
        (text, repeats)
    }

    fn times(repeats: &Repeats) -> Vec<u64> {
        repeats.due(Instant::now() + EVERY).iter().map(|summary| summary.times).collect()
    }

    #[test]
    fn a_line_that_repeats_is_written_once_and_counted() {
        let (text, repeats) = logged(|| {
            for _ in 0..7_800 {
                tracing::warn!(endpoint = "query", "too fast");
            }
            tracing::warn!("something else");
        });
        assert_eq!(text.lines().count(), 2, "{text}");
        let told = repeats.due(Instant::now() + EVERY);
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].times, told[0].level), (7_799, Level::WARN));
        assert!(told[0].text.contains("too fast") && told[0].text.contains("query"), "{told:?}");
        assert!(times(&repeats).is_empty(), "it is told once");
    }

    #[test]
    fn lines_that_differ_are_written_up_to_a_bound() {
        let (text, repeats) = logged(|| {
            for number in 0..100 {
                tracing::info!(number, "from a peer");
            }
        });
        assert_eq!(text.lines().count(), DIFFERENT, "{text}");
        assert_eq!(times(&repeats), [100 - DIFFERENT as u64]);
        let (text, _) = logged(|| {
            for _ in 0..100 {
                tracing::debug!("wanted");
            }
        });
        assert_eq!(text.lines().count(), 100, "{text}");
    }

    #[test]
    fn what_is_kept_of_a_line_is_bounded() {
        let long = "ä".repeat(10_000);
        let (_, repeats) = logged(|| {
            for _ in 0..2 {
                tracing::warn!(long, "from a peer");
            }
        });
        let told = repeats.due(Instant::now() + EVERY);
        assert!(told[0].text.len() <= KEPT, "{}", told[0].text.len());
    }
}
