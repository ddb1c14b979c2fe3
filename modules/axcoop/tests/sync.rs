//! What coroutines wait with for each other: mutexes, semaphores, channels. Each test says of which
//! file the rule is that it is called by.

mod domains;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use axcoop::channel::{self, Closed, SendError, TryRecvError, TrySendError};
use axcoop::{
    Cid, Domain, Elapsed, Ended, Mutex, Priority, Semaphore, cancel, current, current_priority,
    priority, set_priority, sleep, timeout, yield_now,
};
use domains::{leaked, with_domain};
use std::panic::{AssertUnwindSafe, catch_unwind};

async fn yields(n: usize) {
    for _ in 0..n {
        yield_now().await;
    }
}

/// Polls it once, and returns whether it was ready.
async fn polls_once<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

/// In a coroutine of this priority, alone in its domain.
fn alone<T: Send + 'static>(
    level: usize,
    test: impl FnOnce(&'static Domain) -> Pin<Box<dyn Future<Output = T> + Send>>,
) {
    with_domain(1, |domain| {
        let handle = domain.spawn(test(domain), Priority::new(level));
        assert!(handle.join().is_ok());
    });
}

#[test]
fn mutex_rule_1_one_at_a_time_has_the_value() {
    for workers in [1, 2, 4] {
        with_domain(workers, |domain| {
            let sum = leaked(Mutex::new((0_usize, false)));
            let handles: Vec<_> = (0..32)
                .map(|n| {
                    let adds = async move {
                        for i in 0..200 {
                            let mut guard = sum.lock().await;
                            assert!(!std::mem::replace(&mut guard.1, true));
                            yields(i % 3).await;
                            guard.0 += 1;
                            guard.1 = false;
                        }
                    };
                    domain.spawn(adds, Priority::new(n % 8))
                })
                .collect();
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    thread::spawn(move || {
                        for _ in 0..200 {
                            let mut guard = sum.lock_blocking();
                            assert!(!std::mem::replace(&mut guard.1, true));
                            guard.0 += 1;
                            guard.1 = false;
                        }
                    })
                })
                .collect();
            for handle in handles {
                handle.join().unwrap();
            }
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(sum.try_lock().unwrap().0, 34 * 200);
        });
    }
}

#[test]
fn mutex_rule_1_the_most_urgent_first_then_who_came_first() {
    with_domain(1, |domain| {
        let log = leaked(Mutex::new(Vec::new()));
        let guard = log.lock_blocking();
        let handles: Vec<_> = [5, 2, 7, 2, 0, 5]
            .into_iter()
            .enumerate()
            .map(|(n, level)| {
                let waits = async move { log.lock().await.push((level, n)) };
                let handle = domain.spawn(waits, Priority::new(level));
                // They come in this order, not in that of their priority.
                let arrived = domain.spawn(async {}, Priority::LAST);
                arrived.join().unwrap();
                handle
            })
            .collect();
        assert!(log.try_lock().is_none());
        drop(guard);
        for handle in handles {
            handle.join().unwrap();
        }
        assert_eq!(
            *log.lock_blocking(),
            [(0, 4), (2, 1), (2, 3), (5, 0), (5, 5), (7, 2)]
        );
    });
}

/// The holder is less urgent than one that computes and yields until the urgent one is served.
#[test]
fn mutex_rule_2_nobody_between_keeps_an_urgent_one_waiting() {
    with_domain(1, |domain| {
        let mutex = leaked(Mutex::new(()));
        let is_served = leaked(AtomicBool::new(false));
        let between = leaked(AtomicUsize::new(0));
        let handle = domain.spawn(
            async move {
                let guard = mutex.lock().await;
                let urgent = domain.spawn(
                    async move {
                        let _guard = mutex.lock().await;
                        let polls = between.load(SeqCst);
                        is_served.store(true, SeqCst);
                        polls
                    },
                    Priority::FIRST,
                );
                // Would not end if the urgent one waited for it.
                let middle = domain.spawn(
                    async move {
                        while !is_served.load(SeqCst) {
                            assert!(between.fetch_add(1, SeqCst) < 100_000, "inversion");
                            yield_now().await;
                        }
                    },
                    Priority::new(3),
                );
                // The urgent one comes to wait; this one goes on with its priority.
                yields(50).await;
                assert_eq!(current_priority(), Some(Priority::FIRST));
                drop(guard);
                assert_eq!(current_priority(), Some(Priority::LAST), "rule 4");
                (urgent, middle)
            },
            Priority::LAST,
        );
        let (urgent, middle) = handle.join().unwrap();
        assert_eq!(urgent.join(), Ok(0), "so often was it kept waiting");
        middle.join().unwrap();
    });
}

