//! The course of one connection, over anything that reads and writes. Threads and coroutines share
//! it, and [`Place`] has the differences.
//!
//! Rules:
//! 1. A client that has sent a part of a request and not the rest within [`Limits::request`] gets
//!    408. One that is silent between requests for [`Limits::idle`] is disconnected.
//! 2. A client that does not take an answer within [`Limits::answer`] is disconnected.
//! 3. After a refusal, and after the last answer of a connection, the server ends its side at once.
//!    It reads and discards what still comes until the client ends its side, too, for
//!    [`Limits::linger`] at most. To close with bytes unread would reset the connection, and the
//!    client might lose the answer (RFC 9112, 9.6).
//! 4. A request that was begun when the server was told to end is answered; no other is taken.
//! 5. After a refusal no byte is read as a request: where the next one would begin is not known.
//! 6. Requests may follow each other without waiting; bytes behind one are the beginning of the
//!    next.
//! 7. The answer to a HEAD has no body, and a refused HEAD is no exception (RFC 9110, 9.3.2).

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::future::Future;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use edge_http::io::Body;
use edge_http::{BodyType, ConnectionType, Method, ResponseHeaders};
use embedded_io_async::{Error as _, ErrorKind, Read, ReadExactError, Write};

use crate::head::{Head, has_begun, ready, take_head};
use crate::site::{Answer, Site, Task, priority, reason};

/// A connection of bytes.
pub trait Link: Read + Write {
    /// Makes reads and writes fail with [`ErrorKind::TimedOut`] once this time has passed from now.
    fn limit(&mut self, time: Duration);
    /// Ends the server's side, behind what was written. The client's can be read on.
    fn shutdown(&mut self);
}

/// The task that serves a connection.
pub trait Place: Send {
    /// Lets others go first, in the middle of a computation.
    fn pause(&mut self) -> impl Future<Output = ()> + Send;
    /// Gives what follows this priority, 0 first.
    fn set_priority(&mut self, priority: u8);
}

/// The time that a client may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the first byte of a request to its last.
    pub request: Duration,
    /// From an answer to the first byte of the next request.
    pub idle: Duration,
    /// From the beginning of an answer until the client has taken it.
    pub answer: Duration,
    /// From the last answer until the client has ended its side.
    pub linger: Duration,
}

impl Limits {
    /// The limits for clients on a machine that may be busy.
    pub const PATIENT: Self = Self {
        request: Duration::from_secs(30),
        idle: Duration::from_secs(120),
        answer: Duration::from_secs(30),
        linger: Duration::from_secs(5),
    };
}

/// The bytes that are read at a time.
const PIECE: usize = 2048;

/// The reason why there is no request.
enum Stop {
    /// The request is refused, and the client is told so.
    Refused { status: u16, is_head: bool },
    /// There is no request, and there will be none.
    End,
    /// The client was silent, or took no answer.
    Late,
    /// The connection is broken.
    Broken,
}

impl From<ErrorKind> for Stop {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::TimedOut => Self::Late,
            _ => Self::Broken,
        }
    }
}

/// Answers requests until either side ends the connection.
pub async fn serve<L: Link>(link: &mut L, place: &mut impl Place, site: &Site, limits: &Limits) {
    match converse(link, place, site, limits).await {
        Stop::Late => site.timeouts.fetch_add(1, Relaxed),
        Stop::Broken => site.broken.fetch_add(1, Relaxed),
        Stop::End | Stop::Refused { .. } => 0,
    };
}

