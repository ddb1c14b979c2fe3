//! The three components of a connection, one source for coroutines and threads.
//!
//! ```text
//!           read              requests           answers            write
//! socket ----------> receive ----------> handle ----------> send ----------> client
//!                       ^                                     |
//!                       +---------------- free ---------------+
//! ```

use alloc::{boxed::Box, sync::Arc};
use core::{
    future::Future,
    hint::black_box,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::{
    account,
    connection::Connection,
    program::{self, Program},
    service::Service,
};
use crate::message::{FACTOR, Message, multiply};

/// What an operation owns while it is under way.
pub type Buffer = Box<Message>;

/// Reads requests as long as there are any.
pub async fn receive(connection: Arc<Connection>, service: impl Service) {
    while let Some(buffer) = connection.free.take().await {
        let Some(request) = service.read(&connection, buffer).await else {
            break;
        };
        connection.requests.put(request);
    }
    connection.requests.close();
    program::ends();
}

/// Answers them: `rounds` multiplications each, all with the same result, between which others may run that
/// are more urgent.
pub async fn handle<P: Program>(connection: Arc<Connection>, rounds: u64) {
    while let Some(mut buffer) = connection.requests.take().await {
        let mut product = multiply(&buffer.matrix, &FACTOR);
        for _ in 1..rounds {
            P::pause().await;
            product = multiply(black_box(&buffer.matrix), &FACTOR);
        }
        buffer.matrix = product;
        connection.answers.put(buffer);
    }
    connection.answers.close();
    program::ends();
}

/// Writes the answers.
pub async fn send(connection: Arc<Connection>, service: impl Service) {
    while let Some(answer) = connection.answers.take().await {
        let buffer = service.write(&connection, answer).await;
        connection.free.put(buffer);
    }
    program::ends();
}

pin_project! {
    /// A future whose polls are in the account.
    pub struct Metered<F> {
        #[pin]
        future: F,
    }
}

impl<F> Metered<F> {
    /// This one.
    pub fn new(future: F) -> Self {
        Self { future }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let was = account::poll_begins();
        let poll = self.project().future.poll(context);
        account::hand_to(was);
        poll
    }
}