/// Waits for `a`, whose holder waits for `b`, whose holder awaits a coroutine: that one computes.
#[test]
fn mutex_rule_3_loans_go_on_along_a_chain() {
    // No worker before all have been spawned: what happens is the same each time.
    with_domain(0, |domain| {
        let [a, b] = [(); 2].map(|()| leaked(Mutex::new(())));
        let [b_is_held, is_set_up, may_go] = [0; 3].map(|n| leaked(Semaphore::new(n)));
        let worker = domain.spawn(
            async move {
                is_set_up.acquire_many(2).await.forget();
                // Nobody has come yet, then the urgent one has.
                let mut seen = vec![current_priority().unwrap().index()];
                may_go.release(2);
                for _ in 0..40 {
                    yield_now().await;
                    seen.push(current_priority().unwrap().index());
                }
                seen.dedup();
                seen
            },
            Priority::LAST,
        );
        let names: &'static std::sync::Mutex<Vec<Cid>> = leaked(std::sync::Mutex::default());
        let name = move || names.lock().unwrap().push(current().unwrap());
        let has_b = domain.spawn(
            async move {
                name();
                let _guard = b.lock().await;
                b_is_held.release(1);
                is_set_up.release(1);
                worker.await.unwrap()
            },
            Priority::new(6),
        );
        let has_a = domain.spawn(
            async move {
                name();
                let _guard = a.lock().await;
                b_is_held.acquire().await.forget();
                is_set_up.release(1);
                drop(b.lock().await);
                // The loan is not for ever.
                current_priority()
            },
            Priority::new(5),
        );
        let urgent = domain.spawn(
            async move {
                may_go.acquire().await.forget();
                drop(a.lock().await);
                names
                    .lock()
                    .unwrap()
                    .iter()
                    .map(|&cid| priority(cid).map(Priority::index))
                    .collect::<Vec<_>>()
            },
            Priority::new(1),
        );
        let middle = domain.spawn(
            async move {
                may_go.acquire().await.forget();
                while !has_b.is_finished() {
                    yield_now().await;
                }
                has_b.await.unwrap()
            },
            Priority::new(3),
        );
        domain.alloc_cpu(1).unwrap();
        let seen = middle.join().unwrap();
        // First of its own, then of `has_a` through `has_b`; at the end the urgent one's.
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
fn mutex_rule_2_a_waiter_that_becomes_more_urgent_lends_that() {
    with_domain(1, |domain| {
        let mutex = leaked(Mutex::new(()));
        let handle = domain.spawn(
            async move {
                let guard = mutex.lock().await;
                let mine = current_priority();
                let waits = [4, 5].map(|level| {
                    let waits = async move { drop(mutex.lock().await) };
                    domain.spawn(waits, Priority::new(level))
                });
                // Not a yield: the less urgent one comes to wait, too.
                sleep(Duration::from_millis(5)).await;
                assert_eq!(current_priority(), Some(Priority::new(4)));
                set_priority(waits[1].cid(), Priority::new(2)).unwrap();
                yields(10).await;
                assert_eq!(current_priority(), Some(Priority::new(2)));
                waits[1].cancel();
                yields(10).await;
                assert_eq!(
                    current_priority(),
                    Some(Priority::new(4)),
                    "nobody else waits"
                );
                waits[0].cancel();
                yields(10).await;
                assert_eq!(current_priority(), mine);
                drop(guard);
                let [a, b] = waits;
                assert_eq!(
                    (a.await, b.await),
                    (Err(Ended::Cancelled), Err(Ended::Cancelled))
                );
            },
            Priority::LAST,
        );
        handle.join().unwrap();
    });
}

/// Who has been granted the lock and is dropped before it is polled: the next one has it.
#[test]
fn mutex_rule_1_a_lock_that_is_granted_to_one_that_goes_is_not_lost() {
    alone(4, |_| {
        Box::pin(async {
            let mutex = Mutex::new(7);
            let guard = mutex.lock().await;
            let mut first = Box::pin(mutex.lock());
            let mut second = Box::pin(mutex.lock());
            let mut third = Box::pin(mutex.lock());
            assert!(!polls_once(first.as_mut()).await);
            assert!(!polls_once(second.as_mut()).await);
            assert!(!polls_once(third.as_mut()).await);
            drop(second);
            drop(guard);
            assert!(mutex.try_lock().is_none(), "it is the first one's");
            drop(first);
            assert!(mutex.try_lock().is_none(), "it is the third one's");
            assert_eq!(*third.await, 7);
            assert!(mutex.try_lock().is_some());
        })
    });
}

/// Coroutines that give up, and are cancelled, at any moment, with the lock or without.
#[test]
fn mutex_rule_1_with_cancellation_and_timeouts() {
    for workers in [1, 3] {
        with_domain(workers, |domain| {
            let mutex = leaked(Mutex::new(0_usize));
            let handles: Vec<_> = (0..64_usize)
                .map(|n| {
                    let tries = async move {
                        for i in 0..50_usize {
                            let limit = Duration::from_micros((n * i % 7) as u64 * 200);
                            if let Ok(mut guard) = timeout(limit, mutex.lock()).await {
                                *guard += 1;
                                yields(n % 3).await;
                            }
                        }
                    };
                    domain.spawn(tries, Priority::new(n % 8))
                })
                .collect();
            for handle in handles.iter().step_by(3) {
                let _ = cancel(handle.cid());
                thread::yield_now();
            }
            for (n, handle) in handles.into_iter().enumerate() {
                let ended = handle.join();
                assert!(ended.is_ok() || n % 3 == 0);
            }
            assert!(*mutex.lock_blocking() > 0);
        });
    }
}

#[test]
fn mutex_a_coroutine_that_blocks_its_worker_is_told() {
    alone(4, |_| {
        Box::pin(async {
            let mutex = Mutex::new(());
            let blocks = AssertUnwindSafe(|| drop(mutex.lock_blocking()));
            let why = catch_unwind(blocks).unwrap_err();
            let why = why.downcast_ref::<String>().unwrap();
            assert_eq!(
                why,
                "a coroutine awaits `lock`: `lock_blocking` would block its worker"
            );
        })
    });
}

/// Returns when all that was ready has been polled, with one worker.
fn settles(domain: &'static Domain) {
    domain.spawn(async {}, Priority::LAST).join().unwrap();
}

/// CYCLE in `loan`: a lock and a handle.
#[test]
fn loan_in_a_cycle_stays_after_the_lender_and_ends_with_the_cycle() {
    with_domain(1, |domain| {
        let mutex: &Mutex<()> = leaked(Mutex::new(()));
        let waiter = leaked(std::sync::Mutex::new(None));
        let (says, own) = channel::bounded(1);
        let holds = async move {
            let _guard = mutex.lock().await;
            let waits = domain.spawn(async { drop(mutex.lock().await) }, Priority::new(5));
            *waiter.lock().unwrap() = Some(waits.cid());
            assert_eq!(waits.await, Err(Ended::Cancelled));
            says.send(current_priority()).await.unwrap();
        };
        let holder = domain.spawn(holds, Priority::new(6));
        settles(domain);
        let both = [holder.cid(), waiter.lock().unwrap().unwrap()];
        let priorities = || both.map(|cid| priority(cid).unwrap());
        assert_eq!(priorities(), [Priority::new(5); 2]);
        let lends = timeout(Duration::from_millis(2), holder);
        let lends = domain.spawn(async { lends.await == Err(Elapsed) }, Priority::FIRST);
        assert_eq!(lends.join(), Ok(true));
        settles(domain);
        assert_eq!(priorities(), [Priority::FIRST; 2], "as long as the cycle");
        cancel(both[1]).unwrap();
        assert_eq!(own.recv_blocking(), Ok(Some(Priority::new(6))));
    });
}

/// Rule 2 of `loan`, of a handle that is awaited by reference and left.
#[test]
fn loan_of_a_handle_that_is_left_stays_until_it_is_dropped() {
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
        while domain.coroutines() != 0 {
            thread::yield_now();
        }
    });
}

/// Locks in random order, handles and timeouts, so some of them are cycles: between two rounds, when nobody waits,
/// each has its own priority.
#[test]
fn no_loan_is_left_when_nobody_waits() {
    for workers in [1, 2] {
        with_domain(workers, |domain| {
            const COROUTINES: usize = 8;
            let locks: &[Mutex<()>; 3] = leaked(std::array::from_fn(|_| Mutex::new(())));
            let rounds = leaked(AtomicUsize::new(0));
            let goes = leaked(Semaphore::new(0));
            let done = leaked(Semaphore::new(0));
            let handles: Vec<_> = (0..COROUTINES)
                .map(|n| {
                    let runs = async move {
                        let mut random = 0x5eed + n;
                        let mut next = |below| {
                            random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
                            (random >> 33) % below
                        };
                        loop {
                            goes.acquire().await.forget();
                            if rounds.load(SeqCst) == usize::MAX {
                                return;
                            }
                            let (first, second) = (next(3), next(3));
                            let time = Duration::from_micros(next(3_000) as u64);
                            let _ = timeout(time, async {
                                let _first = locks[first].lock().await;
                                yields(next(3)).await;
                                let inner = domain.spawn(
                                    async move {
                                        let second = locks[second].lock();
                                        let _ = timeout(time * 2, second).await;
                                    },
                                    Priority::new(next(8)),
                                );
                                inner.await.unwrap();
                            })
                            .await;
                            done.release(1);
                        }
                    };
                    domain.spawn(runs, Priority::new(n))
                })
                .collect();
            for _ in 0..60 {
                goes.release(COROUTINES);
                for _ in 0..COROUTINES {
                    done.acquire_blocking().forget();
                }
                // A coroutine that a round has spawned and left may still hold or want a lock.
                while domain.coroutines() != COROUTINES {
                    thread::yield_now();
                }
                for (n, handle) in handles.iter().enumerate() {
                    let now = priority(handle.cid()).unwrap();
                    assert_eq!(now, Priority::new(n), "it keeps what was lent");
                }
            }
            rounds.store(usize::MAX, SeqCst);
            goes.release(COROUTINES);
            for handle in handles {
                handle.join().unwrap();
            }
        });
    }
}

#[test]
fn semaphore_rule_1_who_is_first_and_wants_many_is_not_overtaken() {
    with_domain(1, |domain| {
        let permits = leaked(Semaphore::new(2));
        let log: &'static std::sync::Mutex<Vec<usize>> = leaked(std::sync::Mutex::default());
        let handles: Vec<_> = [(5, 3), (5, 1), (6, 1), (2, 4)]
            .into_iter()
            .map(|(level, wants)| {
                let acquires = async move {
                    permits.acquire_many(wants).await.forget();
                    log.lock().unwrap().push(wants * 10 + level);
                };
                let handle = domain.spawn(acquires, Priority::new(level));
                domain.spawn(async {}, Priority::LAST).join().unwrap();
                handle
            })
            .collect();
        // A thread is as urgent as the default; (2, 4) is more so, and first.
        assert!(permits.try_acquire().is_none());
        for _ in 0..7 {
            permits.release(1);
        }
        for handle in handles {
            handle.join().unwrap();
        }
        assert_eq!(*log.lock().unwrap(), [42, 35, 15, 16]);
        assert_eq!(permits.available(), 0);
    });
}

#[test]
fn semaphore_rules_2_and_3_no_permit_is_lost() {
    for workers in [1, 4] {
        with_domain(workers, |domain| {
            let permits = leaked(Semaphore::new(5));
            let inside = leaked(AtomicUsize::new(0));
            let handles: Vec<_> = (0..48_usize)
                .map(|n| {
                    let works = async move {
                        for i in 0..50 {
                            let many = 1 + (n + i) % 3;
                            let limit = Duration::from_micros((n * i % 11) as u64 * 100);
                            if let Ok(permit) = timeout(limit, permits.acquire_many(many)).await {
                                assert!(inside.fetch_add(many, SeqCst) + many <= 5);
                                yields(n % 4).await;
                                inside.fetch_sub(permit.permits(), SeqCst);
                            }
                        }
                    };
                    domain.spawn(works, Priority::new(n % 8))
                })
                .collect();
            for _ in 0..50 {
                drop(permits.acquire_blocking());
            }
            for handle in handles {
                handle.join().unwrap();
            }
            assert_eq!(permits.available(), 5);
            permits.try_acquire_many(5).unwrap().forget();
            assert_eq!(permits.available(), 0);
        });
    }
}

#[test]
fn channel_rule_1_each_message_goes_to_one_in_order() {
    for (workers, room) in [(1, 1), (1, 8), (4, 1), (4, 16)] {
        with_domain(workers, |domain| {
            let (sender, receiver) = channel::bounded(room);
            let sends: Vec<_> = (0..8_usize)
                .map(|n| {
                    let sender = sender.clone();
                    let sends = async move {
                        for i in 0..300_usize {
                            sender.send(Box::new((n, i))).await.unwrap();
                        }
                    };
                    domain.spawn(sends, Priority::new(n))
                })
                .collect();
            drop(sender);
            let receives: Vec<_> = (0..4)
                .map(|n| {
                    let receiver = receiver.clone();
                    let receives = async move {
                        let mut seen = vec![Vec::new(); 8];
                        while let Ok(message) = receiver.recv().await {
                            assert!(receiver.len() <= room);
                            seen[message.0].push(message.1);
                        }
                        seen
                    };
                    domain.spawn(receives, Priority::new(2 * n))
                })
                .collect();
            for handle in sends {
                handle.join().unwrap();
            }
            let mut all = vec![Vec::new(); 8];
            for handle in receives {
                for (n, seen) in handle.join().unwrap().into_iter().enumerate() {
                    assert!(
                        seen.is_sorted(),
                        "of one sender, one receiver sees them in order"
                    );
                    all[n].extend(seen);
                }
            }
            for mut seen in all {
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..300));
            }
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
        });
    }
}

