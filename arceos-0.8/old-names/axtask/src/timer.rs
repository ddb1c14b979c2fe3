//! The timer ticks that the test programs ask for: main waits for one before a run begins.
//!
//! There is one tick after each short sleep of main, and none during a run, which would be disturbed.

use alloc::boxed::Box;
use core::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use ax_hal::time::monotonic_time_nanos;
use ax_task::{
    thread::current,
    time::{
        MonotonicDeadline,
        hard_timer::{
            HardKernelTimerAction, HardKernelTimerCallback, HardKernelTimerHandle,
            arm_hard_kernel_timer, register_hard_restartable_kernel_timer,
        },
    },
};
use spin::Once;

/// The time between two ticks, as on the other lines of ArceOS.
const TICK_NS: u64 = 10_000_000;

/// The longest sleep that a tick follows. The waits of the workloads are longer.
const SHORT: Duration = Duration::from_millis(1);

static TIMER: Once<HardKernelTimerHandle> = Once::new();

/// Returns the time of the next tick.
fn next_tick() -> MonotonicDeadline {
    let next_ns = (monotonic_time_nanos() / TICK_NS + 1) * TICK_NS;
    MonotonicDeadline::from_nanos(next_ns).expect("time has not run out")
}

/// Calls `callback` at ticks of this CPU, with the time since boot. The first call also begins to follow switches.
///
/// # Panics
/// Panics if there is no room for a timer.
pub fn register_timer_callback(callback: impl Fn(Duration) + Send + Sync + 'static) {
    crate::switch::start();
    // SAFETY: the callbacks of the test programs read a clock and write atomics.
    let timer = unsafe {
        HardKernelTimerCallback::new(Box::new(move |now| {
            callback(Duration::from_nanos(now.as_nanos()));
            HardKernelTimerAction::Disarm
        }))
    };
    let timer = register_hard_restartable_kernel_timer(next_tick(), timer)
        .expect("there is room for a timer");
    TIMER.call_once(|| timer);
}

/// Blocks the calling task for `duration`. The first short sleep spins. It comes before the first run, and a thread
/// that runs after an idle CPU keeps it beyond its quantum (`docs/guest.md`).
pub fn sleep(duration: Duration) {
    static HAS_SPUN: AtomicBool = AtomicBool::new(false);
    if duration <= SHORT && !HAS_SPUN.swap(true, Relaxed) {
        ax_hal::time::busy_wait(duration);
    } else {
        current::sleep(duration);
    }
    if duration <= SHORT
        && let Some(&timer) = TIMER.get()
    {
        // It fails if the timer is armed, which is as good.
        let _ = arm_hard_kernel_timer(timer, next_tick());
    }
}
