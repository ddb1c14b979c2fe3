//! The server.

use core::future::Future;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use axcoop_arceos::{Domain, Priority, current, set_priority, yield_now};
use axcoop_net::{Error, Operation, TcpListener, TcpStream};
use http_common::{Limits, PORT, Place, Site, Wire, serve};
use std::os::arceos::modules::axalloc;
use std::{println, thread};

/// How long those who are being answered when the server is to end may take.
const END: Duration = Duration::from_secs(5);

static SITE: Site = Site::new(|| axalloc::global_allocator().used_bytes());

pub fn main() {
    #[cfg(feature = "balanced")]
    axsched_arceos::connect().expect("nobody else interrupts CPUs");
    if let Err(error) = axcoop_net::start() {
        println!("http: {error}");
        return;
    }
    let domain = axcoop_arceos::domain("http").expect("there is one, and memory for it");
    let listener = TcpListener::bind(PORT).expect("nobody else listens");
    println!("http: listening on port {PORT}");
    // To accept is more urgent than anything asked for: who it is comes out after that.
    let accepts = domain.spawn(accept(domain, listener), Priority::FIRST);
    accepts.join().expect("nobody cancels it");
    let tick = Duration::from_millis(10);
    for _ in 0..END.as_millis() / tick.as_millis() {
        if SITE.open.load(Relaxed) == 0 {
            break;
        }
        thread::sleep(tick);
    }
    println!("http: {}", SITE.stats().trim_end());
    println!("http: {:?}", axcoop_net::statistics());
}

async fn accept(domain: &'static Domain, listener: TcpListener) {
    while !SITE.has_quit() {
        // Now and then to see whether it is to end.
        match listener.accept().within(Duration::from_millis(100)).await {
            Ok((stream, _)) => begin(domain, stream),
            Err(Error::TimedOut) => {}
            Err(error) => println!("http: accept: {error}"),
        }
    }
}

fn begin(domain: &'static Domain, stream: TcpStream) {
    SITE.connection_begins();
    let served = domain.try_spawn(
        async move {
            let mut wire = Wire(stream, Coroutine);
            serve(&mut wire, &SITE, &Limits::PATIENT).await;
            drop(wire);
            SITE.connection_ends();
        },
        Priority::DEFAULT,
    );
    // It runs without its handle. Without memory for it the client is let go.
    if let Err(error) = served {
        println!("http: {error}");
        SITE.connection_ends();
    }
}

struct Coroutine;

impl Place for Coroutine {
    fn pause(&mut self) -> impl Future<Output = ()> + Send {
        yield_now()
    }

    fn set_priority(&mut self, priority: u8) {
        let priority = Priority::new(priority.into());
        let own = current().expect("a coroutine serves it");
        set_priority(own, priority).expect("it is there, as it is running");
    }
}
