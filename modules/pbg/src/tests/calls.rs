//! The calls, and what is common to all modes.

use alloc::sync::Arc;

use super::cpu::*;
use crate::control::GlobalMode;
use crate::*;
use pbg_profile::ProgramName;
use sched_core::BaseScheduler;
use sched_core::clock::VirtualClock;
use sched_core::units::TaskKey;

#[test]
fn a_call_takes_effect_at_the_next_pick_and_the_running_task_is_known_from_then_on() {
    let mut cpu = Cpu::measuring();
    cpu.trace("block>gc");
    assert_eq!(cpu.control.global_mode(), GlobalMode::MEASURING);
    cpu.trace("spawn child of an outsider, block, block, wake main, pick");
    assert_eq!(cpu.measure_end(), Ok(0));
}

/// The spawn finds the lock taken, so the command stays, and the task that gave it still has the
/// CPU when it is taken.
#[test]
fn a_timers_spawn_on_top_of_a_call_does_not_make_another_the_root() {
    let mut cpu = Cpu::boot();
    cpu.trace("spawn root, block>gc, block>root");
    cpu.control.measure_start().unwrap();
    let control = cpu.control;
    control.on_top_of_a_call(|| cpu.spawn("timer's"));
    assert_eq!(control.global_mode(), GlobalMode::COMMAND);
    cpu.trace("spawn child 0, block>timer's, wake main, block>child 0, block>main");
    cpu.trace("spawn child of an outsider, wake root, block>child of an outsider, block>root");
    cpu.trace("spawn child 1, spawn child 2");
    cpu.measure_end().unwrap();
    assert_eq!(
        cpu.keys(),
        [0, 1, 2].map(|place| TaskKey::ROOT.child(place))
    );
}

#[test]
fn a_profile_names_the_policy_it_was_measured_under() {
    for (base, name) in [(BasePolicy::RoundRobin, "rr"), (BasePolicy::Fifo, "fifo")] {
        assert_eq!(base.name(), name);
        let cpu = Cpu::boot();
        cpu.control.measure_start_under(base).unwrap();
        assert_eq!(cpu.measure_end(), Ok(0));
        assert_eq!(cpu.profile().header.policy.as_str(), name);
    }
}

#[test]
fn a_plan_can_be_looked_at_before_it_is_followed() {
    let cpu = measured(&[("long", 300), ("short", 100)]);
    let plan = cpu.control.plan().unwrap().unwrap();
    let keys: Vec<_> = plan.tasks().iter().map(|task| task.key).collect();
    assert_eq!(keys, [TaskKey::ROOT.child(1), TaskKey::ROOT.child(0)]);
    assert_eq!(Cpu::boot().control.plan(), Ok(None));
}

#[test]
fn the_system_control_is_that_of_the_calls() {
    assert!(core::ptr::eq(SystemControl::control(), &raw const CONTROL));
}

#[test]
fn no_priority_is_set() {
    let mut scheduler = PbgScheduler::<(), VirtualClock>::new();
    assert!(!scheduler.set_priority(&Arc::new(PbgTask::new(())), 0));
}

#[test]
fn an_error_shows_its_cause() {
    for cause in [Error::NoMemory, Error::Contended] {
        let said = std::format!("{cause}");
        assert!(!said.is_empty());
        assert_eq!(std::format!("{}", LoadError::from(cause)), said);
    }
}

#[test]
fn a_stored_profile_loads_and_is_followed() {
    let first = measured(&[("long", 100), ("short", 1)]);
    let bytes = pbg_profile::encode(&first.profile()).unwrap();
    let mut cpu = Cpu::boot();
    assert_eq!(cpu.control.load(&bytes, &cpu.about()), Ok(2));
    assert_eq!(cpu.profile(), first.profile(), "nothing is lost on the way");
    assert_eq!(cpu.control.start_pbg(), Ok(2));
    assert_eq!(
        cpu.control.load(&bytes, &cpu.about()),
        Err(LoadError::Call(Error::Replaying))
    );
    cpu.trace("spawn long, spawn short");
    assert_eq!(cpu.status().matched, 2);
    cpu.trace("yield>short");
}

