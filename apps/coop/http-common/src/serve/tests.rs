use super::*;
use crate::cases;
use std::collections::VecDeque;

/// A step of a client: bytes after a number of seconds, the end, a reset, or no more answers taken.
enum Does {
    Sends(u64, Vec<u8>),
    Ends,
    Breaks,
    Stalls,
}
use Does::{Breaks, Ends, Stalls};

/// Returns the step that sends these bytes after a number of seconds.
fn send(after: u64, bytes: impl AsRef<[u8]>) -> Does {
    Does::Sends(after, bytes.as_ref().to_vec())
}

struct Script {
    now: Duration,
    until: Duration,
    does: VecDeque<Does>,
    answers: Vec<u8>,
    /// The time at which the server has ended its side.
    ended: Option<Duration>,
}

impl embedded_io_async::ErrorType for Script {
    type Error = ErrorKind;
}

impl Script {
    fn late(&mut self) -> ErrorKind {
        self.now = self.until;
        ErrorKind::TimedOut
    }
}

impl Read for Script {
    async fn read(&mut self, into: &mut [u8]) -> Result<usize, ErrorKind> {
        match self.does.front_mut() {
            // Silence.
            None | Some(Stalls) => Err(self.late()),
            Some(Does::Sends(seconds, _))
                if self.now + Duration::from_secs(*seconds) > self.until =>
            {
                Err(self.late())
            }
            Some(Ends) => Ok(0),
            Some(Breaks) => Err(ErrorKind::ConnectionReset),
            Some(Does::Sends(seconds, bytes)) => {
                self.now += Duration::from_secs(core::mem::take(seconds));
                let length = bytes.len().min(into.len());
                into[..length].copy_from_slice(&bytes[..length]);
                bytes.drain(..length);
                if bytes.is_empty() {
                    self.does.pop_front();
                }
                Ok(length)
            }
        }
    }
}

impl Write for Script {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        assert_eq!(self.ended, None, "a write after the end");
        if matches!(self.does.front(), Some(Stalls)) {
            return Err(self.late());
        }
        self.answers.extend(bytes);
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), ErrorKind> {
        Ok(())
    }
}

impl Link for Script {
    fn limit(&mut self, time: Duration) {
        self.until = self.now + time;
    }

    fn shutdown(&mut self) {
        self.ended = Some(self.now);
    }
}

#[derive(Default)]
struct Notes {
    priorities: Vec<u8>,
    pauses: usize,
}

impl Place for Notes {
    async fn pause(&mut self) {
        self.pauses += 1;
    }

    fn set_priority(&mut self, priority: u8) {
        self.priorities.push(priority);
    }
}

fn course(does: impl IntoIterator<Item = Does>, site: &Site) -> (Script, Notes) {
    let mut script = Script {
        now: Duration::ZERO,
        until: Duration::ZERO,
        does: does.into_iter().collect(),
        answers: Vec::new(),
        ended: None,
    };
    let mut notes = Notes::default();
    let [request, idle, answer, linger] = [10, 30, 11, 1].map(Duration::from_secs);
    let limits = Limits {
        request,
        idle,
        answer,
        linger,
    };
    ready(serve(&mut script, &mut notes, site, &limits));
    (script, notes)
}

