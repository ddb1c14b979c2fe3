use proptest::prelude::*;

use crate::bench::{self, gives_who_would_run};
use crate::cfs::{Cfs, CfsState};
use crate::clock::VirtualClock;
use crate::eevdf::{Eevdf, EevdfState};
use crate::event::Adapter;
use crate::fifo::Fifo;
use crate::mlfq::Mlfq;
use crate::ordered::Ordered;
use crate::rr::Rr;
use crate::sjf::Sjf;

type Name = &'static str;

proptest! {
    /// Rule 3, which each policy has as its last.
    #[test]
    fn rule_3_who_would_run_next_is_handed_over(steps in bench::steps()) {
        gives_who_would_run::<Adapter<Fifo<Name>>>(&steps);
        gives_who_would_run::<Adapter<Rr<Name, 3>>>(&steps);
        gives_who_would_run::<Adapter<Sjf<Name, VirtualClock>>>(&steps);
        gives_who_would_run::<Adapter<Mlfq<Name, VirtualClock, 20>>>(&steps);
        gives_who_would_run::<Adapter<Cfs<Name, VirtualClock>>>(&steps);
        gives_who_would_run::<Adapter<Cfs<Name, VirtualClock, Ordered<Name, CfsState>>>>(&steps);
        gives_who_would_run::<Adapter<Eevdf<Name, VirtualClock>>>(&steps);
        gives_who_would_run::<Adapter<Eevdf<Name, VirtualClock, Ordered<Name, EevdfState>>>>(&steps);
    }
}