#[test]
fn a_profile_that_is_refused_changes_nothing() {
    let cpu = measured(&[("a", 10)]);
    let before = cpu.profile();
    let mut bytes = pbg_profile::encode(&before).unwrap();
    let about = cpu.about();
    let refused = |bytes: &[u8], about: &About| cpu.control.load(bytes, about).unwrap_err();
    let mut other = about;
    other.program.hash += 1;
    assert!(matches!(refused(&bytes, &other), LoadError::Mismatch(_)));
    let (expected, found) = (pbg_profile::Timing::Real, pbg_profile::Timing::Counted);
    other = About {
        timing: expected,
        ..about
    };
    let mismatch = pbg_profile::Mismatch::Timing { expected, found };
    assert_eq!(refused(&bytes, &other), LoadError::Mismatch(mismatch));
    bytes[20] ^= 1;
    assert!(matches!(refused(&bytes, &about), LoadError::Decode(_)));
    assert_eq!(cpu.profile(), before);
    cpu.control.start_pbg().unwrap();
}

#[test]
fn a_profile_of_another_architecture_or_while_measuring_is_refused() {
    let cpu = measured(&[("a", 10)]);
    let mut profile = cpu.profile();
    let good = pbg_profile::encode(&profile).unwrap();
    profile.header.architecture = pbg_profile::Architecture::Other;
    let other = pbg_profile::encode(&profile).unwrap();
    let found = cpu.control.load(&other, &cpu.about());
    let is_architecture = |error| {
        let LoadError::Mismatch(mismatch) = error else {
            return false;
        };
        matches!(mismatch, pbg_profile::Mismatch::Architecture { .. })
    };
    assert!(found.is_err_and(is_architecture));
    cpu.control.measure_start().unwrap();
    let busy = Err(LoadError::Call(Error::Measuring));
    assert_eq!(cpu.control.load(&good, &cpu.about()), busy);
}

#[test]
fn a_loaded_profile_says_where_it_was_measured() {
    let mut profile = measured(&[("a", 10)]).profile();
    profile.header.frequency_hz = 62_500_000;
    profile.header.timing = pbg_profile::Timing::Unknown;
    profile.header.program.name = ProgramName::new("as it was").unwrap();
    let cpu = Cpu::boot();
    let bytes = pbg_profile::encode(&profile).unwrap();
    cpu.control.load(&bytes, &cpu.about()).unwrap();
    assert_eq!(cpu.profile(), profile);
}

#[test]
fn a_measurement_in_which_nothing_was_scheduled_is_empty() {
    let mut cpu = measured(&[("a", 10), ("b", 20)]);
    cpu.control.measure_start().unwrap();
    assert_eq!(cpu.measure_end(), Ok(0));
    assert_eq!(cpu.control.start_pbg(), Ok(0));
    cpu.spawn("a");
    assert_eq!(cpu.status().unplanned, 1);
    assert_eq!(cpu.yield_now(), "a");
}

/// The tasks of the old measurement leave no trace in the new record.
#[test]
fn a_new_measurement_starts_from_nothing_even_at_once() {
    let mut cpu = Cpu::boot();
    cpu.control.measure_start().unwrap();
    cpu.spawn("old");
    cpu.measure_end().unwrap();
    cpu.control.measure_start().unwrap();
    cpu.trace("spawn new, block");
    for expected in ["gc", "old", "new"] {
        assert_eq!(cpu.name(), expected);
        cpu.trace("spawn child, +100, block");
    }
    cpu.trace("wake main");
    while cpu.name() != "main" {
        cpu.block();
    }
    assert_eq!(cpu.measure_end(), Ok(2), "new and its child");
}

