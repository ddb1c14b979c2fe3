//! Which paths there are, what is counted, and the end.
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
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use crate::{Answer, Method, Request};

/// Thousands of rounds that one request may ask for.
pub const WORK_LIMIT: u32 = 10_000;

/// The counters of a server. All are for reading by people: they order nothing.
pub struct Site {
    used_bytes: fn() -> usize,
    /// Connections that are being served.
    pub open: AtomicU32,
    /// The most that were, at a time.
    pub most: AtomicU32,
    /// Connections so far.
    pub accepted: AtomicU32,
    /// Requests that were answered, whatever with.
    pub answered: AtomicU32,
    /// Of these, requests that were refused for what they are (400 and above).
    pub refused: AtomicU32,
    /// Connections that ended because the client was too slow.
    pub timeouts: AtomicU32,
    /// Connections that the client broke.
    pub broken: AtomicU32,
    quit: AtomicBool,
}

/// What a request asks for.
pub(crate) enum Task {
    Answer(Answer),
    Compute(Work),
}

impl Site {
    /// Nothing has happened yet; `used_bytes` says how much memory is in use.
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

    /// Whether somebody has asked the server to end.
    pub fn has_quit(&self) -> bool {
        self.quit.load(Relaxed)
    }

    /// A connection begins. Who accepts it says so, so that those not yet begun are counted, too.
    pub fn connection_begins(&self) {
        self.accepted.fetch_add(1, Relaxed);
        let open = self.open.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(open, Relaxed);
    }

    /// A connection has ended.
    pub fn connection_ends(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    pub(crate) fn task(&self, request: &Request) -> Task {
        let reads = matches!(request.method, Method::Get | Method::Head);
        let posts = request.method == Method::Post;
        let (right, answer): (bool, fn(&Self, &Request) -> Answer) = match request.path.as_str() {
            "/" => (reads, |_, _| Answer::ok("axcoop\n")),
            "/stats" => (reads, |site, _| Answer::ok(site.stats())),
            "/echo" => (posts, |_, request| Answer::ok(request.body.clone())),
            "/quit" => (posts, |site, _| {
                site.quit.store(true, Relaxed);
                Answer::ok("bye\n")
            }),
            path => {
                let thousands = numbered(path, "/work/").filter(|k| (1..=WORK_LIMIT).contains(k));
                return match (priority(path), thousands) {
                    (None, None) => Task::Answer(Answer::status(404)),
                    _ if !reads => Task::Answer(Answer::status(405)),
                    (Some(p), _) => Task::Answer(Answer::ok(format!("priority {p}\n"))),
                    (_, Some(thousands)) => Task::Compute(Work::new(thousands)),
                };
            }
        };
        Task::Answer(if right {
            answer(self, request)
        } else {
            Answer::status(405)
        })
    }

    /// The counters, as the answer to `/stats` has them.
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

/// The number behind this prefix, written as it would be printed.
fn numbered(path: &str, prefix: &str) -> Option<u32> {
    let digits = path.strip_prefix(prefix)?;
    let number: u32 = digits.parse().ok()?;
    (format!("{number}") == digits).then_some(number)
}

/// The priority that a path names, 0 first and 7 last.
pub fn priority(path: &str) -> Option<u8> {
    let number = numbered(path, "/p/")?;
    u8::try_from(number).ok().filter(|p| *p < 8)
}

/// A computation in pieces, so that who computes may let others go first in between.
pub struct Work {
    thousands: u32,
    x: u64,
}

impl Work {
    /// So many thousand rounds.
    pub fn new(thousands: u32) -> Self {
        Self {
            thousands,
            x: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Computes a thousand rounds (Marsaglia's xorshift, 13, 7, 17), and says whether more remain.
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

    /// What has come of it.
    pub fn answer(&self) -> Answer {
        Answer::ok(format!("{:016x}\n", self.x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn status(method: Method, path: &str) -> u16 {
        let site = Site::new(|| 0);
        let (path, body) = (path.into(), Vec::new());
        match site.task(&Request {
            method,
            path,
            body,
            keep_alive: true,
        }) {
            Task::Answer(answer) => answer.status,
            Task::Compute(_) => 200,
        }
    }

    #[test]
    fn each_path_has_its_methods() {
        use Method::{Get, Head, Other, Post};
        for path in ["/", "/p/0", "/p/7", "/work/1", "/work/10000", "/stats"] {
            let all = [Get, Head, Post, Other].map(|method| status(method, path));
            assert_eq!(all, [200, 200, 405, 405], "{path}");
        }
        for path in ["/echo", "/quit"] {
            let all = [Get, Head, Post, Other].map(|method| status(method, path));
            assert_eq!(all, [405, 405, 200, 405], "{path}");
        }
        for path in [
            "",
            "/p",
            "/p/",
            "/p/8",
            "/p/07",
            "/p/+1",
            "/work/0",
            "/work/10001",
            "*",
        ] {
            assert_eq!(status(Get, path), 404, "{path}");
        }
    }

    #[test]
    fn work_ends_and_has_an_outcome() {
        let mut work = Work::new(2);
        assert_eq!((work.step(), work.step()), (true, false));
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..2000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        assert_eq!(work.answer(), Answer::ok(format!("{x:016x}\n")));
    }
}
