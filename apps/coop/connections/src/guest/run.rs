//! One run: connections of one combination, and requests for some time.

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use sched_tests_common::{
    latencies::Latencies,
    platform::{now_ns, sleep},
};

use super::{
    account::{self, Account},
    components::{handle, receive, send},
    connection::{Connection, Figures, Window},
    device::{self, Arrivals},
    memory::{OutOfMemory, used_bytes},
    program::{self, Program},
    service::{self, Service},
};

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The number of connections.
    pub connections: usize,
    /// The number of priorities: connection n has n modulo this.
    pub priorities: u8,
    /// Only connections of the first priorities, below this one, send requests.
    pub senders: u8,
    /// The time between two requests of a connection. With 0 the next one comes with the answer.
    pub interval_ns: u64,
    /// The number of requests of each connection, or 1.
    pub requests: u64,
    /// The number of multiplications of each request.
    pub rounds: u64,
    /// The time in which requests come.
    pub window_ns: u64,
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The number of connections with all their components.
    pub started: usize,
    /// True if there was no memory for all.
    pub out_of_memory: bool,
    /// The counts of each priority.
    pub by_priority: Vec<Served>,
    /// The counts of all.
    pub all: Served,
    /// The bytes of components and operations when all of them waited.
    pub waiting_bytes: usize,
    /// The most bytes that they took.
    pub peak_bytes: usize,
    /// The bytes that were not given back.
    pub kept_bytes: usize,
    /// The account of the window's CPU time, if it is known.
    pub account: Option<Account>,
}

/// The counts of requests.
#[derive(Debug, Default)]
pub struct Served {
    /// The number of connections.
    pub connections: usize,
    /// The counts of requests and of their answers.
    pub figures: Figures,
    /// The latencies of the answers.
    pub latencies: Latencies,
}

impl Served {
    fn of(connections: usize, mut figures: Figures) -> Self {
        let latencies = Latencies::new(core::mem::take(&mut figures.latencies));
        Self {
            connections,
            figures,
            latencies,
        }
    }
}

/// A timer tick.
const TICK: Duration = Duration::from_millis(10);
/// The limit for pending requests after the last one, and for reclaiming what has ended.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Waits for a condition within the limit; returns true if it came.
fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    let until_ns = now_ns() + PATIENCE_NS;
    while !is_so() {
        if now_ns() > until_ns {
            return false;
        }
        sleep(TICK);
    }
    true
}

/// Serves `load` with components of `program`, which read with `service`.
///
/// # Panics
/// If a component has not ended long after its socket was closed.
pub fn run<P: Program, S: Service>(load: &Load, program: &P, service: S) -> Outcome {
    let window = Arc::new(Window::default());
    let is_closed_loop = load.interval_ns == 0;
    let latencies = if is_closed_loop {
        // More would have to take less than 10 µs each.
        load.window_ns as usize / 10_000 / load.connections + 1
    } else {
        load.requests as usize
    };
    let connections: Vec<_> = (0..load.connections)
        .map(|number| {
            let priority = (number % usize::from(load.priorities)) as u8;
            Connection::new(number, priority, &window, is_closed_loop, latencies)
        })
        .collect();
    let arrivals = Arrivals {
        connections: connections.clone(),
        senders: load.senders,
        interval_ns: load.interval_ns,
        requests: load.requests,
        window,
        window_ns: load.window_ns,
    };
    let mut outcome = Outcome::default();

    let before = used_bytes();
    service::take_out_of_memory();
    let all = |connection: &&Arc<Connection>| start(connection, load, program, service).is_ok();
    outcome.started = connections.iter().take_while(all).count();
    // Until each of them waits.
    (0..3).for_each(|_| sleep(TICK));
    outcome.out_of_memory = service::take_out_of_memory() || outcome.started < load.connections;
    outcome.waiting_bytes = used_bytes().saturating_sub(before);
    if !outcome.out_of_memory {
        device::arm(arrivals);
        while device::is_busy() {
            sleep(TICK);
        }
        outcome.account = account::closed();
        outcome.peak_bytes = device::peak_bytes().saturating_sub(before);
        wait_until(|| !connections.iter().any(|c| c.client.is_waiting()));
        outcome.out_of_memory = service::take_out_of_memory();
    }

    connections.iter().for_each(|c| c.socket.close());
    assert!(
        wait_until(|| program::alive() == 0),
        "{} components do not end",
        program::alive()
    );
    // Until `gc` and the executor have freed their memory.
    wait_until(|| used_bytes() <= before);
    outcome.kept_bytes = used_bytes().saturating_sub(before);
    outcome.serve(load, &connections);
    outcome
}

/// Starts the three components of a connection.
fn start<P: Program>(
    connection: &Arc<Connection>,
    load: &Load,
    program: &P,
    service: impl Service,
) -> Result<(), OutOfMemory> {
    let of = || connection.clone();
    let priority = connection.priority;
    program.start(receive(of(), service), priority)?;
    program.start(handle::<P>(of(), load.rounds), priority)?;
    program.start(send(of()), priority)
}

impl Outcome {
    fn serve(&mut self, load: &Load, connections: &[Arc<Connection>]) {
        let mut all = Figures::default();
        for priority in 0..load.priorities {
            let (mut count, mut figures) = (0, Figures::default());
            for connection in connections.iter().filter(|c| c.priority == priority) {
                count += 1;
                figures.add(connection.client.figures());
            }
            all.add(figures.clone());
            self.by_priority.push(Served::of(count, figures));
        }
        self.all = Served::of(connections.len(), all);
    }
}
