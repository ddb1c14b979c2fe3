//! Runs the workload of an application once: submits its tasks, waits for them, judges.
//!
//! All tasks but those that arrive later are submitted before any may start. The
//! application's own tasks print nothing, so no line is broken by another.
//!
//! **Late arrivals.** The main task sleeps until a late task is due, and spawns it. So all tasks
//! have one parent and are spawned in the same order in each phase, as PBG's keys need. Main may
//! get the CPU too late for that, under FIFO for example, or outside a plan. The spawn is late
//! then, but the task counts as submitted when it was due. If its turnaround began at the spawn, a
//! policy that keeps main from the CPU would look better for it.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use axsched_ext::syscall;
use sched_tests_results::COUNTED;

use crate::{
    app::{App, Task, TaskCtx},
    config::SCALE,
    platform::{self, Figures, Gate, TaskSet, Watch, println},
    results::{Account, Phase, TaskResult},
};

/// Runs the workload of `app` once, as the phase `name`.
pub fn run_phase(app: &App, name: &'static str) -> Phase {
    let mut tasks = (app.tasks)(SCALE);
    tasks.sort_by_key(|task| task.arrival_ns); // stable
    let late = tasks.split_off(tasks.partition_point(|task| task.arrival_ns == 0));
    let gate = Gate::new();
    let count = tasks.len() + late.len();
    let mut submitted = Vec::with_capacity(count);
    let tick_phase = platform::await_tick_phase();
    let start_ns = platform::open_account();
    let window_ns = app.question.window_ns();
    let deadline_ns = window_ns.map(|window_ns| start_ns + window_ns);
    let set = TaskSet::new(count, start_ns, deadline_ns);
    let submit = |task| Submitted::spawn(task, &set, &gate, app.holds_handles);
    gate.submit(|| submitted.extend(tasks.into_iter().map(submit)));
    for task in late {
        sleep_until(start_ns + task.arrival_ns);
        // Through the gate again, so that no other spawn comes between a label and its task.
        gate.submit(|| submitted.push(submit(task)));
    }
    set.wait_for_all();
    let (mut context_switches, mut beside_ns) = (0, 0);
    let mut watches = Vec::with_capacity(submitted.len());
    let tasks: Vec<_> = submitted
        .into_iter()
        .map(|task| {
            watches.push(task.handle.watch());
            let (result, figures) = task.join(start_ns, window_ns.is_some());
            context_switches += figures.switches;
            beside_ns += figures.beside_ns;
            result
        })
        .collect();
    let mut phase = Phase {
        name,
        tasks,
        context_switches,
        question: app.question,
        tick_phase,
        holds_handles: app.holds_handles,
        ..Phase::default()
    };
    phase.account = platform::unmetered().map(|unmetered| Account {
        tasks_run_ns: phase.tasks.iter().map(|task| task.run_ns).sum(),
        main_run_ns: unmetered.main_ns,
        gc_run_ns: unmetered.gc_ns,
        rest_run_ns: unmetered.other_ns + beside_ns,
        idle_ns: unmetered.idle_ns,
        makespan_ns: phase.makespan_ns(),
        cpus: platform::cpus() as u32,
        is_counted: platform::TIMING == COUNTED,
    });
    phase.pass = !phase.tasks.is_empty()
        && phase.tasks.iter().all(|task| task.ok)
        && is_within_window(&phase.tasks, window_ns)
        && phase.account.is_none_or(|account| account.is_balanced())
        && all_reclaimed(&watches);
    phase.events = platform::events();
    phase
}

/// The longest time that gc may take to reclaim all tasks of a phase, in waits of a tick.
const PATIENCE_TICKS: u32 = 100;

/// Waits until no task of the phase is left. Returns false if a handle of one is kept. Then `gc` has
/// looked for it again and again, at the cost of the tasks that were still at work.
fn all_reclaimed(watches: &[Watch]) -> bool {
    for _ in 0..PATIENCE_TICKS {
        if watches.iter().all(Watch::is_reclaimed) {
            return true;
        }
        platform::sleep(Duration::from_millis(1)); // until the next tick
        // A sleep of 2026 does not end at a tick, which comes every 10 ms. `gc` of that line may sleep
        // for 100 ms before it looks again.
        #[cfg(arceos = "0.6")]
        platform::sleep(Duration::from_millis(9));
    }
    println!(
        "A task that has ended cannot be reclaimed by gc: find out which code holds its handle.\n"
    );
    false
}

