//! The list of schedulers: all our policies, and the registry's.

use std::sync::Arc;

use axsched_ext::*;

use crate::clock::SceneClock as C;
use crate::machine::{Inner as T, Machine};
use crate::memory::{Sizes, of};
use crate::scene::{Operation, play};
use crate::stock::Stock;

/// A scheduler of the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name in result lines.
    pub name: &'static str,
    /// Plays the scene of an operation, with a number of tasks and of times.
    pub play: fn(Operation, usize, u64),
    /// Returns true if a task can have a nice value.
    pub has_nice: fn() -> bool,
    /// Measures its sizes.
    pub sizes: fn(fn() -> usize) -> Sizes,
}

impl Entry {
    /// Returns the operations that this scheduler has.
    pub fn operations(&self) -> impl Iterator<Item = Operation> {
        let has_nice = (self.has_nice)();
        let has = move |operation: &Operation| has_nice || *operation != Operation::Renice;
        Operation::ALL.into_iter().filter(has)
    }
}

/// Returns the scheduler of this name.
///
/// # Errors
/// There is none of this name. The text lists the names.
pub fn named(name: &str) -> Result<Entry, String> {
    all()
        .into_iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| {
            let names: Vec<_> = all().iter().map(|entry| entry.name).collect();
            format!("expected one of {}, found `{name}`", names.join(" "))
        })
}

fn has_nice<W, S: BaseScheduler<SchedItem = Arc<W>>>(mut scheduler: S, task: W) -> bool {
    scheduler.set_priority(&Arc::new(task), 1)
}

macro_rules! entry {
    ($name:expr, $wrap:expr, $made:expr) => {
        Entry {
            name: $name,
            play: |operation, tasks, times| {
                play(operation, times, &mut Machine::new($made, $wrap, tasks));
            },
            has_nice: || has_nice($made, $wrap(T::default())),
            sizes: |heap| of(heap, || $made, $wrap),
        }
    };
}

macro_rules! policies {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
        /// Returns all schedulers, ours first.
        pub fn all() -> Vec<Entry> {
            vec![
                $(entry!(stringify!($module), $task::new, <$scheduler>::new()),)*
                entry!(
                    "stock-fifo",
                    axsched_upstream::FifoTask::new,
                    Stock(axsched_upstream::FifoScheduler::<T>::new())
                ),
                entry!(
                    "stock-rr",
                    axsched_upstream::RRTask::new,
                    Stock(axsched_upstream::RRScheduler::<T, STOCK_SLICE>::new())
                ),
                entry!(
                    "stock-cfs",
                    axsched_upstream::CFSTask::new,
                    Stock(axsched_upstream::CFScheduler::<T>::new())
                ),
            ]
        }
    };
}

/// Ticks of a time slice of the registry's round robin, as in `axtask`.
const STOCK_SLICE: usize = 5;

for_each_policy!(policies);
