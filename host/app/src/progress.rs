//! Progress of loading and its like: a bar on a terminal, lines otherwise.

use std::io::IsTerminal as _;
use std::time::Instant;

use coli_base::units::Bytes;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of one loading, or of other work on bytes.
pub(crate) struct Loading {
    bar: Option<ProgressBar>,
    start: Instant,
}

impl Loading {
    /// Starts the clock.
    pub(crate) fn start() -> Self {
        Self::named("loading")
    }

    /// The same for work of another name.
    pub(crate) fn named(name: &'static str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{msg} {bar:32} {binary_bytes}/{binary_total_bytes} {eta}") {
                bar.set_style(style);
            }
            bar.set_message(name);
            bar
        });
        Self { bar, start: Instant::now() }
    }

    /// Notes bytes read so far and of all.
    pub(crate) fn advance(&self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
        }
    }

    /// Writes something where the bar is, which comes again below it.
    pub(crate) fn above(&self, write: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Ends the bar.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Ends the bar and writes the line.
    pub(crate) fn finish(self, bytes: u64) {
        self.clear();
        say!("loaded {} in {:.2} s", Bytes(bytes), self.start.elapsed().as_secs_f64());
    }
}
