//! The part of the old `axstd` that the test programs use, over [`ax_runtime`].

#![no_std]
#![cfg(target_os = "none")]

use core::fmt;

use ax_log as _;

/// Writes to the console, by the task that owns it.
///
/// # Panics
/// Panics if the console has failed, because results would be lost.
pub fn write_console(text: fmt::Arguments<'_>) {
    let console = ax_runtime::console::output().expect("the console works");
    console.write_fmt(text).expect("the console works");
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