#[test]
fn channel_rule_2_the_most_urgent_receiver_first() {
    with_domain(1, |domain| {
        let (sender, receiver) = channel::bounded(4);
        let log: &'static std::sync::Mutex<Vec<_>> = leaked(std::sync::Mutex::default());
        let handles: Vec<_> = [6, 1, 3, 1]
            .into_iter()
            .enumerate()
            .map(|(n, level)| {
                let receiver = receiver.clone();
                let receives = async move {
                    let message = receiver.recv().await.unwrap();
                    log.lock().unwrap().push((level, n, message));
                };
                let handle = domain.spawn(receives, Priority::new(level));
                domain.spawn(async {}, Priority::LAST).join().unwrap();
                handle
            })
            .collect();
        for n in 0..4 {
            sender.send_blocking(n).unwrap();
        }
        for handle in handles {
            handle.join().unwrap();
        }
        let mut log = log.lock().unwrap().clone();
        log.sort_by_key(|&(.., message)| message);
        let served: Vec<_> = log.iter().map(|&(level, n, _)| (level, n)).collect();
        // The one worker may have run between two messages; the order is that of the waiting.
        assert_eq!(served, [(1, 1), (1, 3), (3, 2), (6, 0)]);
    });
}

#[test]
fn channel_rule_3_who_gives_up_takes_and_loses_nothing() {
    alone(4, |_| {
        Box::pin(async {
            let (sender, receiver) = channel::bounded(1);
            // A receiver that has been granted a message, and goes.
            let mut first = Box::pin(receiver.recv());
            let mut second = Box::pin(receiver.recv());
            assert!(!polls_once(first.as_mut()).await);
            assert!(!polls_once(second.as_mut()).await);
            sender.try_send(1).unwrap();
            assert_eq!(
                receiver.try_recv(),
                Err(TryRecvError::Empty),
                "it is granted"
            );
            drop(first);
            assert_eq!(second.await, Ok(1));
            // A sender that has been granted room, and goes.
            sender.try_send(2).unwrap();
            assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
            let mut first = Box::pin(sender.send(4));
            let mut second = Box::pin(sender.send(5));
            assert!(!polls_once(first.as_mut()).await);
            assert!(!polls_once(second.as_mut()).await);
            assert_eq!(receiver.try_recv(), Ok(2));
            assert_eq!(
                sender.try_send(6),
                Err(TrySendError::Full(6)),
                "it is granted"
            );
            drop(first);
            assert_eq!(second.await, Ok(()));
            assert_eq!(receiver.try_recv(), Ok(5));
            assert!(receiver.is_empty());
            let late = timeout(Duration::from_millis(1), receiver.recv());
            assert_eq!(late.await, Err(Elapsed));
        })
    });
}

