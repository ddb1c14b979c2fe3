//! The HTTP server with a thread for each connection.

use core::time::Duration;

use axcoop_net::Wait;
use http_common::{Place, accept, converse, open, run};
use std::thread;

/// The bytes of a thread's stack. A thread parses and answers, and the poller does the network's
/// own work.
const STACK: usize = 32 * 1024;
/// The most connections at a time. The next one waits for one of them to end.
const MOST: u32 = 512;

pub fn main() {
    #[cfg(feature = "balanced")]
    axsched_arceos::connect().expect("nothing else interrupts CPUs");
    run("http-threads", |listener| {
        let begin = |stream| {
            while open() > MOST {
                thread::sleep(Duration::from_millis(10));
            }
            let thread = thread::Builder::new().stack_size(STACK);
            thread.spawn(|| converse(stream, Thread).wait()).map(drop)
        };
        accept("http-threads", listener, begin).wait();
    });
}

struct Thread;

impl Place for Thread {
    async fn pause(&mut self) {
        thread::yield_now();
    }

    fn set_priority(&mut self, _: u8) {}
}
