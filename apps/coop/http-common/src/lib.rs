//! What the HTTP servers have in common, whether a thread or a coroutine serves a connection.
//!
//! | file | what is in it |
//! |---|---|
//! | `request.rs` | bytes become requests, or the status with which they are refused |
//! | `answer.rs` | an answer becomes bytes |
//! | `site.rs` | which paths there are, what is counted, and the end |
//! | `connection.rs` | the course of one connection, over any [`Transport`] |
//!
//! | `wire.rs` | a connection of `axcoop-net` as such a transport |
//!
//! Nothing but the last knows of ArceOS; the others are tested on the host.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod answer;
mod connection;
mod request;
mod site;
#[cfg(target_os = "none")]
mod wire;

pub use answer::Answer;
pub use connection::{Limits, Transport, Trouble, serve};
pub use request::{BODY_LIMIT, HEAD_LIMIT, HEADERS_LIMIT, Method, Next, Reader, Request};
pub use site::{Site, WORK_LIMIT, Work, priority};
#[cfg(target_os = "none")]
pub use wire::{PORT, Place, Wire};
