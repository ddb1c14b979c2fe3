//! What vruntime is measured in.

use crate::units::Counts;

/// For how long a task that is away is remembered, in counts: 2.4 hours at 1 GHz.
/// Whoever comes back later is treated as having nothing and owing nothing: no debt
/// is that large, and within this time no `min_vruntime` goes half-way round the line,
/// not even beside a task of nice 19.
pub const MEMORY: Counts = Counts(1 << 43);

/// The weight at which vruntime is time.
pub const NORMAL_WEIGHT: u64 = 1024;

/// vruntime is in counts over 2^12: a heavy task's burst of a few counts, as a slow
/// counter has them, must not be charged as nothing.
pub const FRACTION_BITS: u32 = 12;
