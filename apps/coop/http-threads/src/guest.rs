//! The server.

use core::future::{Future, ready};
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use axcoop_net::{Error, Operation, TcpListener, TcpStream, Wait};
use http_common::{Limits, PORT, Place, Site, Wire, serve};
use std::os::arceos::modules::axalloc;
use std::{println, thread};

/// A thread's stack. It parses and answers; the network's own work is the poller's.
const STACK: usize = 32 * 1024;
/// So many connections at a time; who comes then waits to be accepted.
const MOST: u32 = 512;
/// How long those who are being answered when the server is to end may take.
const END: Duration = Duration::from_secs(5);

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
        match listener.accept().within(Duration::from_millis(100)).wait() {
            Ok((stream, _)) => begin(stream),
            Err(Error::TimedOut) => {}
            Err(error) => println!("http-threads: accept: {error}"),
        }
    }
    drop(listener);
    let tick = Duration::from_millis(10);
    for _ in 0..END.as_millis() / tick.as_millis() {
        if SITE.open.load(Relaxed) == 0 {
            break;
        }
        thread::sleep(tick);
    }
    println!("http-threads: {}", SITE.stats().trim_end());
    println!("http-threads: {:?}", axcoop_net::statistics());
}

fn begin(stream: TcpStream) {
    SITE.connection_begins();
    let served = thread::Builder::new().stack_size(STACK).spawn(move || {
        let mut wire = Wire(stream, Thread);
        serve(&mut wire, &SITE, &Limits::PATIENT).wait();
        drop(wire);
        SITE.connection_ends();
    });
    if let Err(error) = served {
        println!("http-threads: no thread: {error}");
        SITE.connection_ends();
    }
}

struct Thread;

impl Place for Thread {
    fn pause(&mut self) -> impl Future<Output = ()> + Send {
        thread::yield_now();
        ready(())
    }

    fn set_priority(&mut self, _: u8) {}
}
