//! The options on the command line.

use clap::Parser;

/// Drives an HTTP server of apps/coop on 127.0.0.1.
#[derive(Clone, Copy, Parser)]
pub struct Arguments {
    /// The server's port.
    #[arg(long, default_value_t = 5555)]
    pub port: u16,
    /// Connections at once, slow ones among them.
    #[arg(long, default_value_t = 200)]
    pub connections: usize,
    /// Requests of all these connections together.
    #[arg(long, default_value_t = 10_000)]
    pub requests: usize,
    /// Connections that send a byte at a time.
    #[arg(long, default_value_t = 10)]
    pub slow: usize,
    /// Broken clients beside them, one after the other, eight at a time.
    #[arg(long, default_value_t = 80)]
    pub broken: usize,
    /// Milliseconds that a client waits between an answer and its next request.
    #[arg(long, default_value_t = 0)]
    pub pause: u64,
    /// Tell the server to end, at last.
    #[arg(long)]
    pub quit: bool,
}
