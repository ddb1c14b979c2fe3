//! What a person sees of many runs in the model while they are under way, and Ctrl-C.

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

/// What takes less is over before anybody asks how long it takes.
const SOON: Duration = Duration::from_secs(3);
/// Where there is no terminal for a bar, a line says so often how far it is.
const OFTEN: Duration = Duration::from_secs(10);

/// Of all runs of a subcommand; there is one at most, as it catches signals.
pub struct Watch {
    signals: Children,
    total: usize,
    state: Mutex<State>,
}

struct State {
    done: usize,
    /// When the next sign of life is due.
    next: Instant,
    bar: Option<ProgressBar>,
}

impl Watch {
    /// Before the first of `total` runs. From now on Ctrl-C ends them and not the program.
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

    /// Whether somebody has pressed Ctrl-C.
    pub fn stopped(&self) -> bool {
        self.signals.stopped()
    }

    /// One more run is done.
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

    /// Takes the bar away, and says so if not all is done, and what comes of it.
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
