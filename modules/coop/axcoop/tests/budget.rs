//! The rules of `budget`: a coroutine whose awaits are all ready at once yields. Rule 3 is about the clock: its tests
//! are in `timers.rs`.

mod domains;
mod giving_way;

use std::future::{Future, pending, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use axcoop::host::HOST;
use axcoop::{
    Elapsed, Mutex, POLL_BUDGET, Platform, Priority, Semaphore, channel, interval, now, sleep,
    sleep_until, timeout, within_budget, yield_now,
};
use domains::{leaked, with_domain};
use futures::future::{join, select};
use futures::stream::{FuturesUnordered, StreamExt};
use giving_way::{assert_each_gives_way, awaited};

/// Rules 1 and 2, for each future and each way in which it can be ready at once.
#[test]
fn rules_1_and_2_every_future_yields_within_its_budget() {
    with_domain(1, |domain| {
        let mutex = leaked(Mutex::new(()));
        let semaphore = leaked(Semaphore::new(2));
        let (sender, receiver) = channel::bounded(10_000);
        let (sends, receives) = (leaked(sender.clone()), leaked(receiver.clone()));
        let (fills, receiver) = channel::bounded(10_000);
        (0..10_000).for_each(|n| fills.try_send(n).unwrap());
        let filled = leaked(receiver);
        let closed = {
            let (sender, receiver) = channel::bounded(1);
            sender.close();
            leaked((sender, receiver))
        };
        let mut ended: Vec<_> = (0..5_000)
            .map(|_| domain.spawn(async {}, Priority::FIRST))
            .collect();
        while domain.coroutines() != 0 {
            thread::yield_now();
        }
        let late = interval(Duration::from_nanos(1));
        let passed = now();
        let table = vec![
            awaited(&["Locking"], 1, || async { drop(mutex.lock().await) }),
            awaited(&["Acquiring"], 1, || async {
                drop(semaphore.acquire().await)
            }),
            awaited(&["Acquiring"], 1, || async {
                drop(semaphore.acquire_many(2).await)
            }),
            awaited(&["Sending"], 1, || async { sends.send(1).await.unwrap() }),
            awaited(&["Sending"], 1, || async {
                closed.0.send(1).await.unwrap_err();
            }),
            awaited(&["Receiving"], 1, || async {
                filled.recv().await.unwrap();
            }),
            awaited(&["Receiving"], 1, || async {
                closed.1.recv().await.unwrap_err();
            }),
            awaited(&["Sending", "Receiving"], 2, || async {
                sends.send(1).await.unwrap();
                receives.recv().await.unwrap();
            }),
            awaited(&["JoinHandle"], 1, move || {
                let handle = ended.pop().unwrap();
                async { handle.await.unwrap() }
            }),
            awaited(&["Sleep"], 1, || sleep(Duration::ZERO)),
            awaited(&["Sleep"], 1, move || sleep_until(passed)),
            awaited(&["tick"], 1, move || {
                let mut late = late.clone();
                async move { assert!(late.tick().await > 1) }
            }),
            // A late timeout, too.
            awaited(&["Timeout"], 1, || async {
                let late = timeout(Duration::ZERO, pending::<()>());
                assert_eq!(late.await, Err(Elapsed));
            }),
            awaited(&["Timeout"], 1, || async {
                drop(timeout(Duration::from_secs(60), mutex.lock()).await)
            }),
            awaited(&["YieldNow"], POLL_BUDGET.into(), yield_now),
            // Combinators of other crates around them.
            awaited(&["Locking"], 1, || async {
                select(pin!(mutex.lock()), pending::<()>()).await;
            }),
            awaited(&["Acquiring"], 2, || async {
                drop(join(semaphore.acquire(), semaphore.acquire()).await);
            }),
            // A combinator with a waker of its own.
            awaited(&["Locking"], 1, || async {
                let mut all: FuturesUnordered<_> = [mutex.lock()].into_iter().collect();
                drop(all.next().await.unwrap());
            }),
            // Futures of other crates.
            awaited(&[], 1, || {
                poll_fn(|context| within_budget(context, |_| Poll::Ready(())))
            }),
        ];
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert_each_gives_way(domain, &sources, table);
    });
}

#[test]
fn rule_4_thread_has_no_budget() {
    with_domain(1, |_| {
        let mutex = leaked(Mutex::new(()));
        let mut polls = 0;
        let mut locks = pin!(async {
            for _ in 0..10 * usize::from(POLL_BUDGET) {
                drop(mutex.lock().await);
            }
        });
        HOST.block_on(
            Box::pin(poll_fn(|context| {
                polls += 1;
                locks.as_mut().poll(context)
            }))
            .as_mut(),
        );
        assert_eq!(polls, 1);
    });
}
