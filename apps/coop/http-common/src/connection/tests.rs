use super::*;
use std::collections::VecDeque;
use std::future::ready;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// What a client does: bytes after so many seconds, or the end, or silence.
enum Does {
    Sends(u64, &'static [u8]),
    Ends,
    Breaks,
}
use Does::{Breaks, Ends, Sends};

struct Script {
    now: Duration,
    does: VecDeque<Does>,
    takes_no_answer: bool,
    answers: Vec<u8>,
    priorities: Vec<u8>,
    pauses: usize,
}

impl Transport for Script {
    fn now(&self) -> Duration {
        self.now
    }

    fn read(
        &mut self,
        mut into: Vec<u8>,
        until: Duration,
    ) -> impl Future<Output = (Result<usize, Trouble>, Vec<u8>)> + Send {
        let read = match self.does.front() {
            // Silence.
            None => Err(Trouble::Late),
            Some(Sends(seconds, _)) if self.now + Duration::from_secs(*seconds) > until => {
                Err(Trouble::Late)
            }
            Some(Ends) => Ok(0),
            Some(Breaks) => Err(Trouble::Broken),
            Some(&Sends(seconds, bytes)) => {
                self.does.pop_front();
                self.now += Duration::from_secs(seconds);
                into[..bytes.len()].copy_from_slice(bytes);
                Ok(bytes.len())
            }
        };
        if read == Err(Trouble::Late) {
            self.now = until;
        }
        ready((read, into))
    }

    fn write_all(
        &mut self,
        bytes: Vec<u8>,
        until: Duration,
    ) -> impl Future<Output = Result<(), Trouble>> + Send {
        if self.takes_no_answer {
            self.now = until;
            return ready(Err(Trouble::Late));
        }
        self.answers.extend(bytes);
        ready(Ok(()))
    }

    fn pause(&mut self) -> impl Future<Output = ()> + Send {
        self.pauses += 1;
        ready(())
    }

    fn set_priority(&mut self, priority: u8) {
        self.priorities.push(priority);
    }
}

fn course(does: impl IntoIterator<Item = Does>, site: &Site) -> (Script, Vec<u16>) {
    course_of(does, site, false)
}

/// Plays it, and returns the statuses of the answers.
fn course_of(
    does: impl IntoIterator<Item = Does>,
    site: &Site,
    takes_no_answer: bool,
) -> (Script, Vec<u16>) {
    let (now, does) = (Duration::ZERO, does.into_iter().collect());
    let (answers, priorities, pauses) = (Vec::new(), Vec::new(), 0);
    let mut script = Script {
        now,
        does,
        takes_no_answer,
        answers,
        priorities,
        pauses,
    };
    let [request, idle, answer, linger] = [10, 30, 11, 1].map(Duration::from_secs);
    let limits = Limits {
        request,
        idle,
        answer,
        linger,
    };
    let served =
        pin!(serve(&mut script, site, &limits)).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(served, Poll::Ready(()));
    let text = String::from_utf8(script.answers.clone()).unwrap();
    let status = |rest: &str| rest[..3].parse().unwrap();
    (
        script,
        text.split("HTTP/1.1 ").skip(1).map(status).collect(),
    )
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const HALF: &[u8] = b"GET / HTTP/1.1\r\nHo";
const QUIT: &[u8] = b"POST /quit HTTP/1.1\r\nHost: a\r\n\r\n";

fn counted(site: &Site) -> [u32; 4] {
    [&site.answered, &site.refused, &site.timeouts, &site.broken]
        .map(|counter| counter.load(Relaxed))
}

#[test]
fn requests_are_answered_until_the_client_ends() {
    let site = Site::new(|| 0);
    let p = b"GET /p/3 HTTP/1.1\r\nHost: a\r\n\r\n";
    let work = b"HEAD /work/3 HTTP/1.1\r\nHost: a\r\n\r\n";
    let (script, statuses) = course([Sends(1, GET), Sends(1, p), Sends(1, work), Ends], &site);
    assert_eq!(statuses, [200, 200, 200]);
    assert_eq!((script.priorities, script.pauses), (vec![4, 3, 4], 2));
    assert!(
        script.answers.ends_with(b"keep-alive\r\n\r\n"),
        "HEAD has no body"
    );
    assert_eq!(counted(&site), [3, 0, 0, 0]);
}

#[test]
fn rule_1_slow_requests_and_silence_have_an_end() {
    let site = Site::new(|| 0);
    // A byte every 4 s: the time runs from the first one.
    let slow = [
        Sends(29, b"G"),
        Sends(4, b"E"),
        Sends(4, b"T"),
        Sends(4, b" "),
    ];
    let (script, statuses) = course(slow, &site);
    assert_eq!((statuses, script.now.as_secs()), (vec![408], 29 + 10 + 1));
    let (script, statuses) = course([Sends(1, GET)], &site);
    assert_eq!((statuses, script.now.as_secs()), (vec![200], 1 + 30));
    assert_eq!(counted(&site), [2, 1, 2, 0]);
}

#[test]
fn rule_2_who_takes_no_answer_is_let_go() {
    let site = Site::new(|| 0);
    let (script, _) = course_of([Sends(1, GET), Sends(1, GET)], &site, true);
    assert_eq!(script.now.as_secs(), 1 + 11);
    assert_eq!(counted(&site), [0, 0, 1, 0]);
}

#[test]
fn rule_3_what_comes_after_the_last_answer_is_thrown_away() {
    let site = Site::new(|| 0);
    let (script, statuses) = course(
        [Sends(0, b"\0\0\r\n"), Sends(0, GET), Sends(0, GET), Ends],
        &site,
    );
    assert_eq!((statuses, script.does.len()), (vec![400], 1));
    // Not for ever.
    let endless = (0..99).map(|_| Sends(1, GET));
    let (script, statuses) = course([Sends(0, b"\0\0\r\n")].into_iter().chain(endless), &site);
    assert_eq!((statuses, script.now.as_secs()), (vec![400], 1));
    assert_eq!(counted(&site), [2, 2, 0, 0]);
}

#[test]
fn rule_4_the_end_is_answered_and_then_nothing() {
    let site = Site::new(|| 0);
    let (_, statuses) = course([Sends(0, QUIT), Sends(0, GET)], &site);
    assert_eq!(statuses, [200]);
    assert!(site.has_quit());
    assert!(course([Sends(0, GET)], &site).1.is_empty());
}

#[test]
fn who_breaks_off_is_counted() {
    let site = Site::new(|| 0);
    course([Sends(0, HALF), Ends], &site);
    course([Sends(0, HALF), Breaks], &site);
    course([Breaks], &site);
    course([Ends], &site);
    assert_eq!(counted(&site), [0, 0, 0, 3]);
}
