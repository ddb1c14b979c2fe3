//! A progress bar on a terminal.

use std::{fmt::Write, time::Duration};

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// Returns a bar of `total` steps on standard error, which is hidden if that is no terminal.
pub fn bar(total: usize) -> ProgressBar {
    let left = |state: &ProgressState, out: &mut dyn Write| {
        // The first step shows how long one takes.
        let _ = match state.pos() {
            0 => out.write_str("time left not known yet"),
            _ => write!(out, "{} left", HumanDuration(state.eta())),
        };
    };
    let style = ProgressStyle::with_template("[{bar:24}] {pos}/{len}  {left}  {wide_msg}")
        .expect("the template is right")
        .progress_chars("=> ")
        .with_key("left", left);
    let bar = ProgressBar::new(total as u64).with_style(style);
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}
