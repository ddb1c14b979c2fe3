//! Timers as a program has them, in virtual time: it stands still while a worker has something to do, and
//! jumps to where the worker wants to wait until.

mod domains;
mod on_host;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use axcoop::host::HOST;
use axcoop::{
    Domain, Elapsed, GRANULE_NANOS, Kernel, POLL_BUDGET, Priority, SUMMARY, interval, now, sleep,
    sleep_until, timeout, yield_now,
};
use domains::{with_domain, with_domain_on};
use on_host::OnHost;

static NOW: AtomicU64 = AtomicU64::new(12_345_678_901);
static PARKS: AtomicUsize = AtomicUsize::new(0);
/// Which workers need not wait, a bit each.
static MAY_GO: AtomicUsize = AtomicUsize::new(0);
/// Each call of the clock takes so long.
static TICKS: AtomicU64 = AtomicU64::new(0);

/// The host, but for the clock.
static VIRTUAL: OnHost = OnHost {
    park: |domain, number, until| {
        PARKS.fetch_add(1, SeqCst);
        match until {
            // Something has come meanwhile: no time goes by.
            _ if MAY_GO.fetch_and(!(1 << number), SeqCst) >> number & 1 != 0 => {}
            None => HOST.park(domain, number, None),
            Some(until) => drop(NOW.fetch_max(until, SeqCst)),
        }
    },
    unpark: |number| _ = MAY_GO.fetch_or(1 << number, SeqCst),
    now: || NOW.fetch_add(TICKS.load(SeqCst), SeqCst),
    ..OnHost::PLAIN
};

