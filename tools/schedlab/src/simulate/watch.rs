//! Progress of many runs in the model, and Ctrl-C.

use std::{
    io::{IsTerminal, stderr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use indicatif::ProgressBar;

use crate::{
    bar::bar,
    boot::{Children, children},
    output::{count, note},
};

/// Runs that take less show no progress.
const SOON: Duration = Duration::from_secs(3);
/// The time between two lines of progress where there is no terminal for a bar.
const OFTEN: Duration = Duration::from_secs(10);

/// The progress of all runs of a subcommand. At most one may exist, as it catches signals.
pub struct Watch {
    signals: Children,
    total: usize,
    state: Mutex<State>,
}

struct State {
    done: usize,
    /// The time of the next line or bar.
    next: Instant,
    bar: Option<ProgressBar>,
}

impl Watch {
    /// Starts to watch `total` runs. From now on Ctrl-C ends them and not the program.
    pub fn new(total: usize) -> Result<Self> {
        let state = State {
            done: 0,
            next: Instant::now() + SOON,
            bar: None,
        };
        Ok(Self {
            signals: children()?,
            total,
            state: Mutex::new(state),
        })
    }

    /// Returns true after Ctrl-C.
    pub fn stopped(&self) -> bool {
        self.signals.stopped()
    }

    /// Counts a run that is done.
    pub fn one_more(&self) {
        let mut state = self.state();
        state.done += 1;
        if let Some(bar) = &state.bar {
            bar.set_position(state.done as u64);
        } else if Instant::now() >= state.next {
            if stderr().is_terminal() {
                let bar = bar(self.total);
                bar.set_position(state.done as u64);
                state.bar = Some(bar);
            } else {
                note(format_args!(
                    "{} of {}",
                    state.done,
                    count(self.total, "run")
                ));
                state.next = Instant::now() + OFTEN;
            }
        }
    }

    /// Removes the bar. After Ctrl-C prints how far the runs came, and what comes of them.
    pub fn finish(&self, what_comes: &str) {
        let mut state = self.state();
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
        if self.stopped() {
            note(format_args!(
                "interrupted after {} of {}; {what_comes}",
                state.done,
                count(self.total, "run")
            ));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
