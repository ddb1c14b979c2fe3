use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use axcoop::{
    CoroutineId, Ended, Mutex, Priority, Semaphore, cancel, current, current_priority, priority,
    set_priority, timeout, yield_now,
};

use super::domains::{leaked, with_domain};
use super::{Log, alone, is_ready, spawn_all, spawn_in_order, yield_often};

#[test]
fn rule_1_one_holder_at_a_time() {
    for workers in [1, 2, 4] {
        with_domain(workers, |domain| {
            let sum = leaked(Mutex::new((0_usize, false)));
            let handles = spawn_all(domain, 32, |_| async {
                for i in 0..200 {
                    let mut guard = sum.lock().await;
                    assert!(!std::mem::replace(&mut guard.1, true));
                    yield_often(i % 3).await;
                    guard.0 += 1;
                    guard.1 = false;
                }
            });
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        for _ in 0..200 {
                            let mut guard = sum.lock_blocking();
                            assert!(!std::mem::replace(&mut guard.1, true));
                            guard.0 += 1;
                            guard.1 = false;
                        }
                    });
                }
            });
            handles.join();
            assert_eq!(sum.try_lock().unwrap().0, 34 * 200);
        });
    }
}

#[test]
fn rule_1_most_urgent_waiter_first_then_in_order_of_arrival() {
    with_domain(1, |domain| {
        let log = leaked(Mutex::new(Vec::new()));
        let guard = log.lock_blocking();
        let pushes = |n| async move { log.lock().await.push(n) };
        let handles = spawn_in_order(domain, &[5, 2, 7, 2, 0, 5], pushes);
        assert!(log.try_lock().is_none());
        drop(guard);
        handles.join();
        assert_eq!(*log.lock_blocking(), [4, 1, 3, 0, 5, 2]);
    });
}

/// A waiter that has been granted the lock is dropped before it is polled: the next one has the lock.
#[test]
fn rule_1_lock_granted_to_a_dropped_waiter_is_not_lost() {
    alone(|_| async {
        let mutex = Mutex::new(7);
        let guard = mutex.lock().await;
        let mut waits = [(); 3].map(|()| Box::pin(mutex.lock()));
        for lock in &mut waits {
            assert!(!is_ready(lock.as_mut()).await);
        }
        let [first, second, third] = waits;
        drop(second);
        drop(guard);
        assert!(mutex.try_lock().is_none(), "it is the first one's");
        drop(first);
        assert!(mutex.try_lock().is_none(), "it is the third one's");
        assert_eq!(*third.await, 7);
        assert!(mutex.try_lock().is_some());
    });
}

/// Coroutines give up and are cancelled at any moment, with the lock and without.
#[test]
fn rule_1_cancellation_and_timeouts_lose_no_lock() {
    for workers in [1, 3] {
        with_domain(workers, |domain| {
            let mutex = leaked(Mutex::new(0_usize));
            let handles = spawn_all(domain, 64, |n| async move {
                for i in 0..50 {
                    let limit = Duration::from_micros((n * i % 7) as u64 * 200);
                    if let Ok(mut guard) = timeout(limit, mutex.lock()).await {
                        *guard += 1;
                        yield_often(n % 3).await;
                    }
                }
            });
            for handle in handles.0.iter().step_by(3) {
                let _ = cancel(handle.cid());
                thread::yield_now();
            }
            for (n, handle) in handles.0.into_iter().enumerate() {
                assert!(handle.join().is_ok() || n % 3 == 0);
            }
            assert!(*mutex.lock_blocking() > 0);
        });
    }
}

/// The holder is less urgent than a coroutine that yields until the urgent one is served.
#[test]
fn rule_2_holder_inherits_the_priority_of_an_urgent_waiter() {
    with_domain(1, |domain| {
        let mutex = leaked(Mutex::new(()));
        let is_served = leaked(AtomicBool::new(false));
        let between = leaked(AtomicUsize::new(0));
        let holds = async move {
            let guard = mutex.lock().await;
            let urgent = async {
                let _guard = mutex.lock().await;
                is_served.store(true, SeqCst);
                between.load(SeqCst)
            };
            let urgent = domain.spawn(urgent, Priority::FIRST);
            // This loop would not end if the urgent coroutine waited for the middle one.
            let middle = async {
                while !is_served.load(SeqCst) {
                    assert!(between.fetch_add(1, SeqCst) < 100_000, "inversion");
                    yield_now().await;
                }
            };
            let middle = domain.spawn(middle, Priority::new(3));
            // The urgent one comes to wait; this one goes on with its priority.
            yield_often(50).await;
            assert_eq!(current_priority(), Some(Priority::FIRST));
            drop(guard);
            assert_eq!(current_priority(), Some(Priority::LAST), "rule 4");
            (urgent, middle)
        };
        let (urgent, middle) = domain.spawn(holds, Priority::LAST).join().unwrap();
        assert_eq!(urgent.join(), Ok(0), "polls of the one between");
        middle.join().unwrap();
    });
}

