//! What the executor does with one worker, poll by poll.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, pending, poll_fn};
use core::ptr::NonNull;
use core::task::{Poll, Waker};
use core::time::Duration;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

use futures::stream::{FuturesUnordered, StreamExt};

use super::machine::{run, with_domain};
use crate::table::USED_UP;
use crate::waker::Ref;
use crate::{
    Attendant, CpuError, Domain, DomainError, DomainId, Ended, JoinHandle, MAX_WORKERS, Priority,
    Served, Server, SpawnError, Stale, cancel, current, current_priority, lend, priority,
    set_priority, sleep, wake, yield_now,
};

/// Who was polled, in order.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<String>>);

impl Trace {
    fn says(&self, what: char) {
        self.0.lock().unwrap().push(what);
    }

    fn taken(&self) -> String {
        core::mem::take(&mut self.0.lock().unwrap())
    }
}

fn spawn<F>(domain: &'static Domain, priority: usize, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    domain.spawn(future, Priority::new(priority))
}

/// The output of one that has ended.
fn output<T>(handle: JoinHandle<T>) -> Result<T, Ended> {
    let mut handle = core::pin::pin!(handle);
    let mut context = core::task::Context::from_waker(Waker::noop());
    match handle.as_mut().poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it has not ended"),
    }
}

