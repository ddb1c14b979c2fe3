//! The watch over all waits. The timer tick of each CPU looks at them, so that a wait that is too
//! long is found whatever the scheduler does.
//!
//! A CPU whose interrupts stay off has no ticks, but the ticks of other CPUs still look. If no CPU
//! has ticks, the boot ends by its `TIMEOUT`.

use alloc::{format, string::String, sync::Arc};
use core::{
    fmt::Write,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*},
};

use axhal::percpu::this_cpu_id;
use axsched_ext::{balance::SMP_STATE, pbg::CONTROL, selected::HAS_PBG};
use axtask::{TaskState, WeakAxTaskRef};
use kernel_guard::{NoPreempt, NoPreemptIrqSave};
use kspin::SpinNoIrq;

use super::{
    clock::{MS, now_ns},
    orders::orders,
    record::{Doing, MAX_CPUS, PLACES_OF, RUNS, Record, TWICE},
};

/// The least time between two looks of any CPU.
const EVERY_NS: u64 = 5 * MS;
/// The time without a look after which the whole machine counts as having stood still. QEMU then
/// had no CPU of the host, or all CPUs had their interrupts off. No task has waited for the
/// scheduler in that time.
const STOOD_STILL_NS: u64 = 500 * MS;
/// The time after which a wake that has not arrived counts as lost.
const LOST_AFTER_NS: u64 = 30 * MS;

static BOUND_NS: AtomicU64 = AtomicU64::new(u64::MAX);
static LOOKED_NS: AtomicU64 = AtomicU64::new(0);
/// The time at which the machine last went on after it stood still.
static WENT_ON_NS: AtomicU64 = AtomicU64::new(0);
/// The longest time without a look.
pub static LONGEST_UNWATCHED_NS: AtomicU64 = AtomicU64::new(0);
static TICKED_NS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];
static IS_FOUND: AtomicBool = AtomicBool::new(false);

/// The time of main's last step. 0 means that main is not watched.
pub static MAIN_NS: AtomicU64 = AtomicU64::new(0);
static MAIN: SpinNoIrq<Option<WeakAxTaskRef>> = SpinNoIrq::new(None);
/// The id of a task that runs where it may not.
pub static OUTSIDE: AtomicU32 = AtomicU32::new(0);
/// The number of wakes that were lost.
pub static LOST: AtomicU64 = AtomicU64::new(0);

/// Starts the watch over all tasks that have a place, and over the calling task, main.
pub fn start() {
    *MAIN.lock() = Some(Arc::downgrade(&axtask::current().clone()));
    BOUND_NS.store(orders().bound_ns, Relaxed);
    MAIN_NS.store(now_ns(), Relaxed);
    LOOKED_NS.store(now_ns(), Relaxed);
    watch_this_cpu();
}

/// Makes the ticks of this CPU look, too. Called by each task as it begins, because there is no
/// other way onto a CPU.
pub fn watch_this_cpu() {
    static WATCHED: [AtomicBool; MAX_CPUS] = [const { AtomicBool::new(false) }; MAX_CPUS];
    let _guard = NoPreempt::new();
    if !WATCHED[this_cpu_id()].swap(true, Relaxed) {
        axtask::register_timer_callback(|_| check_waits());
    }
}

/// Ends the boot if a finding was left where it could not be reported.
pub fn refuse_what_was_found() {
    let (twice, outside) = (TWICE.load(Relaxed), OUTSIDE.load(Relaxed));
    if twice != 0 {
        found(twice, "has two CPUs");
    }
    if outside != 0 {
        found(outside, "runs where its affinity forbids");
    }
}

/// Looks at all tasks, at a tick and with interrupts off.
fn check_waits() {
    let now = now_ns();
    TICKED_NS[this_cpu_id()].store(now, Relaxed);
    let looked = LOOKED_NS.load(Relaxed);
    if now < looked + EVERY_NS
        || (LOOKED_NS.compare_exchange(looked, now, Relaxed, Relaxed)).is_err()
    {
        return;
    }
    if looked != 0 {
        LONGEST_UNWATCHED_NS.fetch_max(now - looked, Relaxed);
        if now - looked > STOOD_STILL_NS {
            WENT_ON_NS.store(now, Relaxed);
        }
    }
    refuse_what_was_found();
    let bound_ns = BOUND_NS.load(Relaxed);
    let went_on_ns = WENT_ON_NS.load(Relaxed);
    let too_long = |since: u64| now > since.max(went_on_ns).saturating_add(bound_ns);
    let main_ns = MAIN_NS.load(Relaxed);
    if main_ns != 0 && too_long(main_ns) {
        found(0, &format!("makes no step for {} ms", (now - main_ns) / MS));
    }
    for place in &PLACES_OF {
        let place = place.lock();
        let Some(record) = &*place else { continue };
        if let Some((what, since)) = wait_of(record, now)
            && too_long(since)
        {
            let (id, for_ms) = (record.id, (now - since) / MS);
            drop(place);
            found(id, &format!("{what} for {for_ms} ms"));
        }
    }
}

