//! Runs an application: submits its tasks, waits for them, judges, prints.
//!
//! All tasks but those that arrive later are submitted before any may start. Under
//! PBG the workload runs twice in one boot, once recorded and once replayed, or only
//! replayed if a profile was kept. Only the main task prints, so no line is broken by
//! another.
//!
//! **Late arrivals.** The main task sleeps until one is due and spawns it, so that
//! all tasks have one parent and are spawned in the same order in each phase, as
//! PBG's keys need. Where it gets the CPU only later, as under FIFO, or outside a
//! plan, the spawn is late; yet the task counts as submitted when it was due. If
//! the clock of a turnaround began at the spawn, a policy that keeps the main task from
//! the CPU would look the better for it.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};
use core::{
    cell::Cell,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use axsched_ext::syscall;
use sched_tests_results::COUNTED;

use crate::{
    config::{ARCH, SCALE, TRACED},
    kept,
    pbg::{self, Ran},
    platform::{self, Figures, Gate, Terms, Watch, println},
    results::{self, Account, Fate, Phase, Question, ResultLine, Setting, TaskResult},
};

/// An application: a name and how to make its tasks.
pub struct App {
    /// The name in result lines.
    pub name: &'static str,
    /// What it asks.
    pub question: Question,
    /// Makes the tasks of one phase from the scale. They are submitted in this
    /// order, those that arrive later after the others, by the time they are due.
    pub tasks: fn(scale: u64) -> Vec<Task>,
    /// Main holds a handle of each task until all are done, as a program does that joins
    /// its threads in order; else no handle of a task that has ended is kept.
    pub holds_handles: bool,
}

impl App {
    /// An application whose tasks end, and that keeps no handle of a task that has ended.
    pub const fn new(name: &'static str, tasks: fn(scale: u64) -> Vec<Task>) -> Self {
        Self {
            name,
            question: Question::Ends,
            tasks,
            holds_handles: false,
        }
    }
}

/// One task of a workload.
pub struct Task {
    name: String,
    arrival_ns: u64,
    yields: Option<u64>,
    saturated: bool,
    labelled: bool,
    body: Box<dyn FnOnce(&TaskCtx) -> bool + Send>,
}

impl Task {
    /// A task; `body` returns whether its computation came out right.
    pub fn new(
        name: impl Into<String>,
        body: impl FnOnce(&TaskCtx) -> bool + Send + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            arrival_ns: 0,
            yields: None,
            saturated: false,
            labelled: true,
            body: Box::new(body),
        }
    }

    /// Has the task submitted so many nanoseconds after the start of the phase, and
    /// not with the others. From then on its turnaround counts; see the module's docs.
    pub fn arriving_at(self, arrival_ns: u64) -> Self {
        Self { arrival_ns, ..self }
    }

    /// Has PBG know the task by its place among the spawns, and not by its name.
    pub fn unlabelled(self) -> Self {
        Self {
            labelled: false,
            ..self
        }
    }

    /// Expects the task to yield exactly this often.
    pub fn yielding(self, yields: u64) -> Self {
        Self {
            yields: Some(yields),
            ..self
        }
    }

    /// Leaves it to the task how much it does: it goes on until something else ends
    /// it, and the number of groups it finished is a figure.
    pub fn saturated(self) -> Self {
        Self {
            saturated: true,
            ..self
        }
    }
}

/// What a task has at hand while it runs.
pub struct TaskCtx {
    yields: Cell<u64>,
    groups: Cell<u64>,
    deadline_ns: Option<u64>,
}

impl TaskCtx {
    /// Gives the CPU away, and counts it.
    pub fn yield_now(&self) {
        self.yields.set(self.yields.get() + 1);
        platform::yield_now();
    }

    /// How often it has yielded so far.
    pub fn yields(&self) -> u64 {
        self.yields.get()
    }

    /// Waits without the CPU, as for a device; for no less than `duration`, and on
    /// a guest until a timer tick.
    pub fn wait_io(&self, duration: Duration) {
        platform::sleep(duration);
    }

    /// Counts a finished group of work.
    pub fn finish_group(&self) {
        self.groups.set(self.groups.get() + 1);
    }

