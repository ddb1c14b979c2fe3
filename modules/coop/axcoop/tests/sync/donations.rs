use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use axcoop::{
    Elapsed, Ended, Mutex, Priority, Semaphore, cancel, channel, current_priority, priority,
    timeout,
};

use super::domains::{leaked, wait_until, with_domain};
use super::{Log, is_ready, settle, spawn_all, yield_often};

/// CYCLE in `donation`: a lock and a handle.
#[test]
fn donation_in_a_cycle_outlives_the_donor_and_ends_with_the_cycle() {
    with_domain(1, |domain| {
        let mutex: &Mutex<()> = leaked(Mutex::new(()));
        let waiter = Log::new();
        let (says, own) = channel::bounded(1);
        let holds = async move {
            let _guard = mutex.lock().await;
            let waits = domain.spawn(async { drop(mutex.lock().await) }, Priority::new(5));
            waiter.push(waits.cid());
            assert_eq!(waits.await, Err(Ended::Cancelled));
            says.send(current_priority()).await.unwrap();
        };
        let holder = domain.spawn(holds, Priority::new(6));
        settle(domain);
        let both = [holder.cid(), waiter.list()[0]];
        let priorities = || both.map(|cid| priority(cid).unwrap());
        assert_eq!(priorities(), [Priority::new(5); 2]);
        let leaves = leaked(Semaphore::new(0));
        let donor = async move {
            let mut holder = pin!(holder);
            assert!(!is_ready(holder.as_mut()).await);
            leaves.acquire().await.forget();
        };
        let donor = domain.spawn(donor, Priority::FIRST);
        settle(domain);
        assert_eq!(priorities(), [Priority::FIRST; 2]);
        leaves.release(1);
        donor.join().unwrap();
        settle(domain);
        assert_eq!(priorities(), [Priority::FIRST; 2], "while the cycle exists");
        cancel(both[1]).unwrap();
        assert_eq!(own.recv_blocking(), Ok(Some(Priority::new(6))));
    });
}

/// Rule 2 of `donation`.
#[test]
fn handle_that_was_awaited_by_reference_donates_until_it_is_dropped() {
    with_domain(1, |domain| {
        let event = leaked(Semaphore::new(0));
        let waits = async { event.acquire().await.forget() };
        let mut handle = domain.spawn(waits, Priority::new(6));
        let cid = handle.cid();
        let leaves = async move {
            let late = timeout(Duration::from_millis(2), &mut handle).await;
            (late == Err(Elapsed), handle)
        };
        let (is_late, handle) = domain.spawn(leaves, Priority::FIRST).join().unwrap();
        assert!(is_late);
        assert_eq!(priority(cid), Ok(Priority::FIRST));
        drop(handle);
        assert_eq!(priority(cid), Ok(Priority::new(6)));
        event.release(1);
        wait_until(|| domain.coroutines() == 0);
    });
}

/// Locks in random order, handles and timeouts, some of which are cycles. Between two rounds, when no coroutine waits,
/// each has its own priority.
#[test]
fn no_donation_is_left_when_no_coroutine_waits() {
    for workers in [1, 2] {
        with_domain(workers, |domain| {
            const COROUTINES: usize = 8;
            let locks: &[Mutex<()>; 3] = leaked(std::array::from_fn(|_| Mutex::new(())));
            let is_over = leaked(AtomicBool::new(false));
            let goes = leaked(Semaphore::new(0));
            let done = leaked(Semaphore::new(0));
            let handles = spawn_all(domain, COROUTINES, |n| async move {
                let mut random = 0x5eed + n;
                let mut next = |below| {
                    random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
                    (random >> 33) % below
                };
                loop {
                    goes.acquire().await.forget();
                    if is_over.load(SeqCst) {
                        return;
                    }
                    let (first, second) = (next(3), next(3));
                    let time = Duration::from_micros(next(3_000) as u64);
                    let _ = timeout(time, async {
                        let _first = locks[first].lock().await;
                        yield_often(next(3)).await;
                        let inner = async move {
                            let _ = timeout(time * 2, locks[second].lock()).await;
                        };
                        let inner = domain.spawn(inner, Priority::new(next(8)));
                        inner.await.unwrap();
                    })
                    .await;
                    done.release(1);
                }
            });
            for _ in 0..60 {
                goes.release(COROUTINES);
                for _ in 0..COROUTINES {
                    done.acquire_blocking().forget();
                }
                // A coroutine that a round has spawned and left may still hold or want a lock.
                while domain.coroutines() != COROUTINES {
                    thread::yield_now();
                }
                for (n, handle) in handles.0.iter().enumerate() {
                    let now = priority(handle.cid()).unwrap();
                    assert_eq!(now, Priority::new(n), "it keeps a donation");
                }
            }
            is_over.store(true, SeqCst);
            goes.release(COROUTINES);
            handles.join();
        });
    }
}
