//! The interface of a job, and the source of its input.

/// A job that has begun.
pub trait Work {
    /// Does the next unit. Returns true if its result is right.
    fn unit(&mut self) -> bool;
}

/// The input of the jobs, from the generator of [`sched_tests_common::work`].
///
/// Only the upper half of each number is used, because the lower bits of such a generator repeat
/// soon.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(2 * seed + 1) // odd, for the long period
    }

    pub fn next(&mut self) -> u32 {
        self.0 = sched_tests_common::work::jump(self.0, 1);
        (self.0 >> 32) as u32
    }

    /// Returns a number below `bound`, which must be small.
    pub fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }
}
