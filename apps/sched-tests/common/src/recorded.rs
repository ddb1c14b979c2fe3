//! An application under any policy, recorded: it runs once, and the profile is printed.

use alloc::format;

use axsched_ext::{recorded::RECORDING, syscall};

use crate::{
    app::App,
    kept,
    pbg::AppResult,
    platform::{self, println},
    run_phase::run_phase,
};

/// Runs `app` once and records it. If the recording fails, so does the run.
pub fn run(app: &App) -> AppResult {
    platform::connect_recording();
    let about = kept::about(app.name);
    let started = syscall::measure_start();
    let mut phase = run_phase(app, "run");
    let recorded = started.and_then(|()| syscall::measure_end());
    let encoded = match recorded {
        // A recording of some of the tasks only would be one of another program.
        Ok(tasks) if tasks != phase.tasks.len() => Err(format!(
            "expected {} tasks, found {tasks}",
            phase.tasks.len()
        )),
        Ok(_) => kept::encoded(RECORDING.profile(&about)),
        Err(error) => Err(kept::text(error)),
    };
    let profile = match encoded {
        Ok(bytes) => phase.pass.then_some(bytes), // not of a run that went wrong
        Err(why) => {
            println!("No recording: {why}.\n");
            phase.pass = false;
            None
        }
    };
    AppResult {
        measured: profile,
        ..AppResult::of_phase(phase)
    }
}