#[test]
fn calls_in_a_wrong_order_are_refused_and_change_nothing() {
    let mut cpu = Cpu::boot();
    let control = cpu.control;
    assert_eq!(cpu.measure_end(), Err(Error::NotMeasuring));
    assert_eq!(control.start_pbg(), Err(Error::NoProfile));
    assert_eq!(control.status().unwrap(), Status::default());
    control.measure_start().unwrap();
    assert_eq!(control.measure_start(), Err(Error::AlreadyMeasuring));
    assert_eq!(control.start_pbg(), Err(Error::Measuring));
    cpu.spawn("a"); // recorded, whatever was refused
    assert_eq!(cpu.measure_end(), Ok(1));
    assert_eq!(cpu.measure_end(), Err(Error::NotMeasuring));
    assert_eq!(control.start_pbg(), Ok(1));
    assert_eq!(control.start_pbg(), Err(Error::AlreadyReplaying));
    assert_eq!(control.measure_start(), Err(Error::Replaying));
    assert_eq!(cpu.measure_end(), Err(Error::NotMeasuring));
    cpu.spawn("a");
    assert_eq!(
        cpu.status(),
        Status {
            mode: Mode::Replaying,
            planned: 1,
            matched: 1,
            ..Status::default()
        }
    );
}

#[test]
fn several_queues_are_neither_measured_nor_follow_a_plan() {
    let mut cpu = measured(&[("a", 10)]);
    let mut second: PbgScheduler<_, VirtualClock, PerThread> = PbgScheduler::new();
    second.add_task(task("gc 1"));
    assert_eq!(cpu.control.measure_start(), Err(Error::NotSupported));
    assert_eq!(cpu.control.start_pbg(), Err(Error::NotSupported));
    assert_eq!(cpu.status().mode, Mode::Idle);
    cpu.trace("spawn b, yield>b");
    assert_eq!(*second.pick_next_task().unwrap().inner(), "gc 1");
}

#[test]
fn a_dropped_scheduler_releases_the_tasks_of_both_queues() {
    let mut cpu = replaying(&[("a", 1), ("b", 2)]);
    let tasks = ["a", "b", "outside"].map(|name| cpu.spawn(name));
    assert!(tasks.iter().all(|t| Arc::strong_count(t) == 2));
    drop(cpu);
    assert!(tasks.iter().all(|t| Arc::strong_count(t) == 1));
}

#[test]
fn remove_finds_a_task_that_stands_elsewhere_than_by_its_rank() {
    let mut cpu = replaying(&[("long", 100), ("short", 50)]);
    let long = cpu.spawn("long");
    cpu.trace("block, +80, block");
    cpu.wake(&long); // 20 remain
    assert!(cpu.scheduler.remove_task(&long).is_some());
}

#[test]
fn remove_finds_a_task_between_its_yield_and_its_pick() {
    let mut cpu = replaying(&[("a", 100)]);
    let a = cpu.spawn("a");
    cpu.block();
    let current = cpu.current.take().unwrap();
    cpu.scheduler.put_prev_task(current, false);
    assert!(cpu.scheduler.remove_task(&a).is_some());
    assert_eq!(cpu.pick(), "idle");
}

#[test]
fn remove_finds_planned_and_fallback_tasks_and_no_others() {
    let mut cpu = replaying(&[("a", 1), ("b", 2)]);
    let [a, b, outside] = ["a", "b", "outside"].map(|name| cpu.spawn(name));
    assert!(cpu.scheduler.remove_task(&task("stranger")).is_none());
    for t in [&a, &outside] {
        assert!(Arc::ptr_eq(&cpu.scheduler.remove_task(t).unwrap(), t));
        assert!(cpu.scheduler.remove_task(t).is_none());
    }
    cpu.trace("block>b");
    assert!(cpu.scheduler.remove_task(&b).is_none(), "it runs");
    cpu.trace("block>idle");
    cpu.wake(&a);
    assert_eq!(cpu.pick(), "a");
}
