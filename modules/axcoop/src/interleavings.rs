//! What threads do to a domain at the same time, in every order and with every value that the memory
//! orders allow: explored by [loom], up to so many preemptions of a thread by another. A wake that
//! is lost leaves a worker waiting for ever, which loom takes for a deadlock.
//!
//! The code is that of every build; with `--cfg loom` its atomics are loom's. A coroutine takes its
//! domain's workers away when it has ended, so a thread that serves ends, too.
//!
//! Not covered: more preemptions, except where a scenario says that it has all; links of queues and
//! bodies of blocks, which are no atomics: that these have one owner at a time is what a scenario
//! sees by the order of polls, and what `make sanitize` looks at.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::ptr;
use core::sync::atomic::AtomicUsize;
use core::task::{Poll, Waker};
use std::println;

use axcoop_summary::{DomainId, Priority, Summary};
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use loom::sync::{Condvar, Mutex};
use loom::thread;

use crate::domain::Domain;
use crate::error::DomainError;
use crate::kernel::{Kernel, NoWorker};
use crate::state::{Begun, State, Suspended, Woken};

loom::thread_local! {
    static HERE: Cell<*const ()> = Cell::new(ptr::null());
}

/// Runs a scenario in every way that there is, with so many preemptions at most, and prints in how
/// many.
fn explore(name: &str, preemptions: Option<usize>, scenario: fn()) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 10_000;
    builder.check(move || {
        counted.fetch_add(1, Relaxed);
        scenario();
    });
    let executions = executions.load(Relaxed);
    println!("interleavings: axcoop: {name}: {executions} executions");
}

/// A system of loom's threads, of one execution.
struct Machine {
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    parking: [(Mutex<bool>, Condvar); 2],
}

// SAFETY: `HERE` is the thread's, and there are no interrupts.
unsafe impl Kernel for Machine {
    fn start(&self, domain: DomainId, number: usize) -> Result<(), NoWorker> {
        let thread = thread::spawn(move || crate::serve(domain, number));
        self.threads.lock().unwrap().push(thread);
        Ok(())
    }

    fn park(&self, _: DomainId, number: usize, _: Option<u64>) {
        let (may_go, goes) = &self.parking[number];
        let mut may_go = may_go.lock().unwrap();
        while !*may_go {
            may_go = goes.wait(may_go).unwrap();
        }
        *may_go = false;
    }

    fn unpark(&self, _: DomainId, number: usize) {
        let (may_go, goes) = &self.parking[number];
        *may_go.lock().unwrap() = true;
        goes.notify_one();
    }

    fn yield_now(&self) {
        thread::yield_now();
    }

    fn now(&self) -> u64 {
        0
    }

    fn set_here(&self, here: *const ()) {
        HERE.with(|of| of.set(here));
    }

    fn here(&self) -> *const () {
        HERE.with(Cell::get)
    }

    fn me(&self) -> usize {
        self.here().addr()
    }

    fn mask(&self) -> usize {
        0
    }

    fn unmask(&self, _: usize) {}

    fn block_on(&self, _: Pin<&mut dyn Future<Output = ()>>) {
        unreachable!("no thread waits");
    }
}

