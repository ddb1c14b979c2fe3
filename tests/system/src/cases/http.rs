//! The HTTP servers of apps/coop and real clients: many at once, slow and broken ones among them.
//! Small here; `make serve` with options does it in full.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::helpers::ANY_ARCH;
use crate::frame::{Case, Context, case};

/// What a case asks of the clients.
const LOAD: &str = "LAB=--connections 50 --requests 500 --slow 3 --broken 24";

pub fn cases() -> Vec<Case> {
    let servers = [
        ("http", "sched_coop", "1"),
        ("http", "sched_rr", "4"),
        ("http-threads", "sched_rr", "1"),
    ];
    let mut cases: Vec<_> = servers
        .into_iter()
        .map(|(app, policy, cpus)| {
            let name = format!("qemu: {app} under {policy} with {cpus} CPU serves 50 clients");
            case(name, move |context| serves(context, app, policy, cpus)).builds(ANY_ARCH)
        })
        .collect();
    cases.push(case("make: serve says whose the port is", port_taken).boots("http", ANY_ARCH));
    cases
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

fn serves(context: &Context, app: &str, policy: &str, cpus: &str) -> Result<()> {
    let said = context
        .make(["serve", LOAD])
        .args([
            format!("A=apps/coop/{app}"),
            format!("FEATURES={policy}"),
            format!("SMP={cpus}"),
            format!("PORT={}", free_port()?),
        ])
        .limit(600)
        .text()?;
    let line = said
        .lines()
        .find(|line| line.starts_with('{'))
        .context("no line of figures")?;
    let figures: Value = serde_json::from_str(line)?;
    let number = |key: &str| {
        figures[key]
            .as_u64()
            .with_context(|| format!("no {key} in {line}"))
    };
    ensure!(number("errors")? == 0, "errors: {line}");
    ensure!(
        number("most_open")? >= 50,
        "all were to be there at once: {line}"
    );
    ensure!(
        number("broken_seen")? > 0,
        "no broken client was seen: {line}"
    );
    Ok(())
}

fn port_taken(context: &Context) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    context
        .make(["build", "A=apps/coop/http", "TIMING=real"])
        .text()?;
    let call = context
        .make(["-s", "serve", "A=apps/coop/http"])
        .args([format!("PORT={port}")]);
    let said = call.failure()?;
    ensure!(
        said.contains(&format!(
            "PORT={port}: somebody listens on 127.0.0.1:{port} already; allowed"
        )),
        "expected one line about the port"
    );
    Ok(())
}
