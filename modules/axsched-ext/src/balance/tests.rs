use std::string::ToString;

use proptest::prelude::*;

use super::{Machine, Shared, simulated_machine};
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
