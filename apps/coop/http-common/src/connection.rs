//! The course of one connection, over anything that reads and writes. It is one source for threads
//! and coroutines: what waits is in [`Transport`].
//!
//! Rules:
//! 1. A client that has sent a part of a request and then nothing for [`Limits::request`] in all
//!    gets 408; one that is silent between requests for [`Limits::idle`] is let go.
//! 2. One that does not take an answer within [`Limits::answer`] is let go.
//! 3. After a refusal, and after the last answer of a connection, what still comes is read and
//!    thrown away until the client closes, for [`Limits::linger`] at most: to close with bytes
//!    unread would reset the connection, and the client might lose the answer.
//! 4. A request that was begun when the server was told to end is answered; no other is taken.

use alloc::vec;
use alloc::vec::Vec;
use core::future::Future;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use crate::site::Task;
use crate::{Answer, Method, Next, Reader, Site, priority};

/// Why nothing was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The time is over.
    Late,
    /// The connection is broken.
    Broken,
}

/// A connection of bytes. The buffers are given away for the time of a call, so that dropping the
/// call leaves nobody with a pointer to them.
pub trait Transport {
    /// What the time left is counted from; it never goes back.
    fn now(&self) -> Duration;
    /// Reads some bytes into the buffer; 0 at the end.
    fn read(
        &mut self,
        into: Vec<u8>,
        until: Duration,
    ) -> impl Future<Output = (Result<usize, Trouble>, Vec<u8>)> + Send;
    /// Writes them all.
    fn write_all(
        &mut self,
        bytes: Vec<u8>,
        until: Duration,
    ) -> impl Future<Output = Result<(), Trouble>> + Send;
    /// Lets others go first, in the middle of a computation.
    fn pause(&mut self) -> impl Future<Output = ()> + Send;
    /// What follows is of this priority, 0 first.
    fn set_priority(&mut self, priority: u8);
}

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the first byte of a request to its last.
    pub request: Duration,
    /// Between requests.
    pub idle: Duration,
    /// To take one answer.
    pub answer: Duration,
    /// To close, after the last answer.
    pub linger: Duration,
}

impl Limits {
    /// For clients on a machine that may be busy.
    pub const PATIENT: Self = Self {
        request: Duration::from_secs(30),
        idle: Duration::from_secs(120),
        answer: Duration::from_secs(30),
        linger: Duration::from_secs(5),
    };
}

/// Bytes read at a time.
const PIECE: usize = 2048;

/// Answers requests until one of both sides ends the connection.
pub async fn serve<T: Transport + Send>(transport: &mut T, site: &Site, limits: &Limits) {
    let mut reader = Reader::default();
    let mut buffer = vec![0; PIECE];
    let mut until = transport.now() + limits.idle;
    let mut begun_before = false;
    loop {
        let (answer, keep_alive, with_body) = match reader.next_request() {
            Next::More { begun, expects } => {
                if begun && !begun_before {
                    until = transport.now() + limits.request;
                } else if !begun && site.has_quit() {
                    return;
                }
                begun_before = begun;
                if expects {
                    let go_on = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
                    let until = transport.now() + limits.answer;
                    if transport.write_all(go_on, until).await.is_err() {
                        site.broken.fetch_add(1, Relaxed);
                        return;
                    }
                }
                let read;
                (read, buffer) = transport.read(buffer, until).await;
                match read {
                    Ok(0) => {
                        // An end within a request is a client that has gone.
                        site.broken.fetch_add(begun.into(), Relaxed);
                        return;
                    }
                    Ok(length) => {
                        reader.take(&buffer[..length]);
                        continue;
                    }
                    Err(Trouble::Broken) => {
                        site.broken.fetch_add(1, Relaxed);
                        return;
                    }
                    Err(Trouble::Late) => {
                        site.timeouts.fetch_add(1, Relaxed);
                        if !begun {
                            return;
                        }
                        (Answer::status(408), false, true)
                    }
                }
            }
            Next::Refused(status) => (Answer::status(status), false, true),
            Next::Whole(request) => {
                transport.set_priority(priority(&request.path).unwrap_or(4));
                let answer = match site.task(&request) {
                    Task::Answer(answer) => answer,
                    Task::Compute(mut work) => {
                        while work.step() {
                            transport.pause().await;
                        }
                        work.answer()
                    }
                };
                let keep_alive = request.keep_alive && !site.has_quit();
                (answer, keep_alive, request.method != Method::Head)
            }
        };
        let bytes = answer.to_bytes(keep_alive, with_body);
        let late = transport.now() + limits.answer;
        match transport.write_all(bytes, late).await {
            Ok(()) => {}
            Err(Trouble::Late) => {
                site.timeouts.fetch_add(1, Relaxed);
                return;
            }
            Err(Trouble::Broken) => {
                site.broken.fetch_add(1, Relaxed);
                return;
            }
        }
        site.answered.fetch_add(1, Relaxed);
        site.refused
            .fetch_add((answer.status >= 400).into(), Relaxed);
        if !keep_alive {
            let until = transport.now() + limits.linger;
            loop {
                let read;
                (read, buffer) = transport.read(buffer, until).await;
                if !matches!(read, Ok(1..)) {
                    return;
                }
            }
        }
        until = transport.now() + limits.idle;
        begun_before = false;
    }
}

#[cfg(test)]
mod tests;