#[test]
fn channel_rule_4_closing() {
    alone(4, |domain| {
        Box::pin(async move {
            // Who waits for room, or has just been granted some, has its message back.
            let (sender, receiver) = channel::bounded(1);
            sender.send("in").await.unwrap();
            let mut granted = pin!(sender.send("granted"));
            let mut waits = pin!(sender.send("waits"));
            assert!(!polls_once(granted.as_mut()).await);
            assert!(!polls_once(waits.as_mut()).await);
            assert_eq!(receiver.recv().await, Ok("in"));
            receiver.close();
            assert_eq!(granted.await, Err(SendError("granted")));
            assert_eq!(waits.await, Err(SendError("waits")));
            assert_eq!(sender.try_send("late"), Err(TrySendError::Closed("late")));
            assert_eq!(receiver.recv().await, Err(Closed));
            assert!(sender.is_closed() && receiver.is_closed());

            // What is in it is received.
            let (sender, receiver) = channel::bounded(2);
            let others = receiver.clone();
            let waits = domain.spawn(
                async move { [others.recv().await, others.recv().await] },
                Priority::FIRST,
            );
            sender.send(1).await.unwrap();
            yield_now().await;
            drop(sender);
            assert_eq!(waits.await, Ok([Ok(1), Err(Closed)]));
            assert_eq!(receiver.recv().await, Err(Closed));

            // With the last receiver it is dropped, while the sender is still there.
            let (sender, receiver) = channel::bounded(2);
            let message = Arc::new(());
            sender.send(message.clone()).await.unwrap();
            drop(receiver.clone());
            assert_eq!(Arc::strong_count(&message), 2);
            drop(receiver);
            assert_eq!(Arc::strong_count(&message), 1);
            assert!(sender.send(message).await.is_err());
        })
    });
}

