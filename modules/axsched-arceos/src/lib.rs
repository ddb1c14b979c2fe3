//! Connects [`axsched_ext::balance`] to ArceOS 0.3.0-preview.3, in one call.
//!
//! With the feature `axsched/balanced` each CPU's scheduler is one of several that share the work;
//! what they must know of the machine, they are told here: which CPU this is, which task it runs,
//! where a task may run, and how one interrupts another. [`connect`] is called once, at the start
//! of `main`. Without the call, or on one CPU, all is as without this crate.
//!
//! **The interrupt** is ArceOS's between CPUs (`IPI_IRQ`), without `axruntime/ipi`, which would
//! have a handler of its own for it. Its work is done in the hook that `axhal` calls after a
//! handler: only then has the interrupt been acknowledged, so an idle CPU can switch to a task
//! there, and one that comes meanwhile is not lost on riscv64, which clears the pending bit after
//! the handler. The hook does what the timer's handler does, of which a scheduler hears in
//! `task_tick`; and after any interrupt of a CPU that idles, of which a scheduler hears nothing, it
//! yields.
//!
//! **What it takes away.** `axhal` has one such hook: [`connect`] fails if it is taken, as by
//! `axtask::future::register_irq_waker`, and that does nothing after [`connect`]. With the interrupt
//! timers are looked at as well, so that a task that sleeps may wake a little before the tick.

#![no_std]
#![cfg(target_os = "none")]

use core::fmt;

use axhal::irq::{IPI_IRQ, IpiTarget};
use axhal::percpu::{current_task_ptr, this_cpu_id};
use axsched_ext::balance::{Machine, SMP_STATE};
use axtask::TaskInner;

/// Why the CPUs are not connected.
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

/// From now on the CPUs share the work, if there are several; each takes part from its next pick or
/// tick on. Called once, by a task.
///
/// # Errors
/// [`Error`]; then each CPU goes on by itself.
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
    // SAFETY: `axtask` has one scheduler for each CPU, all of one type, whose tasks are `TaskInner`
    // wrapped; it keeps the current task's `Arc` as the address that it gave, and picks and ticks
    // only on the CPU whose queue it is.
    unsafe { axsched_ext::selected::connect::<TaskInner>(machine) };
    // This CPU takes part from now on.
    axtask::yield_now();
    Ok(())
}

/// Not `IpiTarget::Current` for this CPU: on an x86_64 without x2APIC that writes to a register
/// which there is none of, and faults.
fn interrupt(cpu: usize) {
    axhal::irq::send_ipi(IPI_IRQ, IpiTarget::Other { cpu_id: cpu });
}

/// QEMU runs riscv64's CPUs on one thread here (ArceOS boots reliably only so), and one that spins keeps it
/// for up to 100 ms, `pause` or not. With interrupts off `wfi` ends with the next that is
/// pending, the timer's at the latest. `hlt` would not end; x86_64's `pause` and aarch64's `yield`
/// let the others run.
fn wait() {
    #[cfg(target_arch = "riscv64")]
    axhal::asm::wait_for_irqs();
    #[cfg(not(target_arch = "riscv64"))]
    core::hint::spin_loop();
}

/// # Safety
/// `task` is a [`TaskInner`], and alive.
unsafe fn may_run(task: *const (), cpu: usize) -> bool {
    // SAFETY: as promised.
    let task = unsafe { &*task.cast::<TaskInner>() };
    task.cpumask().get(cpu)
}

/// In an interrupt, which has been acknowledged, with preemption off.
fn after_interrupt(irq: usize) {
    if irq == IPI_IRQ {
        axtask::on_timer_tick();
    }
    // Whatever it was may have made a task ready, and come between idle's last look and its halt.
    if SMP_STATE.is_idle(this_cpu_id()) {
        axtask::yield_now();
    }
}
