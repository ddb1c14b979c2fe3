//! Random numbers: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).

/// A stream of numbers that follows from its seed.
pub struct Random(u64);

impl Random {
    /// Begins the stream of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number of the stream.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a number below `n`, which is not 0.
    pub const fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Returns the `n`-th of the seeds that follow from the seed `above`.
pub const fn seed_of(above: u64, n: u64) -> u64 {
    Random::new(above ^ n.wrapping_mul(0xd6e8_feb8_6659_fd93)).next()
}
