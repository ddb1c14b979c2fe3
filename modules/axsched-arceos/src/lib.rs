//! Connects [`axsched_ext::balance`] to ArceOS 0.3.0-preview.3, in one call.
//!
//! With the feature `axsched/balanced`, the schedulers of all CPUs share the work. This crate tells
//! them about the machine: the calling CPU, its running task, the CPUs that a task may run on, and
//! how to send an IPI. Call [`connect`] once, at the start of `main`. Without the call, or on one
//! CPU, this crate has no effect.
//!
//! **The interrupt** is ArceOS's IPI (`IPI_IRQ`). It is used without `axruntime/ipi`, which would
//! register a handler of its own. The work is done in the hook that `axhal` calls after a handler,
//! when the interrupt has been acknowledged. So an idle CPU can switch to a task there. On riscv64,
//! which clears the pending bit after the handler, no further IPI is lost. After an IPI the hook does
//! the same as the timer's handler, so the scheduler is called in `task_tick`. A scheduler does not
//! see the other interrupts of an idle CPU. After each of them the hook yields.
//!
//! **Side effects.** `axhal` has one such hook. If it is taken, as by
//! `axtask::future::register_irq_waker`, [`connect`] fails. After [`connect`] that function does
//! nothing. An IPI also checks timers, so a task that sleeps may wake a little before the tick.

#![no_std]
#![cfg(target_os = "none")]

use core::fmt;

use axhal::irq::{IPI_IRQ, IpiTarget};
use axhal::percpu::{current_task_ptr, this_cpu_id};
use axsched_ext::balance::{Machine, SMP_STATE};
use axtask::TaskInner;

/// The reason why the CPUs are not connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Another handler of the IPI is registered already.
    InterruptTaken,
    /// Another user has `axhal`'s hook after interrupts already.
    HookTaken,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InterruptTaken => {
                "the interrupt between CPUs is taken: build without axruntime/ipi"
            }
            Self::HookTaken => {
                "the hook after interrupts is taken: connect before anybody waits for an interrupt"
            }
        })
    }
}

impl core::error::Error for Error {}

/// Makes the CPUs share the work, if there are several. A task must call it once. Each CPU takes
/// part from its next pick or tick on.
///
/// # Errors
/// Returns an [`Error`] if the interrupt or the hook is taken. Then each CPU goes on by itself.
pub fn connect() -> Result<(), Error> {
    if axhal::cpu_num() == 1 {
        return Ok(());
    }
    if !axhal::irq::register(IPI_IRQ, || {}) {
        return Err(Error::InterruptTaken);
    }
    if !axhal::irq::register_irq_hook(after_interrupt) {
        return Err(Error::HookTaken);
    }
    let machine = Machine {
        cpus: axhal::cpu_num(),
        this_cpu: this_cpu_id,
        current: current_task_ptr::<()>,
        interrupt,
        join: || axhal::irq::set_enable(IPI_IRQ, true),
        wait,
        may_run,
    };
    // SAFETY: `axtask` has one scheduler for each CPU, all of one type, whose tasks wrap `TaskInner`.
    // The pointer of the current task is the address in its `Arc`. `axtask` picks and ticks only on
    // the CPU that owns the queue.
    unsafe { axsched_ext::selected::connect::<TaskInner>(machine) };
    // This CPU takes part from now on.
    axtask::yield_now();
    Ok(())
}

/// Sends an IPI to a CPU. This CPU is not addressed as `IpiTarget::Current`, because on an x86_64
/// without x2APIC that writes to a register that does not exist, and faults.
fn interrupt(cpu: usize) {
    axhal::irq::send_ipi(IPI_IRQ, IpiTarget::Other { cpu_id: cpu });
}

/// Lets other CPUs run while this one spins for a lock with interrupts off.
///
/// QEMU runs riscv64's CPUs on one thread here, because ArceOS boots reliably only so. A CPU that
/// spins keeps that thread for up to 100 ms, with `pause` or without. `wfi` ends with the next
/// pending interrupt, even while interrupts are off, and that is the timer's at the latest. On
/// x86_64 `hlt` would not end. Its `pause` and aarch64's `yield` let the other CPUs run.
fn wait() {
    #[cfg(target_arch = "riscv64")]
    axhal::asm::wait_for_irqs();
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

/// Runs after the handler of any interrupt, which has been acknowledged, with preemption off.
fn after_interrupt(irq: usize) {
    if irq == IPI_IRQ {
        axtask::on_timer_tick();
    }
    // The interrupt may have made a task ready, after the idle task's last look and before its halt.
    if SMP_STATE.is_idle(this_cpu_id()) {
        axtask::yield_now();
    }
}