/// Calls this with a domain of its own; when its workers have left, it has to be empty.
fn with_domain(scenario: impl FnOnce(&'static Domain)) {
    let machine = Box::into_raw(Box::new(Machine {
        threads: Mutex::new(Vec::new()),
        parking: core::array::from_fn(|_| (Mutex::new(false), Condvar::new())),
    }));
    let summary = Box::into_raw(Box::new(Summary::new()));
    // SAFETY: they live until below, when nobody uses them any more.
    let (kernel, word): (&'static Machine, &'static Summary) = unsafe { (&*machine, &*summary) };
    let domain = Box::into_raw(Box::new(Domain::new(DomainId::new(0), word, kernel)));
    // SAFETY: as above.
    let here: &'static Domain = unsafe { &*domain };
    here.open().unwrap();
    scenario(here);
    loop {
        let thread = kernel.threads.lock().unwrap().pop();
        let Some(thread) = thread else { break };
        thread.join().unwrap();
    }
    here.close().unwrap();
    // SAFETY: all threads have ended, and it is closed.
    drop(unsafe {
        (
            Box::from_raw(domain),
            Box::from_raw(summary),
            Box::from_raw(machine),
        )
    });
}

/// Something that one awaits and another says.
struct Event {
    has_come: AtomicBool,
    waits: Mutex<Option<Waker>>,
}

impl Event {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            has_come: AtomicBool::new(false),
            waits: Mutex::new(None),
        })
    }

    /// That it has come is seen by whom this wakes, by the wake alone.
    fn comes(&self) {
        self.has_come.store(true, Relaxed);
        let waits = self.waits.lock().unwrap().take();
        if let Some(waker) = waits {
            waker.wake();
        }
    }

    async fn wait(&self) {
        poll_fn(|context| {
            *self.waits.lock().unwrap() = Some(context.waker().clone());
            match self.has_come.load(Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await
    }
}

/// The state alone: so many wakers, each of whom has written a word before, and a worker who polls
/// until it has seen all of them.
fn states(wakers: usize) {
    let state = Arc::new(State::queued());
    let words = Arc::new([const { () }; 2].map(|()| AtomicU32::new(0)));
    // The queue: how often it has been put in.
    let queue = Arc::new((Mutex::new(1), Condvar::new()));
    let threads: Vec<_> = (0..wakers)
        .map(|n| {
            let (state, words, queue) = (state.clone(), words.clone(), queue.clone());
            thread::spawn(move || {
                words[n].store(1, Relaxed);
                if state.wake() == Woken::MustBeQueued {
                    *queue.0.lock().unwrap() += 1;
                    queue.1.notify_one();
                }
            })
        })
        .collect();
    let mut is_queued = false;
    loop {
        if !is_queued {
            let mut times = queue.0.lock().unwrap();
            while *times == 0 {
                times = queue.1.wait(times).unwrap();
            }
            *times -= 1;
            assert_eq!(*times, 0, "it is in two queues");
        }
        assert_eq!(state.begin(), Begun::Poll);
        if (0..wakers).all(|n| words[n].load(Relaxed) == 1) {
            break;
        }
        is_queued = state.is_woken() || state.suspend() == Suspended::Queued;
    }
    state.finish();
    threads.into_iter().for_each(|of| of.join().unwrap());
    assert_eq!(*queue.0.lock().unwrap(), 0, "it is queued after its end");
}

#[test]
fn a_wake_between_poll_and_pending() {
    explore("a wake between poll and pending", None, || states(1));
}

#[test]
fn two_wakes_between_poll_and_pending() {
    explore("two wakes between poll and pending", Some(3), || states(2));
}

#[test]
fn a_wake_while_the_worker_goes_to_wait() {
    explore("a wake while the worker goes to wait", Some(2), || {
        with_domain(|domain| {
            let event = Event::new();
            let waits = event.clone();
            let awaits = async move {
                waits.wait().await;
                domain.alloc_cpu(0).unwrap();
            };
            drop(domain.spawn(awaits, Priority::DEFAULT));
            domain.alloc_cpu(1).unwrap();
            event.comes();
        });
    });
}

#[test]
fn a_wake_by_name_while_it_ends() {
    explore(
        "a wake by name, while it ends and is dropped",
        Some(2),
        || {
            with_domain(|domain| {
                let ends = async move { domain.alloc_cpu(0).unwrap() };
                let handle = domain.spawn(ends, Priority::DEFAULT);
                domain.alloc_cpu(1).unwrap();
                let _ = crate::wake(handle.cid());
                drop(handle);
            });
        },
    );
}

#[test]
fn a_handle_waits_while_it_ends() {
    explore("a handle waits while its coroutine ends", Some(2), || {
        with_domain(|domain| {
            let ends = async move { domain.alloc_cpu(0).unwrap() };
            let mut handle = domain.spawn(ends, Priority::DEFAULT);
            domain.alloc_cpu(1).unwrap();
            struct Wakes(AtomicBool);
            impl std::task::Wake for Wakes {
                fn wake(self: Arc<Self>) {
                    self.0.store(true, Relaxed);
                }
            }
            let wakes = Arc::new(Wakes(AtomicBool::new(false)));
            let waker = Waker::from(wakes.clone());
            let mut context = core::task::Context::from_waker(&waker);
            let is_ready = Pin::new(&mut handle).poll(&mut context).is_ready();
            // It ends in any case; who has been told to wait is woken then.
            loop {
                let thread = {
                    // SAFETY: the machine of `with_domain`.
                    let machine = unsafe { &*ptr::from_ref(domain.kernel()).cast::<Machine>() };
                    machine.threads.lock().unwrap().pop()
                };
                let Some(thread) = thread else { break };
                thread.join().unwrap();
            }
            assert!(
                is_ready || wakes.0.load(Relaxed),
                "the handle was not woken"
            );
            if !is_ready {
                let poll = Pin::new(&mut handle).poll(&mut context);
                assert_eq!(poll, Poll::Ready(Ok(())));
            }
        });
    });
}

#[test]
fn two_workers_and_a_wake() {
    explore(
        "two workers, of whom one may wait, and a wake",
        Some(1),
        || {
            with_domain(|domain| {
                let event = Event::new();
                let waits = event.clone();
                let awaits = async move {
                    waits.wait().await;
                    domain.alloc_cpu(0).unwrap();
                };
                drop(domain.spawn(awaits, Priority::DEFAULT));
                domain.alloc_cpu(2).unwrap();
                event.comes();
            });
        },
    );
}

#[test]
fn a_second_worker_comes_while_the_first_serves() {
    explore(
        "a second worker comes while the first serves",
        Some(1),
        || {
            with_domain(|domain| {
                let event = Event::new();
                let waits = event.clone();
                let awaits = async move {
                    waits.wait().await;
                    domain.alloc_cpu(0).unwrap();
                };
                domain.alloc_cpu(1).unwrap();
                drop(domain.spawn(awaits, Priority::DEFAULT));
                domain.alloc_cpu(2).unwrap();
                event.comes();
            });
        },
    );
}

/// A domain of number 0 that is neither opened nor served, of one execution.
struct Unopened {
    domain: &'static Domain,
    summary: *mut Summary,
    machine: *mut Machine,
}

impl Unopened {
    fn new() -> Self {
        let machine = Box::into_raw(Box::new(Machine {
            threads: Mutex::new(Vec::new()),
            parking: core::array::from_fn(|_| (Mutex::new(false), Condvar::new())),
        }));
        let summary = Box::into_raw(Box::new(Summary::new()));
        // SAFETY: they live until `drop`.
        let (kernel, word): (&'static Machine, &'static Summary) =
            unsafe { (&*machine, &*summary) };
        let domain = Box::leak(Box::new(Domain::new(DomainId::new(0), word, kernel)));
        Self {
            domain,
            summary,
            machine,
        }
    }
}

impl Drop for Unopened {
    fn drop(&mut self) {
        // SAFETY: all threads have ended, and no number leads to it in the next execution.
        drop(unsafe {
            (
                Box::from_raw(ptr::from_ref(self.domain).cast_mut()),
                Box::from_raw(self.summary),
                Box::from_raw(self.machine),
            )
        });
    }
}

/// Its number leads to this domain.
fn assert_open(domain: &'static Domain) {
    let by_number = Domain::of(domain.id());
    assert!(by_number.is_some_and(|of| ptr::eq(of, domain)));
}

#[test]
fn two_close_one_domain() {
    explore("two close one domain, and open another", Some(3), || {
        let (one, two) = (Unopened::new(), Unopened::new());
        let (first, second) = (one.domain, two.domain);
        first.open().unwrap();
        // Whichever closes it opens the other one.
        let closes = move || match first.close() {
            Ok(()) => second.open().map(|()| 1),
            Err(why) => {
                assert_eq!(why, DomainError::NotOpen(DomainId::new(0)));
                Ok(0)
            }
        };
        let other = thread::spawn(closes);
        let closed = closes().unwrap() + other.join().unwrap().unwrap();
        assert_eq!(closed, 1, "one of them closes it");
        assert_open(second);
        second.close().unwrap();
        assert!(Domain::of(second.id()).is_none());
    });
}

#[test]
fn one_domain_closes_while_another_of_its_number_opens() {
    explore(
        "a domain closes while another of its number opens",
        Some(3),
        || {
            let (one, two) = (Unopened::new(), Unopened::new());
            let (first, second) = (one.domain, two.domain);
            first.open().unwrap();
            let other = thread::spawn(move || second.open());
            first.close().unwrap();
            assert_eq!(
                first.close(),
                Err(DomainError::NotOpen(DomainId::new(0))),
                "it is closed once"
            );
            if other.join().unwrap().is_err() {
                second.open().unwrap();
            }
            assert_open(second);
            second.close().unwrap();
        },
    );
}

#[test]
fn a_domain_closes_while_it_opens() {
    explore("a domain closes while it opens", Some(3), || {
        let one = Unopened::new();
        let domain = one.domain;
        let other = thread::spawn(move || domain.open());
        let is_closed = domain.close().is_ok();
        other.join().unwrap().unwrap();
        if !is_closed {
            assert_open(domain);
            domain.close().unwrap();
        }
        assert!(Domain::of(domain.id()).is_none());
    });
}
