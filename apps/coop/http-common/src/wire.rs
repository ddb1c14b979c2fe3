//! The network of `axcoop-net`, and a server's main. Coroutines, which await, and threads, which block on the same
//! futures, share it.

use core::fmt::Display;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use axcoop_net::{Error, Operation, TcpListener, TcpStream, TimedStream};
use std::os::arceos::modules::axalloc;
use std::{println, thread};

use crate::serve::{Limits, Link, Place, serve};
use crate::site::Site;

/// The port on which the servers listen, which `make serve` forwards.
const PORT: u16 = 5555;
/// The time that is left to open connections when the server ends.
const END: Duration = Duration::from_secs(5);

static SITE: Site = Site::new(|| axalloc::global_allocator().used_bytes());

impl Link for TimedStream {
    fn limit(&mut self, time: Duration) {
        self.within(time);
    }

    fn shutdown(&mut self) {
        self.stream().shutdown();
    }
}

/// Runs a server: starts the network, calls `accepts` to accept connections until a client tells the server to end,
/// and waits for the open ones.
pub fn run(name: &str, accepts: impl FnOnce(TcpListener)) {
    if let Err(error) = axcoop_net::start() {
        println!("{name}: {error}");
        return;
    }
    let listener = TcpListener::bind(PORT).expect("nothing else listens");
    println!("{name}: listening on port {PORT}");
    accepts(listener);
    let tick = Duration::from_millis(10);
    for _ in 0..END.as_millis() / tick.as_millis() {
        if open() == 0 {
            break;
        }
        thread::sleep(tick);
    }
    println!("{name}: {}", SITE.stats().trim_end());
    println!("{name}: {:?}", axcoop_net::statistics());
}

/// Accepts connections until a client tells the server to end. `begin` starts a task that [converses](converse).
/// Without memory for the task the connection is closed.
pub async fn accept<E: Display>(
    name: &str,
    listener: TcpListener,
    begin: impl Fn(TcpStream) -> Result<(), E>,
) {
    while !SITE.has_quit() {
        // A time limit, to see whether the server must end.
        match listener.accept().within(Duration::from_millis(100)).await {
            Ok((stream, _)) => {
                SITE.count_connection();
                if let Err(error) = begin(stream) {
                    println!("{name}: {error}");
                    SITE.uncount_connection();
                }
            }
            Err(Error::TimedOut) => {}
            Err(error) => println!("{name}: accept: {error}"),
        }
    }
}

/// Serves a connection to its end.
pub async fn converse(stream: TcpStream, mut place: impl Place) {
    let mut link = TimedStream::new(stream);
    serve(&mut link, &mut place, &SITE, &Limits::PATIENT).await;
    drop(link);
    SITE.uncount_connection();
}

/// Returns the number of connections that are being served.
pub fn open() -> u32 {
    SITE.open.load(Relaxed)
}
