//! Waiting with a limit.

use core::error::Error;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use pin_project_lite::pin_project;

use crate::run::budget;
use crate::time::sleep::{Sleep, sleep, sleep_until};

/// Waits for a future for this long, after which the output is [`Elapsed`]. A future that is ready at the end of the
/// time counts. One that is late is dropped with the timeout.
///
/// A future whose awaits are all ready at once is late as any other: the time is looked at whenever it has spent its
/// [`POLL_BUDGET`](crate::POLL_BUDGET). Once the time has passed it is not polled again, unless its coroutine had
/// spent the budget before it.
///
/// ```
/// # use axcoop::{Domain, DomainId, Elapsed, Priority, SUMMARY, host::HOST, timeout};
/// # use core::time::Duration;
/// # static PROGRAM: Domain = Domain::new(DomainId::new(0), &SUMMARY, &HOST);
/// # PROGRAM.open()?;
/// # PROGRAM.set_workers(1)?;
/// let never = PROGRAM.spawn(
///     timeout(Duration::from_millis(2), core::future::pending::<()>()),
///     Priority::DEFAULT,
/// );
/// assert_eq!(never.join()?, Err(Elapsed));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If no domain is open: there is no clock.
pub fn timeout<F: Future>(duration: Duration, future: F) -> Timeout<F> {
    Timeout {
        future,
        sleep: sleep(duration),
        is_late: false,
        is_over: false,
    }
}

/// Waits for a future until a time in [`now`](crate::now)'s nanoseconds; otherwise like [`timeout`].
pub fn timeout_at<F: Future>(nanos: u64, future: F) -> Timeout<F> {
    Timeout {
        future,
        sleep: sleep_until(nanos),
        is_late: false,
        is_over: false,
    }
}

pin_project! {
    /// The future of [`timeout`].
    #[derive(Debug)]
    #[must_use = "a future does nothing unless it is awaited"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        #[pin]
        sleep: Sleep,
        // The time had passed at the last poll.
        is_late: bool,
        // And the future had a part of a budget in that poll: it is not polled again.
        is_over: bool,
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if !*this.is_over {
            let had_budget = budget::is_left(context.waker());
            if let Poll::Ready(output) = this.future.poll(context) {
                return Poll::Ready(Ok(output));
            }
            // Without regard to the budget: a future that spends each budget would never be late.
            ready!(this.sleep.poll_without_budget(context.waker()));
            *this.is_over = had_budget;
            // And yet it yields once: a coroutine that awaits one late timeout after another would not.
            if !core::mem::replace(this.is_late, true) {
                ready!(budget::spend(context.waker()));
            }
        }
        Poll::Ready(Err(Elapsed))
    }
}

/// The time passed before the future was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time was over before it was done")
    }
}

impl Error for Elapsed {}
