//! The rules of `budget`: a coroutine whose awaits are all ready at once gives way.

mod giving_way;

use std::future::{Future, pending, poll_fn};
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use axcoop::host::HOST;
use axcoop::{
    Domain, DomainId, Elapsed, GRANULE_NANOS, Kernel, Mutex, NoWorker, POLL_BUDGET, Priority,
    SUMMARY, Semaphore, channel, interval, now, sleep, sleep_until, timeout, within_budget,
    yield_now,
};
use futures::future::{join, select};
use futures::stream::{FuturesUnordered, StreamExt};
use giving_way::{assert_each_gives_way, awaited};

/// The host, but for the clock: each look at it takes so long.
struct Slow {
    now: AtomicU64,
}

const LOOK_NANOS: u64 = GRANULE_NANOS;

static SLOW: Slow = Slow {
    now: AtomicU64::new(0),
};

// SAFETY: it is the host's, but for a clock that goes forward.
unsafe impl Kernel for Slow {
    fn start(&self, domain: DomainId, number: usize) -> Result<(), NoWorker> {
        HOST.start(domain, number)
    }
    fn park(&self, domain: DomainId, number: usize, until: Option<u64>) {
        match until {
            None => HOST.park(domain, number, None),
            Some(until) => drop(self.now.fetch_max(until, SeqCst)),
        }
    }
    fn unpark(&self, domain: DomainId, number: usize) {
        HOST.unpark(domain, number);
    }
    fn yield_now(&self) {
        HOST.yield_now();
    }
    fn now(&self) -> u64 {
        self.now.fetch_add(LOOK_NANOS, SeqCst)
    }
    fn set_here(&self, here: *const ()) {
        HOST.set_here(here);
    }
    fn here(&self) -> *const () {
        HOST.here()
    }
    fn me(&self) -> usize {
        HOST.me()
    }
    fn mask(&self) -> usize {
        0
    }
    fn unmask(&self, _: usize) {}
    fn block_on(&self, future: Pin<&mut dyn Future<Output = ()>>) {
        HOST.block_on(future);
    }
}

/// Runs a test in a domain of its own with one worker, one at a time, which has to be empty afterwards.
fn with_domain(kernel: &'static dyn Kernel, test: impl FnOnce(&'static Domain)) {
    static ONE: StdMutex<()> = StdMutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let domain: &'static Domain =
        Box::leak(Box::new(Domain::new(DomainId::new(3), &SUMMARY, kernel)));
    domain.open().unwrap();
    domain.alloc_cpu(1).unwrap();
    test(domain);
    domain.alloc_cpu(0).unwrap();
    while domain.close().is_err() {
        thread::yield_now();
    }
}

/// Something that lives as long as the program, as what coroutines share.
fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Rules 1 and 2, of each future that there is, with each way that it can be ready at once.
#[test]
fn every_future_gives_way_within_its_budget() {
    with_domain(&HOST, |domain| {
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
            // The time of one that is late is looked at as well.
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
            // With a waker of its own.
            awaited(&["Locking"], 1, || async {
                let mut all: FuturesUnordered<_> = [mutex.lock()].into_iter().collect();
                drop(all.next().await.unwrap());
            }),
            // And what they make otherwise.
            awaited(&[], 1, || {
                poll_fn(|context| within_budget(context, |_| Poll::Ready(())))
            }),
        ];
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert_each_gives_way(domain, &sources, table);
    });
}

/// Rule 3.
#[test]
fn timeout_of_what_is_always_ready_is_seen_within_a_budget() {
    with_domain(&SLOW, |domain| {
        const TIME: Duration = Duration::from_millis(100);
        let mutex = leaked(Mutex::new(()));
        let locks = Arc::new(AtomicUsize::new(0));
        let counts = locks.clone();
        let busy = async move {
            for _ in 0..1_000_000 {
                drop(mutex.lock().await);
                counts.fetch_add(1, SeqCst);
            }
        };
        let handle = domain.spawn(timeout(TIME, busy), Priority::LAST);
        assert_eq!(handle.join(), Ok(Err(Elapsed)));
        // One look at the clock for each budget, and the two that are late by the granule, and for giving way.
        let looks = TIME.as_nanos() as usize / LOOK_NANOS as usize + 3;
        let locks = locks.load(SeqCst);
        assert!(locks <= looks * usize::from(POLL_BUDGET), "{locks} locks");
    });
}

/// Rule 3, of another coroutine.
#[test]
fn sleeper_is_woken_within_a_budget_beside_what_is_always_ready() {
    with_domain(&SLOW, |domain| {
        const TIME: Duration = Duration::from_millis(5);
        let mutex = leaked(Mutex::new(()));
        let locks = Arc::new(AtomicUsize::new(0));
        let counts = locks.clone();
        let busy = async move {
            loop {
                drop(mutex.lock().await);
                counts.fetch_add(1, SeqCst);
            }
        };
        let sleeps = async move {
            let mut most = 0;
            // So the worker does not know of a timer when it begins its polls.
            yield_now().await;
            for _ in 0..10 {
                let before = locks.load(SeqCst);
                sleep(TIME).await;
                most = most.max(locks.load(SeqCst) - before);
            }
            most
        };
        let busy = domain.spawn(busy, Priority::LAST);
        let most = domain.spawn(sleeps, Priority::FIRST).join().unwrap();
        busy.cancel();
        assert!(busy.join().is_err());
        let looks = TIME.as_nanos() as usize / LOOK_NANOS as usize + 2;
        assert!(most <= looks * usize::from(POLL_BUDGET), "{most} locks");
    });
}

/// Rule 4.
#[test]
fn thread_has_no_budget() {
    with_domain(&HOST, |_| {
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
