//! The common part of the HTTP servers, which have a thread or a coroutine for each connection. They are
//! built on [`edge_http`], with a layer above it for the cases of RFC 9110 and 9112 that it
//! handles wrongly ([ADR 0032](../../../../docs/adr/0032-a-library-and-a-layer-for-http.md)).
//!
//! | file | contents |
//! |---|---|
//! | `site.rs` | paths, answers, counters, and the end |
//! | `head.rs` | the checks of the head of a request, and their rules |
//! | `serve.rs` | the course of one connection, over anything that reads and writes |
//! | `cases.rs` | the cases of the RFCs, as a table for tests |
//! | `wire.rs` | the network of `axcoop-net`, and a server's main |
//!
//! Only the last one uses ArceOS; the others are tested on the host.

#![cfg_attr(not(test), no_std)]

extern crate alloc;
#[cfg(target_os = "none")]
extern crate axstd as std;

mod cases;
mod head;
mod serve;
mod site;
#[cfg(target_os = "none")]
mod wire;

pub use cases::{Case, cases};
pub use head::{BODY_LIMIT, HEAD_LIMIT, HEADERS_LIMIT, Head, take_head};
pub use serve::{Limits, Link, Place, serve};
pub use site::{Answer, Site, WORK_LIMIT, Work, priority, reason};
#[cfg(target_os = "none")]
pub use wire::{accept, converse, open, run};
