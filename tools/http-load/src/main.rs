//! Clients of the HTTP servers in `apps/coop`: many at once, and among them slow and broken ones.
//! Each byte of each answer is compared with what it should be. Prints one JSON line; its status
//! is 0 only if there was no error and the server's memory is as before.
//!
//! | file | what is in it |
//! |---|---|
//! | `wire.rs` | a connection: requests out, answers in, compared |
//! | `clients.rs` | the clients: good ones, slow ones |
//! | `cases.rs` | the cases of the RFCs, which are a table of `http-common` |
//! | `broken.rs` | those that break off, talk nonsense, or do not listen |
//! | `figures.rs`, `errors.rs` | the line, and what went wrong |
//! | `arguments.rs` | what can be said on the command line |

mod arguments;
mod broken;
mod cases;
mod clients;
mod errors;
mod figures;
mod wire;

use std::{
    process::ExitCode,
    sync::{Barrier, Mutex},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::{
    arguments::Arguments,
    clients::Client,
    errors::Errors,
    figures::Figures,
    wire::{Address, LINGER, Wire},
};

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
    let limit = Duration::from_secs(arguments.limit);
    let pause = Duration::from_millis(arguments.pause);
    let to = Address { port, limit, pause };
    wait_until_it_listens(port, Duration::from_secs(arguments.wait))?;

    // All clients once, so that what a server keeps for the next time is there.
    let mut errors = Errors::default();
    let ends = cases::run(to, &mut errors);
    let errors = Mutex::new(errors);
    load(connections, connections, slow, broken.min(8), to, &errors);
    let before = settled(to)?;
    let (latencies, took) = load(connections, requests, slow, broken, to, &errors);
    let after = settled(to)?;
    if arguments.quit {
        to.open()?.quit().context("/quit")?;
    }

    let mut errors = errors.into_inner().expect("no client panics with it");
    let grown = after.used_bytes as i64 - before.used_bytes as i64;
    if grown > arguments.slack {
        errors.add(format!("the server's memory has grown by {grown} bytes"));
    }
    for error in &errors.first {
        eprintln!("http-load: {error}");
    }
    let figures = Figures::new(
        arguments,
        took,
        latencies,
        ends,
        errors.count,
        &before,
        &after,
    );
    println!("{}", serde_json::to_string(&figures)?);
    Ok(errors.count == 0)
}

/// QEMU takes connections for its guest before that has booted, and drops them.
fn wait_until_it_listens(port: u16, wait: Duration) -> Result<()> {
    let end = Instant::now() + wait;
    loop {
        let answers = Wire::open(port, Duration::from_secs(2)).map(drop);
        match answers {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() > end => {
                return Err(error.context(format!("nobody answers on 127.0.0.1:{port}")));
            }
            Err(_) => thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// The statistics once all connections but this one have ended, with the least memory of some
/// seconds: sockets stay for [`LINGER`] at most, and what a server allocates for a moment, on
/// whichever CPU, is seen in one look and not in the next.
fn settled(to: Address) -> Result<wire::Stats> {
    let mut wire = to.open()?;
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

/// Runs all clients at once. Returns the time of each request of those that are not slow, and the
/// time of them all, from when the last connection is open.
fn load(
    connections: usize,
    requests: usize,
    slow: usize,
    broken: usize,
    to: Address,
    errors: &Mutex<Errors>,
) -> (Vec<Duration>, Duration) {
    let all_are_there = Barrier::new(connections);
    let measured = Mutex::new((Vec::with_capacity(requests), Duration::ZERO));
    let said = |whose: String, error: anyhow::Error| {
        errors
            .lock()
            .expect("no client panics with it")
            .add(format!("{whose}: {error:#}"));
    };
    thread::scope(|scope| {
        for number in 0..connections {
            let share = requests / connections + usize::from(number < requests % connections);
            let (all_are_there, measured, said) = (&all_are_there, &measured, &said);
            scope.spawn(move || {
                let opened = to.open();
                all_are_there.wait();
                let begin = Instant::now();
                let mut client = Client::new(number, number < slow);
                if let Err(error) = opened.and_then(|wire| client.run(wire, share, to.pause)) {
                    said(format!("client {number}"), error);
                }
                let took = begin.elapsed();
                let mut measured = measured.lock().expect("no client panics with it");
                measured.0.extend(client.latencies);
                if number >= slow {
                    measured.1 = measured.1.max(took);
                }
            });
        }
        for lane in 0..8.min(broken) {
            let said = &said;
            scope.spawn(move || {
                for number in (lane..broken).step_by(8) {
                    if let Err(error) = broken::run(number, to) {
                        said(
                            format!("broken client {number} ({})", broken::name(number)),
                            error,
                        );
                    }
                }
            });
        }
    });
    measured.into_inner().expect("no client panics with it")
}
