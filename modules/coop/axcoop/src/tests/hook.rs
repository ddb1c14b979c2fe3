//! The times at which a worker calls the domain's [`PollHook`].

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::fixture::{leaked, output, ran, spawn, yield_often};
use super::machine::{run, with_domain};
use crate::{Domain, DomainId, PollHook, Priority, current, yield_now};

/// A hook that counts its calls, and is late from the time `until` on.
struct Counting {
    until: Option<u64>,
    calls: AtomicUsize,
}

impl PollHook for Counting {
    fn run(&self, _: DomainId) {
        assert_eq!(current(), None, "a coroutine calls it");
        self.calls.fetch_add(1, Relaxed);
    }

    fn until(&self) -> Option<u64> {
        self.until
    }
}

/// Sets a poll hook that is late from this time on, and returns the counter of its calls.
fn hook_until(domain: &'static Domain, until: Option<u64>) -> &'static AtomicUsize {
    let poll_hook = leaked(Counting {
        until,
        calls: AtomicUsize::new(0),
    });
    domain.set_poll_hook(Some(poll_hook));
    &poll_hook.calls
}

#[test]
fn requested_hook_is_called_between_polls_and_after_each_park() {
    with_domain(|domain, _| {
        let calls = hook_until(domain, None);
        let ended = ran(domain, 4, async move {
            domain.request_poll_hook();
            let before = calls.load(Relaxed);
            yield_now().await;
            calls.load(Relaxed) - before
        });
        assert_eq!(ended, Ok(1));
        assert_eq!(calls.load(Relaxed), 2);
        domain.set_poll_hook(None);
    });
}

/// The coroutine is polled 800 times, in one case while another domain has more urgent work.
#[test]
fn busy_worker_calls_the_hook_only_when_it_is_late() {
    for (until, elsewhere, least, most) in
        [(u64::MAX, false, 0, 0), (0, false, 2, 4), (0, true, 2, 60)]
    {
        with_domain(|domain, _| {
            let other = DomainId::new(6);
            if elsewhere {
                domain.summary.mark(other, Priority::FIRST);
            }
            let calls = hook_until(domain, Some(until));
            let handle = spawn(domain, 4, async {
                yield_often(800).await;
                calls.load(Relaxed)
            });
            domain.set_workers(1).unwrap();
            domain.serve(0);
            let calls = output(handle).unwrap();
            assert!(
                (least..=most).contains(&calls),
                "{until}, {elsewhere}: {calls}"
            );
            domain.summary.clear(other, Priority::FIRST);
            domain.set_poll_hook(None);
        });
    }
}

#[test]
fn removed_hook_is_not_called() {
    with_domain(|domain, machine| {
        // The hook is removed while the worker is parked.
        let taken_back = hook_until(domain, Some(0));
        *machine.meanwhile.lock().unwrap() = Some(|domain| domain.set_poll_hook(None));
        run(domain);
        assert_eq!(taken_back.load(Relaxed), 0);
        // The domain is closed with the hook set.
        let forgotten = hook_until(domain, Some(0));
        domain.close().unwrap();
        domain.open().unwrap();
        run(domain);
        assert_eq!(forgotten.load(Relaxed), 0);
    });
}

/// A parked worker has not asked the new hook until when it may park.
#[test]
fn new_hook_unparks_a_worker() {
    with_domain(|domain, machine| {
        domain.sleepers.store(1, Relaxed);
        hook_until(domain, Some(0));
        assert_eq!(machine.unparks.load(Relaxed), 1);
        domain.sleepers.store(0, Relaxed);
        domain.set_poll_hook(None);
    });
}