/// Sleeps until `time_ns`, a time since boot. Returns at once if that is past.
fn sleep_until(time_ns: u64) {
    loop {
        match time_ns.saturating_sub(platform::now_ns()) {
            0 => return,
            left_ns => platform::main_sleeps(Duration::from_nanos(left_ns)),
        }
    }
}

/// The result of the body of a task.
#[derive(Default)]
struct Outcome {
    is_right: AtomicBool,
    yields: AtomicU64,
    groups: AtomicU64,
}

/// A task from its spawn to its end.
struct Submitted {
    name: String,
    expected_yields: Option<u64>,
    is_saturated: bool,
    submit_ns: u64,
    outcome: Arc<Outcome>,
    handle: platform::Handle,
    /// Held until the figures are taken, if main holds handles.
    _held: Option<platform::Held>,
}

impl Submitted {
    fn spawn(task: Task, set: &TaskSet, gate: &Arc<Gate>, hold: bool) -> Self {
        let outcome = Arc::new(Outcome::default());
        let (body, of_body) = (task.body, outcome.clone());
        let (start_ns, deadline_ns) = (set.start_ns(), set.deadline_ns());
        let entry = move || {
            let ctx = TaskCtx::new(deadline_ns);
            of_body.is_right.store(body(&ctx), Relaxed);
            of_body.yields.store(ctx.yields(), Relaxed);
            of_body.groups.store(ctx.groups(), Relaxed);
        };
        let submit_ns = match task.arrival_ns {
            0 => platform::now_ns() - start_ns,
            due_ns => due_ns,
        };
        if task.is_labelled {
            // This fails under other policies. A name that is no label is no failure either: PBG
            // then knows the task by its place among the spawns.
            let _ = syscall::label_next(&task.name);
        }
        let handle = platform::spawn_in(set, &task.name, gate, entry);
        Self {
            _held: if hold { handle.hold() } else { None },
            handle,
            name: task.name,
            expected_yields: task.expected_yields,
            is_saturated: task.is_saturated,
            submit_ns,
            outcome,
        }
    }

    /// Returns the task's result and all its figures. Called when the work of all tasks is done.
    fn join(self, start_ns: u64, in_window: bool) -> (TaskResult, Figures) {
        // Joining orders the outcome's stores before these loads.
        let figures = self.handle.join();
        let yields = self.outcome.yields.load(Relaxed);
        let groups = self.outcome.groups.load(Relaxed);
        let mut result = TaskResult {
            name: self.name,
            submit_ns: self.submit_ns,
            first_run_ns: figures.first_run_ns.saturating_sub(start_ns),
            finish_ns: figures.finish_ns.saturating_sub(start_ns),
            run_ns: figures.run_ns,
            run_in_window_ns: in_window.then_some(figures.run_in_window_ns),
            dispatches: figures.dispatches,
            yields,
            groups: self.is_saturated.then_some(groups),
            ok: self.outcome.is_right.load(Relaxed),
            timeline: figures.timeline.clone(),
        };
        result.ok &= self
            .expected_yields
            .is_none_or(|expected| yields == expected)
            && is_consistent(&result, &figures);
        (result, figures)
    }
}

/// Returns true if the figures can be true: the task ended once, and was on a CPU for no longer
/// than it existed.
fn is_consistent(result: &TaskResult, figures: &Figures) -> bool {
    figures.ends == 1
        && result.dispatches > 0
        && result.submit_ns <= result.first_run_ns
        && result.first_run_ns <= result.finish_ns
        && result.run_ns <= result.turnaround_ns()
        && figures
            .timeline
            .as_ref()
            .is_none_or(|t| t.run_ns.iter().sum::<u64>() == result.run_ns)
        && figures.run_in_window_ns <= figures.run_ns
}