#[test]
fn channel_a_send_that_is_polled_again_panics_without_the_lock() {
    let (sender, receiver) = channel::bounded(2);
    let mut send = pin!(sender.send(1));
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(send.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    let again = AssertUnwindSafe(|| send.as_mut().poll(&mut context));
    assert!(catch_unwind(again).is_err());
    assert_eq!(receiver.len(), 1);
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    // Who receives once more receives the next one.
    let mut receive = pin!(receiver.recv());
    for n in [2, 3] {
        sender.try_send(n).unwrap();
        assert_eq!(receive.as_mut().poll(&mut context), Poll::Ready(Ok(n)));
    }
}

#[test]
fn channel_rules_3_and_4_with_cancellation() {
    for workers in [1, 4] {
        with_domain(workers, |domain| {
            let (sender, receiver) = channel::bounded(3);
            let sent = leaked(AtomicUsize::new(0));
            let received = leaked(AtomicUsize::new(0));
            let handles: Vec<_> = (0..40_usize)
                .map(|n| {
                    let (sender, receiver) = (sender.clone(), receiver.clone());
                    let works = async move {
                        for i in 0..40_usize {
                            let limit = Duration::from_micros((n * i % 13) as u64 * 100);
                            if n % 2 == 0 {
                                if let Ok(Ok(())) = timeout(limit, sender.send(n)).await {
                                    sent.fetch_add(1, SeqCst);
                                }
                            } else if let Ok(Ok(_)) = timeout(limit, receiver.recv()).await {
                                received.fetch_add(1, SeqCst);
                            }
                        }
                    };
                    domain.spawn(works, Priority::new(n % 8))
                })
                .collect();
            for handle in handles {
                handle.join().unwrap();
            }
            drop(sender);
            while receiver.recv_blocking().is_ok() {
                received.fetch_add(1, SeqCst);
            }
            assert_eq!(sent.load(SeqCst), received.load(SeqCst));
            assert!(received.load(SeqCst) > 0);
        });
    }
}

/// A sleep, a lock and a message at once, the first of which decides.
#[test]
fn a_mutex_may_be_held_across_a_sleep() {
    with_domain(2, |domain| {
        let mutex = leaked(Mutex::new(0));
        let holds = domain.spawn(
            async move {
                let mut guard = mutex.lock().await;
                sleep(Duration::from_millis(3)).await;
                *guard = 1;
            },
            Priority::LAST,
        );
        let waits = domain.spawn(
            async move {
                while *mutex.lock().await == 0 {
                    yield_now().await;
                }
            },
            Priority::FIRST,
        );
        waits.join().unwrap();
        holds.join().unwrap();
    });
}

/// What is refused with a panic leaves the semaphore as it was.
#[test]
fn semaphore_more_than_all_are_refused() {
    let semaphore = leaked(Semaphore::new(1));
    let panics = catch_unwind(AssertUnwindSafe(|| semaphore.release(usize::MAX)));
    assert!(panics.is_err());
    assert_eq!(
        semaphore.try_acquire().map(|permit| permit.permits()),
        Some(1)
    );
    assert_eq!(semaphore.available(), 1);
}
