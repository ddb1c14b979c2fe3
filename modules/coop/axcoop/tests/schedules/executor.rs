// The executor, built here again with Shuttle's atomics: all of it except `atomics` and `state`, which the test names
// itself, and `host`.

#[path = "../../src/domain.rs"]
mod domain;
#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/lock.rs"]
mod lock;
#[path = "../../src/run/mod.rs"]
mod run;
#[path = "../../src/sync/mod.rs"]
mod sync;
#[path = "../../src/task/mod.rs"]
mod task;
#[path = "../../src/time/mod.rs"]
mod time;

/// The atomics, in place of those of `src/atomics.rs`.
mod atomics {
    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
}

/// The parts of Shuttle that `machine` needs.
mod explorer {
    pub use shuttle::future::block_on;
    pub use shuttle::sync::atomic::{AtomicBool, Ordering::Relaxed};
    pub use shuttle::sync::{Condvar, Mutex};
    pub use shuttle::{thread, thread_local};
}

mod machine;
mod scenarios;

pub(crate) use task::id::MAX_COROUTINES;
