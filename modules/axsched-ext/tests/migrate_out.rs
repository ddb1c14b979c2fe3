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
    ($module:ident $scheduler:ty, $steps:ident) => {
        assert_migrates_next_task::<$scheduler>($steps);
    };
}
macro_rules! under_each {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
        fn each_migrates_next_task(steps: &[bench::Step]) {
            $(under!($module $scheduler, steps);)*
        }
    };
}
axsched_ext::for_each_policy!(under_each);

proptest! {
    /// Rule 3, which each policy has as its last.
    #[test]
    fn rule_3_task_that_would_run_next_is_handed_over(steps in bench::steps()) {
        each_migrates_next_task(&steps);
        assert_migrates_next_task::<Adapter<Cfs<T, C, Ordered<T, CfsState>>>>(&steps);
        assert_migrates_next_task::<Adapter<Eevdf<T, C, Ordered<T, EevdfState>>>>(&steps);
    }
}
