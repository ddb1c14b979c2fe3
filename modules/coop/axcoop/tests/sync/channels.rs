use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axcoop::channel::{self, Closed, SendError, TryRecvError, TrySendError};
use axcoop::{Elapsed, Priority, timeout, yield_now};

use super::domains::{leaked, with_domain};
use super::{Log, alone, is_ready, spawn_all, spawn_in_order};

#[test]
fn rule_1_each_message_goes_to_one_receiver_in_order() {
    for (workers, room) in [(1, 1), (1, 8), (4, 1), (4, 16)] {
        with_domain(workers, |domain| {
            let (sender, receiver) = channel::bounded(room);
            let sends = spawn_all(domain, 8, |n| {
                let sender = sender.clone();
                async move {
                    for i in 0..300_usize {
                        sender.send(Box::new((n, i))).await.unwrap();
                    }
                }
            });
            drop(sender);
            let receives = spawn_all(domain, 4, |_| {
                let receiver = receiver.clone();
                async move {
                    let mut seen = vec![Vec::new(); 8];
                    while let Ok(message) = receiver.recv().await {
                        assert!(receiver.len() <= room);
                        seen[message.0].push(message.1);
                    }
                    seen
                }
            });
            sends.join();
            let mut all = vec![Vec::new(); 8];
            for (n, seen) in receives
                .join()
                .into_iter()
                .flat_map(|of| of.into_iter().enumerate())
            {
                assert!(
                    seen.is_sorted(),
                    "one receiver sees a sender's messages in order"
                );
                all[n].extend(seen);
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
fn rule_2_most_urgent_receiver_first() {
    with_domain(1, |domain| {
        let (sender, receiver) = channel::bounded(4);
        let log = Log::new();
        let handles = spawn_in_order(domain, &[6, 1, 3, 1], |n| {
            let receiver = receiver.clone();
            async move { log.push((receiver.recv().await.unwrap(), n)) }
        });
        for n in 0..4 {
            sender.send_blocking(n).unwrap();
        }
        handles.join();
        // The one worker may have run between two messages; the order is that of the waiting.
        log.list().sort_unstable();
        assert_eq!(*log.list(), [(0, 1), (1, 3), (2, 2), (3, 0)]);
    });
}

#[test]
fn rule_3_dropped_waiter_takes_and_loses_nothing() {
    alone(|_| async {
        let (sender, receiver) = channel::bounded(1);
        // A receiver that has been granted a message is dropped.
        let mut first = Box::pin(receiver.recv());
        let mut second = Box::pin(receiver.recv());
        assert!(!is_ready(first.as_mut()).await);
        assert!(!is_ready(second.as_mut()).await);
        sender.try_send(1).unwrap();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty), "granted");
        drop(first);
        assert_eq!(second.await, Ok(1));
        // A sender that has been granted room is dropped.
        sender.try_send(2).unwrap();
        assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
        let mut first = Box::pin(sender.send(4));
        let mut second = Box::pin(sender.send(5));
        assert!(!is_ready(first.as_mut()).await);
        assert!(!is_ready(second.as_mut()).await);
        assert_eq!(receiver.try_recv(), Ok(2));
        assert_eq!(sender.try_send(6), Err(TrySendError::Full(6)), "granted");
        drop(first);
        assert_eq!(second.await, Ok(()));
        assert_eq!(receiver.try_recv(), Ok(5));
        assert!(receiver.is_empty());
        let late = timeout(Duration::from_millis(1), receiver.recv());
        assert_eq!(late.await, Err(Elapsed));
    });
}

#[test]
fn rule_4_close_returns_messages_of_senders_that_wait() {
    alone(|_| async {
        let (sender, receiver) = channel::bounded(1);
        sender.send("in").await.unwrap();
        let mut granted = pin!(sender.send("granted"));
        let mut waits = pin!(sender.send("waits"));
        assert!(!is_ready(granted.as_mut()).await);
        assert!(!is_ready(waits.as_mut()).await);
        assert_eq!(receiver.recv().await, Ok("in"));
        receiver.close();
        assert_eq!(granted.await, Err(SendError("granted")));
        assert_eq!(waits.await, Err(SendError("waits")));
        assert_eq!(sender.try_send("late"), Err(TrySendError::Closed("late")));
        assert_eq!(receiver.recv().await, Err(Closed));
        assert!(sender.is_closed() && receiver.is_closed());
    });
}

#[test]
fn rule_4_queued_messages_are_received_after_the_last_sender_and_dropped_with_the_last_receiver() {
    alone(|domain| async move {
        let (sender, receiver) = channel::bounded(2);
        let others = receiver.clone();
        let waits = async move { [others.recv().await, others.recv().await] };
        let waits = domain.spawn(waits, Priority::FIRST);
        sender.send(1).await.unwrap();
        yield_now().await;
        drop(sender);
        assert_eq!(waits.await, Ok([Ok(1), Err(Closed)]));
        assert_eq!(receiver.recv().await, Err(Closed));

        let (sender, receiver) = channel::bounded(2);
        let message = Arc::new(());
        sender.send(message.clone()).await.unwrap();
        drop(receiver.clone());
        assert_eq!(Arc::strong_count(&message), 2);
        drop(receiver);
        assert_eq!(Arc::strong_count(&message), 1);
        assert!(sender.send(message).await.is_err());
    });
}

#[test]
fn send_that_is_polled_after_its_end_panics_without_the_lock() {
    let (sender, receiver) = channel::bounded(2);
    let mut send = pin!(sender.send(1));
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(send.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    let again = AssertUnwindSafe(|| send.as_mut().poll(&mut context));
    assert!(catch_unwind(again).is_err());
    assert_eq!(receiver.len(), 1);
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    // A receive that is polled again receives the next message.
    let mut receive = pin!(receiver.recv());
    for n in [2, 3] {
        sender.try_send(n).unwrap();
        assert_eq!(receive.as_mut().poll(&mut context), Poll::Ready(Ok(n)));
    }
}

#[test]
fn rules_3_and_4_timeouts_lose_no_message() {
    for workers in [1, 4] {
        with_domain(workers, |domain| {
            let (sender, receiver) = channel::bounded(3);
            let counts = leaked([(); 2].map(|()| AtomicUsize::new(0)));
            let [sent, received] = counts;
            let handles = spawn_all(domain, 40, |n| {
                let (sender, receiver) = (sender.clone(), receiver.clone());
                async move {
                    for i in 0..40 {
                        let limit = Duration::from_micros((n * i % 13) as u64 * 100);
                        if n % 2 == 0 {
                            if let Ok(Ok(())) = timeout(limit, sender.send(n)).await {
                                sent.fetch_add(1, SeqCst);
                            }
                        } else if let Ok(Ok(_)) = timeout(limit, receiver.recv()).await {
                            received.fetch_add(1, SeqCst);
                        }
                    }
                }
            });
            handles.join();
            drop(sender);
            while receiver.recv_blocking().is_ok() {
                received.fetch_add(1, SeqCst);
            }
            assert_eq!(sent.load(SeqCst), received.load(SeqCst));
            assert!(received.load(SeqCst) > 0);
        });
    }
}