    /// How many groups it has finished so far.
    pub fn groups(&self) -> u64 {
        self.groups.get()
    }

    /// Whether the window of the application's question is still open.
    pub fn in_window(&self) -> bool {
        self.deadline_ns.is_none_or(|end| platform::now_ns() < end)
    }
}

/// Runs `app` in the phases that the policy asks for and prints the results.
/// On the host a failed check is also the program's exit status.
pub fn run(app: &App) {
    print_heading(&setting(app.name));
    run_headed(app);
}

/// The same where the heading is printed already.
pub fn run_headed(app: &App) {
    let setting = setting(app.name);
    if platform::TIMING != "icount" {
        warm_up();
    }
    let outcome = match setting.sched {
        "pbg" | "pbg-coop" => pbg::run(app),
        _ => Ran::of([run_phase(app, "run")].into()),
    };
    println!("{}", results::table(&setting, &outcome.phases));
    for report in &outcome.reports {
        if let Fate::Followed(replay) = &report.fate
            && let Some(remark) = replay.remark()
        {
            println!("{remark}");
        }
    }
    print_lines(&setting, &outcome.phases);
    for report in &outcome.reports {
        println!("{}", results::pbg_line(&setting, report).to_line());
    }
    if let Some(profile) = &outcome.profile {
        kept::print_frame(profile);
    }
    platform::finish(outcome.phases.iter().all(|phase| phase.pass));
}

/// Has all code on the way of a task run once: to its spawn, through the gate, to others and
/// back, to its end and to `gc`. In real time a first time takes longer (QEMU translates
/// what it has not run before): milliseconds that would be in the account of a short phase,
/// and nobody's doing. Where instructions are counted there is no difference.
fn warm_up() {
    let tasks = |_| {
        let yields = |ctx: &TaskCtx| {
            (0..100).for_each(|_| ctx.yield_now());
            true
        };
        let each = |_| Task::new("warm-up", yields).unlabelled();
        (0..2 * platform::cpus()).map(each).collect()
    };
    let app = App {
        name: "warm-up",
        question: Question::Ends,
        tasks,
        holds_handles: false,
    };
    run_phase(&app, "warm-up");
}

/// What holds for every phase of the application called `app` in this build.
pub fn setting(app: &str) -> Setting<'_> {
    Setting {
        app,
        arch: ARCH,
        smp: platform::cpus(),
        sched: platform::SCHED,
        timing: platform::TIMING,
        scale: SCALE,
    }
}

/// Says to people what is about to run.
pub fn print_heading(setting: &Setting) {
    println!(
        "{} on {}, {} CPU{}, scheduler {}, {} time, SCALE={}\n",
        setting.app,
        setting.arch,
        setting.smp,
        if setting.smp == 1 { "" } else { "s" },
        setting.sched,
        setting.timing,
        setting.scale,
    );
    if TRACED {
        println!("Traced: with what it costs to note when each task has its CPU.\n");
    }
}

/// Prints the result lines: all tasks first, then their traces, then the phases.
pub fn print_lines(setting: &Setting, phases: &[Phase]) {
    for phase in phases {
        for task in &phase.tasks {
            println!("{}", results::task_line(setting, phase, task).to_line());
        }
    }
    for phase in phases {
        for line in results::trace_lines(setting, phase) {
            println!("{}", line.to_line());
        }
    }
    for phase in phases {
        println!("{}", results::run_line(setting, phase).to_line());
    }
}

/// Runs the workload once.
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
    let terms = Terms::new(count, start_ns, deadline_ns);
    let submit = |task| Submitted::spawn(task, &terms, &gate, app.holds_handles);
    gate.submit(|| submitted.extend(tasks.into_iter().map(submit)));
    for task in late {
        sleep_until(start_ns + task.arrival_ns);
        // By the gate again, so that no other spawn comes between a label and its own.
        gate.submit(|| submitted.push(submit(task)));
    }
    terms.wait_for_all();
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
        && fits(&phase.tasks, window_ns)
        && phase.account.is_none_or(|account| account.closes())
        && all_reclaimed(&watches);
    phase
}

/// How long gc may take to reclaim all tasks of a phase, in waits of a tick.
const PATIENCE_TICKS: u32 = 100;

