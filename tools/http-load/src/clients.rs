//! The clients: each has one connection, sends different requests, one or two at a time, and
//! compares the answers.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use http_common::Work;

use crate::wire::{Wire, answer};

/// Pause between the bytes of a slow client.
const APART: Duration = Duration::from_millis(1);

/// Runs the client of this number: `requests` different requests, with a pause before each.
/// Returns the time of each, from before it is sent until the last byte of its answer is there. A
/// slow client returns none, as it would measure itself.
pub fn run(
    number: usize,
    is_slow: bool,
    mut wire: Wire,
    requests: usize,
    pause: Duration,
) -> Result<Vec<Duration>> {
    let mut latencies = Vec::new();
    let mut at = 0;
    while at < requests {
        // Every fifth with the next one right behind it.
        let pair = at % 5 == 4 && at + 1 < requests && !is_slow;
        let count = 1 + usize::from(pair);
        // A slow client must send its body within the server's limit.
        let body = if is_slow { 50 } else { 5000 };
        let (mut bytes, mut expected, what) = request(number, at, body, at + 1 == requests);
        if pair {
            let (more, then, _) = request(number, at + 1, body, at + 2 == requests);
            bytes.extend(more);
            expected.extend(then);
        }
        thread::sleep(pause);
        let begin = Instant::now();
        if is_slow {
            wire.send_slowly(&bytes, APART)
        } else {
            wire.send(&bytes)
        }
        .and_then(|()| wire.expect(&expected))
        .with_context(|| format!("request {at}, {what}"))?;
        if !is_slow {
            latencies.extend((0..count).map(|_| begin.elapsed()));
        }
        at += count;
    }
    wire.expect_end().context("after the last request")?;
    Ok(latencies)
}

/// Returns the request of this number, its answer, and its name. The last request of a connection
/// closes it.
fn request(
    client: usize,
    at: usize,
    body_limit: usize,
    is_last: bool,
) -> (Vec<u8>, Vec<u8>, &'static str) {
    let close = if is_last { "Connection: close\r\n" } else { "" };
    let with = |line: &str, body: &[u8]| {
        let length = if body.is_empty() {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", body.len())
        };
        let mut bytes = format!("{line} HTTP/1.1\r\nHost: a\r\n{length}{close}\r\n").into_bytes();
        bytes.extend_from_slice(body);
        bytes
    };
    let gets = |status, body: &[u8]| answer(status, body, !is_last, false);
    let number = client + at;
    let priority = client % 8;
    match at % 8 {
        0 => (with("GET /", b""), gets(200, b"axcoop\n"), "/"),
        1 | 2 => {
            let line = format!("GET /p/{priority}");
            (
                with(&line, b""),
                gets(200, format!("priority {priority}\n").as_bytes()),
                "/p",
            )
        }
        3 => {
            let thousands = 1 + number % 4;
            let mut work = Work::new(thousands as u32);
            while work.step() {}
            (
                with(&format!("GET /work/{thousands}"), b""),
                gets(200, &work.answer().body),
                "/work",
            )
        }
        4 => {
            let body: Vec<u8> = (0..number * 37 % body_limit)
                .map(|n| (n * 31 + number) as u8)
                .collect();
            (with("POST /echo", &body), gets(200, &body), "/echo")
        }
        5 => (with("GET /nowhere", b""), gets(404, b""), "404"),
        6 => (with("POST /p/1", b""), gets(405, b""), "405"),
        _ => (
            with("HEAD /", b""),
            answer(200, b"axcoop\n", !is_last, true),
            "HEAD",
        ),
    }
}
