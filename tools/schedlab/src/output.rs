//! Standard output and standard error.

use std::{
    fmt::Display,
    io::{self, ErrorKind, Write},
};

use anyhow::{Context, Result};

/// Returns a number with a noun: `1 cell`, `2 cells`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Prints a text. If the reader has closed the pipe, as `head` does, the text is dropped, and this
/// is no error.
pub fn print(text: impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        end => end.context("standard output cannot be written"),
    }
}

pub fn print_line(line: impl Display) -> Result<()> {
    print(format_args!("{line}\n"))
}

/// Writes a line to standard error; if that is closed, the line is dropped.
pub fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
