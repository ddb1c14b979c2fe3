//! Code built on `core::future` alone runs here unchanged: the combinators of `futures`, and a channel that does not
//! know this executor.

mod domains;

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use axcoop::{Domain, Mutex, Priority, channel, sleep, timeout, yield_now};
use domains::with_domain;
use futures::future::{Either, FutureExt, join_all, select};
use futures::stream::{self, FuturesUnordered, StreamExt};

/// Returns the outputs of a future on one worker and on several.
fn run<T: Send + 'static, F>(test: impl Fn(&'static Domain) -> F) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let mut outputs = Vec::new();
    for workers in [1, 3] {
        with_domain(workers, |domain| {
            let output = domain.spawn(test(domain), Priority::DEFAULT).join();
            outputs.push(output.unwrap());
        });
    }
    outputs
}

#[test]
fn join_waits_for_all() {
    let outputs = run(|domain| async move {
        let spawned = domain.spawn(async { 3 }, Priority::LAST);
        let pair = futures::join!(
            async {
                yield_now().await;
                1
            },
            sleep(Duration::from_millis(1)).map(|()| 2),
            spawned,
        );
        let all = join_all((0..10).map(|n| domain.spawn(async move { n }, Priority::new(n % 8))));
        (
            pair,
            all.await.into_iter().map(Result::unwrap).sum::<usize>(),
        )
    });
    assert_eq!(outputs, [((1, 2, Ok(3)), 45); 2]);
}

#[test]
fn select_takes_the_first() {
    let outputs = run(|_| async {
        let mutex = Mutex::new(());
        let guard = mutex.lock().await;
        let first = match select(pin!(mutex.lock()), pin!(sleep(Duration::from_millis(2)))).await {
            Either::Left(_) => "lock",
            Either::Right(_) => "sleep",
        };
        drop(guard);
        let mut lock = pin!(mutex.lock().fuse());
        let mut sleeps = pin!(sleep(Duration::from_secs(3600)).fuse());
        let second = futures::select_biased! {
            _ = lock => "lock",
            () = sleeps => "sleep",
        };
        (first, second)
    });
    assert_eq!(outputs, [("sleep", "lock"); 2]);
}

#[test]
fn futures_unordered_polls_what_was_woken() {
    let outputs = run(|domain| async move {
        let (sender, receiver) = channel::bounded(2);
        let mut all: FuturesUnordered<_> = (0..50_u64)
            .map(|n| {
                let sender = sender.clone();
                async move {
                    sleep(Duration::from_micros(n * 37 % 11 * 300)).await;
                    sender.send(n).await.unwrap();
                    n
                }
            })
            .collect();
        drop(sender);
        let sum = domain.spawn(
            async move {
                let messages = stream::unfold(receiver, |receiver| async {
                    let message = receiver.recv().await.ok()?;
                    Some((message, receiver))
                });
                messages.fold(0, |sum, n| async move { sum + n }).await
            },
            Priority::FIRST,
        );
        let mut ended = 0;
        while let Some(n) = all.next().await {
            ended += n;
        }
        (ended, sum.await.unwrap())
    });
    assert_eq!(outputs, [(1225, 1225); 2]);
}

#[test]
fn buffered_stream_bounds_futures_under_way() {
    static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
    let outputs = run(|domain| async move {
        let squares = stream::iter(0..40_usize)
            .map(|n| {
                domain.spawn(
                    async move {
                        assert!(UNDER_WAY.fetch_add(1, SeqCst) < 5);
                        sleep(Duration::from_micros(100)).await;
                        UNDER_WAY.fetch_sub(1, SeqCst);
                        n * n
                    },
                    Priority::new(n % 8),
                )
            })
            .buffered(5);
        squares.map(Result::unwrap).collect::<Vec<_>>().await
    });
    let expected: Vec<_> = (0..40).map(|n| n * n).collect();
    assert_eq!(outputs, [expected.clone(), expected]);
}

/// The channel has wakers and locks of its own.
#[test]
fn channel_of_another_crate_works() {
    let outputs = run(|domain| async move {
        let (sender, receiver) = async_channel::bounded(3);
        let sends = domain.spawn(
            async move {
                for n in 1..=1000_u64 {
                    sender.send(n).await.unwrap();
                }
            },
            Priority::new(1),
        );
        let mut sum = 0;
        while let Ok(n) = receiver.recv().await {
            sum += n;
        }
        sends.await.unwrap();
        let never = timeout(Duration::from_millis(1), std::future::pending::<()>());
        (sum, never.await.is_err())
    });
    assert_eq!(outputs, [(500_500, true); 2]);
}
