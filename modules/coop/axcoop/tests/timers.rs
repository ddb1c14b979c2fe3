//! Timers as a program uses them, in virtual time: it stands still while a worker is busy, and jumps to the time
//! until which the worker parks. The rules are those of `timers`.

mod domains;
mod on_host;

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use axcoop::host::HOST;
use axcoop::{
    Domain, Elapsed, GRANULE_NANOS, POLL_BUDGET, Platform, Priority, SUMMARY, interval, now, sleep,
    sleep_until, timeout, yield_now,
};
use domains::{leaked, wait_until, with_domain, with_domain_on};
use on_host::OnHost;

static NOW: AtomicU64 = AtomicU64::new(12_345_678_901);
static PARKS: AtomicUsize = AtomicUsize::new(0);
/// The workers that have been unparked (bit mask).
static MAY_GO: AtomicUsize = AtomicUsize::new(0);
/// The nanoseconds that each call of the clock takes.
static TICKS: AtomicU64 = AtomicU64::new(0);

/// The host, except for its clock.
static VIRTUAL: OnHost = OnHost {
    park: |domain, number, until| {
        PARKS.fetch_add(1, SeqCst);
        match until {
            // It was unparked meanwhile, so no time passes.
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
        domain.set_workers(workers).unwrap();
        test(domain);
    }));
}

/// Runs a coroutine on one worker in virtual time, in which each call of the clock takes this many nanoseconds.
fn run_in_virtual_time<F>(ticks: u64, priority: Priority, future: F) -> F::Output
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let mut output = None;
    in_virtual_time(1, |domain| {
        TICKS.store(ticks, SeqCst);
        output = Some(domain.spawn(future, priority).join().unwrap());
    });
    output.unwrap()
}

#[test]
fn rule_1_no_sleep_ends_early_nor_more_than_a_granule_late() {
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
                let sleeps = async move {
                    let until = now() + nanos;
                    sleep(Duration::from_nanos(nanos)).await;
                    let late = now().checked_sub(until).expect("early");
                    assert!(late <= GRANULE_NANOS, "{late} late");
                };
                domain.spawn(sleeps, Priority::new(n as usize % 8))
            })
            .collect();
        domain.set_workers(1).unwrap();
        for handle in handles {
            assert_eq!(handle.join(), Ok(()));
        }
    });
}

