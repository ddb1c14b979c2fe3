//! A connection: requests out, answers in, compared byte for byte.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{Ipv4Addr, Shutdown, TcpStream},
    sync::Mutex,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use http_common::reason;
use nix::{libc::linger, sys::socket::setsockopt, sys::socket::sockopt};
use serde::Deserialize;

/// Time for which a server waits for a client's end, and keeps a closed connection's socket
/// (`Limits::PATIENT`, `axcoop_net::LINGER`).
pub const LINGER: Duration = Duration::from_secs(5);

/// Limit of an answer.
const LIMIT: Duration = Duration::from_secs(60);

/// A server's counters (`/stats`).
#[derive(Debug, Deserialize)]
pub struct Stats {
    pub used_bytes: u64,
    pub open: u64,
    pub most: u64,
    pub refused: u64,
    pub timeouts: u64,
    pub broken: u64,
}

static OPENING: Mutex<()> = Mutex::new(());

pub struct Wire(TcpStream);

/// Returns the answer that the server must write: a status with this body, or only its head. A 405
/// belongs to a path that allows only reading.
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

/// Returns the beginning of some bytes, for an error message of one line.
fn beginning(bytes: &[u8]) -> String {
    let most = 120.min(bytes.len());
    let more = if most < bytes.len() { "..." } else { "" };
    format!("{}{more}", bytes[..most].escape_ascii())
}

impl Wire {
    /// Opens a connection, and waits for a first answer, which shows that it has reached the server.
    /// Opens one at a time: QEMU lets the host keep a single connection that it has not taken yet
    /// (`listen(s, 1)` in libslirp). If two come at once, one may be dropped, or reset later.
    pub fn open(port: u16) -> Result<Self> {
        Self::open_within(port, LIMIT)
    }

    /// Opens a connection as [`open`](Self::open) does, with a limit of its answers.
    pub fn open_within(port: u16, limit: Duration) -> Result<Self> {
        let _alone = OPENING.lock().expect("no thread panics with it");
        let mut wire = Self::connect(port, limit)?;
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
        wire.expect(&answer(200, b"axcoop\n", true, false))
            .context("the first answer")?;
        Ok(wire)
    }

    /// Opens a connection without a first request, and gives QEMU a moment to take it.
    pub fn open_silently(port: u16) -> Result<Self> {
        let _alone = OPENING.lock().expect("no thread panics with it");
        let wire = Self::connect(port, LIMIT)?;
        thread::sleep(Duration::from_millis(5));
        Ok(wire)
    }

    fn connect(port: u16, limit: Duration) -> Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(Self(stream))
    }

    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).context("send")
    }

    /// Sends a byte at a time, with a pause after each.
    pub fn send_slowly(&mut self, bytes: &[u8], apart: Duration) -> Result<()> {
        for byte in bytes {
            self.send(&[*byte])?;
            thread::sleep(apart);
        }
        Ok(())
    }

    /// Reads exactly these bytes.
    pub fn expect(&mut self, expected: &[u8]) -> Result<()> {
        let (mut got, mut length) = (vec![0; expected.len()], 0);
        // Stops at the first difference.
        while length < expected.len() && got[..length] == expected[..length] {
            let read = self.0.read(&mut got[length..]);
            match read
                .with_context(|| format!("an answer, after `{}`", beginning(&got[..length])))?
            {
                0 => break,
                read => length += read,
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

    /// Checks that the server closes without another byte. It may reset a client that it has not
    /// read.
    pub fn expect_end(&mut self) -> Result<()> {
        match self.0.read(&mut [0; 64]) {
            Ok(0) => Ok(()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
            Ok(more) => bail!("{more} bytes where an end was expected"),
            Err(error) => Err(error).context("the end of a connection"),
        }
    }

    /// Waits until a byte has come, and leaves it there.
    pub fn wait(&mut self) -> Result<()> {
        self.0.peek(&mut [0]).context("an answer")?;
        Ok(())
    }

    /// Reads until the server ends its side, which the client does not ask for.
    pub fn until_end(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.0.read_to_end(&mut bytes);
        read.with_context(|| format!("no end, after `{}`", beginning(&bytes)))?;
        Ok(bytes)
    }

    /// Ends the client's side.
    pub fn end(&mut self) -> Result<()> {
        Ok(self.0.shutdown(Shutdown::Write)?)
    }

    /// Breaks the connection: the server gets a reset instead of an end.
    pub fn reset(self) -> Result<()> {
        let at_once = linger {
            l_onoff: 1,
            l_linger: 0,
        };
        Ok(setsockopt(&self.0, sockopt::Linger, &at_once)?)
    }

    /// Sends without reading, until the server has taken nothing for a while.
    pub fn stuff(&mut self, bytes: &[u8], at_most: usize) -> Result<()> {
        self.0.set_write_timeout(Some(Duration::from_millis(300)))?;
        let mut sent = 0;
        while sent < at_most {
            match self.0.write(bytes) {
                Ok(taken) => sent += taken,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("stuff"),
            }
        }
        Ok(())
    }

    pub fn stats(&mut self) -> Result<Stats> {
        self.send(b"GET /stats HTTP/1.1\r\nHost: a\r\n\r\n")?;
        // Head and body are lines, and nothing follows them.
        let mut lines = BufReader::new(&self.0).lines();
        let mut next = || {
            lines
                .next()
                .context("an end within /stats")?
                .context("/stats")
        };
        let status = next()?;
        ensure!(status == "HTTP/1.1 200 OK", "/stats: found `{status}`");
        while !next()?.is_empty() {}
        Ok(serde_json::from_str(&next()?)?)
    }

    pub fn quit(&mut self) -> Result<()> {
        self.send(b"POST /quit HTTP/1.1\r\nHost: a\r\n\r\n")?;
        self.expect(&answer(200, b"bye\n", false, false))
    }
}
