//! The HTTP server with a coroutine for each connection.

use core::future::Future;

use axcoop_arceos::{Priority, current, set_priority, yield_now};
use http_common::{Place, accept, converse, run};

pub fn main() {
    #[cfg(feature = "balanced")]
    axsched_arceos::connect().expect("nothing else interrupts CPUs");
    let domain = axcoop_arceos::domain("http").expect("there is one, and memory for it");
    run("http", |listener| {
        // A coroutine runs without its handle.
        let begin = move |stream| {
            let served = domain.try_spawn(converse(stream, Coroutine), Priority::DEFAULT);
            served.map(drop)
        };
        // Accepting is more urgent than any request: the path is known only after that.
        let accepts = domain.spawn(accept("http", listener, begin), Priority::FIRST);
        accepts.join().expect("nothing cancels it");
    });
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
