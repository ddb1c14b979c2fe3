//! The site: its paths, its answers, its counters, and its end.
//!
//! | path | methods | answer |
//! |---|---|---|
//! | `/` | GET HEAD | a greeting |
//! | `/p/N` | GET HEAD | `priority N`, N of 0 to 7; served at that priority where there are some |
//! | `/work/K` | GET HEAD | the outcome of K thousand rounds of [`Work`], K of 1 to [`WORK_LIMIT`] |
//! | `/echo` | POST | the body |
//! | `/stats` | GET HEAD | the counters, as one JSON object |
//! | `/quit` | POST | the server ends once this is answered |

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use edge_http::Method;

/// The most rounds that one request may ask for, in thousands.
pub const WORK_LIMIT: u32 = 10_000;

/// Returns the phrase that stands behind a status (RFC 9110, 15).
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        505 => "HTTP Version Not Supported",
        _ => unreachable!("no answer has the status {status}"),
    }
}

/// A status and a body of text.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The bytes of the body.
    pub body: Vec<u8>,
    /// The methods that the resource has, for a 405 (RFC 9110, 15.5.6).
    pub allow: Option<&'static str>,
}

impl Answer {
    /// Returns a 200 with this body.
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            body: body.into(),
            allow: None,
        }
    }

    /// Returns an answer of this status, whose body says it in words.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            body: format!("{status} {}\n", reason(status)).into_bytes(),
            allow: None,
        }
    }
}

/// The counters of a server. All are for reading by people: they order nothing.
pub struct Site {
    used_bytes: fn() -> usize,
    /// Connections that are being served.
    pub open: AtomicU32,
    /// The largest number of connections at a time.
    pub most: AtomicU32,
    /// Connections so far.
    pub accepted: AtomicU32,
    /// Requests that were answered, refused ones among them.
    pub answered: AtomicU32,
    /// Requests that were answered with a status of 400 or above.
    pub refused: AtomicU32,
    /// Connections that ended because the client was too slow.
    pub timeouts: AtomicU32,
    /// Connections that the client broke.
    pub broken: AtomicU32,
    quit: AtomicBool,
}

/// The work that a request asks for.
pub(crate) enum Task {
    Answer(Answer),
    Compute(Work),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Resource {
    Greeting,
    Priority(u8),
    Work(u32),
    Echo,
    Stats,
    Quit,
}

impl Resource {
    fn at(path: &str) -> Option<Self> {
        let thousands = || numbered(path, "/work/").filter(|k| (1..=WORK_LIMIT).contains(k));
        match path {
            "/" => Some(Self::Greeting),
            "/echo" => Some(Self::Echo),
            "/stats" => Some(Self::Stats),
            "/quit" => Some(Self::Quit),
            _ => priority(path)
                .map(Self::Priority)
                .or_else(|| thousands().map(Self::Work)),
        }
    }

    const fn allow(self) -> &'static str {
        match self {
            Self::Echo | Self::Quit => "POST",
            _ => "GET, HEAD",
        }
    }
}

impl Site {
    /// Returns a site with counters of zero; `used_bytes` says how much memory is in use.
    pub const fn new(used_bytes: fn() -> usize) -> Self {
        Self {
            used_bytes,
            open: AtomicU32::new(0),
            most: AtomicU32::new(0),
            accepted: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            refused: AtomicU32::new(0),
            timeouts: AtomicU32::new(0),
            broken: AtomicU32::new(0),
            quit: AtomicBool::new(false),
        }
    }

    /// Returns true once a client has asked the server to end.
    pub fn has_quit(&self) -> bool {
        self.quit.load(Relaxed)
    }

    /// Counts a connection. The task that accepts it calls this, so that one that waits for its
    /// own task is counted, too.
    pub fn count_connection(&self) {
        self.accepted.fetch_add(1, Relaxed);
        let open = self.open.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(open, Relaxed);
    }

