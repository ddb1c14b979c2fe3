use std::string::ToString;

use super::shared::{Comes, Posted};
use super::{Machine, Shared, simulated_machine};

/// Returns a machine that delivers no IPI.
fn silent(cpus: usize) -> Machine {
    Machine {
        interrupt: |_| {},
        ..simulated_machine(cpus)
    }
}

/// The line about the layer in the report of a stall.
#[test]
fn what_is_shared_is_said_in_a_line() {
    let shared = Shared::new();
    assert_eq!(shared.to_string(), "not connected");
    let machine = silent(3);
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

#[test]
fn layer_of_one_cpu_is_not_connected() {
    let shared = Shared::new();
    // SAFETY: no layer shares this.
    unsafe { shared.connect(silent(1)) };
    assert!(shared.machine().is_none());
}

#[test]
fn ipi_is_counted_if_none_is_pending() {
    let shared = Shared::new();
    let machine = silent(2);
    for (sent, counted) in [(0, 0), (2, 1), (1, 2)] {
        (0..sent).for_each(|_| shared.interrupt(&machine, 1));
        assert_eq!([0, 1].map(|cpu| shared.interrupts(cpu)), [0, counted]);
        shared.was_interrupted(1);
    }
}

#[test]
fn post_keeps_the_task_and_why_it_comes() {
    let shared = Shared::new();
    let machine = silent(2);
    let task = (&raw const machine).cast();
    for comes in [Comes::Woken, Comes::New, Comes::HandedOver] {
        let posted = Posted { task, comes };
        shared.post(&machine, 1, posted);
        assert_eq!(shared.take_post(1), Some(posted));
        assert_eq!(shared.take_post(1), None);
    }
}

#[test]
fn common_is_what_was_set() {
    let shared = Shared::new();
    assert!(shared.common().is_null());
    let mut common = ();
    shared.set_common(&raw mut common);
    assert_eq!(shared.common(), &raw const common);
}
