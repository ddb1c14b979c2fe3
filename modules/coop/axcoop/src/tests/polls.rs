//! The order of polls with one worker, when it yields to other tasks, and inherited priorities.

use core::future::poll_fn;
use core::sync::atomic::Ordering::Relaxed;
use core::task::Poll;

use futures::stream::{FuturesUnordered, StreamExt};

use super::fixture::{Trace, forget_workers, output, pending_once, ran, spawn, yield_often};
use super::machine::{run, with_domain};
use crate::{
    Domain, DomainId, Ended, JoinHandle, Priority, current, current_priority, priority, wake,
    yield_now,
};

#[test]
fn rule_1_most_urgent_level_first_round_robin_within_it() {
    with_domain(|domain, _| {
        let trace = Trace::new();
        for (letter, priority) in [('d', 7), ('a', 2), ('b', 2), ('c', 3)] {
            drop(spawn(domain, priority, trace.note_and_yield(letter, 3)));
        }
        run(domain);
        assert_eq!(trace.take(), "abababcccddd");
    });
}

/// Serves as worker 0 of two, of which the other never begins.
fn run_shared(domain: &'static Domain) {
    domain.set_workers(2).unwrap();
    domain.serve(0);
    forget_workers(domain);
}

/// Rules 2 and 3 of `worker`.
#[test]
fn worker_yields_every_256_polls_and_every_16_beside_a_more_urgent_domain() {
    for (serve, way, beside) in [
        (run as fn(&'static Domain), "alone", 11),
        (run_shared, "shared", 11),
    ] {
        with_domain(|domain, machine| {
            let other = DomainId::new(1);
            let yields_in = |polls: usize| {
                machine.yields.store(0, Relaxed);
                drop(spawn(domain, 4, yield_often(polls - 1)));
                serve(domain);
                machine.yields.load(Relaxed)
            };
            assert_eq!(yields_in(250), 0, "{way}");
            assert_eq!(yields_in(2_551), 10, "{way}");
            domain.summary.mark(other, Priority::new(4));
            assert_eq!(yields_in(100), 0, "{way}: equal is not more urgent");
            // Before the first poll, and then after each 15.
            domain.summary.mark(other, Priority::new(3));
            assert_eq!(yields_in(160), beside, "{way}");
            domain.summary.clear(other, Priority::new(3));
            domain.summary.clear(other, Priority::new(4));
        });
    }
}

#[test]
fn rule_2_worker_yields_again_when_the_last_yield_had_an_effect() {
    with_domain(|domain, machine| {
        let (other, urgent) = (DomainId::new(1), Priority::new(3));
        *machine.others.lock().unwrap() =
            Some(Box::new(move || domain.summary.clear(other, urgent)));
        drop(spawn(domain, 4, async move {
            for _ in 0..5 {
                domain.summary.mark(other, urgent);
                yield_now().await;
            }
        }));
        run(domain);
        assert_eq!(machine.yields.load(Relaxed), 5);
        // A yield also has an effect if it brings a coroutine that is more urgent than the other
        // domain.
        machine.yields.store(0, Relaxed);
        *machine.others.lock().unwrap() =
            Some(Box::new(move || match machine.yields.load(Relaxed) {
                1 => drop(spawn(domain, 2, async {})),
                _ => domain.summary.clear(other, urgent),
            }));
        domain.summary.mark(other, urgent);
        drop(spawn(domain, 4, async {}));
        run(domain);
        assert_eq!(machine.yields.load(Relaxed), 2);
    });
}

/// Rules 2 and 3 of `worker`: the polls in which the worker looks at no other domain count.
#[test]
fn polls_after_a_yield_without_effect_count_towards_256() {
    for (polls, expected) in [(250, 1), (264, 2)] {
        with_domain(|domain, machine| {
            let (other, urgent) = (DomainId::new(1), Priority::new(3));
            domain.summary.mark(other, urgent);
            drop(spawn(domain, 4, async move {
                domain.summary.clear(other, urgent);
                yield_often(polls - 1).await;
            }));
            run(domain);
            assert_eq!(machine.yields.load(Relaxed), expected, "{polls} polls");
        });
    }
}

#[test]
fn rule_6_level_stays_marked_while_its_last_coroutine_runs() {
    with_domain(|domain, _| {
        let marked = move || domain.summary.of(domain.id());
        let two = spawn(domain, 2, async move {
            let before = marked();
            yield_now().await;
            (before, marked())
        });
        // The mark of a level is cleared when its last coroutine suspends.
        let one = spawn(domain, 1, pending_once());
        let cid = one.cid();
        let five = ran(domain, 5, async move {
            let before = marked();
            wake(cid).unwrap();
            before
        });
        let level = |n| Some(Priority::new(n));
        assert_eq!(output(two), Ok((level(2), level(2))));
        assert_eq!(five, Ok(level(5)));
        assert_eq!(output(one), Ok(()));
    });
}

#[test]
fn rule_6_stale_mark_is_cleared() {
    with_domain(|domain, _| {
        domain.summary.mark(domain.id(), Priority::FIRST);
        let marked = ran(domain, 5, async move {
            yield_often(300).await;
            domain.summary.of(domain.id())
        });
        assert_eq!(marked, Ok(Some(Priority::new(5))));
    });
}

/// Rule 4 of `worker`.
#[test]
fn awaiter_of_an_end_is_queued_behind_the_inbox() {
    with_domain(|domain, _| {
        let trace = Trace::new();
        let woken = spawn(domain, 4, async move {
            pending_once().await;
            trace.note('w');
        });
        let cid = woken.cid();
        let ends = spawn(domain, 4, async move {
            yield_now().await;
            std::thread::spawn(move || wake(cid)).join().unwrap()
        });
        let awaits = spawn(domain, 4, async move {
            assert_eq!(ends.await, Ok(Ok(())));
            trace.note('a');
        });
        run(domain);
        assert_eq!(trace.take(), "wa");
        assert_eq!((output(woken), output(awaits)), (Ok(()), Ok(())));
    });
}

/// Rule 4 of `worker`: the awaiter belongs to another domain, whose worker polls it.
#[test]
fn awaiter_of_another_domain_is_queued_there() {
    with_domain(|domain, machine| {
        let other = Domain::new(DomainId::new(1), domain.summary, machine);
        let other: &'static Domain = super::fixture::leaked(other);
        other.open().unwrap();
        let ends = spawn(domain, 4, async {});
        let awaits = spawn(other, 4, async { ends.await.unwrap() });
        run(other);
        run(domain);
        assert!(!awaits.is_finished());
        run(other);
        assert_eq!(output(awaits), Ok(()));
        other.close().unwrap();
    });
}

/// Rules 7 and 8 of `state`.
#[test]
fn coroutine_woken_in_its_last_poll_ends_once() {
    with_domain(|domain, _| {
        let ends = poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::Ready(7)
        });
        assert_eq!(ran(domain, 4, ends), Ok(7));
    });
}

