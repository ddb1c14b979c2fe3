//! Clients of the HTTP servers in `apps/coop`: many at once, slow and broken ones among them. They
//! compare each byte of each answer with the expected one. Prints one JSON line. The exit status is
//! 0 only if there was no error and the server's memory is as before.
//!
//! | file | contents |
//! |---|---|
//! | `wire.rs` | a connection: requests out, answers in, compared |
//! | `clients.rs` | the clients: good ones, slow ones |
//! | `cases.rs` | the cases of the RFCs, which are a table of `http-common` |
//! | `broken.rs` | clients that break off, send nonsense, or do not read |
//! | `figures.rs` | the line of figures |
//! | `arguments.rs` | the options on the command line |

mod arguments;
mod broken;
mod cases;
mod clients;
mod figures;
mod wire;

use std::{
    process::ExitCode,
    sync::{Barrier, Mutex},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Error, Result, ensure};
use clap::Parser;

use crate::{
    arguments::Arguments,
    figures::{Figures, Latency, rounded},
    wire::{LINGER, Wire},
};

/// Limit until a server listens.
const WAIT: Duration = Duration::from_secs(60);
/// Bytes by which the server's memory may have grown at the end.
const SLACK: u64 = 16 * 1024;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("http-load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    let Arguments {
        port,
        connections,
        requests,
        slow,
        broken,
        ..
    } = *arguments;
    ensure!(connections > 0, "--connections 0: allowed is 1 or more");
    ensure!(
        slow <= connections,
        "--slow {slow}: allowed is up to --connections {connections}"
    );
    wait_until_it_listens(port)?;

    let mut errors = Vec::new();
    let ends = cases::run(port, &mut errors);
    let errors = Mutex::new(errors);
    // All clients once, so that a server has allocated all that it keeps.
    let once = Arguments {
        requests: connections,
        broken: broken.min(8),
        ..*arguments
    };
    load(&once, &errors);
    let before = settled(port)?;
    let (latencies, took) = load(arguments, &errors);
    let after = settled(port)?;
    if arguments.quit {
        Wire::open(port)?.quit().context("/quit")?;
    }

    let mut errors = errors.into_inner().expect("no client panics with it");
    let grown = after.used_bytes.saturating_sub(before.used_bytes);
    if grown > SLACK {
        errors.push(format!("the server's memory has grown by {grown} bytes"));
    }
    for error in errors.iter().take(10) {
        eprintln!("http-load: {error}");
    }
    let seconds = took.as_secs_f64();
    // If all clients are slow there is no time, and no request.
    let per_second = latencies.len() as f64 / seconds.max(f64::MIN_POSITIVE);
    let figures = Figures {
        connections,
        requests,
        slow,
        broken,
        errors: errors.len(),
        seconds: rounded(seconds, 3),
        requests_per_second: rounded(per_second, 1),
        latency_us: Latency::of(&latencies),
        cases: ends.len(),
        to_end_us: Latency::of(&ends),
        used_bytes_before: before.used_bytes,
        used_bytes_after: after.used_bytes,
        most_open: after.most,
        refused: after.refused,
        timeouts: after.timeouts,
        broken_seen: after.broken,
    };
    println!("{}", serde_json::to_string(&figures)?);
    Ok(errors.is_empty())
}

/// Waits for a first answer. QEMU takes connections before its guest has booted, and drops them.
fn wait_until_it_listens(port: u16) -> Result<()> {
    let end = Instant::now() + WAIT;
    loop {
        match Wire::open_within(port, Duration::from_secs(2)) {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > end => {
                return Err(error.context(format!("no server answers on 127.0.0.1:{port}")));
            }
            Err(_) => thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// Returns the server's counters once all connections but this one have ended, with the least
/// memory of some seconds. Sockets stay for [`LINGER`] at most, and short-lived allocations are in
/// one sample and not in the next.
fn settled(port: u16) -> Result<wire::Stats> {
    let mut wire = Wire::open(port)?;
    let end = Instant::now() + Duration::from_secs(60);
    let mut least = wire.stats()?;
    while least.open != 1 {
        ensure!(
            Instant::now() < end,
            "the server does not come to rest: {least:?}"
        );
        thread::sleep(Duration::from_millis(100));
        least = wire.stats()?;
    }
    let end = Instant::now() + LINGER + Duration::from_secs(1);
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(50));
        let used = least.used_bytes;
        least = wire.stats()?;
        least.used_bytes = least.used_bytes.min(used);
    }
    Ok(least)
}

/// Runs all clients at once. Returns the time of each request of the clients that are not slow, and
/// the time that these clients took, from when the last connection is open.
fn load(arguments: &Arguments, errors: &Mutex<Vec<String>>) -> (Vec<Duration>, Duration) {
    let Arguments {
        port,
        connections,
        requests,
        slow,
        broken,
        pause,
        ..
    } = *arguments;
    let pause = Duration::from_millis(pause);
    let all_are_there = Barrier::new(connections);
    let measured = Mutex::new((Vec::with_capacity(requests), Duration::ZERO));
    let failed = |client: String, error: Error| {
        let mut errors = errors.lock().expect("no client panics with it");
        errors.push(format!("{client}: {error:#}"));
    };
    thread::scope(|scope| {
        for number in 0..connections {
            let share = requests / connections + usize::from(number < requests % connections);
            let (all_are_there, measured, failed) = (&all_are_there, &measured, &failed);
            scope.spawn(move || {
                let opened = Wire::open(port);
                all_are_there.wait();
                let begin = Instant::now();
                let is_slow = number < slow;
                let run = |wire| clients::run(number, is_slow, wire, share, pause);
                let latencies = opened.and_then(run).unwrap_or_else(|error| {
                    failed(format!("client {number}"), error);
                    Vec::new()
                });
                let took = begin.elapsed();
                let mut measured = measured.lock().expect("no client panics with it");
                measured.0.extend(latencies);
                if !is_slow {
                    measured.1 = measured.1.max(took);
                }
            });
        }
        for lane in 0..8.min(broken) {
            let failed = &failed;
            scope.spawn(move || {
                for number in (lane..broken).step_by(8) {
                    if let Err(error) = broken::run(number, port) {
                        failed(format!("broken client {number}"), error);
                    }
                }
            });
        }
    });
    measured.into_inner().expect("no client panics with it")
}