/// The rule holds for a single worker too, which queues at once the coroutines that it wakes.
#[test]
fn rule_2_timer_due_just_before_a_park_is_not_missed() {
    in_virtual_time(1, |domain| {
        for tenths in 1..=30 {
            TICKS.store(GRANULE_NANOS / 10 * tenths, SeqCst);
            let sleeps = async {
                for granules in 0..40_u32 {
                    sleep(granules * Duration::from_nanos(GRANULE_NANOS) / 4).await;
                }
            };
            let sleeps = domain.spawn(sleeps, Priority::DEFAULT);
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

/// Between two timers the worker parks once for each level of the wheel in which a timer is looked at.
#[test]
fn rule_3_worker_parks_until_the_next_timer() {
    in_virtual_time(0, |domain| {
        PARKS.store(0, SeqCst);
        let sleeps = async {
            for _ in 0..100 {
                sleep(Duration::from_secs(3600)).await;
            }
        };
        let handle = domain.spawn(sleeps, Priority::DEFAULT);
        domain.set_workers(1).unwrap();
        handle.join().unwrap();
        // At most 6 steps for each hour; one before it was spawned, one after it ended.
        let parks = PARKS.load(SeqCst);
        assert!((100..=602).contains(&parks), "{parks}");
    });
}

/// On the host's clock: the worker is parked for a sleep of an hour when a shorter sleep begins.
#[test]
fn rule_3_earlier_timer_unparks_the_worker() {
    with_domain(0, |domain| {
        for workers in [1, 2] {
            domain.set_workers(workers).unwrap();
            let long = domain.spawn(sleep(Duration::from_secs(3600)), Priority::DEFAULT);
            // Until the workers are parked: nothing else happens for an hour.
            std::thread::sleep(Duration::from_millis(20));
            let until = domain.platform().now() + 3_000_000;
            // Outside a coroutine: only the timer unparks the worker.
            let mut slept = std::pin::pin!(sleep_until(until));
            domain.platform().block_on(slept.as_mut());
            assert!(domain.platform().now() >= until);
            // In a coroutine.
            let short = domain.spawn(sleep(Duration::from_millis(2)), Priority::DEFAULT);
            assert_eq!(short.join(), Ok(()));
            assert!(!long.is_finished());
            long.cancel();
            assert!(long.join().is_err());
        }
    });
}

/// Time passes while coroutines compute and yield.
#[test]
fn rule_2_worker_that_is_never_idle_looks_at_the_clock() {
    for workers in [1, 2] {
        in_virtual_time(0, |domain| {
            let is_over = leaked(AtomicBool::new(false));
            let polls = leaked(AtomicUsize::new(0));
            let busy = |_| async {
                while !is_over.load(SeqCst) {
                    polls.fetch_add(1, SeqCst);
                    yield_now().await;
                }
            };
            let busy: Vec<_> = (0..workers)
                .map(|n| domain.spawn(busy(n), Priority::DEFAULT))
                .collect();
            let sleeps = async {
                // From here on each look at the clock takes a granule.
                TICKS.store(GRANULE_NANOS, SeqCst);
                sleep(Duration::from_nanos(3 * GRANULE_NANOS)).await;
                TICKS.store(0, SeqCst);
                is_over.store(true, SeqCst);
                polls.load(SeqCst)
            };
            let sleeper = domain.spawn(sleeps, Priority::FIRST);
            domain.set_workers(workers).unwrap();
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
fn dropped_sleep_leaves_nothing_behind() {
    run_in_virtual_time(0, Priority::DEFAULT, async {
        let began = now();
        for n in 0..1000 {
            let long = timeout(Duration::from_secs(1000 + n), yield_now());
            assert_eq!(long.await, Ok(()));
        }
        let short = timeout(Duration::from_millis(5), std::future::pending::<()>());
        assert_eq!(short.await, Err(Elapsed));
        // No worker has parked until the end of a long one.
        assert!(now() - began < 10_000_000);
    });
    // Not in virtual time, which would jump to the end.
    with_domain(1, |domain| {
        let cancelled = domain.spawn(sleep(Duration::MAX), Priority::DEFAULT);
        cancelled.cancel();
        assert!(cancelled.join().is_err());
    });
}

#[test]
fn sleep_may_move_to_another_coroutine_and_stays_ready() {
    with_domain(2, |domain| {
        let mut slept = Box::pin(sleep(Duration::from_millis(3)));
        // Polled once, by a coroutine that ends.
        let polls = async move {
            std::future::poll_fn(|context| {
                std::task::Poll::Ready(slept.as_mut().poll(context).is_ready())
            })
            .await;
            Some(slept)
        };
        let slept = domain.spawn(polls, Priority::DEFAULT).join();
        let mut slept = slept.unwrap().unwrap();
        let awaits = async move {
            slept.as_mut().await;
            slept.as_mut().await;
        };
        let handle = domain.spawn(awaits, Priority::DEFAULT);
        assert_eq!(handle.join(), Ok(()));
    });
}

#[test]
fn interval_returns_the_number_of_periods_passed() {
    let seen = run_in_virtual_time(0, Priority::DEFAULT, async {
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
        // A tick that is dropped is not missed.
        let short = timeout(Duration::from_millis(1), every.tick());
        assert_eq!(short.await, Err(Elapsed));
        assert_eq!(every.tick().await, 1);
        seen
    });
    assert_eq!(seen, 20 + 4 * 2);
}

/// The worker is busy with another coroutine, or waits for a CPU.
#[test]
fn rule_5_tick_marks_a_due_sleeper_before_a_worker_has_looked() {
    in_virtual_time(0, |domain| {
        let is_busy = leaked(AtomicBool::new(false));
        let urgent = Priority::new(2);
        let waits = domain.spawn(sleep(Duration::from_millis(2)), urgent);
        let spins = async {
            is_busy.store(true, SeqCst);
            wait_until(|| !is_busy.load(SeqCst));
        };
        let busy = domain.spawn(spins, Priority::LAST);
        domain.set_workers(1).unwrap();
        wait_until(|| is_busy.load(SeqCst));
        domain.clock_ticked();
        assert_eq!(SUMMARY.of(domain.id()), Some(Priority::LAST));
        NOW.fetch_add(2_000_000 + GRANULE_NANOS, SeqCst);
        assert_eq!(SUMMARY.of(domain.id()), Some(Priority::LAST));
        domain.clock_ticked();
        assert_eq!(SUMMARY.of(domain.id()), Some(urgent));
        assert!(!waits.is_finished(), "only its worker polls it");
        is_busy.store(false, SeqCst);
        assert_eq!((waits.join(), busy.join()), (Ok(()), Ok(())));
    });
}

/// Locks a free mutex this often, which is always ready, and counts.
async fn lock_often(count: &AtomicUsize, times: usize) {
    let mutex = axcoop::Mutex::new(());
    for _ in 0..times {
        drop(mutex.lock().await);
        count.fetch_add(1, SeqCst);
    }
}

/// The awaits that may pass in this time: a budget for each look at the clock, and one look late by the granule.
fn lock_limit(time: Duration) -> usize {
    let looks = time.as_nanos() as usize / GRANULE_NANOS as usize + 2;
    looks * usize::from(POLL_BUDGET)
}

/// Rule 3 of `budget`.
#[test]
fn timeout_of_a_future_that_never_waits_ends_within_a_budget() {
    let elapsed_after = |ticks, time| {
        run_in_virtual_time(ticks, Priority::LAST, async move {
            let count = AtomicUsize::new(0);
            assert_eq!(
                timeout(time, lock_often(&count, 1_000_000)).await,
                Err(Elapsed)
            );
            count.into_inner()
        })
    };
    let time = Duration::from_millis(100);
    let locks = elapsed_after(GRANULE_NANOS, time);
    assert!(locks <= lock_limit(time), "{locks} locks");
    assert_eq!(elapsed_after(0, Duration::ZERO), POLL_BUDGET.into());
}

/// A late timeout polls its future again if that found the budget spent: an output that is ready by then counts.
#[test]
fn late_timeout_polls_its_future_with_a_budget() {
    let spends_all = async {
        let count = AtomicUsize::new(0);
        lock_often(&count, POLL_BUDGET.into()).await;
        timeout(Duration::ZERO, lock_often(&count, 1)).await
    };
    let output = run_in_virtual_time(0, Priority::LAST, spends_all);
    assert_eq!(output, Ok(()));
}

/// Rule 3 of `budget`, for another coroutine.
#[test]
fn sleeper_is_woken_within_a_budget_beside_a_coroutine_that_never_waits() {
    in_virtual_time(1, |domain| {
        const TIME: Duration = Duration::from_millis(5);
        let count = leaked(AtomicUsize::new(0));
        TICKS.store(GRANULE_NANOS, SeqCst);
        let sleeps = async {
            let mut most = 0;
            // After this the worker begins its polls without a timer.
            yield_now().await;
            for _ in 0..10 {
                let before = count.load(SeqCst);
                sleep(TIME).await;
                most = most.max(count.load(SeqCst) - before);
            }
            most
        };
        let busy = domain.spawn(lock_often(count, usize::MAX), Priority::LAST);
        let most = domain.spawn(sleeps, Priority::FIRST).join().unwrap();
        busy.cancel();
        assert!(busy.join().is_err());
        assert!(most <= lock_limit(TIME), "{most} locks");
    });
}
