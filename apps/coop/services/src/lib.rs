//! Five programs of coroutines and the services that they call: does the most urgent coroutine's program get the
//! CPU?
//!
//! Each program is a domain of `axcoop`, and a task that serves it until its coroutines have ended
//! (`Domain::run_until`). Every policy sees six tasks; only `sched_coop` sees which coroutines are ready in which of
//! them.
//!
//! | task | priorities | coroutines | items of each | own work for an item, service, µs | together |
//! |---|---|--:|--:|---|--:|
//! | `services` | those of the callers | one for each request | | | 366 ms |
//! | `backup` | 7 | 4 | 50 | 3,000 + 1,000 | 600 + 200 ms |
//! | `index` | 6 | 4 | 60 | 1,600 + 400 | 384 + 96 ms |
//! | `report` | 4 and 5 | 4 | 50 | 1,000 + 250 | 200 + 50 ms |
//! | `web` | 2 and 3 | 40, one in 4 ms | 4 | 400 + 100 | 64 + 16 ms |
//! | `control` | 0 and 1 | 20, one in 5 ms | 4 | 200 + 50 | 16 + 4 ms |
//!
//! A microsecond is 1,000 instructions. Every second coroutine of a program has the second priority. For each item a
//! coroutine does half of its own work, yields, does the other half, sends a request to the services and waits for
//! the answer. A service is a coroutine in the domain of the services, spawned for the request at the caller's
//! priority, as a kernel works on behalf of its caller. It sends the answer back over a channel. The coroutine that
//! accepts requests there has priority 0, because it knows the caller only after that. So an urgent program needs two
//! domains in turn.
//!
//! The tasks are spawned in the order of the table, so the long programs, which are the least urgent ones, come
//! first. These three have all their coroutines at once. Those of `web` and `control` arrive over time, by timers:
//! the last ones at 156 and 95 ms, before which their programs cannot be done.
//!
//! Each coroutine checks its result, which depends on every round of its own work and of the services'.
//!
//! `SCALE=n` divides the number of items where all coroutines are there at once, and the number of coroutines where
//! they arrive over time. It leaves one item and two coroutines at least.

#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

#[cfg_attr(target_os = "none", path = "guest.rs")]
#[cfg_attr(not(target_os = "none"), path = "host.rs")]
mod system;

use alloc::vec::Vec;
use core::time::Duration;

use sched_tests_common::{Task, work};

use system::{
    Domain, DomainId, JoinHandle, Priority,
    channel::{self, Receiver, Sender},
    now, sleep_until, yield_now,
};

/// Rounds of the loop in a microsecond under icount.
const ROUNDS_US: u64 = 1_000 / work::INSTRUCTIONS_PER_ROUND;

/// The number of requests for which the services have room. Further senders wait, the most urgent first.
const ROOM: usize = 8;

/// The number of the services' domain; the programs have the following ones.
const SERVICES: usize = 0;

/// A program: a domain and its coroutines.
#[derive(Clone, Copy)]
struct Program {
    name: &'static str,
    /// The priorities of the coroutines, which alternate.
    priorities: [Priority; 2],
    coroutines: u64,
    /// The time between two arrivals of coroutines, in microseconds; 0 if all are there at once.
    interval_us: u64,
    /// The number of items of each coroutine.
    items: u64,
    /// The work for an item, in microseconds: the coroutine's own, and the services'.
    own_us: u64,
    service_us: u64,
}

const PROGRAMS: [Program; 5] = [
    Program {
        name: "backup",
        priorities: [Priority::LAST; 2],
        coroutines: 4,
        interval_us: 0,
        items: 50,
        own_us: 3_000,
        service_us: 1_000,
    },
    Program {
        name: "index",
        priorities: [Priority::new(6); 2],
        coroutines: 4,
        interval_us: 0,
        items: 60,
        own_us: 1_600,
        service_us: 400,
    },
    Program {
        name: "report",
        priorities: [Priority::new(4), Priority::new(5)],
        coroutines: 4,
        interval_us: 0,
        items: 50,
        own_us: 1_000,
        service_us: 250,
    },
    Program {
        name: "web",
        priorities: [Priority::new(2), Priority::new(3)],
        coroutines: 40,
        interval_us: 4_000,
        items: 4,
        own_us: 400,
        service_us: 100,
    },
    Program {
        name: "control",
        priorities: [Priority::FIRST, Priority::new(1)],
        coroutines: 20,
        interval_us: 5_000,
        items: 4,
        own_us: 200,
        service_us: 50,
    },
];

