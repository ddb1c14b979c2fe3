//! What the tests of layer 2 share: the registry's schedulers under our trait,
//! random programs that shrink, and the bounds that the policies promise.
#![allow(dead_code, reason = "each test binary uses its part")]

use axsched_ext::BaseScheduler;
use axsched_ext::conformance::Load;
use axsched_ext::model::{Config, CpuMask, MaxWait, Op, Program};
use proptest::prelude::*;

/// A scheduler of the registry's `axsched`, whose trait is ours by another name.
pub struct Stock<S>(pub S);

impl<S: axsched_upstream::BaseScheduler> BaseScheduler for Stock<S> {
    type SchedItem = S::SchedItem;

    fn init(&mut self) {
        self.0.init();
    }
    fn add_task(&mut self, task: S::SchedItem) {
        self.0.add_task(task);
    }
    fn remove_task(&mut self, task: &S::SchedItem) -> Option<S::SchedItem> {
        self.0.remove_task(task)
    }
    fn pick_next_task(&mut self) -> Option<S::SchedItem> {
        self.0.pick_next_task()
    }
    fn put_prev_task(&mut self, prev: S::SchedItem, preempt: bool) {
        self.0.put_prev_task(prev, preempt);
    }
    fn task_tick(&mut self, current: &S::SchedItem) -> bool {
        self.0.task_tick(current)
    }
    fn set_priority(&mut self, task: &S::SchedItem, prio: isize) -> bool {
        self.0.set_priority(task, prio)
    }
}

/// One queue in order of arrival: whoever is ready waits for each other task
/// once at most.
pub fn each_other_once(load: &Load<'_>) -> MaxWait {
    MaxWait {
        dispatches: Some(load.tasks),
        time: None,
    }
}

/// The same, and with preemption nobody keeps the CPU for longer than a slice of
/// 5 ticks, the first of which may come late, and what it computes under a guard.
pub fn a_slice_each(load: &Load<'_>) -> MaxWait {
    let config = load.config;
    let calls = 4 * (config.call_cost + config.switch_cost);
    let turn = 6 * config.tick_period + load.longest_guarded + calls;
    MaxWait {
        dispatches: Some(load.tasks),
        time: config.preempt.then_some(load.tasks * turn),
    }
}

/// Any steps that end under a correct scheduler: waiting is only for own
/// children, and for notifications only so long.
pub fn program() -> impl Strategy<Value = Program> {
    let leaf = steps(step()).prop_map(|ops| Program::new("leaf", ops));
    let tree = leaf.prop_recursive(3, 12, 4, |child| {
        let spawn = child.prop_map(|child| vec![Op::Spawn(child)]);
        steps(prop_oneof![3 => step(), 1 => spawn]).prop_map(|ops| Program::new("node", ops))
    });
    tree.prop_map(|program| Program::new("main", program.ops))
}

fn steps(step: impl Strategy<Value = Vec<Op>>) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(step, 0..10).prop_map(|parts| parts.concat())
}

/// Usually one step; several where one alone would be a fault of the program.
fn step() -> impl Strategy<Value = Vec<Op>> {
    let queue = 0..2u8;
    let one = prop_oneof![
        4 => (0..30u64).prop_map(Op::Run),
        3 => Just(Op::Yield),
        2 => (0..50u64).prop_map(Op::Sleep),
        2 => (queue.clone(), 0..60u64).prop_map(|(queue, units)| Op::Wait { queue, timeout: Some(units) }),
        2 => (queue, any::<bool>()).prop_map(|(queue, resched)| Op::Notify { queue, resched }),
        1 => (0..3usize).prop_map(Op::Join),
        1 => (0..3usize).prop_map(Op::DropHandle),
        2 => (1..16u64).prop_map(|mask| Op::Migrate(CpuMask(mask))),
        1 => (-25..25isize).prop_map(Op::SetPriority),
    ];
    let guarded = (0..30u64, any::<bool>()).prop_map(|(units, yields)| {
        let middle = if yields { Op::Yield } else { Op::Run(units) };
        vec![Op::PreemptOff, Op::Run(units), middle, Op::PreemptOn]
    });
    prop_oneof![12 => one.prop_map(|op| vec![op]), 1 => guarded]
}

/// Any machine on which somebody gets anywhere: a tick period holds a switch
/// and a call.
pub fn machine() -> impl Strategy<Value = Config> {
    let flags = (any::<bool>(), prop::bool::weighted(0.8));
    (1..=4usize, flags, 7..30u64, 0..4u64).prop_map(
        |(cpus, (wake_resched, preempt), tick_period, switch_cost)| Config {
            cpus,
            preempt,
            tick_period,
            switch_cost,
            wake_resched,
            ..Config::default()
        },
    )
}
