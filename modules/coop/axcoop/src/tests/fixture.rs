//! The fixture of the tests of one executor: coroutines that leave a trace, and workers that a test runs step by step.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::Mutex;

use super::machine::run;
use crate::{Domain, Ended, JoinHandle, Priority, Served, Server, yield_now};

/// Leaks a value, so that coroutines can refer to it.
pub fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// The letters of the coroutines that were polled, in order.
#[derive(Clone, Copy)]
pub struct Trace(&'static Mutex<String>);

impl Trace {
    pub fn new() -> Self {
        Self(leaked(Mutex::default()))
    }

    pub fn note(self, letter: char) {
        self.0.lock().unwrap().push(letter);
    }

    /// Returns the letters noted since the last call.
    pub fn take(self) -> String {
        core::mem::take(&mut self.0.lock().unwrap())
    }

    /// Notes a letter at each of `times` polls.
    pub async fn note_and_yield(self, letter: char, times: usize) {
        for _ in 0..times {
            self.note(letter);
            yield_now().await;
        }
    }
}

pub async fn yield_often(times: usize) {
    for _ in 0..times {
        yield_now().await;
    }
}

/// Waits for one wake.
pub async fn pending_once() {
    let mut is_first = true;
    poll_fn(|_| match core::mem::replace(&mut is_first, false) {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
}

pub fn spawn<F>(domain: &'static Domain, priority: usize, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    domain.spawn(future, Priority::new(priority))
}

/// Returns the output of a coroutine that has ended.
pub fn output<T>(handle: JoinHandle<T>) -> Result<T, Ended> {
    match pin!(handle).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the coroutine has not ended"),
    }
}

/// Spawns a coroutine, runs the domain until nothing is ready, and returns the coroutine's output.
pub fn ran<F>(domain: &'static Domain, priority: usize, future: F) -> Result<F::Output, Ended>
where
    F: Future<Output: Send> + Send + 'static,
{
    let handle = spawn(domain, priority, future);
    run(domain);
    output(handle)
}

/// Takes back the request for workers that never begin.
pub fn forget_workers(domain: &'static Domain) {
    domain
        .registry
        .with(domain.platform, |registry| registry.serving = 0);
}

/// A worker that the test runs from one park to the next. It leaves when it is dropped.
pub struct Worker {
    domain: &'static Domain,
    number: usize,
    server: Server,
}

impl Worker {
    /// Begins as worker `number` of `wanted`. The others do not begin by themselves.
    pub fn of(domain: &'static Domain, wanted: usize, number: usize) -> Self {
        domain.set_workers(wanted).unwrap();
        let server = Server::new(domain.id(), number);
        Self {
            domain,
            number,
            server,
        }
    }

    pub fn run(&mut self) -> Served {
        self.server.run()
    }

    /// Runs until it parks without a time.
    pub fn park(&mut self) {
        assert_eq!(self.run(), Served::Waits { until: None });
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.domain.set_workers(0).unwrap();
        assert_eq!(self.run(), Served::Leaves);
        let serving = self
            .domain
            .registry
            .with(self.domain.platform, |registry| registry.serving);
        assert_eq!(serving & 1 << self.number, 0, "the worker still counts");
        forget_workers(self.domain);
    }
}
