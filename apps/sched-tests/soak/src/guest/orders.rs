//! The orders of this boot. They are bytes of the image that `scripts/qemu-run.sh` changes, so that
//! one image can be booted with many seeds.

/// The seed, the time in seconds, the bound in seconds, and the number of the fault to plant.
static ORDERS: [u8; 42] = *b"SCHED-SOAK-ORDERS=0000000001 00003 010 00.";

/// The orders that a boot finds in its image.
#[derive(Clone, Copy)]
pub struct Orders {
    /// The seed that all random decisions follow from.
    pub seed: u64,
    /// The time for which new rounds begin, in seconds.
    pub seconds: u64,
    /// The longest time that a task may wait, in nanoseconds.
    pub bound_ns: u64,
    /// The fault that is planted, to see that it is found.
    pub planted: Option<Planted>,
}

/// A fault that is planted on purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A task is pinned to a CPU whose running task never gives way.
    Stall,
    /// A task forbids itself the CPU that it runs on.
    Outside,
    /// A task releases its lock early, and again while another task has it.
    Lock,
}

/// Returns the orders of this boot.
pub fn orders() -> Orders {
    // SAFETY: the pointer comes from a reference to a plain value. The read is volatile because the
    // bytes are changed after the build, so the compiler must not assume the value above.
    let text = unsafe { core::ptr::read_volatile(&ORDERS) };
    Orders {
        seed: digits(&text[18..28]),
        seconds: digits(&text[29..34]),
        bound_ns: digits(&text[35..38]) * 1_000_000_000,
        planted: match digits(&text[39..41]) {
            1 => Some(Planted::Stall),
            2 => Some(Planted::Outside),
            3 => Some(Planted::Lock),
            _ => None,
        },
    }
}

fn digits(text: &[u8]) -> u64 {
    text.iter()
        .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}