/// The output of a coroutine of this priority, once all have been polled that are ready.
fn ran<F>(domain: &'static Domain, priority: usize, future: F) -> Result<F::Output, Ended>
where
    F: Future<Output: Send> + Send + 'static,
{
    let handle = spawn(domain, priority, future);
    run(domain);
    output(handle)
}

/// One that says this at each of so many polls.
async fn says(trace: Trace, what: char, times: usize) {
    for _ in 0..times {
        trace.says(what);
        yield_now().await;
    }
}

/// Asks for no worker any more, upon which this one leaves.
fn dismiss(domain: &'static Domain, server: &mut Server) {
    domain.alloc_cpu(0).unwrap();
    assert_eq!(server.run(), Served::Leaves);
}

/// Waits for one wake.
async fn pending_once() {
    let mut is_first = true;
    poll_fn(|_| match core::mem::replace(&mut is_first, false) {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
}

#[test]
fn rule_1_the_most_urgent_first_and_each_in_turn() {
    with_domain(|domain, _| {
        let trace = Trace::default();
        for (what, priority) in [('d', 7), ('a', 2), ('b', 2), ('c', 3)] {
            drop(spawn(domain, priority, says(trace.clone(), what, 3)));
        }
        run(domain);
        assert_eq!(trace.taken(), "abababcccddd");
    });
}

#[test]
fn a_more_urgent_one_is_next_when_it_is_woken() {
    with_domain(|domain, _| {
        let trace = Trace::default();
        let of = trace.clone();
        let urgent = spawn(domain, 0, async move {
            for _ in 0..2 {
                of.says('u');
                pending_once().await;
            }
        });
        let cid = urgent.cid();
        let of = trace.clone();
        drop(spawn(domain, 4, async move {
            for _ in 0..2 {
                of.says('w');
                wake(cid).unwrap();
                wake(cid).unwrap();
                yield_now().await;
            }
        }));
        drop(spawn(domain, 4, says(trace.clone(), 'x', 2)));
        run(domain);
        assert_eq!(trace.taken(), "uwuxwx");
        assert_eq!(output(urgent), Ok(()));
    });
}

#[test]
fn rule_2_it_gives_way_to_another_domain_and_not_at_once_again() {
    with_domain(|domain, machine| {
        let other = DomainId::new(1);
        drop(spawn(domain, 4, says(Trace::default(), 'a', 100)));
        domain.summary.mark(other, Priority::new(4));
        run(domain);
        assert_eq!(
            machine.yields.load(Relaxed),
            0,
            "as urgent is not more urgent"
        );
        domain.summary.mark(other, Priority::new(3));
        drop(spawn(domain, 4, says(Trace::default(), 'a', 159)));
        run(domain);
        // 160 polls: before the first, and then before each of which 15 have gone before.
        assert_eq!(machine.yields.load(Relaxed), 11);
        domain.summary.clear(other, Priority::new(3));
        domain.summary.clear(other, Priority::new(4));
    });
}

#[test]
fn rule_2_it_gives_way_again_when_that_was_not_in_vain() {
    with_domain(|domain, machine| {
        let other = DomainId::new(1);
        let urgent = Priority::new(3);
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
        // Nor was it if what the other one has left is not more urgent than what came here meanwhile.
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
        domain.summary.clear(other, urgent);
    });
}

#[test]
fn rule_3_it_gives_way_after_256_polls() {
    with_domain(|domain, machine| {
        drop(spawn(domain, 4, says(Trace::default(), 'a', 2550)));
        run(domain);
        assert_eq!(machine.yields.load(Relaxed), 10);
    });
}

/// Has worker 0 serve as one beside another, which never begins.
fn run_shared(domain: &'static Domain) {
    domain.alloc_cpu(2).unwrap();
    domain.serve(0);
    domain.books.with(domain.kernel, |books| books.serving = 0);
}

/// Rules 2 and 3 of `worker`.
#[test]
fn worker_beside_others_gives_way_as_often_as_one_that_is_alone() {
    for (serves, way) in [
        (run as fn(&'static Domain), "alone"),
        (run_shared, "beside others"),
    ] {
        with_domain(|domain, machine| {
            let (other, urgent) = (DomainId::new(1), Priority::new(3));
            let yields = |polls: usize| {
                machine.yields.store(0, Relaxed);
                drop(spawn(domain, 4, says(Trace::default(), 'a', polls - 1)));
                serves(domain);
                machine.yields.load(Relaxed)
            };
            assert_eq!(yields(250), 0, "{way}");
            assert_eq!(yields(2_551), 10, "{way}");
            // Before the first poll, and then after each 16.
            domain.summary.mark(other, urgent);
            let beside = yields(155);
            assert!((10..=11).contains(&beside), "{way}: {beside}");
            domain.summary.clear(other, urgent);
        });
    }
}

/// Rules 2 and 3 of `worker`: polls in which it asks no other one count.
#[test]
fn polls_after_a_yield_in_vain_are_some_of_the_256() {
    for (polls, yields) in [(250, 1), (264, 2)] {
        with_domain(|domain, machine| {
            let (other, urgent) = (DomainId::new(1), Priority::new(3));
            domain.summary.mark(other, urgent);
            let clears = async move {
                domain.summary.clear(other, urgent);
                for _ in 1..polls {
                    yield_now().await;
                }
            };
            drop(spawn(domain, 4, clears));
            run(domain);
            assert_eq!(machine.yields.load(Relaxed), yields, "{polls} polls");
        });
    }
}

/// Rule 6 of `worker`.
#[test]
fn mark_is_cleared_when_the_last_one_of_a_level_suspends() {
    with_domain(|domain, _| {
        let urgent = spawn(domain, 1, pending_once());
        let cid = urgent.cid();
        let ended = ran(domain, 5, async move {
            let marked = domain.summary.of(domain.id());
            wake(cid).unwrap();
            marked
        });
        assert_eq!(ended, Ok(Some(Priority::new(5))));
        assert_eq!(output(urgent), Ok(()));
    });
}

/// Rule 5 of `worker`, of one that waits no more: no other is taken for it.
#[test]
fn worker_that_goes_on_takes_back_that_it_waits_and_nothing_else() {
    with_domain(|domain, _| {
        domain.alloc_cpu(2).unwrap();
        let mut server = Server::new(domain.id(), 1);
        assert_eq!(server.run(), Served::Waits { until: None });
        assert_eq!(domain.sleepers.load(Relaxed), 0b10);
        domain.sleepers.store(0, Relaxed);
        let waits = spawn(domain, 4, async { domain.sleepers.load(Relaxed) });
        domain.sleepers.store(0b11, Relaxed);
        assert_eq!(server.run(), Served::Waits { until: None });
        assert_eq!(output(waits), Ok(0b01));
        dismiss(domain, &mut server);
        domain.books.with(domain.kernel, |books| books.serving = 0);
    });
}

/// Rule 5 of `worker`: a timer that is due when it is about to wait is polled, and the worker does not count as waiting.
#[test]
fn worker_does_not_wait_for_a_time_that_has_come_meanwhile() {
    with_domain(|domain, machine| {
        let sleeps = spawn(domain, 4, async {
            let mut sleeps = core::pin::pin!(sleep(Duration::from_millis(5)));
            poll_fn(|context| {
                let polled = sleeps.as_mut().poll(context);
                machine.clock.store(10_000_000, Relaxed);
                polled
            })
            .await;
            domain.sleepers.load(Relaxed)
        });
        domain.alloc_cpu(1).unwrap();
        let mut server = Server::new(domain.id(), 0);
        assert_eq!(server.run(), Served::Waits { until: None });
        assert_eq!(output(sleeps), Ok(0));
        dismiss(domain, &mut server);
    });
}

/// Rule 4 of `worker`.
#[test]
fn worker_has_the_turn_for_good_when_the_others_have_left() {
    with_domain(|domain, _| {
        domain.alloc_cpu(2).unwrap();
        let mut first = Server::new(domain.id(), 0);
        let mut is_alone = || {
            let looks = async { domain.alone.load(Relaxed) != 0 };
            let looks = spawn(domain, 4, looks);
            assert_eq!(first.run(), Served::Waits { until: None });
            output(looks).unwrap()
        };
        assert!(!is_alone());
        domain.alloc_cpu(1).unwrap();
        assert!(!is_alone(), "the other has not left yet");
        let leaves = std::thread::spawn(move || domain.serve(1));
        leaves.join().unwrap();
        assert!(is_alone());
        dismiss(domain, &mut first);
    });
}

/// Rule 5 of `worker`, of one that has said that it waits and finds what another has queued.
#[test]
fn worker_that_was_told_to_go_on_tells_another_of_what_has_come_since() {
    for (is_told, comes, unparked) in [(true, true, 0b100), (true, false, 0), (false, true, 0)] {
        with_domain(|domain, machine| {
            domain.alloc_cpu(3).unwrap();
            let mut server = Server::new(domain.id(), 1);
            let looks = Arc::new(Mutex::new(None));
            let looked = looks.clone();
            let others = Box::new(move || {
                domain.sleepers.store(0, Relaxed);
                let sees = async {
                    (
                        machine.unparked.load(Relaxed),
                        domain.sleepers.load(Relaxed),
                    )
                };
                *looked.lock().unwrap() = Some(spawn(domain, 4, sees));
                for header in domain.inbox.take() {
                    // SAFETY: no worker has the turn.
                    domain.queues(unsafe { &*domain.ready.get() }, header);
                }
                if comes {
                    drop(spawn(domain, 4, async {}));
                }
                let waits = if is_told { 0b100 } else { 0b110 };
                domain.sleepers.store(waits, Relaxed);
            });
            // To ask how it serves, to find nothing, and to look once more.
            *machine.at_mask.lock().unwrap() = Some((2, others));
            assert_eq!(server.run(), Served::Waits { until: None });
            let looks = looks.lock().unwrap().take().unwrap();
            let case = (is_told, comes);
            assert_eq!(output(looks), Ok((unparked, 0b100 & !unparked)), "{case:?}");
            dismiss(domain, &mut server);
            domain.books.with(domain.kernel, |books| books.serving = 0);
        });
    }
}

/// Rules 5 and 6 of `worker`: the one that was told of it may wait again, as it was not queued yet.
#[test]
fn worker_that_clears_marks_polls_what_it_finds_then_before_it_waits() {
    with_domain(|domain, machine| {
        domain.alloc_cpu(2).unwrap();
        let mut server = Server::new(domain.id(), 1);
        let comes = Arc::new(Mutex::new(None));
        let come = comes.clone();
        let others = Box::new(move || {
            // Another worker is told, and this one still says that it waits.
            domain.sleepers.store(0b11, Relaxed);
            *come.lock().unwrap() = Some(spawn(domain, 4, async {}));
            assert_eq!(domain.sleepers.load(Relaxed), 0b10);
        });
        // To ask how it serves, to find nothing, and to look once more.
        *machine.at_mask.lock().unwrap() = Some((2, others));
        assert_eq!(server.run(), Served::Waits { until: None });
        assert_eq!(output(comes.lock().unwrap().take().unwrap()), Ok(()));
        dismiss(domain, &mut server);
        domain.books.with(domain.kernel, |books| books.serving = 0);
    });
}

/// Rule 4 of `worker`: the number changes while it looks, before it has said that it waits.
#[test]
fn worker_that_finds_the_turn_taken_leaves_when_fewer_are_wanted() {
    with_domain(|domain, machine| {
        domain.alloc_cpu(1).unwrap();
        let mut first = Server::new(domain.id(), 0);
        assert_eq!(first.run(), Served::Waits { until: None });
        domain.alloc_cpu(2).unwrap();
        let second = std::thread::spawn(move || {
            let mut second = Server::new(domain.id(), 1);
            let fewer = Box::new(|| domain.alloc_cpu(1).unwrap());
            *machine.at_mask.lock().unwrap() = Some((1, fewer));
            second.run()
        });
        assert_eq!(second.join().unwrap(), Served::Leaves);
        dismiss(domain, &mut first);
    });
}

#[test]
fn idle_worker_gives_back_what_is_kept_where_nothing_ticks() {
    with_domain(|domain, machine| {
        drop(spawn(domain, 4, async {}));
        domain.alloc_cpu(1).unwrap();
        let mut server = Server::new(domain.id(), 0);
        assert_eq!(server.run(), Served::Waits { until: None });
        assert_eq!(machine.memory.load(Relaxed), 0);
        dismiss(domain, &mut server);
    });
}

/// Rules 7 and 8 of `state`.
#[test]
fn coroutine_that_is_woken_in_its_last_poll_ends_once() {
    with_domain(|domain, _| {
        let ends = poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::Ready(7)
        });
        let ended = ran(domain, 4, ends);
        assert_eq!(ended, Ok(7));
    });
}

/// Rule 4 of `worker`: the one that awaits it belongs to another domain, whose worker polls it.
#[test]
fn awaiter_of_another_domain_is_queued_there() {
    with_domain(|domain, machine| {
        let other = Domain::new(DomainId::new(1), domain.summary, machine);
        let other: &'static Domain = Box::leak(Box::new(other));
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

/// Rule 2 of `loan`: by a combinator's waker.
#[test]
fn handle_in_a_combinator_lends_the_priority_of_its_coroutine() {
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

/// Rule 4 of `worker`, and rule 3 of `turn`.
#[test]
fn worker_waits_while_another_has_the_turn_for_good() {
    with_domain(|domain, _| {
        domain.alloc_cpu(1).unwrap();
        let mut first = Server::new(domain.id(), 0);
        assert_eq!(first.run(), Served::Waits { until: None });
        domain.alloc_cpu(2).unwrap();
        let second = std::thread::spawn(move || {
            let mut second = Server::new(domain.id(), 1);
            assert_eq!(second.run(), Served::Waits { until: None });
            domain.alloc_cpu(1).unwrap();
            assert_eq!(second.run(), Served::Leaves);
        });
        second.join().unwrap();
        assert_eq!(first.run(), Served::Waits { until: None });
        dismiss(domain, &mut first);
    });
}

#[test]
fn rule_6_a_priority_is_marked_while_its_last_one_runs() {
    with_domain(|domain, _| {
        let handle = spawn(domain, 2, async move {
            let summary = domain.summary;
            let before = summary.of(domain.id());
            yield_now().await;
            (before, summary.of(domain.id()))
        });
        drop(spawn(domain, 5, async {}));
        run(domain);
        let two = Some(Priority::new(2));
        assert_eq!(output(handle), Ok((two, two)));
    });
}

#[test]
fn a_mark_of_nobody_is_cleared() {
    with_domain(|domain, _| {
        domain.summary.mark(domain.id(), Priority::FIRST);
        let ended = ran(domain, 5, async move {
            for _ in 0..300 {
                yield_now().await;
            }
            domain.summary.of(domain.id())
        });
        assert_eq!(ended, Ok(Some(Priority::new(5))));
    });
}

/// Rule 4 of `worker`.
#[test]
fn awaiter_of_an_end_is_queued_behind_what_came_by_the_inbox_before() {
    with_domain(|domain, _| {
        let trace = Trace::default();
        let of = trace.clone();
        let woken = spawn(domain, 4, async move {
            pending_once().await;
            of.says('w');
        });
        let cid = woken.cid();
        let ends = spawn(domain, 4, async move {
            yield_now().await;
            std::thread::spawn(move || wake(cid)).join().unwrap()
        });
        let of = trace.clone();
        let awaits = spawn(domain, 4, async move {
            assert_eq!(ends.await, Ok(Ok(())));
            of.says('a');
        });
        run(domain);
        assert_eq!(trace.taken(), "wa");
        assert_eq!((output(woken), output(awaits)), (Ok(()), Ok(())));
    });
}

/// Rule 5 of `worker`: before its first poll, which may take long.
#[test]
fn worker_that_leaves_something_behind_unparks_another_and_only_then() {
    for (coroutines, unparks) in [(1, 0), (2, 1)] {
        with_domain(|domain, machine| {
            let told = || spawn(domain, 4, async { machine.unparks.load(Relaxed) });
            let handles: Vec<_> = (0..coroutines).map(|_| told()).collect();
            domain.alloc_cpu(2).unwrap();
            // Worker 1 waits.
            domain.sleepers.store(0b10, Relaxed);
            machine.unparks.store(0, Relaxed);
            domain.serve(0);
            for handle in handles {
                assert_eq!(output(handle), Ok(unparks), "of {coroutines}");
            }
            // It never began.
            domain.books.with(domain.kernel, |books| books.serving = 0);
        });
    }
}

#[test]
fn worker_that_has_waited_looks_at_the_clock_before_it_polls() {
    with_domain(|domain, machine| {
        let trace = Trace::default();
        let of = trace.clone();
        let sleeps = spawn(domain, 0, async move {
            sleep(Duration::from_millis(5)).await;
            of.says('s');
        });
        domain.alloc_cpu(1).unwrap();
        let mut server = Server::new(domain.id(), 0);
        let Served::Waits { until: Some(until) } = server.run() else {
            panic!("it does not wait for the time");
        };
        machine.clock.store(until, Relaxed);
        let of = trace.clone();
        let comes = std::thread::spawn(move || spawn(domain, 4, says(of, 'c', 1)));
        drop(comes.join().unwrap());
        assert_eq!(server.run(), Served::Waits { until: None });
        assert_eq!(trace.taken(), "sc");
        assert_eq!(output(sleeps), Ok(()));
        dismiss(domain, &mut server);
    });
}

#[test]
fn a_wake_has_one_worker_go_on_at_most() {
    with_domain(|domain, machine| {
        domain.sleepers.store(0b110, Relaxed);
        let handle = spawn(domain, 5, async {});
        assert_eq!(machine.unparks.load(Relaxed), 1);
        wake(handle.cid()).unwrap();
        assert_eq!(machine.unparks.load(Relaxed), 1, "it is queued already");
        domain.sleepers.store(0, Relaxed);
        run(domain);
        assert_eq!(output(handle), Ok(()));
    });
}

/// Rule 5 of `worker`: of those that have waited when it looked some may not wait any more.
#[test]
fn one_worker_that_waits_is_unparked_and_the_first_of_them() {
    with_domain(|domain, machine| {
        for (looked, sleepers, unparked) in [
            (0b0110, 0b0110, 0b0010),
            (0b0110, 0b0100, 0b0100),
            (0b0010, 0b1100, 0b0100),
            (0b0110, 0b0001, 0b0001),
            (0b0110, 0, 0),
        ] {
            domain.sleepers.store(sleepers, Relaxed);
            machine.unparked.store(0, Relaxed);
            domain.unparks(looked);
            assert_eq!(machine.unparked.load(Relaxed), unparked);
            assert_eq!(domain.sleepers.load(Relaxed), sleepers & !unparked);
        }
        domain.sleepers.store(0b1101, Relaxed);
        machine.unparked.store(0, Relaxed);
        domain.unparks_all();
        assert_eq!(machine.unparked.load(Relaxed), 0b1101);
        assert_eq!(domain.sleepers.load(Relaxed), 0);
    });
}

#[test]
fn domain_with_a_coroutine_or_a_worker_or_a_timer_is_in_use() {
    with_domain(|domain, _| {
        let in_use = |coroutines, workers| {
            let in_use = DomainError::InUse {
                coroutines,
                workers,
            };
            assert_eq!(domain.close(), Err(in_use));
        };
        domain.alloc_cpu(1).unwrap();
        in_use(0, 1);
        domain.serve(0);
        let handle = spawn(domain, 4, async {});
        in_use(1, 0);
        run(domain);
        assert_eq!(output(handle), Ok(()));
        let mut sleeps = Box::pin(sleep(Duration::from_secs(1)));
        let mut context = core::task::Context::from_waker(Waker::noop());
        assert!(sleeps.as_mut().poll(&mut context).is_pending());
        in_use(1, 0);
        drop(sleeps);
    });
}

#[test]
fn a_name_is_stale_when_it_has_ended() {
    with_domain(|domain, _| {
        let handle = spawn(domain, 5, async { current() });
        let cid = handle.cid();
        assert_eq!(current(), None);
        assert_eq!(domain.coroutines(), 1);
        run(domain);
        assert_eq!(domain.coroutines(), 0);
        assert!(handle.is_finished());
        assert_eq!(output(handle), Ok(Some(cid)));
        let why = Stale(cid);
        let stale = Err(why);
        assert_eq!(wake(cid), stale);
        assert_eq!(cancel(cid), stale);
        assert_eq!(set_priority(cid, Priority::FIRST), stale);
        assert_eq!(priority(cid).map(drop), stale);
        assert_eq!(lend(cid, Priority::FIRST).map(drop), stale);
        // Another one in the same place.
        let next = spawn(domain, 5, async {});
        assert_eq!(next.cid().place, cid.place);
        assert_eq!(wake(cid), stale);
        run(domain);
        let why = alloc::format!("{why}");
        assert_eq!(why, alloc::format!("{cid}: no such coroutine any more"));
    });
}

#[test]
fn what_is_dropped_is_dropped_once_and_by_whom() {
    struct Counts(Arc<AtomicUsize>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    with_domain(|domain, _| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let counts = || Counts(dropped.clone());
        // An output that nobody wants: by the worker.
        let output_of = counts();
        drop(spawn(domain, 1, async move { output_of }));
        assert_eq!(dropped.load(Relaxed), 0);
        run(domain);
        assert_eq!(dropped.load(Relaxed), 1);
        // By the handle, if it is dropped later.
        let output_of = counts();
        let handle = spawn(domain, 1, async move { output_of });
        run(domain);
        assert_eq!(dropped.load(Relaxed), 1);
        drop(handle);
        assert_eq!(dropped.load(Relaxed), 2);
        // A future that is cancelled: by the worker, not by who cancels.
        let of = counts();
        let handle = spawn(domain, 1, async move {
            let _of = of;
            pending::<()>().await
        });
        run(domain);
        handle.cancel();
        assert_eq!(dropped.load(Relaxed), 2);
        run(domain);
        assert_eq!(dropped.load(Relaxed), 3);
        assert_eq!(output(handle), Err(Ended::Cancelled));
    });
}

#[test]
fn the_last_waker_frees_memory_and_nothing_else() {
    with_domain(|domain, machine| {
        let waker = Arc::new(Mutex::new(None));
        let of = waker.clone();
        let ended = ran(domain, 1, async move {
            poll_fn(|context| {
                *of.lock().unwrap() = Some(context.waker().clone());
                Poll::Ready(())
            })
            .await
        });
        assert_eq!(ended, Ok(()));
        let waker = waker.lock().unwrap().take().unwrap();
        assert!(matches!(
            domain.close(),
            Err(DomainError::InUse { coroutines: 1, .. })
        ));
        waker.wake_by_ref();
        waker.wake_by_ref();
        assert_ne!(machine.memory.load(Relaxed), 0);
        drop(waker);
        assert_eq!(machine.memory.load(Relaxed), 0);
    });
}

/// However many there have been at once.
#[test]
fn an_idle_domain_keeps_no_blocks() {
    with_domain(|domain, machine| {
        let handle = spawn(domain, 7, pending::<()>());
        run(domain);
        let before = machine.memory.load(Relaxed);
        for n in [1, 100, 10_000] {
            for at in 0..n {
                drop(match at % 3 {
                    0 => spawn(domain, 1, async {}),
                    1 => spawn(domain, 2, async {
                        let held = [1_u8; 300];
                        yield_now().await;
                        assert_eq!(held, [1; 300]);
                    }),
                    _ => spawn(domain, 3, says(Trace::default(), 'a', 2)),
                });
            }
            run(domain);
            let more = machine.memory.load(Relaxed) - before;
            // A chunk of slots in reserve, and the list of chunks, which doubles.
            assert!(more <= 256 * 16 + 64 * 32, "{more} bytes after {n}");
        }
        handle.cancel();
        run(domain);
        assert_eq!(output(handle), Err(Ended::Cancelled));
    });
}

/// The last handle is dropped by somebody else, when the workers wait and have given back what they kept.
#[test]
fn what_ends_while_nobody_will_wait_again_is_not_kept() {
    with_domain(|domain, machine| {
        let spare_of_one = |serving: u32, sleepers: u32| {
            let handle = spawn(domain, 4, async {});
            run(domain);
            domain.books.with(machine, |books| books.serving = serving);
            domain.sleepers.store(sleepers, Relaxed);
            drop(handle);
            let kept = machine.memory.load(Relaxed);
            domain.books.with(machine, |books| books.serving = 0);
            domain.sleepers.store(0, Relaxed);
            kept
        };
        assert_eq!(spare_of_one(0, 0), 0, "no worker");
        assert_eq!(spare_of_one(0b11, 0b11), 0, "both wait");
        assert_ne!(spare_of_one(0b11, 0b10), 0, "the first will wait");
        // Nor if the last worker leaves without having waited.
        domain.alloc_cpu(1).unwrap();
        domain.alloc_cpu(0).unwrap();
        domain.serve(0);
        assert_eq!(machine.memory.load(Relaxed), 0);
    });
}

/// KEEP in `spares`: with a clock that ticks.
#[test]
fn what_is_kept_is_given_back_by_the_next_tick() {
    with_domain(|domain, machine| {
        let kept_of_one = || {
            let handle = spawn(domain, 4, async {});
            run(domain);
            drop(handle);
            machine.memory.load(Relaxed)
        };
        assert_eq!(kept_of_one(), 0, "nothing has ticked yet");
        domain.clock_ticked();
        let kept = kept_of_one();
        assert_ne!(kept, 0, "until the next tick");
        assert_eq!(kept_of_one(), kept, "the next one has it");
        domain.clock_ticked();
        assert_eq!(machine.memory.load(Relaxed), 0);
        domain.clock_ticked();
        assert_eq!(kept_of_one(), kept);
    });
}

/// Whose system waits by itself.
#[test]
fn a_server_says_when_it_waits_and_goes_on_where_it_was() {
    with_domain(|domain, _| {
        let handle = spawn(domain, 4, async {});
        domain.alloc_cpu(1).unwrap();
        let mut server = Server::new(domain.id(), 0);
        assert_eq!(server.run(), Served::Waits { until: None });
        assert_eq!(output(handle), Ok(()));
        assert_eq!(domain.sleepers.load(Relaxed), 1);
        let spawns = std::thread::spawn(move || spawn(domain, 4, async {}));
        let handle = spawns.join().unwrap();
        assert_eq!(domain.sleepers.load(Relaxed), 0, "it is told");
        assert_eq!(server.run(), Served::Waits { until: None });
        assert_eq!(output(handle), Ok(()));
        // One that runs for nothing waits again; one beside others as well.
        assert_eq!(server.run(), Served::Waits { until: None });
        domain.alloc_cpu(2).unwrap();
        assert_eq!(server.run(), Served::Waits { until: None });
        dismiss(domain, &mut server);
        let other = domain.books.with(domain.kernel, |books| {
            // It was asked for, and never began.
            core::mem::take(&mut books.serving)
        });
        assert_eq!(other, 0b10);
    });
}

/// One after the other, all in the memory of the first.
#[test]
fn a_spawn_after_an_end_asks_for_no_memory() {
    with_domain(|domain, machine| {
        let ended = ran(domain, 1, async move {
            spawn(domain, 0, async {}).await.unwrap();
            let before = machine.memory.load(Relaxed);
            for _ in 0..100 {
                spawn(domain, 0, async {}).await.unwrap();
                assert_eq!(machine.memory.load(Relaxed), before);
            }
        });
        assert_eq!(ended, Ok(()));
    });
}

/// NAMES in `books`, of one after the other in one block.
#[test]
fn a_name_is_stale_when_its_block_is_anothers() {
    with_domain(|domain, machine| {
        let ended = ran(domain, 1, async move {
            spawn(domain, 1, async {}).await.unwrap();
            let locks = machine.locks.load(Relaxed);
            let old = spawn(domain, 1, async {});
            let stale = old.cid();
            old.await.unwrap();
            let new = spawn(domain, 1, async {});
            let cid = new.cid();
            assert_eq!(
                machine.locks.load(Relaxed),
                locks,
                "none of it needs the lock"
            );
            assert_eq!(cid.place, stale.place, "it has the block of the first");
            assert_eq!(cancel(stale), Err(Stale(stale)));
            assert_eq!(priority(stale), Err(Stale(stale)));
            assert_eq!(priority(cid), Ok(Priority::new(1)));
            assert_eq!(new.await, Ok(()));
            assert_eq!(wake(cid), Err(Stale(cid)));
            assert_eq!(domain.coroutines(), 1);
        });
        assert_eq!(ended, Ok(()));
    });
}

/// NAMES in `books`: what a thread that looks a name up may find between two steps, step by step.
#[test]
fn names_a_block_that_is_anothers_is_not_meant() {
    with_domain(|domain, machine| {
        let ended = ran(domain, 2, async move {
            // Two of one size, of which one waits.
            let one = |waits| async move {
                if waits {
                    pending().await
                }
            };
            let first = spawn(domain, 1, one(false));
            let name = first.cid();
            let looks = || domain.books.with(machine, |books| books.looks(name));
            let block = looks().expect("step 1: it has the generation");
            let block = AtomicPtr::new(block.as_ptr());
            let refers = || {
                let block = NonNull::new(block.load(Relaxed)).unwrap();
                domain.books.with(machine, |books| {
                    // SAFETY: no block is given back here.
                    let found = unsafe { books.refers(name, block) }?;
                    // SAFETY: it was counted for it.
                    Some((unsafe { Ref::from_raw(found.header) }, found.is_meant))
                })
            };
            assert!(refers().is_some_and(|(_, is_meant)| is_meant));
            first.await.unwrap();
            assert!(refers().is_none(), "step 2: it is spare");
            let second = spawn(domain, 1, one(true));
            assert_eq!(second.cid().place, name.place);
            assert!(refers().is_some_and(|(_, is_meant)| !is_meant), "step 3");
            assert!(looks().is_none(), "step 1: it has another generation");
            second.cancel();
            assert_eq!(second.await, Err(Ended::Cancelled));
        });
        assert_eq!(ended, Ok(()));
    });
}

#[test]
fn a_spare_block_goes_when_the_generations_of_its_slot_are_used_up() {
    with_domain(|domain, _| {
        let ended = ran(domain, 1, async move {
            let last = spawn(domain, 1, async {});
            let place = last.cid().place;
            last.await.unwrap();
            // SAFETY: the spare block has it.
            unsafe { domain.directory.slot(place.index()) }.set_generation(USED_UP);
            let next = spawn(domain, 1, async {});
            assert_ne!(next.cid().place, place);
            next.await.unwrap();
        });
        assert_eq!(ended, Ok(()));
    });
}

#[test]
fn a_panic_ends_one_alone() {
    with_domain(|domain, _| {
        let bad: JoinHandle<()> = spawn(domain, 1, async { panic!("as the test wants it") });
        let good = spawn(domain, 2, async { 2 });
        run(domain);
        assert_eq!(output(bad), Err(Ended::Panicked));
        assert_eq!(output(good), Ok(2));
    });
}

#[test]
fn out_of_memory_is_an_error_that_says_how_much() {
    with_domain(|domain, machine| {
        machine.limit.store(6_000, Relaxed);
        let mut handles = Vec::new();
        let why = loop {
            match domain.try_spawn(async { [1_u8; 100] }, Priority::DEFAULT) {
                Ok(handle) => handles.push(handle),
                Err(why) => break why,
            }
        };
        assert!(matches!(why, SpawnError::OutOfMemory { bytes } if bytes % 32 == 16));
        assert!(!handles.is_empty());
        run(domain);
        machine.limit.store(0, Relaxed);
        for handle in handles {
            assert_eq!(output(handle), Ok([1; 100]));
        }
    });
}

#[test]
fn a_coroutine_takes_128_bytes_at_most_beside_its_future() {
    fn overhead<F: Future>(of: impl FnOnce() -> F) -> usize {
        drop(of);
        // What an allocator of a header of 16 bytes and multiples of 32 has to take, and the slot.
        let block = (crate::block::does::<F>().layout.size() + 16).next_multiple_of(32);
        block + 16 - size_of::<F>()
    }
    assert!(overhead(|| async {}) <= 128);
    macro_rules! of {
        ($($n:literal)*) => { $(
            let bytes = overhead(|| {
                let held = [1_u8; $n];
                async move { yield_now().await; held[0] }
            });
            assert!(bytes <= 128, "{bytes} bytes");
        )* };
    }
    of!(1 7 8 9 15 16 17 23 24 25 31 32 33 40 48 56 63 64 65 100 127 128 129 1000);
}

#[test]
fn numbers_of_workers_are_0_to_32() {
    with_domain(|domain, _| {
        assert_eq!(domain.alloc_cpu(33), Err(CpuError::TooMany(33)));
        let few = CpuError::OutOfMemory {
            wanted: MAX_WORKERS,
            serving: MAX_WORKERS - 1,
        };
        assert_eq!(domain.alloc_cpu(MAX_WORKERS), Err(few));
        // As many as there are: one that is alone would not know it otherwise.
        assert_eq!(
            domain.books.with(domain.kernel, |books| books.wanted),
            MAX_WORKERS - 1
        );
        domain.alloc_cpu(0).unwrap();
        (0..MAX_WORKERS).for_each(|number| {
            if number < MAX_WORKERS - 1 {
                domain.serve(number);
            }
        });
    });
}

#[test]
fn who_fails_to_start_a_worker_leaves_alone_that_fewer_are_wanted_since() {
    with_domain(|domain, machine| {
        *machine.meanwhile.lock().unwrap() = Some(|domain| domain.alloc_cpu(1).unwrap());
        assert!(domain.alloc_cpu(MAX_WORKERS).is_err());
        assert_eq!(domain.books.with(machine, |books| books.wanted), 1);
        domain.alloc_cpu(0).unwrap();
        (0..MAX_WORKERS - 1).for_each(|number| domain.serve(number));
    });
}

/// What was spawned would refer to a domain that its number does not lead to.
#[test]
fn a_domain_that_is_not_open_has_neither_coroutines_nor_workers() {
    with_domain(|domain, machine| {
        let id = domain.id();
        let spawned = |domain: &'static Domain| {
            let spawned = domain.try_spawn(async {}, Priority::DEFAULT);
            spawned.map(drop)
        };
        let other: &'static Domain = Box::leak(Box::new(Domain::new(id, domain.summary, machine)));
        assert_eq!(spawned(other), Err(SpawnError::NotOpen(id)));
        assert_eq!(other.alloc_cpu(1), Err(CpuError::NotOpen(id)));
        domain.close().unwrap();
        assert_eq!(spawned(domain), Err(SpawnError::NotOpen(id)));
        assert_eq!(domain.alloc_cpu(1), Err(CpuError::NotOpen(id)));
        assert_eq!(domain.alloc_cpu(0), Err(CpuError::NotOpen(id)));
        let why = panic::catch_unwind(|| crate::serve(id, 0)).unwrap_err();
        let why = why.downcast_ref::<String>().unwrap();
        assert_eq!(why, "domain 5 is not open");
        domain.open().unwrap();
    });
}

/// Two of one number would poll as one.
#[test]
fn nobody_serves_who_was_not_asked_for() {
    with_domain(|domain, machine| {
        let fails = |number| {
            let serves = AssertUnwindSafe(|| domain.serve(number));
            let why = panic::catch_unwind(serves).unwrap_err();
            why.downcast_ref::<String>().unwrap().clone()
        };
        assert_eq!(fails(0), "worker 0 of domain 5 was not asked for");
        domain.alloc_cpu(1).unwrap();
        assert_eq!(fails(1), "worker 1 of domain 5 was not asked for");
        *machine.meanwhile.lock().unwrap() = Some(|domain| {
            // The other is another thread.
            std::thread::spawn(move || domain.serve(0))
                .join()
                .unwrap_err();
        });
        domain.serve(0);
        domain.alloc_cpu(1).unwrap();
        let nested = spawn(domain, 4, async {
            let domain = Domain::of(DomainId::new(5)).unwrap();
            domain.alloc_cpu(2).unwrap();
            panic::catch_unwind(AssertUnwindSafe(|| domain.serve(1))).is_err()
        });
        domain.serve(0);
        domain.serve(1);
        assert_eq!(output(nested), Ok(true));
    });
}

#[test]
fn a_number_is_of_one_domain() {
    with_domain(|domain, machine| {
        let other: &'static Domain =
            Box::leak(Box::new(Domain::new(domain.id(), domain.summary, machine)));
        assert_eq!(other.open(), Err(DomainError::Taken(domain.id())));
        assert_eq!(other.close(), Err(DomainError::NotOpen(domain.id())));
        assert!(core::ptr::eq(Domain::of(domain.id()).unwrap(), domain));
    });
}

/// Rules 1 to 3 of [`loan`](crate::loan), along a chain.
#[test]
fn who_waits_lends_its_priority_along_a_chain() {
    with_domain(|domain, _| {
        let trace = Trace::default();
        let of = trace.clone();
        let last = spawn(domain, 6, async move {
            for _ in 0..2 {
                of.says('c');
                assert_eq!(
                    priority(current().unwrap()),
                    Ok(current_priority().unwrap())
                );
                yield_now().await;
            }
            current_priority().unwrap().index()
        });
        let of = trace.clone();
        let middle = spawn(domain, 5, async move {
            of.says('b');
            let was = last.await;
            of.says('B');
            was
        });
        let of = trace.clone();
        let other = trace.clone();
        let ended = ran(domain, 0, async move {
            of.says('a');
            drop(spawn(domain, 3, says(other, 'x', 2)));
            let was = middle.await;
            of.says('A');
            was
        });
        assert_eq!(ended, Ok(Ok(Ok(0))));
        assert_eq!(trace.taken(), "abccBAxx");
    });
}

#[test]
fn a_loan_is_given_back_when_nobody_waits_any_more() {
    with_domain(|domain, _| {
        let low = spawn(domain, 6, pending::<()>());
        let cid = low.cid();
        let mut low = Some(low);
        let ended = ran(domain, 1, async move {
            let mut low = low.take().unwrap();
            // Polled once, and not waited for any longer.
            poll_fn(|context| {
                let _ = core::pin::Pin::new(&mut low).poll(context);
                Poll::Ready(())
            })
            .await;
            let lent = priority(cid).unwrap().index();
            drop(low);
            (lent, priority(cid).unwrap().index())
        });
        assert_eq!(ended, Ok((1, 6)));
        cancel(cid).unwrap();
        run(domain);
    });
}

#[test]
fn a_queued_one_moves_when_its_priority_changes() {
    with_domain(|domain, _| {
        let trace = Trace::default();
        let slow = spawn(domain, 6, says(trace.clone(), 's', 2));
        let cid = slow.cid();
        drop(spawn(domain, 4, says(trace.clone(), 'm', 3)));
        let of = trace.clone();
        drop(spawn(domain, 2, async move {
            of.says('f');
            set_priority(cid, Priority::new(3)).unwrap();
            yield_now().await;
            of.says('f');
        }));
        run(domain);
        assert_eq!(trace.taken(), "ffssmmm");
        drop(slow);
    });
}

/// Counts its calls, and is late from this time on.
struct Counting {
    until: Option<u64>,
    calls: AtomicUsize,
    by_coroutines: AtomicUsize,
}

impl Counting {
    const fn until(until: Option<u64>) -> Self {
        Self {
            until,
            calls: AtomicUsize::new(0),
            by_coroutines: AtomicUsize::new(0),
        }
    }
}

impl Attendant for Counting {
    fn attend(&self, _: DomainId) {
        self.calls.fetch_add(1, Relaxed);
        if current().is_some() {
            self.by_coroutines.fetch_add(1, Relaxed);
        }
    }

    fn until(&self) -> Option<u64> {
        self.until
    }
}

#[test]
fn the_attendant_is_called_when_it_is_wanted_and_after_each_wait() {
    static CALLS: Counting = Counting::until(None);
    with_domain(|domain, _| {
        domain.set_attendant(Some(&CALLS));
        let ended = ran(domain, 4, async move {
            domain.call_attendant();
            let before = CALLS.calls.load(Relaxed);
            yield_now().await;
            CALLS.calls.load(Relaxed) - before
        });
        assert_eq!(ended, Ok(1));
        assert_eq!(CALLS.calls.load(Relaxed), 2);
        domain.set_attendant(None);
    });
}

#[test]
fn combinators_of_other_crates_run_unchanged() {
    use futures::future::{Either, join_all, select};
    with_domain(|domain, _| {
        let ended = ran(domain, 4, async move {
            let all = (0..50).map(|n| spawn(domain, n % 8, async move { n }));
            let sum: usize = join_all(all).await.into_iter().map(Result::unwrap).sum();
            let never = spawn(domain, 1, pending::<()>());
            let soon = spawn(domain, 7, async { "soon" });
            let first = match select(never, soon).await {
                Either::Left(_) => unreachable!(),
                Either::Right((soon, never)) => {
                    never.cancel();
                    assert_eq!(never.await, Err(Ended::Cancelled));
                    soon
                }
            };
            (sum, first)
        });
        assert_eq!(ended, Ok((1225, Ok("soon"))));
    });
}

/// Of a domain that was closed and is open again a name is stale as any other.
#[test]
fn a_name_is_stale_when_its_domain_was_closed() {
    with_domain(|domain, _| {
        let before = spawn(domain, 4, async {}).cid();
        run(domain);
        domain.close().unwrap();
        domain.open().unwrap();
        let after = spawn(domain, 4, async {});
        assert_ne!(before, after.cid());
        assert_eq!(cancel(before), Err(Stale(before)));
        run(domain);
        assert_eq!(output(after), Ok(()));
    });
}

#[test]
fn busy_worker_calls_no_attendant_that_is_not_late() {
    static PATIENT: Counting = Counting::until(Some(u64::MAX));
    with_domain(|domain, _| {
        domain.set_attendant(Some(&PATIENT));
        let ended = ran(domain, 4, async {
            for _ in 0..600 {
                yield_now().await;
            }
            PATIENT.calls.load(Relaxed)
        });
        assert_eq!(ended, Ok(0));
    });
}

#[test]
fn the_attendant_is_asked_also_while_something_is_more_urgent_elsewhere() {
    static LATE: Counting = Counting::until(Some(0));
    with_domain(|domain, _| {
        let other = DomainId::new(6);
        domain.summary.mark(other, Priority::FIRST);
        domain.set_attendant(Some(&LATE));
        let handle = spawn(domain, 4, async {
            for _ in 0..3 * 256 {
                yield_now().await;
            }
            LATE.calls.load(Relaxed)
        });
        domain.alloc_cpu(1).unwrap();
        domain.serve(0);
        assert!(output(handle).unwrap() >= 2);
        domain.summary.clear(other, Priority::FIRST);
        domain.set_attendant(None);
    });
}

#[test]
fn the_attendant_is_called_by_no_coroutine() {
    static LATE: Counting = Counting::until(Some(0));
    with_domain(|domain, _| {
        domain.set_attendant(Some(&LATE));
        let ended = ran(domain, 4, async move {
            domain.call_attendant();
            yield_now().await;
        });
        assert_eq!(ended, Ok(()));
        assert_eq!(LATE.by_coroutines.load(Relaxed), 0);
        domain.set_attendant(None);
    });
}

#[test]
fn an_attendant_that_is_taken_back_while_a_worker_waits_is_not_called() {
    static LATE: Counting = Counting::until(Some(0));
    with_domain(|domain, machine| {
        domain.set_attendant(Some(&LATE));
        *machine.meanwhile.lock().unwrap() = Some(|domain| domain.set_attendant(None));
        run(domain);
        assert_eq!(LATE.calls.load(Relaxed), 0);
    });
}

/// Between two domains, too, an interrupt may come that wants the lock.
#[test]
fn what_is_shared_with_interrupts_disables_them_without_a_domain_as_well() {
    with_domain(|domain, machine| {
        domain.close().unwrap();
        let semaphore = crate::Semaphore::new(0);
        let before = machine.locks.load(Relaxed);
        semaphore.release(1);
        assert_ne!(machine.locks.load(Relaxed), before);
        assert_eq!(machine.masks.load(Relaxed), 0);
        domain.open().unwrap();
    });
}

/// A worker that waits has not asked it until when.
#[test]
fn a_new_attendant_has_a_worker_go_on() {
    static LATE: Counting = Counting::until(Some(0));
    with_domain(|domain, machine| {
        domain.sleepers.store(1, Relaxed);
        domain.set_attendant(Some(&LATE));
        assert_eq!(machine.unparks.load(Relaxed), 1);
        domain.sleepers.store(0, Relaxed);
        domain.set_attendant(None);
    });
}

#[test]
fn a_domain_that_is_closed_forgets_its_attendant() {
    static LATE: Counting = Counting::until(Some(0));
    with_domain(|domain, _| {
        domain.set_attendant(Some(&LATE));
        domain.close().unwrap();
        domain.open().unwrap();
        run(domain);
        assert_eq!(LATE.calls.load(Relaxed), 0);
    });
}

/// It ends after its new priority was listed, and before a worker was told so.
#[test]
fn one_that_ends_while_its_priority_changes_leaves_nothing_behind() {
    with_domain(|domain, machine| {
        let handle = spawn(domain, 4, async {});
        let header = crate::named::find(handle.cid()).unwrap();
        // SAFETY: BOOKS: called with the lock.
        let is_listed = domain.notes_change(&header, |header| unsafe {
            header.set_base(Priority::FIRST)
        });
        assert!(is_listed);
        run(domain);
        domain.sleepers.store(1, Relaxed);
        let before = machine.unparks.load(Relaxed);
        domain.moves(&header);
        assert_eq!(machine.unparks.load(Relaxed), before + 1);
        domain.sleepers.store(0, Relaxed);
        assert_eq!(output(handle), Ok(()));
    });
}

/// Both destructors panic: of the future, and of the output that it has left.
#[test]
fn a_panic_of_both_destructors_ends_one_alone() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("a destructor");
        }
    }
    with_domain(|domain, _| {
        let in_future = Panics;
        let handle = spawn(
            domain,
            4,
            poll_fn(move |_| {
                let _ = &in_future;
                Poll::Ready(Panics)
            }),
        );
        run(domain);
        assert!(matches!(output(handle), Err(Ended::Panicked)));
    });
}
