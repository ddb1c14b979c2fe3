//! What this asks of ArceOS beside a card: time and tasks.

use core::future::Future;
use core::time::Duration;

pub use axtask::future::block_on;
pub use axtask::yield_now;

/// What deadlines are counted in: the time since the machine was started.
pub fn now() -> Duration {
    axhal::time::monotonic_time()
}

/// Starts the poller, which never returns.
pub fn spawn(poller: fn()) {
    axtask::spawn_with_name(poller, "axcoop-net".into());
}

/// Blocks the calling task until somebody rings, or so long.
pub fn sleep(rest: Option<Duration>, rung: impl Future<Output = ()>) {
    // Late or not, a round follows.
    let _ = block_on(axtask::future::timeout(rest, rung));
}
