use std::string::ToString;

use super::smp_state::{PostReason, Posted};
use super::{Machine, SmpState, simulated_machine};

/// Returns a machine that delivers no IPI.
fn silent(cpus: usize) -> Machine {
    Machine {
        interrupt: |_| {},
        ..simulated_machine(cpus)
    }
}

/// The report of a stall has one line about the layer, which must be complete.
#[test]
fn smp_state_is_formatted_in_one_line() {
    let smp = SmpState::new();
    assert_eq!(smp.to_string(), "not connected");
    let machine = silent(3);
    // SAFETY: no layer shares this state.
    unsafe { smp.connect(machine) };
    smp.set_waiting(0, 5);
    smp.set_idle(1, true);
    smp.request_task(1);
    smp.ask_any(smp.machine().unwrap(), 1);
    smp.request_task(2);
    assert_eq!(
        smp.to_string(),
        "CPU 0: 5 waiting, interrupted, asked by 0b10; CPU 1: 0 waiting, idle, requesting; CPU 2: 0 waiting, requesting"
    );
}

#[test]
fn layer_of_one_cpu_is_not_connected() {
    let smp = SmpState::new();
    // SAFETY: no layer shares this state.
    unsafe { smp.connect(silent(1)) };
    assert!(smp.machine().is_none());
}

#[test]
fn ipi_is_counted_if_none_is_pending() {
    let smp = SmpState::new();
    let machine = silent(2);
    for (sent, counted) in [(0, 0), (2, 1), (1, 2)] {
        (0..sent).for_each(|_| smp.interrupt(&machine, 1));
        assert_eq!([0, 1].map(|cpu| smp.interrupts(cpu)), [0, counted]);
        smp.was_interrupted(1);
    }
}

#[test]
fn post_keeps_the_task_and_its_reason() {
    let smp = SmpState::new();
    let machine = silent(2);
    let task = (&raw const machine).cast();
    for reason in [PostReason::Woken, PostReason::New, PostReason::HandedOver] {
        let posted = Posted { task, reason };
        smp.post(&machine, 1, posted);
        assert_eq!(smp.take_post(1), Some(posted));
        assert_eq!(smp.take_post(1), None);
    }
}

#[test]
fn common_is_what_was_set() {
    let smp = SmpState::new();
    assert!(smp.common().is_null());
    let mut common = ();
    smp.set_common(&raw mut common);
    assert_eq!(smp.common(), &raw const common);
}
