use std::string::ToString;

use super::{Machine, Shared, simulated_machine};

/// The line about the layer in the report of a stall.
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
