//! A bar for what takes longer than a second, on standard error and only where a person looks at it.
//!
//! Knows nothing of what is done. Costs a look at the clock for each piece of work that is reported. Next: `commands.rs`.

use crate::limits::PROGRESS_AFTER;
use crate::storage::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};

/// Shows how far a piece of work has come. It goes away without a trace when this is dropped.
pub(crate) struct Bar {
    bar: ProgressBar,
    /// Nothing was drawn so far: it may not take long.
    is_waiting: bool,
}

impl Bar {
    pub(crate) fn new() -> Bar {
        let style =
            ProgressStyle::with_template("{msg} {wide_bar} {percent}%, {eta} left").unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_style(style);
        Bar { bar, is_waiting: io::stderr().is_terminal() }
    }

    pub(crate) fn report(&mut self, progress: Progress) {
        let Progress { what, done, total } = progress;
        if self.bar.message() != what {
            self.bar.set_message(what);
            self.bar.reset_eta();
        }
        self.bar.set_length(total);
        self.bar.set_position(done.min(total));
        if self.is_waiting && self.bar.elapsed() >= PROGRESS_AFTER {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.is_waiting = false;
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
