//! The HTTP servers of apps/coop and real clients: many at once, slow and broken ones among them.
//! The load is small here; `make serve` has options for the full load.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::helpers::REAL_ARCH;
use crate::frame::{Case, Context, case};

/// The clients of each case.
const LOAD: &str = "LAB='--connections 50 --requests 500 --slow 3 --broken 24'";

pub fn cases() -> Vec<Case<'static>> {
    let servers = [
        ("http", "sched_coop", 1),
        ("http", "sched_rr", 4),
        ("http-threads", "sched_rr", 1),
    ];
    let served = servers.map(|(app, policy, cpus)| {
        let name = format!("qemu: {app} under {policy} with {cpus} CPU serves 50 clients");
        case(name, move |context| {
            serve_clients(context, app, policy, cpus)
        })
        .builds(REAL_ARCH)
    });
    let port =
        case("make: serve says that the port is taken", refuse_port).boots("http", REAL_ARCH);
    served.into_iter().chain([port]).collect()
}

/// Listens at a port that was free.
fn listen() -> Result<(TcpListener, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

fn serve_clients(context: &Context, app: &str, policy: &str, cpus: u32) -> Result<()> {
    let (_, port) = listen()?; // the listener is dropped, so the port is free again
    let call = context.make(format!(
        "serve A=apps/coop/{app} ARCH={REAL_ARCH} PORT={port}"
    ));
    let call = call
        .args(format!("FEATURES={policy} SMP={cpus}"))
        .args(LOAD);
    let said = call.limit(600).text()?;
    let line = said.lines().find(|line| line.starts_with('{'));
    let line = line.context("no line of figures")?;
    let figures: Value = serde_json::from_str(line)?;
    for (key, wanted) in [
        ("errors", 0..=0),
        ("most_open", 50..=u64::MAX), // all at once
        ("broken_seen", 1..=u64::MAX),
    ] {
        let number = figures[key].as_u64();
        let number = number.with_context(|| format!("no {key} in {line}"))?;
        ensure!(wanted.contains(&number), "{key}: {line}");
    }
    Ok(())
}

fn refuse_port(context: &Context) -> Result<()> {
    let (_listener, port) = listen()?;
    let build = context.make(format!(
        "build A=apps/coop/http ARCH={REAL_ARCH} TIMING=real"
    ));
    build.text()?;
    let call = context.make(format!(
        "-s serve A=apps/coop/http ARCH={REAL_ARCH} PORT={port}"
    ));
    let said = call.failure()?;
    let taken = format!("PORT={port}: a program listens on 127.0.0.1:{port} already; allowed");
    ensure!(said.contains(&taken), "expected `{taken}`");
    Ok(())
}
