//! Clients that break off, talk nonsense, or do not listen.

use std::{thread, time::Duration};

use anyhow::Result;

use crate::wire::{Address, Wire, answer};

type Breaks = fn(Wire) -> Result<()>;

const KINDS: [(&str, Breaks); 9] = [
    ("resets within a request", |mut wire| {
        wire.send(b"GET /p/0 HTT")?;
        thread::sleep(Duration::from_millis(20));
        wire.reset()
    }),
    ("resets within an answer", |mut wire| {
        wire.send(b"GET /work/200 HTTP/1.1\r\nHost: a\r\n\r\n")?;
        thread::sleep(Duration::from_millis(2));
        wire.reset()
    }),
    ("garbage", |mut wire| {
        wire.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")?;
        refused(wire, 400)
    }),
    ("half a request", |mut wire| {
        wire.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")?;
        wire.end()?;
        wire.expect_end()
    }),
    ("a head without an end", |mut wire| {
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")?;
        wire.send(&[b'x'; 8192])?;
        refused(wire, 431)
    }),
    ("many fields", |mut wire| {
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n")?;
        wire.send(&b"A: b\r\n".repeat(40))?;
        wire.send(b"\r\n")?;
        refused(wire, 431)
    }),
    ("a long body", |mut wire| {
        wire.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")?;
        wire.send(&[b'x'; 32 * 1024])?;
        refused(wire, 413)
    }),
    ("never reads", |mut wire| {
        let mut request =
            b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 16384\r\n\r\n".to_vec();
        request.resize(request.len() + 16384, b'x');
        wire.stuff(&request, 4 << 20)?;
        wire.reset()
    }),
    ("no host, and more behind it", |mut wire| {
        wire.send(b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
        refused(wire, 400)
    }),
];

/// It is told so, and then nothing more.
fn refused(mut wire: Wire, status: u16) -> Result<()> {
    wire.expect(&answer(status, b"", false, false))?;
    wire.end()?;
    wire.expect_end()
}

/// These say nothing, and get nothing.
const SILENT: [(&str, Breaks); 3] = [
    ("resets at once", Wire::reset),
    ("resets before it is answered", |mut wire| {
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
        wire.reset()
    }),
    ("ends at once", |mut wire| {
        wire.end().and_then(|()| wire.expect_end())
    }),
];

pub fn name(number: usize) -> &'static str {
    kind(number).0
}

/// Each kind in turn, the silent ones behind the others.
fn kind(number: usize) -> &'static (&'static str, Breaks) {
    let at = number % (KINDS.len() + SILENT.len());
    KINDS.get(at).unwrap_or_else(|| &SILENT[at - KINDS.len()])
}

pub fn run(number: usize, to: Address) -> Result<()> {
    let (name, breaks) = kind(number);
    let is_silent = SILENT.iter().any(|(silent, _)| silent == name);
    breaks(if is_silent {
        Wire::open_silently(to.port, to.limit)?
    } else {
        to.open()?
    })
}
