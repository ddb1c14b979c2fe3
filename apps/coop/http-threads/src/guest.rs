//! The server.

extern crate alloc;

use alloc::vec::Vec;
use core::future::Future;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use axcoop_net::{Error, Operation, TcpListener, TcpStream, Wait};
use http_common::{Limits, Site, Transport, Trouble, serve};
use std::os::arceos::modules::{axalloc, axhal};
use std::{println, thread};

/// Which make serve forwards.
const PORT: u16 = 5555;
/// A thread's stack. It parses and answers; the network's own work is the poller's.
const STACK: usize = 32 * 1024;
/// So many connections at a time; who comes then waits to be accepted.
const MOST: u32 = 512;

static SITE: Site = Site::new(|| axalloc::global_allocator().used_bytes());

pub fn main() {
    #[cfg(feature = "balanced")]
    axsched_arceos::connect().expect("nobody else interrupts CPUs");
    if let Err(error) = axcoop_net::start() {
        println!("http-threads: {error}");
        return;
    }
    let listener = TcpListener::bind(PORT).expect("nobody else listens");
    println!("http-threads: listening on port {PORT}");
    while !SITE.has_quit() {
        if SITE.open.load(Relaxed) >= MOST {
            thread::sleep(Duration::from_millis(10));
            continue;
        }
        // Now and then to see whether it is to end.
        let stream = match listener.accept().within(Duration::from_millis(100)).wait() {
            Ok((stream, _)) => stream,
            Err(Error::TimedOut) => continue,
            Err(error) => {
                println!("http-threads: accept: {error}");
                continue;
            }
        };
        SITE.connection_begins();
        let served = thread::Builder::new().stack_size(STACK).spawn(move || {
            let mut transport = Blocking(stream);
            // Nothing in it is ever pending: what waits blocks.
            serve(&mut transport, &SITE, &Limits::NEAR).wait();
            drop(transport);
            SITE.connection_ends();
        });
        if let Err(error) = served {
            println!("http-threads: no thread: {error}");
            SITE.connection_ends();
        }
    }
    drop(listener);
    // Those who are being answered; others have had their time.
    for _ in 0..200 {
        if SITE.open.load(Relaxed) == 0 {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    println!("http-threads: {}", SITE.stats().trim_end());
    println!("http-threads: {:?}", axcoop_net::statistics());
}

struct Blocking(TcpStream);

fn trouble(error: Error) -> Trouble {
    if error == Error::TimedOut {
        Trouble::Late
    } else {
        Trouble::Broken
    }
}

impl Transport for Blocking {
    fn now(&self) -> Duration {
        axhal::time::monotonic_time()
    }

    fn read(
        &mut self,
        into: Vec<u8>,
        until: Duration,
    ) -> impl Future<Output = (Result<usize, Trouble>, Vec<u8>)> + Send {
        let within = until.saturating_sub(self.now());
        let (read, buffer) = self.0.read(into).within(within).wait();
        core::future::ready((read.map_err(trouble), buffer))
    }

    fn write_all(
        &mut self,
        bytes: Vec<u8>,
        until: Duration,
    ) -> impl Future<Output = Result<(), Trouble>> + Send {
        let within = until.saturating_sub(self.now());
        let (written, _) = self.0.write_all(bytes).within(within).wait();
        core::future::ready(written.map_err(trouble))
    }

    fn pause(&mut self) -> impl Future<Output = ()> + Send {
        thread::yield_now();
        core::future::ready(())
    }

    fn set_priority(&mut self, _: u8) {}
}
