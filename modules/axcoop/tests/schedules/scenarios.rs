//! What threads may do to each other's coroutines. A wake that is lost leaves everybody waiting,
//! which Shuttle takes for a deadlock and reports.

use core::future::poll_fn;
use core::task::{Poll, Waker};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use axcoop_summary::{DomainId, Priority, SUMMARY};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use shuttle::thread;

use crate::domain::Domain;
use crate::error::Ended;
use crate::kernel::Attendant;
use crate::loan::lend;
use crate::machine::{Machine, with_domain};
use crate::named;
use crate::yielding::yield_now;

/// Something that one awaits and another says.
#[derive(Default)]
struct Event {
    has_come: AtomicBool,
    waits: Mutex<Option<Waker>>,
}

impl Event {
    fn comes(&self) {
        self.has_come.store(true, SeqCst);
        let waits = self.waits.lock().unwrap().take();
        if let Some(waker) = waits {
            waker.wake();
        }
    }

    /// It comes as soon as somebody is about to wait for it.
    fn comes_to_a_waiter(&self) {
        while self.waits.lock().unwrap().is_none() {
            thread::yield_now();
        }
        self.comes();
    }

    async fn wait(&self) {
        poll_fn(|context| {
            *self.waits.lock().unwrap() = Some(context.waker().clone());
            match self.has_come.load(SeqCst) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await
    }
}

/// A thread wakes a coroutine that is about to wait, or does, or has not begun.
pub fn wake_and_pending() {
    with_domain(1, |domain| {
        let events = [(); 2].map(|()| Arc::new(Event::default()));
        let waits = events.clone();
        let handle = domain.spawn(
            async move {
                waits[0].wait().await;
                waits[1].wait().await;
            },
            Priority::DEFAULT,
        );
        events[0].comes_to_a_waiter();
        events[1].comes();
        assert_eq!(handle.join(), Ok(()));
    });
}

/// The same with two workers, two threads, and a coroutine that waits twice.
pub fn two_wakers() {
    with_domain(2, |domain| {
        let events = [(); 2].map(|()| Arc::new(Event::default()));
        let waits = events.clone();
        let handle = domain.spawn(
            async move {
                waits[0].wait().await;
                waits[1].wait().await;
            },
            Priority::DEFAULT,
        );
        let [one, other] = events;
        let thread = thread::spawn(move || one.comes());
        other.comes();
        assert_eq!(handle.join(), Ok(()));
        thread.join().unwrap();
    });
}

/// Coroutines wake each other to and fro, beside some that yield, while workers come and go.
pub fn workers_come_and_go() {
    with_domain(1, |domain| {
        let polls = Arc::new(AtomicUsize::new(0));
        let spawn = |n: usize| {
            let polls = polls.clone();
            domain.spawn(
                async move {
                    for _ in 0..3 {
                        polls.fetch_add(1, Relaxed);
                        yield_now().await;
                    }
                },
                Priority::new(n),
            )
        };
        let first = [spawn(0), spawn(0), spawn(1)];
        domain.alloc_cpu(2).unwrap();
        let second = [spawn(0), spawn(1)];
        domain.alloc_cpu(1).unwrap();
        for handle in first.into_iter().chain(second) {
            assert_eq!(handle.join(), Ok(()));
        }
        assert_eq!(polls.load(Relaxed), 15);
    });
}

/// One is cancelled, woken and waited for at once; and its name is stale when it has ended.
pub fn cancel_and_end() {
    with_domain(2, |domain| {
        let event = Arc::new(Event::default());
        let waits = event.clone();
        let handle = domain.spawn(async move { waits.wait().await }, Priority::DEFAULT);
        let cid = handle.cid();
        let thread = thread::spawn(move || event.comes());
        let is_too_late = named::cancel(cid).is_err();
        match handle.join() {
            Ok(()) => {}
            Err(why) => assert!(!is_too_late && why == Ended::Cancelled),
        }
        assert!(named::wake(cid).is_err());
        thread.join().unwrap();
    });
}

/// A name is looked up while its block becomes another coroutine's: that one is not meant.
pub fn names_and_blocks() {
    with_domain(1, |domain: &'static Domain| {
        let event = Arc::new(Event::default());
        let waits = event.clone();
        // One type for both, so that they are of one size.
        let one = |waits: Option<Arc<Event>>| async move {
            if let Some(event) = waits {
                event.wait().await;
            }
        };
        let first = domain.spawn(one(None), Priority::DEFAULT);
        let name = first.cid();
        let both = domain.spawn(
            async move {
                let _ = first.await;
                domain.spawn(one(Some(waits)), Priority::DEFAULT).await
            },
            Priority::DEFAULT,
        );
        let _ = named::cancel(name);
        event.comes();
        assert_eq!(both.join(), Ok(Ok(())));
    });
}

/// A handle is dropped while its coroutine ends: the output is dropped once.
pub fn drop_and_end() {
    struct Output(Arc<AtomicU32>);
    impl Drop for Output {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let dropped = Arc::new(AtomicU32::new(0));
    with_domain(1, |domain| {
        let output = Output(dropped.clone());
        drop(domain.spawn(async move { output }, Priority::DEFAULT));
        let output = Output(dropped.clone());
        drop(domain.spawn(async move { output }, Priority::DEFAULT).join());
    });
    assert_eq!(dropped.load(SeqCst), 2);
}

/// A coroutine awaits others, which end meanwhile.
pub fn coroutines_join() {
    with_domain(2, |domain: &'static Domain| {
        let sum = domain.spawn(
            async move {
                let one = domain.spawn(async { 1 }, Priority::LAST);
                let two = domain.spawn(
                    async {
                        yield_now().await;
                        2
                    },
                    Priority::FIRST,
                );
                one.await.unwrap() + two.await.unwrap()
            },
            Priority::DEFAULT,
        );
        assert_eq!(sum.join(), Ok(3));
    });
}

/// A priority is lent and taken back while its coroutine runs, waits and ends.
pub fn loans() {
    with_domain(2, |domain| {
        let event = Arc::new(Event::default());
        let waits = event.clone();
        let handle = domain.spawn(
            async move {
                yield_now().await;
                waits.wait().await;
            },
            Priority::LAST,
        );
        let cid = handle.cid();
        let thread = thread::spawn(move || {
            let loan = lend(cid, Priority::FIRST);
            let _ = named::set_priority(cid, Priority::DEFAULT);
            drop(loan);
            if let Ok(priority) = named::priority(cid) {
                assert_eq!(priority, Priority::DEFAULT);
            }
        });
        event.comes();
        assert_eq!(handle.join(), Ok(()));
        thread.join().unwrap();
    });
}

/// A worker is taken away while it begins to serve.
pub fn a_worker_is_taken_away() {
    with_domain(1, |domain| {
        domain.alloc_cpu(2).unwrap();
        domain.alloc_cpu(1).unwrap();
        let serving = || {
            domain
                .books
                .with(domain.kernel, |books| books.serving.count_ones())
        };
        let mut looks = 0;
        while serving() != 1 {
            looks += 1;
            assert!(looks < 1_000, "the second worker stays");
            thread::yield_now();
        }
    });
}

/// A poll waits for another coroutine, which the second worker has to run meanwhile.
pub fn nobody_waits_beside_an_idle_worker() {
    with_domain(2, |domain| {
        let is_done = Arc::new(AtomicBool::new(false));
        let waits = is_done.clone();
        let first = domain.spawn(async {}, Priority::DEFAULT);
        let slow = domain.spawn(
            async move {
                let mut looks = 0;
                while !waits.load(SeqCst) {
                    looks += 1;
                    assert!(looks < 1_000, "nobody runs the other one");
                    thread::yield_now();
                }
            },
            Priority::DEFAULT,
        );
        let quick = domain.spawn(async move { is_done.store(true, SeqCst) }, Priority::DEFAULT);
        for handle in [first, slow, quick] {
            assert_eq!(handle.join(), Ok(()));
        }
    });
}

/// Takes long: others run meanwhile.
struct Slow;

impl Attendant for Slow {
    fn attend(&self, _: DomainId) {
        thread::yield_now();
    }

