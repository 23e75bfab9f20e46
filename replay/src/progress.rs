//! Progress of long work: a bar on a terminal, plain lines elsewhere, nothing for short work.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

const QUIET: Duration = Duration::from_millis(700);
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How far one piece of work is. Told on the standard error.
pub(crate) struct Progress {
    what: &'static str,
    begun: Instant,
    told: Instant,
    bar: Option<ProgressBar>,
    terminal: bool,
}

impl Progress {
    /// Work begins.
    pub fn new(what: &'static str) -> Self {
        let now = Instant::now();
        Self { what, begun: now, told: now, bar: None, terminal: std::io::stderr().is_terminal() }
    }

    /// `done` of `all` events are behind us.
    pub fn at(&mut self, done: u64, all: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(all);
            bar.set_position(done);
        } else if self.terminal && self.begun.elapsed() > QUIET {
            self.bar = Some(bar(self.what, done, all));
        } else if !self.terminal && self.told.elapsed() > LINE_EVERY {
            self.told = Instant::now();
            eprintln!("{}: {done} of {all} events, {:.0} a second", self.what, self.rate(done));
        }
    }

    /// Events a second so far.
    pub fn rate(&self, done: u64) -> f64 {
        done as f64 / self.begun.elapsed().as_secs_f64().max(1e-6)
    }

    /// Seconds since work began.
    pub fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Work is over: the bar goes away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str, done: u64, all: u64) -> ProgressBar {
    let bar = ProgressBar::new(all).with_message(what).with_position(done);
    let style = "{msg} {wide_bar} {human_pos} of {human_len} events, {per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}
