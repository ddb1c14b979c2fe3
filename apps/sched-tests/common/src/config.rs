//! Decisions of the build: the guest has no command line, so they are compiled in.
//!
//! | environment variable | meaning | default |
//! |---|---|---|
//! | `SCHED_SCALE` | divides a workload's counts; a whole number from 1 | 1 |
//! | `SCHED_TIMING` | `icount` (virtual time) or `real` | `icount` |
//! | `PBG_BASE` | what PBG measures under: `rr` or `fifo` | `rr` |
//! | `PBG_PROFILE` | a file with a profile to build in (`build.rs`) | none |
//!
//! Any other value is a compile error. [`tick_phase`] is decided later, when the image
//! boots: `make TICK_PHASE=` writes it into a copy of the image. `SCHED_TIMING` changes
//! nothing in the guest: it says how QEMU will be started.

use axsched_ext::pbg::BasePolicy;

/// The divisor of a workload's counts, at least 1.
pub const SCALE: u64 = match option_env!("SCHED_SCALE") {
    Some(text) => parse_scale(text),
    None => 1,
};

/// The unit of the guest's clock: `icount`, an instruction, or `real`.
pub const TIMING: &str = match option_env!("SCHED_TIMING") {
    Some(text) => parse_timing(text),
    None => "icount",
};

/// The policy that runs while PBG measures.
pub const PBG_BASE: BasePolicy = match option_env!("PBG_BASE") {
    Some(text) => parse_base(text),
    None => BasePolicy::RoundRobin,
};

/// True if the image keeps when each task had its CPU. The feature `trace` decides it, and also
/// selects the code for it.
pub const TRACED: bool = cfg!(feature = "trace");

/// True if the image keeps each switch of a task: the feature `events`.
pub const EVENTS: bool = cfg!(feature = "events");

/// True if the policy is recorded: the feature `recorded`.
pub const RECORDED: bool = cfg!(feature = "recorded");

/// The bytes in which `make` writes the phase: three digits after a text that stands nowhere else
/// in an image. `scripts/qemu-run.sh` looks for that text.
static TICK_PHASE: [u8; 20] = *b"SCHED-TICK-PHASE=000";

/// Returns the phase of the timer tick at which a run of the workload starts, in thousandths of the
/// tick's period, below 1,000. It may differ between two boots of one image.
pub fn tick_phase() -> u64 {
    // SAFETY: the pointer comes from a reference to a plain value. The read is volatile because the
    // bytes are changed after the build, so the compiler must not assume the value above.
    let text = unsafe { core::ptr::read_volatile(&TICK_PHASE) };
    digits(&text[17..])
}

fn digits(text: &[u8]) -> u64 {
    text.iter()
        .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

/// The profile that was built in, if any. It has not been checked yet.
#[cfg(pbg_profile)]
pub const PROFILE: Option<&[u8]> = Some(include_bytes!(concat!(env!("OUT_DIR"), "/profile.pbg")));
/// The profile that was built in, if any. It has not been checked yet.
#[cfg(not(pbg_profile))]
pub const PROFILE: Option<&[u8]> = None;

/// The architecture's name in result lines.
pub const ARCH: &str = if cfg!(target_arch = "x86_64") {
    "x86_64"
} else if cfg!(target_arch = "riscv64") {
    "riscv64"
} else if cfg!(target_arch = "aarch64") {
    "aarch64"
} else if cfg!(target_arch = "loongarch64") {
    "loongarch64"
} else {
    "other"
};

const fn parse_scale(text: &str) -> u64 {
    match u64::from_str_radix(text, 10) {
        Ok(scale) if scale > 0 => scale,
        _ => panic!("SCHED_SCALE must be a whole number from 1"),
    }
}

const fn parse_timing(text: &str) -> &'static str {
    match text.as_bytes() {
        b"icount" => "icount",
        b"real" => "real",
        _ => panic!("SCHED_TIMING must be `icount` or `real`"),
    }
}

const fn parse_base(text: &str) -> BasePolicy {
    match text.as_bytes() {
        b"rr" => BasePolicy::RoundRobin,
        b"fifo" => BasePolicy::Fifo,
        _ => panic!("PBG_BASE must be `rr` or `fifo`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed() {
        assert_eq!(parse_scale("1"), 1);
        assert_eq!(parse_scale("250"), 250);
        assert_eq!(parse_timing("real"), "real");
        assert_eq!(parse_base("fifo"), BasePolicy::Fifo);
    }

    #[test]
    fn an_image_begins_at_the_tick_and_can_be_told_otherwise() {
        assert_eq!(tick_phase(), 0);
        assert_eq!(digits(b"000"), 0);
        assert_eq!(digits(b"875"), 875);
    }

    #[test]
    #[should_panic(expected = "SCHED_SCALE must be")]
    fn a_scale_of_zero_is_refused() {
        parse_scale("0");
    }

    #[test]
    #[should_panic(expected = "SCHED_TIMING must be")]
    fn an_unknown_timing_is_refused() {
        parse_timing("kvm");
    }

    #[test]
    #[should_panic(expected = "PBG_BASE must be")]
    fn an_unknown_base_policy_is_refused() {
        parse_base("cfs");
    }
}
