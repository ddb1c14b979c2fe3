//! The three components of a connection, one source for coroutines and threads.
//!
//! ```text
//!           read              requests           answers            write
//! socket ----------> receive ----------> handle ----------> send ----------> client
//!                       ^                                     |
//!                       +---------------- free ---------------+
//! ```

use alloc::sync::Arc;
use core::hint::black_box;

use super::{
    connection::Connection,
    program::{self, Program},
    service::Service,
};
use crate::message::{FACTOR, multiply};

/// Reads requests until there are no more.
pub async fn receive(connection: Arc<Connection>, service: impl Service) {
    while let Some(buffer) = connection.free.take().await {
        let Some(request) = service.read(&connection, buffer).await else {
            break;
        };
        connection.requests.put(request);
    }
    connection.requests.close();
    program::count_end();
}

/// Answers requests: `rounds` multiplications each, all with the same result, between which more urgent coroutines
/// may run.
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
    program::count_end();
}

/// Writes the answers. The client's network takes each at once, so no write waits.
pub async fn send(connection: Arc<Connection>) {
    while let Some(answer) = connection.answers.take().await {
        connection.answer(&answer);
        connection.free.put(answer);
    }
    program::count_end();
}