/// Returns true if no more CPU time lies in the window than there was. Where time is counted and
/// all tasks always had work, they must also have used nine tenths of it.
fn is_within_window(tasks: &[TaskResult], window_ns: Option<u64>) -> bool {
    let used: u64 = tasks.iter().filter_map(|t| t.run_in_window_ns).sum();
    let saturated = tasks.iter().all(|task| task.groups.is_some());
    let is_exact = platform::TIMING == COUNTED;
    window_ns.is_none_or(|window_ns| {
        let least = if saturated && is_exact {
            window_ns / 10 * 9
        } else {
            0
        };
        (least..=window_ns * platform::cpus() as u64).contains(&used)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{results::Question, work};

    fn phase_of(tasks: fn(u64) -> Vec<Task>) -> Phase {
        phase_about(Question::Ends, tasks)
    }

    fn phase_about(question: Question, tasks: fn(u64) -> Vec<Task>) -> Phase {
        let app = App {
            name: "test",
            question,
            tasks,
            holds_handles: false,
            spawned_beside: 0,
        };
        run_phase(&app, "run")
    }

    fn yielder(name: &str, yields: u64) -> Task {
        Task::new(name, move |ctx| {
            (0..yields).for_each(|_| ctx.yield_now());
            true
        })
    }

    #[test]
    fn a_right_workload_passes() {
        let phase = phase_of(|_| [yielder("a", 3).yielding(3), yielder("b", 0)].into());
        assert!(phase.pass, "{phase:?}");
        let counts: Vec<_> = phase.tasks.iter().map(|t| (&*t.name, t.yields)).collect();
        assert_eq!(counts, [("a", 3), ("b", 0)]);
    }

    #[test]
    fn all_are_submitted_before_any_starts() {
        let phase = phase_of(|_| (0..20).map(|_| yielder("t", 1)).collect());
        let last_submit = phase.tasks.iter().map(|t| t.submit_ns).max();
        let first_run = phase.tasks.iter().map(|t| t.first_run_ns).min();
        assert!(last_submit <= first_run, "{phase:?}");
    }

    #[test]
    fn late_tasks_come_last_and_count_from_when_they_are_due() {
        const LATE_NS: u64 = 20_000_000;
        let phase = phase_of(|_| {
            [
                yielder("later", 0).arriving_at(2 * LATE_NS),
                yielder("late", 0).arriving_at(LATE_NS),
                yielder("first", 1),
                yielder("second", 1),
            ]
            .into()
        });
        assert!(phase.pass, "{phase:?}");
        let names: Vec<_> = phase.tasks.iter().map(|t| &*t.name).collect();
        assert_eq!(names, ["first", "second", "late", "later"]);
        let due: Vec<_> = phase.tasks[2..].iter().map(|t| t.submit_ns).collect();
        assert_eq!(due, [LATE_NS, 2 * LATE_NS]);
        assert!(phase.tasks.iter().all(|t| t.first_run_ns >= t.submit_ns));
    }

    #[test]
    fn a_wait_counts_as_turnaround() {
        const WAIT: Duration = Duration::from_millis(20);
        let phase = phase_of(|_| {
            let waits = |ctx: &TaskCtx| {
                ctx.wait_io(WAIT);
                true
            };
            [Task::new("waits", waits)].into()
        });
        assert!(phase.pass, "{phase:?}");
        assert!(phase.avg_turnaround_ns() >= WAIT.as_nanos() as u64);
    }

    #[test]
    fn a_wrong_result_fails() {
        assert!(!phase_of(|_| [yielder("a", 1), Task::new("b", |_| false)].into()).pass);
    }

    #[test]
    fn a_wrong_count_fails() {
        assert!(!phase_of(|_| [yielder("a", 2).yielding(3)].into()).pass);
    }

    #[test]
    fn a_window_ends_the_tasks_that_look_at_it() {
        const WINDOW_NS: u64 = 20_000_000;
        let question = Question::Shares {
            window_ns: WINDOW_NS,
        };
        let phase = phase_about(question, |_| {
            let busy = |ctx: &TaskCtx| {
                let mut x = 1;
                while ctx.in_window() {
                    x = work::spin(x, 1_000);
                    ctx.finish_group();
                }
                x == work::jump(1, ctx.groups() * 1_000)
            };
            let never_looks = |_: &TaskCtx| {
                let begin_ns = platform::now_ns();
                while platform::now_ns() - begin_ns < 2 * WINDOW_NS {}
                true
            };
            [
                Task::new("busy", busy).saturated(),
                Task::new("late", never_looks),
            ]
            .into()
        });
        assert!(phase.pass, "{phase:?}");
        let [busy, late] = &phase.tasks[..] else {
            panic!("{phase:?}")
        };
        assert!(busy.groups > Some(0) && late.groups.is_none(), "{phase:?}");
        assert!(busy.finish_ns >= WINDOW_NS, "{phase:?}");
        assert!(late.run_in_window_ns < Some(late.run_ns), "{phase:?}");
    }

    #[test]
    fn more_time_than_there_was_fails() {
        let mut tasks = phase_of(|_| [yielder("a", 0)].into()).tasks;
        assert!(is_within_window(&tasks, None));
        tasks[0].run_in_window_ns = Some(1_000 * platform::cpus() as u64 + 1);
        assert!(!is_within_window(&tasks, Some(1_000)));
        assert!(is_within_window(&tasks, Some(1_001)));
    }

    #[test]
    fn no_tasks_fail() {
        assert!(!phase_of(|_| [].into()).pass);
    }
}