/// Returns what a task waits for, and since when.
fn wait_of(record: &Record, now: u64) -> Option<(&'static str, u64)> {
    let doing = record.doing.load(Relaxed);
    let has_cpu = record.has_cpu.load(Relaxed);
    let is = |one: Doing| doing == one as u8;
    match record.state() {
        _ if has_cpu => {
            let since = (record.entered_ns.load(Relaxed)).max(record.step_ns.load(Relaxed));
            Some(("has a CPU and makes no step", since))
        }
        // This includes the time between the end of its spawn and its first time on a CPU.
        Some(TaskState::Ready) => {
            // The value is read once. The task may get a CPU at this moment, and a 0 then would
            // mean a wait since boot.
            let since = (record.ready_ns).compare_exchange(0, now, Relaxed, Relaxed);
            Some((
                "is ready and gets no CPU",
                since.map_or_else(|since| since, |_| now),
            ))
        }
        Some(TaskState::Blocked) => {
            let wait = record.wait.load(Acquire);
            if (is(Doing::Wait) || is(Doing::Join))
                && record.notified.load(Acquire) == wait
                && now > record.notified_ns.load(Relaxed) + LOST_AFTER_NS
            {
                LOST.fetch_add(1, Relaxed);
                record.notified.store(wait.wrapping_sub(1), Relaxed); // counted once
            }
            // Read after the state, because a task stores its limit before it blocks.
            let until = record.until_ns.load(Relaxed);
            Some(("is blocked beyond its time limit", until))
        }
        Some(TaskState::Exited) => Some((
            "has ended and has not been reclaimed",
            record.step_ns.load(Relaxed),
        )),
        Some(TaskState::Running) | None => None, // on its way
    }
}

/// Reports what was found, the acts of all tasks, the tasks of all CPUs, and the state of the
/// scheduler. Then ends the boot.
pub fn found(id: u32, what: &str) -> ! {
    // Otherwise a tick could interrupt this report, find something as well, and wait for the code
    // that it has interrupted.
    let _guard = NoPreemptIrqSave::new();
    if IS_FOUND.swap(true, AcqRel) {
        loop {
            core::hint::spin_loop(); // another CPU is saying it
        }
    }
    let (now, orders) = (now_ns(), orders());
    let whose = if id == 0 {
        "main".into()
    } else {
        format!("task {id}")
    };
    let seed = orders.seed;
    // A panic is printed with interrupts off. Other text is not, on the ArceOS of 2026.
    let mut report = String::new();
    macro_rules! say {
        ($($text:tt)*) => { writeln!(report, $($text)*).expect("a string has room") };
    }
    let longest = LONGEST_UNWATCHED_NS.load(Relaxed) / MS;
    say!("the longest without a tick of any CPU: {longest} ms");
    if let Some(main) = &*MAIN.lock() {
        let state = name(main.upgrade().map(|main| main.state()));
        say!(
            "main: {state}, its last step {}",
            ago(now, MAIN_NS.load(Relaxed))
        );
    }
    for (cpu, runs) in RUNS.iter().enumerate().take(axhal::cpu_num()) {
        let runs = match runs.load(Relaxed) {
            0 if cpu == this_cpu_id() => axtask::current().id_name(),
            0 if SMP_STATE.is_idle(cpu) => "no task".into(),
            0 => "main, gc, a helper or no task".into(),
            id => format!("task {id}"),
        };
        say!(
            "CPU {cpu}: runs {runs}; its last tick {}",
            ago(now, TICKED_NS[cpu].load(Relaxed))
        );
    }
    say!("the layer: {SMP_STATE}");
    match CONTROL.status() {
        _ if !HAS_PBG => {}
        Ok(status) => say!("PBG: {:?} {status}", status.mode),
        Err(why) => say!("PBG: {why}"),
    }
    say!("task  state    doing     step         ready        CPU  may run");
    for place in &PLACES_OF {
        if let Some(record) = &*place.lock() {
            say!("{}", line(record, now));
        }
    }
    panic!(
        "soak: {whose} {what}; seed {seed}, {} s after boot\n{report}",
        now / (1000 * MS)
    );
}

fn line(record: &Record, now: u64) -> String {
    let mut line = String::new();
    let state = match record.has_cpu.load(Relaxed) {
        true => "runs",
        false => name(record.state()),
    };
    let ready = match record.ready_ns.load(Relaxed) {
        0 => "".into(),
        since => ago(now, since),
    };
    let cpu = match record.cpu.load(Relaxed) {
        u8::MAX => -1,
        cpu => i32::from(cpu),
    };
    let doing = Doing::name(record.doing.load(Relaxed));
    let step = ago(now, record.step_ns.load(Relaxed));
    let mask = record.mask.load(Relaxed);
    let id = record.id;
    let _ = write!(
        line,
        "{id:>4}  {state:<8} {doing:<9} {step:<12} {ready:<12} {cpu:>3}  {mask:#06b}"
    );
    if let Some(parent) = &record.parent {
        let _ = write!(line, "  of {}", parent.id);
    }
    line
}

fn name(state: Option<TaskState>) -> &'static str {
    match state {
        Some(TaskState::Running) => "running",
        Some(TaskState::Ready) => "ready",
        Some(TaskState::Blocked) => "blocked",
        Some(TaskState::Exited) => "ended",
        None => "gone",
    }
}

fn ago(now: u64, then: u64) -> String {
    match then {
        0 => "never".into(),
        _ => format!("{} ms ago", now.saturating_sub(then) / MS),
    }
}