async fn converse<L: Link>(
    link: &mut L,
    place: &mut impl Place,
    site: &Site,
    limits: &Limits,
) -> Stop {
    let mut bytes = Vec::new();
    loop {
        let (answer, keep_alive, with_body) = match request(link, site, limits, &mut bytes).await {
            Ok((head, body)) => {
                place.set_priority(priority(&head.path).unwrap_or(4));
                let answer = match site.task(head.method, &head.path, body) {
                    Task::Answer(answer) => answer,
                    Task::Compute(mut work) => {
                        while work.step() {
                            place.pause().await;
                        }
                        work.answer()
                    }
                };
                let keep_alive = head.keep_alive && !site.has_quit();
                (answer, keep_alive, head.method != Method::Head)
            }
            Err(Stop::Refused { status, is_head }) => {
                site.timeouts.fetch_add((status == 408).into(), Relaxed);
                (Answer::status(status), false, !is_head)
            }
            Err(stop) => return stop,
        };
        link.limit(limits.answer);
        let piece = to_bytes(&answer, keep_alive, with_body);
        if let Err(error) = link.write_all(&piece).await {
            return error.kind().into();
        }
        site.answered.fetch_add(1, Relaxed);
        let is_refusal = answer.status >= 400;
        site.refused.fetch_add(is_refusal.into(), Relaxed);
        if !keep_alive {
            link.shutdown();
            link.limit(limits.linger);
            bytes.resize(PIECE, 0);
            while matches!(link.read(&mut bytes).await, Ok(1..)) {}
            return Stop::End;
        }
    }
}

/// Reads the next request. Bytes behind it stay in `bytes`.
async fn request<L: Link>(
    link: &mut L,
    site: &Site,
    limits: &Limits,
    bytes: &mut Vec<u8>,
) -> Result<(Head, Vec<u8>), Stop> {
    link.limit(limits.idle);
    let mut begun = false;
    let head = loop {
        let head = take_head(bytes);
        let is_head = bytes.starts_with(b"HEAD ");
        let refused = |status| Stop::Refused { status, is_head };
        let head = head.map_err(refused)?;
        if !begun && (head.is_some() || has_begun(bytes)) {
            begun = true;
            link.limit(limits.request);
        } else if !begun && site.has_quit() {
            return Err(Stop::End);
        }
        if let Some(head) = head {
            break head;
        }
        let length = bytes.len();
        bytes.resize(length + PIECE, 0);
        let read = link.read(&mut bytes[length..]).await;
        bytes.truncate(length + read.as_ref().map_or(0, |read| *read));
        match read.map_err(|error| error.kind()) {
            Ok(1..) => {}
            Ok(0) if !begun => return Err(Stop::End),
            // An end within a request is a client that has gone.
            Ok(0) => return Err(Stop::Broken),
            Err(ErrorKind::TimedOut) if begun => return Err(refused(408)),
            Err(kind) => return Err(kind.into()),
        }
    };
    let mut first: Vec<u8> = bytes.drain(..head.length.min(bytes.len())).collect();
    if head.expects && first.len() < head.length {
        let go_on = link.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
        go_on.map_err(|error| error.kind())?;
    }
    let (mut content, read) = (vec![0; head.length], first.len());
    let kind = BodyType::ContentLen(head.length as u64);
    let mut body = Body::new(kind, &mut first, read, link);
    match body.read_exact(&mut content).await {
        Ok(()) => Ok((head, content)),
        Err(ReadExactError::Other(error)) if error.kind() == ErrorKind::TimedOut => {
            let is_head = head.method == Method::Head;
            Err(Stop::Refused {
                status: 408,
                is_head,
            })
        }
        Err(_) => Err(Stop::Broken),
    }
}

/// Returns head and body, or the head alone, as one piece: the library writes a word at a time.
fn to_bytes(answer: &Answer, keep_alive: bool, with_body: bool) -> Vec<u8> {
    let length = answer.body.len().to_string();
    let (kind, connection) = match keep_alive {
        true => (ConnectionType::KeepAlive, "keep-alive"),
        false => (ConnectionType::Close, "close"),
    };
    let mut head = ResponseHeaders::<4>::new();
    head.code = answer.status;
    head.reason = Some(reason(answer.status));
    head.headers
        .set("Content-Type", "text/plain")
        .set("Content-Length", &length);
    if let Some(allow) = answer.allow {
        head.headers.set("Allow", allow);
    }
    head.headers.set("Connection", connection);
    let mut bytes = Vec::new();
    ready(head.send(kind, false, &mut bytes)).expect("memory is always written");
    if with_body {
        bytes.extend_from_slice(&answer.body);
    }
    bytes
}

#[cfg(test)]
mod tests;