impl Program {
    /// Returns the program with a `scale`-th of its work.
    fn at(self, scale: u64) -> Self {
        match self.interval_us {
            0 => Self {
                items: (self.items / scale).max(1),
                ..self
            },
            // Two, so that one of them has to arrive.
            _ => Self {
                coroutines: (self.coroutines / scale).max(2),
                ..self
            },
        }
    }

    /// Returns the number of requests that it sends.
    fn requests(&self) -> u64 {
        self.coroutines * self.items
    }

    fn priority(&self, coroutine: u64) -> Priority {
        self.priorities[coroutine as usize % self.priorities.len()]
    }

    /// Returns the rounds of each of the two halves of an item's own work.
    fn own_rounds(&self) -> u64 {
        self.own_us * ROUNDS_US / 2
    }

    fn service_rounds(&self) -> u64 {
        self.service_us * ROUNDS_US
    }

    /// Returns the value of a coroutine at the end.
    fn value(&self, coroutine: u64) -> u64 {
        let of_item = 2 * self.own_rounds() + self.service_rounds();
        work::jump(seed(coroutine), self.items * of_item)
    }
}

/// Returns the value of a coroutine at first.
const fn seed(coroutine: u64) -> u64 {
    2 * coroutine + 1
}

/// A request to the services.
struct Request {
    value: u64,
    rounds: u64,
    /// The priority of the caller.
    priority: Priority,
    answer: Sender<u64>,
}

/// Returns the tasks: the services, then the programs, the least urgent one first.
pub fn tasks(scale: u64) -> Vec<Task> {
    let programs = PROGRAMS.map(|program| program.at(scale));
    let expected = programs.iter().map(Program::requests).sum::<u64>();
    let (sender, requests) = channel::bounded(ROOM);
    let services = domain(SERVICES, "services");
    let mut tasks = Vec::with_capacity(1 + programs.len());
    let accepting = async move { accept(services, requests).await == expected };
    // Accepting is more urgent than any request.
    tasks.push(task("services", services, accepting, Priority::FIRST));
    for (program, number) in programs.into_iter().zip(SERVICES + 1..) {
        let domain = domain(number, program.name);
        let runs = run(program, domain, sender.clone());
        tasks.push(task(program.name, domain, runs, program.priority(0)));
    }
    tasks
}

