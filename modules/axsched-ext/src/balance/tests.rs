use proptest::prelude::*;

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
