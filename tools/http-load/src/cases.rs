//! The cases of RFC 9110 and 9112, one after the other, each on a connection of its own.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Error, Result, ensure};
use http_common::{Case, cases};

use crate::wire::{LINGER, Wire};

/// Pause between the pieces that a case sends without waiting for an answer.
const APART: Duration = Duration::from_millis(30);

/// Runs all cases. For each case that is answered as it should be, returns the time from the last
/// byte that the client sent to the end of its connection.
pub fn run(port: u16, errors: &mut Vec<String>) -> Vec<Duration> {
    let mut took = Vec::new();
    for case in cases() {
        match play(&case, port) {
            Ok(time) => took.push(time),
            Err(error) => errors.push(format!("{}: {error:#}", case.line)),
        }
    }
    took
}

fn play(case: &Case, port: u16) -> Result<Duration> {
    let mut wire = Wire::open_silently(port)?;
    let mut begin = Instant::now();
    for (at, piece) in case.sends.iter().enumerate() {
        match at {
            0 => {}
            _ if case.has_continue() => wire.wait()?,
            _ => thread::sleep(APART),
        }
        wire.send(piece.as_bytes())?;
        begin = Instant::now();
    }
    let got = wire.until_end()?;
    let took = begin.elapsed();
    case.check(&got).map_err(Error::msg)?;
    ensure!(
        took < LINGER,
        "the end came after {took:?}: the server has waited for the client's"
    );
    Ok(took)
}