/// Returns the domain of this number, which the first phase of a boot opens and a second one finds.
fn domain(number: usize, name: &'static str) -> &'static Domain {
    let domain = Domain::of(DomainId::new(number)).unwrap_or_else(|| system::open(name));
    assert_eq!(
        domain.id(),
        DomainId::new(number),
        "another program has opened a domain"
    );
    domain
}

/// Returns a task that serves the domain until a future is ready, which returns true if all is right.
fn task(
    name: &'static str,
    domain: &'static Domain,
    runs: impl Future<Output = bool> + Send + 'static,
    priority: Priority,
) -> Task {
    Task::new(name, move |_| {
        let ran = domain.run_until(runs, priority);
        ran == Ok(true) && domain.coroutines() == 0
    })
}

/// Spawns a coroutine for each request, until no program can send any more. Returns their number.
async fn accept(domain: &'static Domain, requests: Receiver<Request>) -> u64 {
    let mut accepted = 0;
    let mut at_work: Vec<JoinHandle<()>> = Vec::new();
    while let Ok(request) = requests.recv().await {
        accepted += 1;
        at_work.retain(|one| !one.is_finished());
        let priority = request.priority;
        at_work.push(domain.spawn(serve(request), priority));
    }
    // A program that has received the last answers may end before the coroutines that have sent them.
    for one in at_work {
        one.await.expect("it is not cancelled");
    }
    accepted
}

/// Serves a request: computes its value and sends that back.
async fn serve(request: Request) {
    let value = work::spin(request.value, request.rounds);
    // The caller checks the value; a caller that has gone does not want it.
    let _ = request.answer.send(value).await;
}

/// Runs a program: spawns its coroutines when they are due, and awaits all. Returns true if all came out right.
async fn run(program: Program, domain: &'static Domain, services: Sender<Request>) -> bool {
    let begin = now();
    let interval = Duration::from_micros(program.interval_us).as_nanos() as u64;
    let mut coroutines = Vec::with_capacity(program.coroutines as usize);
    for coroutine in 0..program.coroutines {
        if interval != 0 {
            sleep_until(begin + coroutine * interval).await;
        }
        let body = work_on_items(program, coroutine, services.clone());
        coroutines.push(domain.spawn(body, program.priority(coroutine)));
    }
    drop(services);
    let mut are_right = true;
    for (coroutine, handle) in coroutines.into_iter().enumerate() {
        are_right &= handle.await == Ok(Some(program.value(coroutine as u64)));
    }
    are_right
}

/// Runs a coroutine of a program. Returns its last value, or none without the services.
async fn work_on_items(program: Program, coroutine: u64, services: Sender<Request>) -> Option<u64> {
    let (answer, answers) = channel::bounded(1);
    let mut value = seed(coroutine);
    for _ in 0..program.items {
        value = work::spin(value, program.own_rounds());
        yield_now().await;
        value = work::spin(value, program.own_rounds());
        let request = Request {
            value,
            rounds: program.service_rounds(),
            priority: program.priority(coroutine),
            answer: answer.clone(),
        };
        services.send(request).await.ok()?;
        value = answers.recv().await.ok()?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use sched_tests_common::{App, results::Phase, runner::run_phase};

    use super::*;

    /// Takes the domains for one test at a time: there is one of each number.
    fn one() -> MutexGuard<'static, ()> {
        static ONE: Mutex<()> = Mutex::new(());
        ONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn phase_of(tasks: fn(u64) -> Vec<Task>) -> Phase {
        run_phase(&App::new("test", tasks), "run")
    }

    #[test]
    fn results_are_right_in_both_phases() {
        let _one = one();
        for _ in 0..2 {
            let phase = phase_of(|_| tasks(50));
            assert!(phase.pass, "{phase:?}");
            let names: Vec<_> = phase.tasks.iter().map(|task| &*task.name).collect();
            let expected = ["services", "backup", "index", "report", "web", "control"];
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn largest_scale_leaves_work_and_an_arrival() {
        let _one = one();
        let least = PROGRAMS.map(|program| program.at(u64::MAX));
        assert_eq!(least.map(|p| p.coroutines), [4, 4, 4, 2, 2]);
        assert_eq!(least.map(|p| p.items), [1, 1, 1, 4, 4]);
        assert!(phase_of(|_| tasks(u64::MAX)).pass);
    }

    #[test]
    fn missing_round_of_a_service_fails_its_caller() {
        let _one = one();
        let phase = phase_of(|_| {
            let [.., control] = PROGRAMS.map(|program| program.at(u64::MAX));
            let (sender, requests) = channel::bounded::<Request>(ROOM);
            // A service that leaves out a round.
            let services = domain(SERVICES, "services");
            let serves = async move {
                while let Ok(mut request) = requests.recv().await {
                    request.rounds -= 1;
                    serve(request).await;
                }
                true
            };
            let program = domain(SERVICES + 1, control.name);
            let runs = run(control, program, sender);
            [
                task("services", services, serves, Priority::FIRST),
                task(control.name, program, runs, control.priority(0)),
            ]
            .into()
        });
        let right: Vec<_> = phase.tasks.iter().map(|task| task.ok).collect();
        assert_eq!(right, [true, false], "{phase:?}");
    }

    #[test]
    fn program_without_services_fails_and_does_not_hang() {
        let _one = one();
        let phase = phase_of(|_| {
            let [.., control] = PROGRAMS.map(|program| program.at(u64::MAX));
            let (sender, _) = channel::bounded(ROOM);
            let program = domain(SERVICES, control.name);
            let runs = run(control, program, sender);
            [task(control.name, program, runs, control.priority(0))].into()
        });
        assert!(!phase.tasks[0].ok, "{phase:?}");
    }

    #[test]
    fn work_agrees_with_the_table() {
        let own = PROGRAMS.map(|p| p.requests() * 2 * p.own_rounds() / ROUNDS_US);
        assert_eq!(own, [600_000, 384_000, 200_000, 64_000, 16_000]);
        let services = PROGRAMS.map(|p| p.requests() * p.service_rounds() / ROUNDS_US);
        assert_eq!(services, [200_000, 96_000, 50_000, 16_000, 4_000]);
        assert_eq!(services.iter().sum::<u64>(), 366_000);
        let last = PROGRAMS.map(|p| (p.coroutines - 1) * p.interval_us);
        assert_eq!(last, [0, 0, 0, 156_000, 95_000]);
    }

    #[test]
    fn more_urgent_program_is_spawned_later_and_has_less_work() {
        let together = |p: &Program| p.requests() * (p.own_us + p.service_us);
        for pair in PROGRAMS.windows(2) {
            assert!(pair[1].priorities[1] < pair[0].priorities[0]);
            assert!(together(&pair[1]) < together(&pair[0]));
        }
    }

    #[test]
    fn value_depends_on_every_round() {
        let program = PROGRAMS[0].at(u64::MAX);
        let rounds = 2 * program.own_rounds() + program.service_rounds();
        assert_eq!(program.value(3), work::jump(7, rounds));
        assert_ne!(program.value(3), program.value(2));
    }
}
