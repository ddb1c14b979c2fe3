//! The figures of time: the time of a number of turns.

use alloc::{sync::Arc, vec::Vec};
use core::{
    future::poll_fn,
    sync::atomic::{AtomicUsize, Ordering::*},
    task::{Poll, Waker},
};

use axcoop_arceos::{Domain, Priority, yield_now};
use axtask::WaitQueue;
use kernel_guard::NoPreempt;
use sched_tests_common::platform::now_ns;
use spin::Once;

const STACK_BYTES: usize = 16 * 1024;
/// The priority of all coroutines.
const PRIORITY: Priority = Priority::DEFAULT;
/// The number spawned at once for `batch`.
pub const BATCH: usize = 250;

/// Returns how much longer `turns` × 2 take than `turns`, for each additional turn. One turn measures `of_one`
/// operations.
pub fn per_turn(turns: u64, of_one: u64, run: impl Fn(u64) -> u64) -> f64 {
    // The allocator takes the memory that it lacks in the first run.
    run(1);
    let (once, twice) = (run(turns), run(2 * turns));
    twice.saturating_sub(once) as f64 / (turns * of_one) as f64
}

/// Lets coroutines yield this often each.
pub fn coroutines_yield(domain: &'static Domain, coroutines: usize, yields: u64) -> u64 {
    let yielder = move |_| {
        let body = async move {
            for _ in 0..yields {
                yield_now().await;
            }
        };
        domain.spawn(body, PRIORITY)
    };
    measure_ns(|| {
        // Spawned by one of them, so that none runs before all are there.
        run(domain, async move {
            let all: Vec<_> = (0..coroutines).map(yielder).collect();
            for one in all {
                one.await.expect("it ends");
            }
        });
    })
}

/// Lets threads yield this often each.
pub fn threads_yield(threads: usize, yields: u64) -> u64 {
    let left = Arc::new((AtomicUsize::new(threads), WaitQueue::new()));
    measure_ns(|| {
        {
            let _none_runs_before_all_are_there = NoPreempt::new();
            for _ in 0..threads {
                let left = left.clone();
                let body = move || {
                    for _ in 0..yields {
                        axtask::yield_now();
                    }
                    if left.0.fetch_sub(1, AcqRel) == 1 {
                        left.1.notify_one(false);
                    }
                };
                drop(axtask::spawn_raw(body, "".into(), STACK_BYTES));
            }
        }
        left.1.wait_until(|| left.0.load(Acquire) == 0);
    })
}

/// Spawns and awaits a coroutine, this often.
pub fn coroutines_spawn(domain: &'static Domain, turns: u64) -> u64 {
    measure_ns(|| {
        run(domain, async move {
            for _ in 0..turns {
                domain.spawn(async {}, PRIORITY).await.expect("it ends");
            }
        });
    })
}

/// Spawns and joins a thread, this often.
pub fn threads_spawn(turns: u64) -> u64 {
    measure_ns(|| {
        for _ in 0..turns {
            axtask::spawn_raw(|| (), "".into(), STACK_BYTES).join();
        }
    })
}

/// Spawns and awaits [`BATCH`] coroutines, this often.
pub fn coroutines_spawn_batch(domain: &'static Domain, turns: u64) -> u64 {
    measure_ns(|| {
        run(domain, async move {
            for _ in 0..turns {
                let empty = |_| domain.spawn(async {}, PRIORITY);
                let all: Vec<_> = (0..BATCH).map(empty).collect();
                for one in all {
                    one.await.expect("it ends");
                }
            }
        });
    })
}

/// Spawns and joins [`BATCH`] threads, this often.
pub fn threads_spawn_batch(turns: u64) -> u64 {
    measure_ns(|| {
        for _ in 0..turns {
            let empty = |_| axtask::spawn_raw(|| (), "".into(), STACK_BYTES);
            let all: Vec<_> = (0..BATCH).map(empty).collect();
            for one in all {
                one.join();
            }
        }
    })
}

/// The number of the one of two parties that may continue. It hands the turn to the other one, wakes it, and waits.
#[derive(Default)]
struct Turn(AtomicUsize);

impl Turn {
    fn is_of(&self, me: usize) -> bool {
        self.0.load(Acquire) == me
    }

    fn give(&self, other: usize) {
        self.0.store(other, Release);
    }
}

/// Lets two coroutines wake each other. A turn is a wake of the other one and a wake back.
pub fn coroutines_wake(domain: &'static Domain, turns: u64) -> u64 {
    // A coroutine has one waker for its life, which it leaves once.
    let both = Arc::new((Turn::default(), [const { Once::<Waker>::new() }; 2]));
    let side = |me: usize| {
        let both = both.clone();
        async move {
            let (turn, wakers) = &*both;
            for _ in 0..turns {
                poll_fn(|context| {
                    wakers[me].call_once(|| context.waker().clone());
                    match turn.is_of(me) {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    }
                })
                .await;
                turn.give(1 - me);
                // A coroutine that has not left its waker yet has not looked at the turn.
                if let Some(waker) = wakers[1 - me].get() {
                    waker.wake_by_ref();
                }
            }
        }
    };
    let (first, second) = (side(0), side(1));
    measure_ns(|| {
        run(domain, async move {
            let second = domain.spawn(second, PRIORITY);
            first.await;
            second.await.expect("it ends");
        });
    })
}

/// Lets two threads wake each other.
pub fn threads_wake(turns: u64) -> u64 {
    let both = Arc::new((Turn::default(), [WaitQueue::new(), WaitQueue::new()]));
    let side = |me: usize| {
        let both = both.clone();
        move || {
            let (turn, queues) = &*both;
            for _ in 0..turns {
                queues[me].wait_until(|| turn.is_of(me));
                turn.give(1 - me);
                queues[1 - me].notify_one(false);
            }
        }
    };
    let (first, second) = (side(0), side(1));
    measure_ns(|| {
        let second = axtask::spawn_raw(second, "".into(), STACK_BYTES);
        first();
        second.join();
    })
}

fn run(domain: &'static Domain, body: impl Future<Output = ()> + Send + 'static) {
    domain.spawn(body, PRIORITY).join().expect("it ends");
}

fn measure_ns(run: impl FnOnce()) -> u64 {
    let begin_ns = now_ns();
    run();
    now_ns() - begin_ns
}
