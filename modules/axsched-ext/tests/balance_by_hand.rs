//! The layer that balances several CPUs, call by call: what the [model](axsched_ext::model) does not play, or
//! plays so seldom that no test of it would miss the rule.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

use axsched_ext::BaseScheduler;
use axsched_ext::balance::{Balanced, Machine, SharedPerThread, SharedSource, simulated_machine};
use axsched_ext::fifo::Fifo;
use axsched_ext::task::Task;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
    static CURRENT: Cell<*const ()> = const { Cell::new(ptr::null()) };
    static SENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

type Layer = Balanced<Fifo<u64>, SharedPerThread>;

/// A task that may run on these CPUs, a bit each.
type Job = Task<u64, ()>;

fn task(mask: u64) -> Arc<Job> {
    Arc::new(Job::new(mask))
}

/// From now on the layers of this thread are of so many CPUs.
fn connect(cpus: usize) {
    CPU.set(0);
    CURRENT.set(ptr::null());
    SENT.take();
    let machine = Machine {
        this_cpu: || CPU.get(),
        current: || CURRENT.get(),
        interrupt: |cpu| SENT.with_borrow_mut(|sent| sent.push(cpu)),
        // SAFETY: of the tasks above.
        may_run: |task, cpu| unsafe { *task.cast::<u64>() } >> cpu & 1 != 0,
        ..simulated_machine(cpus)
    };
    // SAFETY: only the layers of one test share it, one for each CPU, and all are of one type.
    unsafe { SharedPerThread::renew().connect(machine) };
}

/// A layer of the first CPU, which a tick has hit while it ran main, who was not picked.
fn hit_by_a_tick(main: &Arc<Job>) -> Layer {
    let mut layer = Layer::new();
    CURRENT.set(Arc::as_ptr(main).cast());
    layer.task_tick(main);
    layer
}

/// WANTED. `axtask` takes a queue's lock for a put and once more for the pick, and another CPU may put a
/// task there in between, which the model does not play.
#[test]
fn who_is_picked_after_a_wake_that_came_between_put_and_pick_is_wanted_elsewhere() {
    connect(2);
    let (mut first, mut second) = (Layer::new(), Layer::new());
    let (anywhere, here) = (task(0b11), task(0b01));
    assert!(first.pick_next_task().is_none());
    first.add_task(anywhere.clone());
    assert!(Arc::ptr_eq(&first.pick_next_task().unwrap(), &anywhere));
    CPU.set(1);
    assert!(second.pick_next_task().is_none());
    CPU.set(0);
    CURRENT.set(Arc::as_ptr(&anywhere).cast());
    first.put_prev_task(anywhere.clone(), false);
    CPU.set(1);
    CURRENT.set(ptr::null());
    first.put_prev_task(here.clone(), false);
    CPU.set(0);
    CURRENT.set(Arc::as_ptr(&anywhere).cast());
    assert!(Arc::ptr_eq(&first.pick_next_task().unwrap(), &anywhere));
    assert_eq!(SENT.take(), []);
    first.put_prev_task(anywhere.clone(), false);
    assert_eq!(SENT.take(), [0]);
    assert!(Arc::ptr_eq(&first.pick_next_task().unwrap(), &here));
    CURRENT.set(Arc::as_ptr(&here).cast());
    assert!(!first.task_tick(&here));
    assert_eq!(SENT.take(), [1]);
    CPU.set(1);
    assert!(Arc::ptr_eq(&second.pick_next_task().unwrap(), &anywhere));
    let shared = SharedPerThread::shared().to_string();
    assert!(
        shared.starts_with("CPU 0: 0 waiting; CPU 1: 0 waiting"),
        "{shared}"
    );
}

/// Rule 7: to one that idles, though it comes after one that is busy and has nobody waiting; with one
/// interrupt; and what it is owed it takes back.
#[test]
fn rule_7_sends_to_one_that_idles_with_one_interrupt() {
    connect(3);
    let [mut busy, mut sends, mut idle] = [Layer::new(), Layer::new(), Layer::new()];
    let runs = |layer: &mut Layer, cpu, task: &Arc<Job>| {
        CPU.set(cpu);
        assert!(layer.pick_next_task().is_none());
        layer.add_task(task.clone());
        assert!(Arc::ptr_eq(&layer.pick_next_task().unwrap(), task));
    };
    let (other, another, woken) = (task(0b111), task(0b111), task(0b101));
    runs(&mut busy, 0, &other);
    runs(&mut sends, 1, &another);
    CPU.set(2);
    assert!(idle.pick_next_task().is_none());
    SENT.take();
    CPU.set(1);
    CURRENT.set(Arc::as_ptr(&another).cast());
    sends.put_prev_task(woken.clone(), false);
    assert_eq!(SENT.take(), [2]);
    CPU.set(2);
    CURRENT.set(ptr::null());
    assert!(Arc::ptr_eq(&idle.pick_next_task().unwrap(), &woken));
    assert_eq!(SENT.take(), []);
    let shared = SharedPerThread::shared().to_string();
    assert!(shared.ends_with("CPU 2: 0 waiting"), "{shared}");
}

/// Rule 7. Two are sent to a CPU that idles. While they are on the way another begins to idle, which may
/// have one of them, and finds nobody waiting anywhere.
#[test]
fn rule_7_who_is_sent_and_cannot_run_at_once_is_told_of() {
    connect(3);
    let main = task(0b001);
    let mut sends = hit_by_a_tick(&main);
    let [mut idle, mut busy] = [Layer::new(), Layer::new()];
    CPU.set(2);
    busy.add_task(task(0b100));
    assert!(busy.pick_next_task().is_some());
    CPU.set(1);
    assert!(idle.pick_next_task().is_none());
    CPU.set(0);
    sends.add_task(task(0b110));
    sends.add_task(task(0b010)); // the last comes first
    CPU.set(2);
    assert!(busy.pick_next_task().is_none(), "who had it blocks");

    SENT.take();
    CPU.set(1);
    assert_eq!(
        idle.pick_next_task().as_deref().map(|task| **task),
        Some(0b010)
    );
    // To hand the other one over as soon as it has been left.
    assert_eq!(SENT.take(), [1]);
    let shared = SharedPerThread::shared().to_string();
    assert!(
        shared.contains("CPU 1: 1 waiting, interrupted, asked by 0b100"),
        "{shared}"
    );
}

/// WANTED. Main has the CPU without having been picked, gives it to one that may run there only, and another
/// CPU idles.
#[test]
fn who_was_not_picked_and_gives_way_is_handed_over_as_soon_as_it_has_been_left() {
    connect(2);
    let main = task(0b11);
    let (mut first, mut second) = (hit_by_a_tick(&main), Layer::new());
    CPU.set(1);
    assert!(second.pick_next_task().is_none());
    CPU.set(0);
    first.add_task(task(0b01));
    SENT.take();
    first.put_prev_task(main, false);
    assert_eq!(SENT.take(), [0]);
}