/// Runs a test in virtual time.
fn in_virtual_time(workers: usize, test: impl FnOnce(&'static Domain)) {
    drop(with_domain_on(&VIRTUAL, 0, |domain| {
        TICKS.store(0, SeqCst);
        domain.alloc_cpu(workers).unwrap();
        test(domain);
    }));
}

#[test]
fn rule_1_nobody_is_woken_early_nor_more_than_a_granule_late() {
    in_virtual_time(0, |domain| {
        let durations = [
            0,
            1,
            GRANULE_NANOS - 1,
            GRANULE_NANOS,
            1_000_000,
            999_999_999,
            60_000_000_000,
            86_400_000_000_000,
        ];
        let handles: Vec<_> = (0..200)
            .map(|n: u64| {
                let nanos = durations[n as usize % durations.len()] + n * n * 977 % 5_000_000;
                domain.spawn(
                    async move {
                        let until = now() + nanos;
                        sleep(Duration::from_nanos(nanos)).await;
                        let late = now().checked_sub(until).expect("early");
                        assert!(late <= GRANULE_NANOS, "{late} late");
                    },
                    Priority::new(n as usize % 8),
                )
            })
            .collect();
        domain.alloc_cpu(1).unwrap();
        for handle in handles {
            assert_eq!(handle.join(), Ok(()));
        }
    });
}

/// Also of a worker that is alone, which queues at once whom it wakes itself.
#[test]
fn rule_2_a_time_that_comes_just_before_a_worker_waits_is_not_missed() {
    in_virtual_time(1, |domain| {
        for tenths in 1..=30 {
            TICKS.store(GRANULE_NANOS / 10 * tenths, SeqCst);
            let sleeps = domain.spawn(
                async {
                    for granules in 0..40_u32 {
                        sleep(granules * Duration::from_nanos(GRANULE_NANOS) / 4).await;
                    }
                },
                Priority::DEFAULT,
            );
            let (tell, told) = std::sync::mpsc::channel();
            std::thread::spawn(move || tell.send(sleeps.join()));
            let slept = told.recv_timeout(Duration::from_secs(20));
            assert_eq!(
                slept,
                Ok(Ok(())),
                "the clock takes {tenths} tenths of a granule"
            );
        }
        TICKS.store(0, SeqCst);
    });
}

/// Between two times it waits once for each level that a time is looked at in, and that is all.
#[test]
fn rule_3_a_worker_waits_until_the_next_time() {
    in_virtual_time(0, |domain| {
        PARKS.store(0, SeqCst);
        let handle = domain.spawn(
            async {
                for _ in 0..100 {
                    sleep(Duration::from_secs(3600)).await;
                }
            },
            Priority::DEFAULT,
        );
        domain.alloc_cpu(1).unwrap();
        handle.join().unwrap();
        // At most 6 steps for each hour; one before it was spawned, one after it ended.
        let parks = PARKS.load(SeqCst);
        assert!((100..=602).contains(&parks), "{parks}");
    });
}

/// On the host's clock: somebody waits for an hour, with a worker that waits for that; one who comes
/// later waits for less.
#[test]
fn rule_3_an_earlier_time_has_the_worker_look_again() {
    with_domain(0, |domain| {
        for workers in [1, 2] {
            domain.alloc_cpu(workers).unwrap();
            let long = domain.spawn(sleep(Duration::from_secs(3600)), Priority::DEFAULT);
            // It sleeps, and so do the workers: nothing else happens for an hour.
            std::thread::sleep(Duration::from_millis(20));
            let until = domain.kernel().now() + 3_000_000;
            // Not in a coroutine: nobody but the timer has the worker go on.
            let mut slept = std::pin::pin!(sleep_until(until));
            domain.kernel().block_on(slept.as_mut());
            assert!(domain.kernel().now() >= until);
            // In one.
            let short = domain.spawn(sleep(Duration::from_millis(2)), Priority::DEFAULT);
            assert_eq!(short.join(), Ok(()));
            assert!(!long.is_finished());
            long.cancel();
            assert!(long.join().is_err());
        }
    });
}

/// Time goes on while coroutines compute and yield: those who sleep are not forgotten.
#[test]
fn rule_2_a_worker_that_is_never_idle_looks_at_the_clock() {
    for workers in [1, 2] {
        in_virtual_time(0, |domain| {
            let is_over = Arc::new(AtomicBool::new(false));
            let polls = Arc::new(AtomicUsize::new(0));
            let busy: Vec<_> = (0..workers)
                .map(|_| {
                    let (is_over, polls) = (is_over.clone(), polls.clone());
                    domain.spawn(
                        async move {
                            while !is_over.load(SeqCst) {
                                polls.fetch_add(1, SeqCst);
                                yield_now().await;
                            }
                        },
                        Priority::DEFAULT,
                    )
                })
                .collect();
            let sleeper = domain.spawn(
                async move {
                    // From here on each look at the clock takes a granule.
                    TICKS.store(GRANULE_NANOS, SeqCst);
                    sleep(Duration::from_nanos(3 * GRANULE_NANOS)).await;
                    TICKS.store(0, SeqCst);
                    is_over.store(true, SeqCst);
                    polls.load(SeqCst)
                },
                Priority::FIRST,
            );
            domain.alloc_cpu(workers).unwrap();
            let polls = sleeper.join().unwrap();
            for busy in busy {
                busy.join().unwrap();
            }
            if workers == 1 {
                // 256 until the first look at the latest, and 32 between two.
                assert!(polls <= 256 + 4 * 32, "{polls}");
            }
        });
    }
}

#[test]
fn a_sleep_that_is_dropped_leaves_nothing_behind() {
    in_virtual_time(1, |domain| {
        let handle = domain.spawn(
            async {
                let began = now();
                for n in 0..1000 {
                    let long = timeout(Duration::from_secs(1000 + n), yield_now());
                    assert_eq!(long.await, Ok(()));
                }
                let short = timeout(Duration::from_millis(5), std::future::pending::<()>());
                assert_eq!(short.await, Err(Elapsed));
                // None of the long ones has been waited for.
                assert!(now() - began < 10_000_000);
            },
            Priority::DEFAULT,
        );
        assert_eq!(handle.join(), Ok(()));
    });
    // Not in virtual time, which would jump there.
    with_domain(1, |domain| {
        let cancelled = domain.spawn(sleep(Duration::MAX), Priority::DEFAULT);
        cancelled.cancel();
        assert!(cancelled.join().is_err());
    });
}

#[test]
fn a_sleep_may_move_to_another_coroutine_and_stays_ready() {
    with_domain(2, |domain| {
        let mut slept = Box::pin(sleep(Duration::from_millis(3)));
        // Polled once, by one that ends.
        let handle = domain.spawn(
            async move {
                let once = std::future::poll_fn(|context| {
                    std::task::Poll::Ready(slept.as_mut().poll(context).is_ready())
                });
                once.await;
                Some(slept)
            },
            Priority::DEFAULT,
        );
        let mut slept = handle.join().unwrap().unwrap();
        let handle = domain.spawn(
            async move {
                slept.as_mut().await;
                slept.as_mut().await;
            },
            Priority::DEFAULT,
        );
        assert_eq!(handle.join(), Ok(()));
    });
}

#[test]
fn an_interval_says_how_often_it_has_come() {
    in_virtual_time(1, |domain| {
        let handle = domain.spawn(
            async {
                let began = now();
                let period = Duration::from_millis(10);
                let mut every = interval(period);
                let mut seen = 0;
                for n in 1..=20 {
                    if n % 5 == 0 {
                        sleep(3 * period).await;
                    }
                    seen += every.tick().await;
                    assert_eq!((now() - began) / 10_000_000, seen);
                    assert_eq!(every.due(), began + (seen + 1) * 10_000_000);
                }
                // One that is dropped is not missed.
                let short = timeout(Duration::from_millis(1), every.tick());
                assert_eq!(short.await, Err(Elapsed));
                assert_eq!(every.tick().await, 1);
                seen
            },
            Priority::DEFAULT,
        );
        assert_eq!(handle.join(), Ok(20 + 4 * 2));
    });
}

/// Whose worker is at something else, or waits for a CPU.
#[test]
fn rule_5_after_a_tick_who_is_due_is_marked_before_a_worker_has_looked() {
    in_virtual_time(0, |domain| {
        static IS_BUSY: AtomicBool = AtomicBool::new(false);
        IS_BUSY.store(false, SeqCst);
        let urgent = Priority::new(2);
        let waits = domain.spawn(sleep(Duration::from_millis(2)), urgent);
        let busy = domain.spawn(
            async {
                IS_BUSY.store(true, SeqCst);
                while IS_BUSY.load(SeqCst) {
                    std::thread::yield_now();
                }
            },
            Priority::LAST,
        );
        domain.alloc_cpu(1).unwrap();
        while !IS_BUSY.load(SeqCst) {
            std::thread::yield_now();
        }
        domain.clock_ticked();
        assert_eq!(SUMMARY.of(domain.id()), Some(Priority::LAST));
        NOW.fetch_add(2_000_000 + GRANULE_NANOS, SeqCst);
        assert_eq!(SUMMARY.of(domain.id()), Some(Priority::LAST));
        domain.clock_ticked();
        assert_eq!(SUMMARY.of(domain.id()), Some(urgent));
        assert!(!waits.is_finished(), "only its worker polls it");
        IS_BUSY.store(false, SeqCst);
        assert_eq!((waits.join(), busy.join()), (Ok(()), Ok(())));
    });
}

/// Locks a free mutex again and again and counts: an await that is always ready.
async fn locks(count: &'static AtomicUsize, times: usize) {
    let mutex = axcoop::Mutex::new(());
    for _ in 0..times {
        drop(mutex.lock().await);
        count.fetch_add(1, SeqCst);
    }
}

/// Rule 3 of `budget`.
#[test]
fn timeout_of_what_is_always_ready_is_seen_within_a_budget() {
    in_virtual_time(1, |domain| {
        const TIME: Duration = Duration::from_millis(100);
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        TICKS.store(GRANULE_NANOS, SeqCst);
        let busy = timeout(TIME, locks(&COUNT, 1_000_000));
        let handle = domain.spawn(busy, Priority::LAST);
        assert_eq!(handle.join(), Ok(Err(Elapsed)));
        // One look at the clock for each budget, and one that is late by the granule.
        let looks = TIME.as_nanos() as usize / GRANULE_NANOS as usize + 2;
        let locks = COUNT.load(SeqCst);
        assert!(locks <= looks * usize::from(POLL_BUDGET), "{locks} locks");
    });
}

/// Rule 3 of `budget`.
#[test]
fn timeout_is_late_by_one_budget() {
    in_virtual_time(1, |domain| {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let busy = timeout(Duration::ZERO, locks(&COUNT, 1_000_000));
        let handle = domain.spawn(busy, Priority::LAST);
        assert_eq!(handle.join(), Ok(Err(Elapsed)));
        assert_eq!(COUNT.load(SeqCst), usize::from(POLL_BUDGET));
    });
}

/// A late timeout polls its future again if that found the budget spent: what is ready by then counts.
#[test]
fn late_timeout_polls_its_future_with_a_budget() {
    in_virtual_time(1, |domain| {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let spends_all = async {
            locks(&COUNT, POLL_BUDGET.into()).await;
            timeout(Duration::ZERO, locks(&COUNT, 1)).await
        };
        let handle = domain.spawn(spends_all, Priority::LAST);
        assert_eq!(handle.join(), Ok(Ok(())));
    });
}

/// Rule 3 of `budget`, of another coroutine.
#[test]
fn sleeper_is_woken_within_a_budget_beside_what_is_always_ready() {
    in_virtual_time(1, |domain| {
        const TIME: Duration = Duration::from_millis(5);
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        TICKS.store(GRANULE_NANOS, SeqCst);
        let sleeps = async {
            let mut most = 0;
            // So the worker does not know of a timer when it begins its polls.
            yield_now().await;
            for _ in 0..10 {
                let before = COUNT.load(SeqCst);
                sleep(TIME).await;
                most = most.max(COUNT.load(SeqCst) - before);
            }
            most
        };
        let busy = domain.spawn(locks(&COUNT, usize::MAX), Priority::LAST);
        let most = domain.spawn(sleeps, Priority::FIRST).join().unwrap();
        busy.cancel();
        assert!(busy.join().is_err());
        let looks = TIME.as_nanos() as usize / GRANULE_NANOS as usize + 2;
        assert!(most <= looks * usize::from(POLL_BUDGET), "{most} locks");
    });
}
