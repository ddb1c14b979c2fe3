use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use axcoop::{Semaphore, timeout};

use super::domains::{leaked, with_domain};
use super::{Log, spawn_all, spawn_in_order, yield_often};

#[test]
fn rule_1_first_waiter_is_not_overtaken_by_one_that_wants_less() {
    with_domain(1, |domain| {
        let permits = leaked(Semaphore::new(2));
        let log = Log::new();
        let acquires = |n: usize| async move {
            permits.acquire_many([3, 1, 1, 4][n]).await.forget();
            log.push(n);
        };
        let handles = spawn_in_order(domain, &[5, 5, 6, 2], acquires);
        // A thread is as urgent as the default; the last coroutine is more so, and first.
        assert!(permits.try_acquire().is_none());
        for _ in 0..7 {
            permits.release(1);
        }
        handles.join();
        assert_eq!(*log.list(), [3, 0, 1, 2]);
        assert_eq!(permits.available(), 0);
    });
}

#[test]
fn rules_2_and_3_no_permit_is_lost() {
    for workers in [1, 4] {
        with_domain(workers, |domain| {
            let permits = leaked(Semaphore::new(5));
            let inside = leaked(AtomicUsize::new(0));
            let handles = spawn_all(domain, 48, |n| async move {
                for i in 0..50 {
                    let many = 1 + (n + i) % 3;
                    let limit = Duration::from_micros((n * i % 11) as u64 * 100);
                    if let Ok(permit) = timeout(limit, permits.acquire_many(many)).await {
                        assert!(inside.fetch_add(many, SeqCst) + many <= 5);
                        yield_often(n % 4).await;
                        inside.fetch_sub(permit.permits(), SeqCst);
                    }
                }
            });
            for _ in 0..50 {
                drop(permits.acquire_blocking());
            }
            handles.join();
            assert_eq!(permits.available(), 5);
            permits.try_acquire_many(5).unwrap().forget();
            assert_eq!(permits.available(), 0);
        });
    }
}

#[test]
fn release_beyond_the_maximum_panics_and_changes_nothing() {
    let semaphore = leaked(Semaphore::new(1));
    let releases = AssertUnwindSafe(|| semaphore.release(usize::MAX));
    assert!(catch_unwind(releases).is_err());
    let permit = semaphore.try_acquire();
    assert_eq!(permit.map(|permit| permit.permits()), Some(1));
    assert_eq!(semaphore.available(), 1);
}
