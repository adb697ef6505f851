//! Progress of loading: a bar on a terminal, one line otherwise.

use std::io::IsTerminal as _;
use std::time::Instant;

use coli_base::units::Bytes;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of one loading.
pub(crate) struct Loading {
    bar: Option<ProgressBar>,
    start: Instant,
}

impl Loading {
    /// Starts the clock.
    pub(crate) fn start() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("loading {bar:32} {binary_bytes}/{binary_total_bytes} {eta}") {
                bar.set_style(style);
            }
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

    /// Ends the bar and writes the line.
    pub(crate) fn finish(self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        say!("loaded {} in {:.2} s", Bytes(bytes), self.start.elapsed().as_secs_f64());
    }
}