    fn until(&self) -> Option<u64> {
        None
    }
}

/// LOOK AGAIN (rule 6 of `worker`): a worker that clears marks which it takes for stale looks again, so one that
/// was spawned meanwhile is marked whenever it gives way.
fn marks_stay(workers: usize) {
    let (urgent, elsewhere) = (Priority::new(1), DomainId::new(1));
    with_domain(1, |domain| {
        let is_spawned = Arc::new(AtomicBool::new(false));
        let has_run = Arc::new(AtomicBool::new(false));
        let (spawned, ran) = (is_spawned.clone(), has_run.clone());
        Machine::watches(domain, move || {
            if spawned.load(SeqCst) && !ran.load(SeqCst) {
                assert!(SUMMARY.is_marked(domain.id(), urgent), "it is unmarked");
            }
        });
        domain.alloc_cpu(workers).unwrap();
        // So the worker gives way before it polls.
        SUMMARY.mark(elsewhere, Priority::FIRST);
        domain.set_attendant(Some(&Slow));
        let last = domain.spawn(async {}, Priority::LAST);
        // It is called after what has arrived is queued, and before the worker gives way.
        domain.call_attendant();
        let first = domain.spawn(async move { has_run.store(true, SeqCst) }, urgent);
        is_spawned.store(true, SeqCst);
        assert_eq!((first.join(), last.join()), (Ok(()), Ok(())));
        SUMMARY.clear(elsewhere, Priority::FIRST);
        // Those that never began.
        domain.books.with(domain.kernel(), |books| books.serving &= 1);
    });
}

/// The worker has the domain for itself.
pub fn marks_stay_alone() {
    marks_stay(1);
}

/// It serves as if there were others, but none of them clears any mark.
pub fn marks_stay_shared() {
    marks_stay(2);
}
