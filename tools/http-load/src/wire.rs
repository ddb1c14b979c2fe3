//! A connection: requests out, answers in, compared byte for byte.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, Shutdown, TcpStream},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use http_common::reason;
use nix::{libc::linger, sys::socket::setsockopt, sys::socket::sockopt};
use serde::{Deserialize, Serialize};

/// The time for which a server waits for a client's end, and a closed connection's socket stays
/// (`Limits::PATIENT`, `axcoop_net::LINGER`).
pub const LINGER: Duration = Duration::from_secs(5);

/// Where the server is, how long an answer may take, and how long a client rests.
#[derive(Clone, Copy)]
pub struct Address {
    pub port: u16,
    pub limit: Duration,
    pub pause: Duration,
}

impl Address {
    pub fn open(self) -> Result<Wire> {
        Wire::open(self.port, self.limit)
    }
}

/// What a server says of itself (`/stats`).
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Stats {
    pub used_bytes: u64,
    pub open: u64,
    pub most: u64,
    pub accepted: u64,
    pub answered: u64,
    pub refused: u64,
    pub timeouts: u64,
    pub broken: u64,
}

static OPENING: Mutex<()> = Mutex::new(());

pub struct Wire {
    stream: TcpStream,
    /// How long an answer may take.
    limit: Duration,
}

/// Returns a whole answer, as the server is to write it: of one status, with this body or with the
/// head of an answer that has it. A 405 is that of a path which is only read.
pub fn answer(status: u16, body: &[u8], keep_alive: bool, is_head: bool) -> Vec<u8> {
    let reason = reason(status);
    let words = format!("{status} {reason}\n");
    let body = match status {
        200 => body,
        _ => words.as_bytes(),
    };
    let allow = match status {
        405 => "Allow: GET, HEAD\r\n",
        _ => "",
    };
    let connection = if keep_alive { "keep-alive" } else { "close" };
    let mut bytes = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n{allow}\
         Connection: {connection}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    if !is_head {
        bytes.extend_from_slice(body);
    }
    bytes
}

/// For an error message, of one line.
fn beginning(bytes: &[u8]) -> String {
    let most = 120.min(bytes.len());
    let more = if most < bytes.len() { "..." } else { "" };
    format!("{}{more}", bytes[..most].escape_ascii())
}

impl Wire {
    /// A connection that has reached the server, which is shown by a first answer. One at a time:
    /// QEMU has the host keep a single connection that it has not taken yet (`listen(s, 1)` in
    /// libslirp), and of two that come at once one may be dropped, or reset later.
    pub fn open(port: u16, limit: Duration) -> Result<Self> {
        let _alone = OPENING.lock().expect("nobody panics with it");
        let mut wire = Self::connect(port, limit)?;
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
        wire.expect(&answer(200, b"axcoop\n", true, false))
            .context("the first answer")?;
        Ok(wire)
    }

    /// One that says nothing first, and of which QEMU has had a moment to take it.
    pub fn open_silently(port: u16, limit: Duration) -> Result<Self> {
        let _alone = OPENING.lock().expect("nobody panics with it");
        let wire = Self::connect(port, limit)?;
        thread::sleep(Duration::from_millis(5));
        Ok(wire)
    }

    fn connect(port: u16, limit: Duration) -> Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(Self { stream, limit })
    }

    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).context("send")
    }

    /// A byte at a time, so long apart.
    pub fn send_slowly(&mut self, bytes: &[u8], apart: Duration) -> Result<()> {
        for byte in bytes {
            self.send(&[*byte])?;
            thread::sleep(apart);
        }
        Ok(())
    }

    /// Takes exactly these bytes.
    pub fn expect(&mut self, expected: &[u8]) -> Result<()> {
        let mut got = vec![0; expected.len()];
        let mut length = 0;
        while length < expected.len() {
            match self.stream.read(&mut got[length..]) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) => {
                    let so_far = beginning(&got[..length]);
                    return Err(error).with_context(|| format!("an answer, after `{so_far}`"));
                }
            }
            // What differs already need not be waited for.
            if got[..length] != expected[..length] {
                break;
            }
        }
        ensure!(
            got[..length] == *expected,
            "expected `{}`, found `{}`",
            beginning(expected),
            beginning(&got[..length])
        );
        Ok(())
    }

    /// The server closes, and says nothing more. Whoever has not been read may be reset.
    pub fn expect_end(&mut self) -> Result<()> {
        match self.stream.read(&mut [0; 64]) {
            Ok(0) => Ok(()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
            Ok(more) => bail!("{more} bytes where an end was expected"),
            Err(error) => Err(error).context("the end of a connection"),
        }
    }

    /// Waits until something has come, and leaves it there.
    pub fn wait(&mut self) -> Result<()> {
        self.stream.peek(&mut [0]).context("an answer")?;
        Ok(())
    }

    /// Returns all that comes until the server ends its side; the client does nothing for it.
    pub fn until_end(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.stream.read_to_end(&mut bytes);
        read.with_context(|| format!("no end, after `{}`", beginning(&bytes)))?;
        Ok(bytes)
    }

    /// Nothing more is sent.
    pub fn end(&mut self) -> Result<()> {
        Ok(self.stream.shutdown(Shutdown::Write)?)
    }

    /// Breaks the connection: the server hears of a reset, and not of an end.
    pub fn reset(self) -> Result<()> {
        let at_once = linger {
            l_onoff: 1,
            l_linger: 0,
        };
        Ok(setsockopt(&self.stream, sockopt::Linger, &at_once)?)
    }

    /// Sends without reading, until the other side takes nothing more; how many bytes it took.
    pub fn stuff(&mut self, bytes: &[u8], at_most: usize) -> Result<usize> {
        self.stream.set_nonblocking(true)?;
        let (mut sent, mut last) = (0, Instant::now());
        while sent < at_most && last.elapsed() < Duration::from_millis(300) {
            match self.stream.write(bytes) {
                Ok(taken) => (sent, last) = (sent + taken, Instant::now()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    thread::sleep(Duration::from_millis(10));
                }
                Err(error) => return Err(error).context("stuff"),
            }
        }
        self.stream.set_nonblocking(false)?;
        Ok(sent)
    }

    pub fn get(&mut self, path: &str) -> Result<Vec<u8>> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes())?;
        self.body()
    }

    /// The body of an answer of which it is not known what it says.
    fn body(&mut self) -> Result<Vec<u8>> {
        let (mut bytes, mut byte) = (Vec::new(), [0]);
        while !bytes.ends_with(b"\r\n\r\n") {
            let read = self.stream.read(&mut byte).context("an answer")?;
            ensure!(
                read == 1,
                "an end within an answer, after {limit:?} at most",
                limit = self.limit
            );
            bytes.push(byte[0]);
        }
        let head = String::from_utf8(bytes)?;
        ensure!(head.starts_with("HTTP/1.1 200 OK\r\n"), "found `{head}`");
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.context("no length")?.parse()?];
        self.stream.read_exact(&mut body).context("a body")?;
        Ok(body)
    }

    pub fn stats(&mut self) -> Result<Stats> {
        let body = self.get("/stats").context("/stats")?;
        Ok(serde_json::from_slice(&body)?)
    }

    pub fn quit(&mut self) -> Result<()> {
        self.send(b"POST /quit HTTP/1.1\r\nHost: a\r\n\r\n")?;
        self.expect(&answer(200, b"bye\n", false, false))
    }
}