#[test]
fn panic_ends_its_coroutine_alone() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("a destructor, as the test wants it");
        }
    }
    with_domain(|domain, _| {
        let in_poll: JoinHandle<()> = spawn(domain, 1, async { panic!("as the test wants it") });
        // The destructors of the future and of the output that it has left.
        let in_future = Panics;
        let in_both = poll_fn(move |_| {
            let _ = &in_future;
            Poll::Ready(Panics)
        });
        let in_both = spawn(domain, 1, in_both);
        assert_eq!(ran(domain, 2, async { 2 }), Ok(2));
        assert_eq!(output(in_poll), Err(Ended::Panicked));
        assert!(matches!(output(in_both), Err(Ended::Panicked)));
    });
}

/// Rules 1 to 3 of [`donation`](crate::sync::donation).
#[test]
fn awaiter_donates_its_priority_along_a_chain() {
    with_domain(|domain, _| {
        let trace = Trace::new();
        let last = spawn(domain, 6, async move {
            for _ in 0..2 {
                trace.note('c');
                let own = current_priority().unwrap();
                assert_eq!(priority(current().unwrap()), Ok(own));
                yield_now().await;
            }
            current_priority().unwrap().index()
        });
        let middle = spawn(domain, 5, async move {
            trace.note('b');
            let inherited = last.await;
            trace.note('B');
            inherited
        });
        let first = ran(domain, 0, async move {
            trace.note('a');
            drop(spawn(domain, 3, trace.note_and_yield('x', 2)));
            let inherited = middle.await;
            trace.note('A');
            inherited
        });
        assert_eq!(first, Ok(Ok(Ok(0))));
        assert_eq!(trace.take(), "abccBAxx");
    });
}

/// Rule 2 of `donation`: the combinator polls the handle with a waker of its own.
#[test]
fn handle_in_a_combinator_donates_the_priority_of_its_coroutine() {
    with_domain(|domain, _| {
        let looks = spawn(domain, 6, async {
            pending_once().await;
            current_priority()
        });
        let cid = looks.cid();
        let awaits = spawn(domain, 1, async move {
            let mut all: FuturesUnordered<_> = [looks].into_iter().collect();
            all.next().await.unwrap().unwrap()
        });
        drop(spawn(domain, 7, async move { wake(cid) }));
        run(domain);
        assert_eq!(output(awaits), Ok(Some(Priority::new(1))));
    });
}

/// The coroutine ends after its new priority was listed, and before a worker was told so.
#[test]
fn coroutine_that_ends_during_a_change_of_priority_leaves_nothing_behind() {
    with_domain(|domain, machine| {
        let handle = spawn(domain, 4, async {});
        let header = crate::task::named::find(handle.cid()).unwrap();
        // SAFETY: the closure is called with the registry's lock (REGISTRY).
        let is_listed = domain.record_change(&header, |header| unsafe {
            header.set_base(Priority::FIRST)
        });
        assert!(is_listed);
        run(domain);
        domain.sleepers.store(1, Relaxed);
        let before = machine.unparks.load(Relaxed);
        domain.request_move(&header);
        assert_eq!(machine.unparks.load(Relaxed), before + 1);
        domain.sleepers.store(0, Relaxed);
        assert_eq!(output(handle), Ok(()));
    });
}
