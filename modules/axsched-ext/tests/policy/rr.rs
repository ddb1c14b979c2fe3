//! Promises of RR.

use axsched_ext::conformance::Promises;

use crate::common::{a_slice_each, rr_beside};

pub const TURNS: &str = "a5 b5 a5 b5 a5 b5 a5 b5 a5 b5 a5 b5 s2 a1 b0";

pub fn promises() -> Promises {
    Promises {
        max_wait: a_slice_each,
        done_beside: rr_beside,
        ..Promises::default()
    }
}
