//! Work that is independent, on all cores.

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use super::watch::Watch;

/// Calls `of` with each number below `count`, on all cores, and returns the results in this order. Each
/// call has a thread, hence a clock, of its own. After Ctrl-C no more calls begin, and their results
/// are `None`. Calls begin in order.
pub fn on_all_cores<T: Send>(
    count: usize,
    watch: &Watch,
    of: impl Fn(usize) -> T + Sync,
) -> Vec<Option<T>> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Relaxed);
            if i >= count || watch.stopped() {
                return done;
            }
            done.push((i, of(i)));
            watch.one_more();
        }
    };
    let all: Vec<(usize, T)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores.min(count)).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut in_order: Vec<Option<T>> = (0..count).map(|_| None).collect();
    for (i, done) in all {
        in_order[i] = Some(done);
    }
    in_order
}
