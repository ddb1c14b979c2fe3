//! Clients that break off, send nonsense, or do not read.

use std::{thread, time::Duration};

use anyhow::{Context, Result};

use crate::wire::{Wire, answer};

type Opens = fn(u16) -> Result<Wire>;
type Breaks = fn(Wire) -> Result<()>;

const KINDS: [(&str, Opens, Breaks); 11] = [
    ("resets within a request", Wire::open, |mut wire| {
        wire.send(b"GET /p/0 HTT")?;
        thread::sleep(Duration::from_millis(20));
        wire.reset()
    }),
    ("resets within an answer", Wire::open, |mut wire| {
        wire.send(b"GET /work/200 HTTP/1.1\r\nHost: a\r\n\r\n")?;
        thread::sleep(Duration::from_millis(2));
        wire.reset()
    }),
    ("garbage", Wire::open, |mut wire| {
        wire.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")?;
        refused(wire, 400)
    }),
    ("half a request", Wire::open, |mut wire| {
        wire.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")?;
        wire.end()?;
        wire.expect_end()
    }),
    ("a head without an end", Wire::open, |mut wire| {
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")?;
        wire.send(&[b'x'; 8192])?;
        refused(wire, 431)
    }),
    ("many fields", Wire::open, |mut wire| {
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n")?;
        wire.send(&b"A: b\r\n".repeat(40))?;
        wire.send(b"\r\n")?;
        refused(wire, 431)
    }),
    ("a long body", Wire::open, |mut wire| {
        wire.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")?;
        wire.send(&[b'x'; 32 * 1024])?;
        refused(wire, 413)
    }),
    ("never reads", Wire::open, |mut wire| {
        let mut request =
            b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 16384\r\n\r\n".to_vec();
        request.resize(request.len() + 16384, b'x');
        wire.stuff(&request, 4 << 20)?;
        wire.reset()
    }),
    ("resets at once", Wire::open_silently, Wire::reset),
    (
        "resets before it is answered",
        Wire::open_silently,
        |mut wire| {
            wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
            wire.reset()
        },
    ),
    ("ends at once", Wire::open_silently, |mut wire| {
        wire.end().and_then(|()| wire.expect_end())
    }),
];

/// Checks that the server answers with this status, and then closes.
fn refused(mut wire: Wire, status: u16) -> Result<()> {
    wire.expect(&answer(status, b"", false, false))?;
    wire.end()?;
    wire.expect_end()
}

/// Runs the client of this number; each kind comes in turn.
pub fn run(number: usize, port: u16) -> Result<()> {
    let (name, opens, breaks) = KINDS[number % KINDS.len()];
    opens(port).and_then(breaks).context(name)
}
