//! What a job is, and what it is fed with.

/// A job under way.
pub trait Work {
    /// Does the next unit. Whether it came out right.
    fn unit(&mut self) -> bool;
}

/// Input for the jobs: the generator of [`sched_tests_common::work`], of which the
/// upper halves are used, as the lower bits of such a generator repeat soon.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(2 * seed + 1) // odd, for the long period
    }

    pub fn next(&mut self) -> u32 {
        self.0 = sched_tests_common::work::jump(self.0, 1);
        (self.0 >> 32) as u32
    }

    /// A number below `bound`, which is small.
    pub fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }
}