    /// Counts the end of a connection.
    pub fn uncount_connection(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    pub(crate) fn task(&self, method: Method, path: &str, body: Vec<u8>) -> Task {
        // A target that is no path is the server as a whole: `OPTIONS *`, or CONNECT.
        let allow = match Resource::at(path) {
            Some(resource) => {
                let allow = resource.allow();
                if allow.split(", ").any(|name| name == format!("{method}")) {
                    return self.allowed(resource, body);
                }
                allow
            }
            None if path.starts_with('/') => return Task::Answer(Answer::status(404)),
            None => "GET, HEAD, POST",
        };
        Task::Answer(Answer {
            allow: Some(allow),
            ..Answer::status(405)
        })
    }

    fn allowed(&self, resource: Resource, body: Vec<u8>) -> Task {
        Task::Answer(match resource {
            Resource::Greeting => Answer::ok("axcoop\n"),
            Resource::Priority(priority) => Answer::ok(format!("priority {priority}\n")),
            Resource::Work(thousands) => return Task::Compute(Work::new(thousands)),
            Resource::Echo => Answer::ok(body),
            Resource::Stats => Answer::ok(self.stats()),
            Resource::Quit => {
                self.quit.store(true, Relaxed);
                Answer::ok("bye\n")
            }
        })
    }

    /// Returns the counters, as in the answer to `/stats`.
    pub fn stats(&self) -> String {
        format!(
            "{{\"used_bytes\":{},\"open\":{},\"most\":{},\"accepted\":{},\"answered\":{},\
             \"refused\":{},\"timeouts\":{},\"broken\":{}}}\n",
            (self.used_bytes)(),
            self.open.load(Relaxed),
            self.most.load(Relaxed),
            self.accepted.load(Relaxed),
            self.answered.load(Relaxed),
            self.refused.load(Relaxed),
            self.timeouts.load(Relaxed),
            self.broken.load(Relaxed)
        )
    }
}

/// Returns the number behind this prefix, written as it would be printed.
fn numbered(path: &str, prefix: &str) -> Option<u32> {
    let digits = path.strip_prefix(prefix)?;
    let number: u32 = digits.parse().ok()?;
    (format!("{number}") == digits).then_some(number)
}

/// Returns the priority that a path names, 0 first and 7 last.
pub fn priority(path: &str) -> Option<u8> {
    let number = numbered(path, "/p/")?;
    u8::try_from(number).ok().filter(|p| *p < 8)
}

/// A computation in pieces, between which others may go first.
pub struct Work {
    thousands: u32,
    x: u64,
}

impl Work {
    /// Returns a computation of this many thousand rounds, of which none is done.
    pub fn new(thousands: u32) -> Self {
        Self {
            thousands,
            x: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Computes a thousand rounds (Marsaglia's xorshift, 13, 7, 17), and returns true if more
    /// remain.
    #[must_use]
    pub fn step(&mut self) -> bool {
        for _ in 0..1000 {
            self.x ^= self.x << 13;
            self.x ^= self.x >> 7;
            self.x ^= self.x << 17;
        }
        self.thousands -= 1;
        self.thousands > 0
    }

    /// Returns the outcome.
    pub fn answer(&self) -> Answer {
        Answer::ok(format!("{:016x}\n", self.x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statuses(path: &str) -> [(u16, Option<&'static str>); 4] {
        [Method::Get, Method::Head, Method::Post, Method::Delete].map(|method| {
            match Site::new(|| 0).task(method, path, Vec::new()) {
                Task::Answer(answer) => (answer.status, answer.allow),
                Task::Compute(_) => (200, None),
            }
        })
    }

    #[test]
    fn each_path_has_its_methods() {
        let refused = (405, Some("GET, HEAD"));
        for path in ["/", "/p/0", "/p/7", "/work/1", "/work/10000", "/stats"] {
            let all = [(200, None), (200, None), refused, refused];
            assert_eq!(statuses(path), all, "{path}");
        }
        let refused = (405, Some("POST"));
        for path in ["/echo", "/quit"] {
            let all = [refused, refused, (200, None), refused];
            assert_eq!(statuses(path), all, "{path}");
        }
        for path in [
            "/p",
            "/p/",
            "/p/8",
            "/p/07",
            "/p/+1",
            "/work/0",
            "/work/10001",
        ] {
            assert_eq!(statuses(path), [(404, None); 4], "{path}");
        }
        assert_eq!(statuses("*"), [(405, Some("GET, HEAD, POST")); 4]);
    }

    #[test]
    fn work_ends_and_has_an_outcome() {
        let mut work = Work::new(2);
        assert_eq!((work.step(), work.step()), (true, false));
        assert_eq!(work.answer(), Answer::ok("c8025c367c3730d8\n"));
    }
}
