//! The kinds of work of the jobs. Each consists of units by well-kept libraries, and each unit is
//! checked.

mod compress;
mod hash;
mod multiply;
mod parse;
mod sort;
mod work;

use alloc::boxed::Box;

pub use work::Work;

use work::Numbers;

/// The kind of work that a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Hashes pages with SHA-256.
    Hash,
    /// Compresses pages of text with LZ4 and unpacks them.
    Compress,
    /// Sorts 1,024 numbers at a time.
    Sort,
    /// Parses JSON documents into trees and writes them back.
    Parse,
    /// Multiplies matrices of integers.
    Multiply,
}

impl Kind {
    /// Returns the name of the kind, with which the names of its jobs begin.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::Compress => "compress",
            Self::Sort => "sort",
            Self::Parse => "parse",
            Self::Multiply => "multiply",
        }
    }

    /// Begins a job of this kind. Equal seeds make equal work.
    pub fn begin(self, seed: u64) -> Box<dyn Work> {
        let numbers = Numbers::new(seed);
        match self {
            Self::Hash => Box::new(hash::Hash::new()),
            Self::Compress => Box::new(compress::Compress::new(numbers)),
            Self::Sort => Box::new(sort::Sort(numbers)),
            Self::Parse => Box::new(parse::Parse(numbers)),
            Self::Multiply => Box::new(multiply::Multiply(numbers)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const KINDS: [Kind; 5] = [
        Kind::Hash,
        Kind::Compress,
        Kind::Sort,
        Kind::Parse,
        Kind::Multiply,
    ];

    #[test]
    fn units_of_every_kind_come_out_right() {
        for kind in KINDS {
            for seed in 0..3 {
                let mut work = kind.begin(seed);
                assert!((0..20).all(|_| work.unit()), "{kind:?}");
            }
        }
    }

    /// Runs a job of each kind on a small stack. On a guest an overflow goes unnoticed, because no
    /// page guards a stack there.
    #[test]
    fn a_job_fits_the_stack_of_a_task() {
        for kind in KINDS {
            let few_units = move || {
                let mut work = kind.begin(1);
                (0..3).all(|_| work.unit())
            };
            let thread = thread::Builder::new().stack_size(48 * 1024);
            let right = thread.spawn(few_units).unwrap().join().unwrap();
            assert!(right, "{kind:?}");
        }
    }

    #[test]
    fn numbers_repeat_only_for_equal_seeds() {
        let first = |seed| {
            let mut numbers = Numbers::new(seed);
            [(); 4].map(|()| numbers.next())
        };
        assert_eq!(first(7), first(7));
        assert_ne!(first(7), first(8));
    }
}
