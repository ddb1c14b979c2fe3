//! The part of the old `axstd` that the test programs use, over [`ax_runtime`].
//!
//! `ax-std`, its successor, cannot be built from the registry: it asks for `ax-posix-api`, whose
//! build needs a file that its package lacks.

#![no_std]
#![cfg(target_os = "none")]

extern crate alloc;

use core::{fmt, time::Duration};

use ax_log as _;
use ax_runtime::RuntimeError;

/// The lock of a value.
pub mod sync {
    pub use ax_runtime::sync::Mutex;
}

/// The wait until a full console is tried again.
const UNTIL_ROOM: Duration = Duration::from_millis(1);

/// Writes to the console, by the task that owns it. Sleeps while the console is full or another task
/// writes. Texts that several tasks write at the same time may mix then.
///
/// # Panics
/// Panics if the console has failed, because results would be lost, or if it is full and the caller may
/// not sleep.
pub fn write_console(text: fmt::Arguments<'_>) {
    let console = ax_runtime::console::output().expect("the console works");
    let text = alloc::fmt::format(text).replace('\n', "\r\n");
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match console.try_write(rest) {
            Ok(written) => rest = &rest[written..],
            // `write_fmt` would wait at the queue of the console. Its task wakes the waiting task at
            // each pass, also without room. A policy that prefers a task that wakes would run these
            // two in turn, and no other.
            Err(RuntimeError::WouldBlock) => ax_task::sleep(UNTIL_ROOM),
            Err(error) => panic!("the console has failed: {error:?}"),
        }
    }
}

/// Writes formatted text to the console.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::write_console(format_args!($($text)*)) };
}

/// Writes formatted text to the console, and ends the line.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($text:tt)*) => { $crate::write_console(format_args!("{}\n", format_args!($($text)*))) };
}