/// Waits until no task of the phase is left; false if a handle of one is kept. Then `gc` had to
/// look for it again and again, at the cost of those that were still at work.
fn all_reclaimed(watches: &[Watch]) -> bool {
    for _ in 0..PATIENCE_TICKS {
        if watches.iter().all(Watch::is_reclaimed) {
            return true;
        }
        platform::sleep(Duration::from_millis(1)); // until the next tick
    }
    println!("Somebody holds a handle of a task that has ended: gc cannot reclaim it.\n");
    false
}

/// Sleeps until `time_ns`, a time since boot; not at all if it is past.
fn sleep_until(time_ns: u64) {
    loop {
        match time_ns.saturating_sub(platform::now_ns()) {
            0 => return,
            left_ns => platform::main_sleeps(Duration::from_nanos(left_ns)),
        }
    }
}

/// What a task leaves behind.
#[derive(Default)]
struct Outcome {
    right: AtomicBool,
    yields: AtomicU64,
    groups: AtomicU64,
}

struct Submitted {
    name: String,
    expected_yields: Option<u64>,
    saturated: bool,
    submit_ns: u64,
    outcome: Arc<Outcome>,
    handle: platform::Handle,
    /// Until the figures are taken.
    _held: Option<platform::Held>,
}

impl Submitted {
    fn spawn(task: Task, terms: &Terms, gate: &Arc<Gate>, hold: bool) -> Self {
        let outcome = Arc::new(Outcome::default());
        let (body, theirs) = (task.body, outcome.clone());
        let (start_ns, deadline_ns) = (terms.start_ns(), terms.deadline_ns());
        let entry = move || {
            let ctx = TaskCtx {
                yields: Cell::default(),
                groups: Cell::default(),
                deadline_ns,
            };
            theirs.right.store(body(&ctx), Relaxed);
            theirs.yields.store(ctx.yields(), Relaxed);
            theirs.groups.store(ctx.groups(), Relaxed);
        };
        let submit_ns = match task.arrival_ns {
            0 => platform::now_ns() - start_ns,
            due_ns => due_ns,
        };
        if task.labelled {
            // Under PBG; and a name that is no label leaves the task its place.
            let _ = syscall::label_next(&task.name);
        }
        let handle = platform::spawn_in(terms, &task.name, gate, entry);
        Self {
            _held: if hold { handle.hold() } else { None },
            handle,
            name: task.name,
            expected_yields: task.yields,
            saturated: task.saturated,
            submit_ns,
            outcome,
        }
    }

    /// The task's result, and all its figures. The work of all is done.
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
            groups: self.saturated.then_some(groups),
            ok: self.outcome.right.load(Relaxed),
            timeline: figures.timeline.clone(),
        };
        result.ok &= self
            .expected_yields
            .is_none_or(|expected| yields == expected)
            && is_consistent(&result, &figures);
        (result, figures)
    }
}

/// Whether figures can be true at all: the task ended once, was on a CPU, and for
/// no longer than it existed.
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

/// Whether no more CPU time lies in the window than there was; and, where time is
/// counted, whether tasks that all had enough to do left hardly any of it unused.
fn fits(tasks: &[TaskResult], window_ns: Option<u64>) -> bool {
    let used: u64 = tasks.iter().filter_map(|t| t.run_in_window_ns).sum();
    let saturated = tasks.iter().all(|task| task.groups.is_some());
    let is_exact = platform::TIMING == "icount";
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
    use crate::work;

    fn phase_of(tasks: fn(u64) -> Vec<Task>) -> Phase {
        phase_about(Question::Ends, tasks)
    }

    fn phase_about(question: Question, tasks: fn(u64) -> Vec<Task>) -> Phase {
        let app = App {
            name: "test",
            question,
            tasks,
            holds_handles: false,
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
    fn a_window_ends_what_looks_at_it() {
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
        assert!(fits(&tasks, None));
        tasks[0].run_in_window_ns = Some(1_000 * platform::cpus() as u64 + 1);
        assert!(!fits(&tasks, Some(1_000)));
        assert!(fits(&tasks, Some(1_001)));
    }

    #[test]
    fn no_tasks_fail() {
        assert!(!phase_of(|_| [].into()).pass);
    }
}
