use std::cell::{Cell, RefCell};
use std::ptr;
use std::string::ToString;
use std::sync::Arc;
use std::vec::Vec;

use proptest::prelude::*;

use super::{Balanced, Machine, Shared, SharedPerThread, SharedSource, simulated_machine};
use crate::bench::{self, gives_who_would_run};
use crate::cfs::{Cfs, CfsState};
use crate::clock::VirtualClock;
use crate::eevdf::{Eevdf, EevdfState};
use crate::event::Adapter;
use crate::ordered::Ordered;
use crate::*;

type T = &'static str;
type C = VirtualClock;

macro_rules! under {
    (pbg $scheduler:ty, $steps:ident) => {};
    ($module:ident $scheduler:ty, $steps:ident) => {
        gives_who_would_run::<$scheduler>($steps);
    };
}
macro_rules! under_each {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
        fn each_gives_who_would_run(steps: &[bench::Step]) {
            $(under!($module $scheduler, steps);)*
        }
    };
}
for_each_policy!(under_each);

proptest! {
    /// Rule 3, which each policy has as its last.
    #[test]
    fn rule_3_who_would_run_next_is_handed_over(steps in bench::steps()) {
        each_gives_who_would_run(&steps);
        gives_who_would_run::<Adapter<Cfs<T, C, Ordered<T, CfsState>>>>(&steps);
        gives_who_would_run::<Adapter<Eevdf<T, C, Ordered<T, EevdfState>>>>(&steps);
    }
}

/// What a report of a stall has of the layer.
#[test]
fn what_is_shared_is_said_in_a_line() {
    let shared = Shared::new();
    assert_eq!(shared.to_string(), "not connected");
    let machine = Machine {
        interrupt: |_| {},
        ..simulated_machine(3)
    };
    // SAFETY: no layer shares this.
    unsafe { shared.connect(machine) };
    shared.set_waiting(0, 5);
    shared.set_idles(1, true);
    shared.becomes_hungry(1);
    shared.ask_anybody(shared.machine().unwrap(), 1);
    shared.becomes_hungry(2);
    assert_eq!(
        shared.to_string(),
        "CPU 0: 5 waiting, interrupted, asked by 0b10; CPU 1: 0 waiting, idles, hungry; CPU 2: 0 waiting, hungry"
    );
}

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
    static CURRENT: Cell<*const ()> = const { Cell::new(ptr::null()) };
    static INTERRUPTED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

type Rr = Balanced<rr::Rr<T, { rr::SLICE_TICKS }>, SharedPerThread>;
type RrTask = rr::RrTask<T>;

/// The schedulers of so many CPUs, whose tasks are called what CPUs they may run on. The first runs main,
/// which was not picked, and a tick has hit it.
fn connected(cpus: usize) -> (Vec<Rr>, Arc<RrTask>) {
    let main = Arc::new(RrTask::new("01"));
    HERE.set(0);
    CURRENT.set(Arc::as_ptr(&main).cast());
    INTERRUPTED.take();
    let machine = Machine {
        cpus,
        this_cpu: || HERE.get(),
        current: || CURRENT.get(),
        interrupt: |cpu| INTERRUPTED.with_borrow_mut(|all| all.push(cpu)),
        joins: || {},
        wait: core::hint::spin_loop,
        // SAFETY: the promise of the field.
        may_run: |task, cpu| unsafe { &*task.cast::<T>() }.contains(&cpu.to_string()),
    };
    // SAFETY: only these share it, one for each CPU, and all are of one type.
    unsafe { SharedPerThread::renew().connect(machine) };
    let mut on: Vec<_> = (0..cpus).map(|_| Rr::new()).collect();
    on[0].task_tick(&main);
    (on, main)
}

fn pick(on: &mut [Rr], cpu: usize) -> Option<Arc<RrTask>> {
    HERE.set(cpu);
    on[cpu].pick_next_task()
}

fn is_idle(on: &mut [Rr], cpu: usize) -> bool {
    pick(on, cpu).is_none()
}

/// Two are sent to a CPU that idles. While they are on the way another begins to idle, which may have
/// one of them, and finds nobody waiting anywhere.
#[test]
fn rule_7_who_is_sent_and_cannot_run_at_once_is_told_of() {
    let (mut on, _main) = connected(3);
    let busy = Arc::new(RrTask::new("2"));
    on[2].add_task(busy.clone());
    assert!(pick(&mut on, 2).is_some_and(|task| Arc::ptr_eq(&task, &busy)));
    assert!(is_idle(&mut on, 1));
    HERE.set(0);
    on[0].add_task(Arc::new(RrTask::new("12")));
    on[0].add_task(Arc::new(RrTask::new("1"))); // the last comes first
    assert!(is_idle(&mut on, 2), "who had it blocks");

    INTERRUPTED.take();
    assert_eq!(pick(&mut on, 1).as_deref().map(|task| **task), Some("1"));
    // To hand the other one over as soon as it has been left.
    assert_eq!(INTERRUPTED.take(), [1]);
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
    let (mut on, main) = connected(2);
    assert!(is_idle(&mut on, 1));
    HERE.set(0);
    on[0].add_task(Arc::new(RrTask::new("0")));
    INTERRUPTED.take();
    on[0].put_prev_task(main, false);
    assert_eq!(INTERRUPTED.take(), [0]);
}
