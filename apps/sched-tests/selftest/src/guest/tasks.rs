//! No task may be lost, whatever a plan says about it.
//!
//! Under PBG a small program is measured, and then a different one is replayed with that plan. Any
//! other policy runs the second program only:
//!
//! | task | measured | then |
//! |---|---|---|
//! | glutton | 2 units of work | 40 units, far beyond its plan |
//! | sleeper | 1 unit | sleeps three times and spawns 2 tasks that no plan knows |
//! | parent | spawns 2 children and joins them | spawns 4 and joins them |
//! | waiter | waits in a queue | the same |
//! | notifier | wakes it | the same, after a sleep |
//! | absent | spawns 2 children | is not there, nor are its children |
//! | late0, late1 | | spawned by main after a sleep; the first is taken for absent |
//!
//! Main keeps no handle. It watches until all have ended and gc has reclaimed them, for at most
//! [`PATIENCE_NS`], and prints the state of each.

use alloc::{format, string::String, sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicBool, Ordering::*},
    time::Duration,
};

use axsched_ext::{
    pbg::CONTROL,
    syscall::{self, Error},
};
use axstd::sync::Mutex;
use axtask::WaitQueue;
use sched_tests_common::{
    platform::{self, Gate, Handle, Watch, now_ns, println},
    results::TaskResult,
    work,
};

use super::verdict::{verdict, verdict_on};

/// The rounds of a unit of work: about 5 ms under icount, half a tick.
const UNIT: u64 = 2_500_000;
/// The longest time that main watches. All is over in a tenth of it.
const PATIENCE_NS: u64 = 10_000_000_000;

/// The number of tasks of the program as measured, and as run afterwards.
const MEASURED: usize = 10;
const CHANGED: usize = 13;

/// Runs the case.
pub fn run() {
    let planned = platform::SCHED == "pbg" && platform::cpus() == 1;
    if planned {
        match plan() {
            Ok(tasks) => println!("planned {tasks} tasks\n"),
            Err(reason) => {
                println!("no plan: {reason}\n");
                return verdict(false);
            }
        }
    }
    let census = program(Version::Changed);
    let mut pass = census.wait_for(CHANGED);
    census.print();
    if planned {
        let status = CONTROL.status();
        println!("{status:?}\n");
        // The plan was followed, and the glutton was demoted.
        pass &= status.is_ok_and(|s| s.matched > 0 && s.unplanned > 0 && s.demoted > 0);
    }
    let phase = if planned { "replay" } else { "run" };
    let (tasks, switches) = census.results();
    verdict_on(tasks, switches, phase, pass);
}

/// Measures the program and starts the replay.
fn plan() -> Result<usize, String> {
    let say = |error: Error| format!("{error}");
    syscall::measure_start().map_err(say)?;
    let census = program(Version::Measured);
    if !census.wait_for(MEASURED) {
        census.print();
        return Err("the measured program is not complete".into());
    }
    syscall::measure_end().map_err(say)?;
    syscall::start_pbg().map_err(say)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Measured,
    Changed,
}

fn program(version: Version) -> Arc<Census> {
    let changed = version == Version::Changed;
    let census = Arc::new(Census::new());

    census.spawn("glutton", move || work(if changed { 40 } else { 2 }));

    let of_sleeper = census.clone();
    census.spawn("sleeper", move || {
        work(1);
        if changed {
            for _ in 0..3 {
                sleep_ms(15);
                work(1);
            }
            for name in ["sleeper.0", "sleeper.1"] {
                of_sleeper.spawn(name, || work(1));
            }
        }
    });

    let children = if changed { 4 } else { 2 };
    spawn_parent(&census, "parent", children);

    let bell = Arc::new((WaitQueue::new(), AtomicBool::new(false)));
    let heard = bell.clone();
    census.spawn("waiter", move || {
        work(1);
        heard.0.wait_until(|| heard.1.load(Acquire));
    });
    census.spawn("notifier", move || {
        work(1);
        if changed {
            sleep_ms(20);
        }
        bell.1.store(true, Release);
        bell.0.notify_one(true);
    });

    if changed {
        for name in ["late0", "late1"] {
            sleep_ms(20);
            census.spawn(name, || work(1));
        }
    } else {
        spawn_parent(&census, "absent", 2);
    }
    census
}

fn spawn_parent(census: &Arc<Census>, name: &'static str, children: usize) {
    let of_parent = census.clone();
    census.spawn(name, move || {
        let spawn = |i| of_parent.spawn(&format!("{name}.{i}"), || work(1));
        let children: Vec<_> = (0..children).map(spawn).collect();
        for child in children {
            child.join();
        }
    });
}

fn work(units: u64) {
    core::hint::black_box(work::spin(1, units * UNIT));
}

fn sleep_ms(ms: u64) {
    axtask::sleep(Duration::from_millis(ms));
}

/// Every task that was ever spawned.
struct Census {
    begin_ns: u64,
    gate: Arc<Gate>,
    seen: Mutex<Vec<Seen>>,
}

struct Seen {
    name: String,
    submit_ns: u64,
    watch: Watch,
}

impl Census {
    fn new() -> Self {
        Self {
            begin_ns: now_ns(),
            gate: Gate::opened(),
            seen: Mutex::new(Vec::new()),
        }
    }

    fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Handle {
        let submit_ns = now_ns() - self.begin_ns;
        let handle = platform::spawn(name, &self.gate, body);
        self.seen.lock().push(Seen {
            name: name.into(),
            submit_ns,
            watch: handle.watch(),
        });
        handle
    }

    /// Returns true if `expected` tasks have been spawned, have ended once each, and have been
    /// reclaimed.
    fn is_complete(&self, expected: usize) -> bool {
        let seen = self.seen.lock();
        let right = |task: &Seen| task.watch.state().is_none() && task.watch.figures().ends == 1;
        seen.len() == expected && seen.iter().all(right)
    }

    /// Waits until the census is complete, for at most [`PATIENCE_NS`]. Returns true if it is.
    fn wait_for(&self, expected: usize) -> bool {
        let deadline_ns = now_ns() + PATIENCE_NS;
        while now_ns() < deadline_ns {
            if self.is_complete(expected) {
                return true;
            }
            sleep_ms(10);
        }
        false
    }

    fn print(&self) {
        println!(
            "{:12}{:>12}{:>8}{:>12}{:>12}",
            "task", "state", "ended", "run, ns", "dispatches"
        );
        for task in self.seen.lock().iter() {
            let figures = task.watch.figures();
            let state = task
                .watch
                .state()
                .map_or("reclaimed".into(), |s| format!("{s:?}"));
            println!(
                "{:12}{state:>12}{:>8}{:>12}{:>12}",
                task.name, figures.ends, figures.run_ns, figures.dispatches
            );
        }
        println!("");
    }

    /// Returns the figures for the result lines, and the number of context switches.
    fn results(&self) -> (Vec<TaskResult>, u64) {
        let seen = self.seen.lock();
        let since = |ns: u64| ns.saturating_sub(self.begin_ns);
        let result = |task: &Seen| {
            let figures = task.watch.figures();
            TaskResult {
                name: task.name.clone(),
                submit_ns: task.submit_ns,
                first_run_ns: since(figures.first_run_ns),
                finish_ns: since(figures.finish_ns),
                run_ns: figures.run_ns,
                run_in_window_ns: None,
                dispatches: figures.dispatches,
                yields: 0,
                groups: None,
                ok: figures.ends == 1,
                timeline: figures.timeline,
            }
        };
        let switches = seen.iter().map(|task| task.watch.figures().switches).sum();
        (seen.iter().map(result).collect(), switches)
    }
}