impl Script {
    fn statuses(&self) -> Vec<u16> {
        let text = String::from_utf8(self.answers.clone()).unwrap();
        let status = |rest: &str| rest[..3].parse().unwrap();
        text.split("HTTP/1.1 ").skip(1).map(status).collect()
    }
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const HALF: &[u8] = b"GET / HTTP/1.1\r\nHo";
const QUIT: &[u8] = b"POST /quit HTTP/1.1\r\nHost: a\r\n\r\n";

fn counted(site: &Site) -> [u32; 4] {
    [&site.answered, &site.refused, &site.timeouts, &site.broken]
        .map(|counter| counter.load(Relaxed))
}

#[test]
fn each_case_of_the_rfcs_is_answered_as_they_say() {
    let mut wrong = Vec::new();
    for case in cases() {
        let site = Site::new(|| 0);
        let (script, _) = course(case.sends.iter().map(|piece| send(0, piece)), &site);
        let mut checked = case.check(&script.answers);
        // The client is silent: a server that waits for it ends its side late or never.
        if script.ended != Some(Duration::ZERO) {
            checked = Err(format!("the server's end is at {:?}", script.ended));
        }
        if let Err(error) = checked {
            wrong.push(format!("{}\n    {error}", case.line));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn answer_is_written_as_expected() {
    let bytes = |answer: &Answer, keep_alive, with_body| {
        String::from_utf8(to_bytes(answer, keep_alive, with_body)).unwrap()
    };
    let expected = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\
                    Connection: keep-alive\r\n\r\nhello\n";
    assert_eq!(bytes(&Answer::ok("hello\n"), true, true), expected);
    let expected = "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\n\
                    Content-Length: 23\r\nAllow: GET\r\nConnection: close\r\n\r\n";
    let answer = Answer {
        allow: Some("GET"),
        ..Answer::status(405)
    };
    assert_eq!(bytes(&answer, false, false), expected);
}

#[test]
fn requests_are_answered_until_the_client_ends() {
    let site = Site::new(|| 0);
    let p = b"GET /p/3 HTTP/1.1\r\nHost: a\r\n\r\n";
    let work = b"HEAD /work/3 HTTP/1.1\r\nHost: a\r\n\r\n";
    let (script, notes) = course([send(1, GET), send(1, p), send(1, work), Ends], &site);
    assert_eq!(script.statuses(), [200, 200, 200]);
    assert_eq!((notes.priorities, notes.pauses), (vec![4, 3, 4], 2));
    assert!(
        script.answers.ends_with(b"keep-alive\r\n\r\n"),
        "HEAD has no body"
    );
    assert_eq!(counted(&site), [3, 0, 0, 0]);
}

#[test]
fn rule_1_slow_or_silent_client_is_timed_out() {
    let site = Site::new(|| 0);
    // A byte every 4 s: the time runs from the first one.
    let slow = || [(29, "G"), (4, "E"), (4, "T"), (4, " ")].map(|(after, byte)| send(after, byte));
    let (script, _) = course(slow(), &site);
    assert_eq!(
        (script.statuses(), script.now.as_secs()),
        (vec![408], 29 + 10 + 1)
    );
    let body = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na";
    let (script, _) = course([send(2, body), send(9, "b"), send(9, "c")], &site);
    assert_eq!(
        (script.statuses(), script.now.as_secs()),
        (vec![408], 2 + 10 + 1)
    );
    let (script, _) = course([send(1, GET)], &site);
    assert_eq!(
        (script.statuses(), script.now.as_secs()),
        (vec![200], 1 + 30)
    );
    assert_eq!(counted(&site), [3, 2, 3, 0]);
}

#[test]
fn rule_1_empty_line_begins_no_request() {
    let site = Site::new(|| 0);
    let lines = [send(1, "\r\n"), send(20, "\r\n")];
    let (script, _) = course(lines, &site);
    assert_eq!((script.statuses(), script.now.as_secs()), (vec![], 30));
    assert_eq!(counted(&site), [0, 0, 1, 0]);
}

#[test]
fn rule_2_client_that_takes_no_answer_is_disconnected() {
    let site = Site::new(|| 0);
    let (script, _) = course([send(1, GET), Stalls], &site);
    assert_eq!(script.now.as_secs(), 1 + 11);
    assert_eq!(counted(&site), [0, 0, 1, 0]);
}

#[test]
fn rule_3_bytes_after_the_last_answer_are_discarded() {
    let site = Site::new(|| 0);
    let wrong = || send(0, b"\0\0\r\n");
    let (script, _) = course([wrong(), send(0, GET), send(0, GET), Ends], &site);
    assert_eq!((script.statuses(), script.does.len()), (vec![400], 1));
    // Not for ever.
    let endless = (0..99).map(|_| send(1, GET));
    let (script, _) = course([wrong()].into_iter().chain(endless), &site);
    assert_eq!((script.statuses(), script.now.as_secs()), (vec![400], 1));
    assert_eq!(counted(&site), [2, 2, 0, 0]);
}

#[test]
fn rule_4_quit_is_answered_and_nothing_after_it() {
    let site = Site::new(|| 0);
    let (script, _) = course([send(0, QUIT), send(0, GET)], &site);
    assert_eq!(script.statuses(), [200]);
    assert!(script.answers.ends_with(b"close\r\n\r\nbye\n"));
    assert!(site.has_quit());
    // A request that has come whole, or in part, was begun; one after that is not taken.
    let (script, _) = course([send(0, b"\r\n"), send(0, GET)], &site);
    assert_eq!(script.statuses(), [0_u16; 0]);
}

#[test]
fn rule_6_requests_may_arrive_in_any_pieces() {
    let post = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    let all = [
        post,
        post,
        "GET /p/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    ]
    .concat();
    let whole = course([send(0, &all)], &Site::new(|| 0)).0.answers;
    assert!(whole.ends_with(b"priority 1\n"));
    for piece in [1, 2, 3, 7, 50] {
        let pieces = all.as_bytes().chunks(piece).map(|piece| send(0, piece));
        let (script, _) = course(pieces, &Site::new(|| 0));
        assert_eq!(script.answers, whole, "pieces of {piece}");
    }
}

#[test]
fn broken_connections_are_counted() {
    let site = Site::new(|| 0);
    course([send(0, HALF), Ends], &site);
    course([send(0, HALF), Breaks], &site);
    course([Breaks], &site);
    course([Ends], &site);
    assert_eq!(counted(&site), [0, 0, 0, 3]);
}
