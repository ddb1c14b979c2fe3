//! A future whose polls are in the account.

use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::account;

pin_project! {
    /// A future whose polls are in the account.
    pub struct Metered<F> {
        #[pin]
        future: F,
    }
}

impl<F> Metered<F> {
    /// Wraps a future.
    pub fn new(future: F) -> Self {
        Self { future }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let was = account::begin_poll();
        let poll = self.project().future.poll(context);
        account::hand_to(was);
        poll
    }
}
