//! A policy gives the task to another CPU that it would run next.

use axsched_ext::cfs::{Cfs, CfsState};
use axsched_ext::clock::VirtualClock;
use axsched_ext::eevdf::{Eevdf, EevdfState};
use axsched_ext::event::Adapter;
use axsched_ext::ordered::Ordered;
use axsched_ext::*;
use proptest::prelude::*;
use sched_model::bench::{self, assert_migrates_next_task};

type T = &'static str;
type C = VirtualClock;

macro_rules! under {
    (pbg $scheduler:ty, $steps:ident) => {};
    (delegated $scheduler:ty, $steps:ident) => {
        assert_migrates_next_task::<Adapter<delegated::Outside<T>>>($steps);
    };
    ($module:ident $scheduler:ty, $steps:ident) => {
        assert_migrates_next_task::<$scheduler>($steps);
    };
}
macro_rules! under_each {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
        fn each_migrates_next_task(steps: &[bench::Step]) {
            $(under!($module $scheduler, steps);)*
            assert_migrates_next_task::<Adapter<Cfs<T, C, Ordered<T, CfsState>>>>(steps);
            assert_migrates_next_task::<Adapter<Eevdf<T, C, Ordered<T, EevdfState>>>>(steps);
        }
    };
}
axsched_ext::for_each_policy!(under_each);

proptest! {
    /// Rule 3, which each policy has as its last.
    #[test]
    fn rule_3_task_that_would_run_next_is_handed_over(steps in bench::steps()) {
        each_migrates_next_task(&steps);
    }
}

/// Steps after which EEVDF's last pick has taken a waiting task. Meanwhile the next task in its bucket
/// has become eligible.
#[rustfmt::skip]
const AFTER_A_WAITING_TASK: [bench::Step; 38] = [
    (6, 0, 36), (5, 0, 18), (7, 1, 0), (0, 1, 22), (1, 0, 20), (1, 1, 39), (0, 0, 17),
    (4, 0, 36), (0, 1, 31), (5, 0, 29), (0, 2, 34), (3, 2, 3), (0, 1, 21), (0, 0, 19),
    (4, 1, 2), (2, 0, 4), (0, 0, 34), (7, 1, 11), (5, 0, 16), (5, 0, 36), (2, 1, 27),
    (5, 0, 35), (0, 0, 0), (0, 1, 8), (1, 2, 29), (1, 0, 9), (0, 2, 23), (7, 2, 39),
    (0, 1, 22), (5, 0, 11), (0, 0, 1), (0, 1, 31), (0, 0, 10), (0, 0, 0), (4, 0, 0),
    (2, 0, 0), (2, 0, 0), (4, 0, 0),
];

/// The next pick is by virtual runtime then, so the task given away is.
#[test]
fn rule_3_holds_after_a_pick_of_a_waiting_task() {
    each_migrates_next_task(&AFTER_A_WAITING_TASK);
}
