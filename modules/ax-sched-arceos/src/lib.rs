//! Connects [`axsched_ext::balance`] to the ArceOS of 2026 (`ax-task` 0.6), in one call.
//!
//! With the feature `ax-sched/balanced`, the schedulers of all CPUs share the work. This crate tells
//! them about the machine: the calling CPU, its running task, the CPUs that a task may run on, and
//! how to send an IPI. Call [`connect`] once, at the start of `main`. Without the call, or on one
//! CPU, this crate has no effect. `axsched-arceos` does the same for the line before.
//!
//! `ax-task` puts a spawned or woken task into the queue of the CPU that spawns or wakes it, if the
//! task may run there. So without this layer all that a program spawns stays on one CPU.
//!
//! **The interrupt** is ArceOS's IPI. It is used without `ax-runtime/ipi`, which would register a
//! handler of its own. That one switches tasks at each IPI, and the scheduler cannot tell that
//! from a yield: RR would start a new slice, and PBG would count a yield. Here an IPI is a tick, so
//! the scheduler decides, and a switch is a preemption.
//!
//! One such switch remains. A task blocks, another CPU wakes it before the switch is over, and it
//! may not run on that CPU. Then its own CPU puts the next task back as if that had yielded.
//!
//! An IPI that comes after the idle task's last look and before its halt is seen at the next tick.
//!
//! **Side effects.** An IPI checks timers, too. [`connect`] sets off the timer of each CPU once, because
//! a CPU of a slow virtual machine may have missed its first tick, and then has none.

#![no_std]
#![cfg(target_os = "none")]

extern crate alloc;

use alloc::sync::Arc;
use core::fmt;

use ax_hal::{
    irq::{CpuId, CpuMask, IpiTarget, IrqError, IrqRequest, IrqReturn, IrqScope, ShareMode},
    percpu::this_cpu_id,
};
use ax_task::{AxCpuMask, TaskInner};
use axsched_ext::balance::Machine;

/// The reason why the CPUs are not connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Another handler of the IPI is registered already.
    InterruptTaken,
    /// The platform has refused the handler of the IPI, with this error.
    Refused(IrqError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InterruptTaken => {
                f.write_str("the interrupt between CPUs is taken: build without ax-runtime/ipi")
            }
            Self::Refused(error) => {
                write!(f, "the platform refuses a handler of its IPI: {error:?}")
            }
        }
    }
}

impl core::error::Error for Error {}

/// Makes the CPUs share the work, if there are several. A task must call it once, with preemption
/// on. Each CPU takes part from its next pick or tick on.
///
/// The calling task visits each CPU, because a handler is registered on its own CPU, and returns on
/// any of those that it may run on. Each visit takes up to one tick.
///
/// # Errors
/// Returns an [`Error`] if a handler cannot be registered. Then each CPU goes on by itself.
pub fn connect() -> Result<(), Error> {
    let cpus = ax_hal::cpu_num();
    if cpus == 1 {
        return Ok(());
    }
    let own = ax_task::current().cpumask();
    let registered = (0..cpus).try_for_each(register_on);
    ax_task::set_current_affinity(own);
    registered?;
    let machine = Machine {
        cpus,
        this_cpu: this_cpu_id,
        current,
        interrupt,
        join: || {},
        wait,
        may_run,
    };
    // SAFETY: `ax-task` has one scheduler for each CPU, all of one type, whose tasks wrap `TaskInner`.
    // The pointer of the current task is the address in its `Arc`. `ax-task` picks and ticks only on
    // the CPU that owns the queue.
    unsafe { axsched_ext::selected::connect::<TaskInner>(machine) };
    // This CPU takes part from now on.
    ax_task::yield_now();
    Ok(())
}

/// Registers and enables the handler on one CPU, and makes sure that this CPU has ticks.
fn register_on(cpu: usize) -> Result<(), Error> {
    ax_task::set_current_affinity(AxCpuMask::one_shot(cpu));
    // `ax-runtime` arms a CPU's timer before it unmasks it. If a slow host lets the first tick come in
    // between, QEMU's PC drops it, and no other ever follows. An extra interrupt has no effect: it arms
    // the timer for what is due next.
    ax_hal::time::set_oneshot_timer(0);
    // One handler for all CPUs would have to be enabled on the others from here, which takes
    // ax-runtime/ipi. Several for one interrupt have to share it.
    let handler = IrqRequest::new_concurrent(|_| {
        ax_task::on_timer_tick();
        IrqReturn::Handled
    });
    let only_here = IrqScope::PerCpu {
        cpus: CpuMask::from_cpu(CpuId(cpu)),
    };
    ax_hal::irq::request_irq(
        ax_hal::irq::ipi_irq(),
        handler.scope(only_here).share_mode(ShareMode::Shared),
    )
    .map(drop)
    .map_err(|error| match error {
        IrqError::Busy => Error::InterruptTaken,
        error => Error::Refused(error),
    })
}

/// Returns the address of the calling CPU's task in its `Arc`.
fn current() -> *const () {
    Arc::as_ptr(&ax_task::current()).cast()
}

/// Sends an IPI to a CPU.
fn interrupt(cpu: usize) {
    ax_hal::irq::send_ipi(ax_hal::irq::ipi_irq(), IpiTarget::Cpu(CpuId(cpu)))
        .expect("the platform sends an IPI to a CPU that runs");
}

/// Lets other CPUs run while this one spins for a lock with interrupts off.
///
/// QEMU runs riscv64's CPUs on one thread here. A CPU that spins keeps that thread for up to 100 ms,
/// with `pause` or without. `wfi` ends with the next pending interrupt, even while interrupts are
/// off, and that is the timer's at the latest. On x86_64 `hlt` would not end. Its `pause` and
/// aarch64's `yield` let the other CPUs run.
fn wait() {
    #[cfg(target_arch = "riscv64")]
    ax_hal::asm::wait_for_irqs();
    #[cfg(not(target_arch = "riscv64"))]
    core::hint::spin_loop();
}

/// Returns true if the affinity of a task includes a CPU.
///
/// # Safety
/// `task` must be a [`TaskInner`] that is alive.
unsafe fn may_run(task: *const (), cpu: usize) -> bool {
    // SAFETY: as promised.
    let task = unsafe { &*task.cast::<TaskInner>() };
    task.cpumask().get(cpu)
}