#[test]
fn rule_2_waiter_that_becomes_more_urgent_donates_its_new_priority() {
    with_domain(1, |domain| {
        let mutex = leaked(Mutex::new(()));
        let holds = async move {
            let guard = mutex.lock().await;
            let waits = [4, 5].map(|level| {
                domain.spawn(async { drop(mutex.lock().await) }, Priority::new(level))
            });
            // Not a yield: the less urgent one comes to wait, too.
            axcoop::sleep(Duration::from_millis(5)).await;
            assert_eq!(current_priority(), Some(Priority::new(4)));
            set_priority(waits[1].cid(), Priority::new(2)).unwrap();
            for (cancelled, then) in [(1, Priority::new(4)), (0, Priority::LAST)] {
                yield_often(10).await;
                let now = [Priority::new(4), Priority::new(2)][cancelled];
                assert_eq!(current_priority(), Some(now));
                waits[cancelled].cancel();
                yield_often(10).await;
                assert_eq!(current_priority(), Some(then), "no other waiter");
            }
            drop(guard);
            for waits in waits {
                assert_eq!(waits.await, Err(Ended::Cancelled));
            }
        };
        domain.spawn(holds, Priority::LAST).join().unwrap();
    });
}

/// The urgent coroutine waits for `a`, whose holder waits for `b`, whose holder awaits a coroutine: that one computes.
#[test]
fn rule_3_priority_inheritance_is_transitive() {
    // No worker before all have been spawned: what happens is the same each time.
    with_domain(0, |domain| {
        let [a, b] = [(); 2].map(|()| leaked(Mutex::new(())));
        let [b_is_held, is_set_up, may_go] = [0; 3].map(|n| leaked(Semaphore::new(n)));
        let names = Log::<CoroutineId>::new();
        let worker = async {
            is_set_up.acquire_many(2).await.forget();
            // No waiter has come yet, then the urgent one has.
            let mut seen = vec![current_priority().unwrap().index()];
            may_go.release(2);
            for _ in 0..40 {
                yield_now().await;
                seen.push(current_priority().unwrap().index());
            }
            seen.dedup();
            seen
        };
        let worker = domain.spawn(worker, Priority::LAST);
        let has_b = async move {
            names.push(current().unwrap());
            let _guard = b.lock().await;
            b_is_held.release(1);
            is_set_up.release(1);
            worker.await.unwrap()
        };
        let has_b = domain.spawn(has_b, Priority::new(6));
        let has_a = async move {
            names.push(current().unwrap());
            let _guard = a.lock().await;
            b_is_held.acquire().await.forget();
            is_set_up.release(1);
            drop(b.lock().await);
            current_priority()
        };
        let has_a = domain.spawn(has_a, Priority::new(5));
        let urgent = async move {
            may_go.acquire().await.forget();
            drop(a.lock().await);
            let index = |&cid| priority(cid).map(Priority::index);
            names.list().iter().map(index).collect::<Vec<_>>()
        };
        let urgent = domain.spawn(urgent, Priority::new(1));
        let middle = async move {
            may_go.acquire().await.forget();
            while !has_b.is_finished() {
                yield_now().await;
            }
            has_b.await.unwrap()
        };
        let middle = domain.spawn(middle, Priority::new(3));
        domain.set_workers(1).unwrap();
        let seen = middle.join().unwrap();
        // At the end it is the urgent one's.
        assert_eq!(seen.last(), Some(&1), "{seen:?}");
        let priorities = urgent.join().unwrap();
        assert!(
            priorities.iter().all(|of| !matches!(of, Ok(0..=4))),
            "{priorities:?}"
        );
        assert_eq!(has_a.join(), Ok(Some(Priority::new(1))));
    });
}

#[test]
fn lock_blocking_in_a_coroutine_panics() {
    alone(|_| async {
        let mutex = Mutex::new(());
        let blocks = AssertUnwindSafe(|| drop(mutex.lock_blocking()));
        let why = catch_unwind(blocks).unwrap_err();
        assert_eq!(
            why.downcast_ref::<String>().unwrap(),
            "a coroutine awaits `lock`: `lock_blocking` would block its worker"
        );
    });
}
