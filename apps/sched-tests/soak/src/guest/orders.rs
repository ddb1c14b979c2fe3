//! What this boot is told: bytes of the image that `scripts/qemu-run.sh` changes, as one image is booted
//! with many seeds.

/// The seed, how many seconds, the bound in seconds, and what to break.
static ORDERS: [u8; 42] = *b"SCHED-SOAK-ORDERS=0000000001 00003 010 00.";

/// What a boot is told.
#[derive(Clone, Copy)]
pub struct Orders {
    /// What all that is random follows from.
    pub seed: u64,
    /// New rounds begin for so long.
    pub seconds: u64,
    /// Nobody may wait for longer, in nanoseconds.
    pub bound_ns: u64,
    /// What is broken on purpose, to see that it is found.
    pub planted: Option<Planted>,
}

/// A fault on purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A task may run on one CPU only, whose task never gives way.
    Stall,
    /// A task says that it may not run where it runs.
    Outside,
    /// A task releases a lock that another has.
    Lock,
}

/// The orders of this boot.
pub fn orders() -> Orders {
    // SAFETY: a reference to a plain value. Volatile, as the compiler must not take the value for
    // the one that stands here: the bytes are changed after the build.
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
