//! An application under PBG. It follows the profile that was kept, if there is one. If not, it is
//! measured first, and follows the profile of that run.

use alloc::{string::ToString, vec::Vec};

use axsched_ext::{
    pbg::{About, CONTROL},
    syscall,
    units::Counts,
};
use sched_tests_results::PbgLine;

use crate::{
    app::App,
    config,
    kept::{self, Found, Origin},
    platform::{self, println},
    results::{Phase, followed_line, refused_line},
    run_phase::run_phase,
    runner::setting,
};

/// The results of a run of an application, to be printed.
pub struct AppResult {
    /// The phases, in the order in which they ran.
    pub phases: Vec<Phase>,
    /// The fates of profiles: refused, or followed.
    pub profiles: Vec<PbgLine>,
    /// The profile that was measured, as bytes, if it is a good one.
    pub measured: Option<Vec<u8>>,
}

impl AppResult {
    /// One phase, and nothing about profiles.
    pub fn of_phase(phase: Phase) -> Self {
        Self {
            phases: [phase].into(),
            profiles: Vec::new(),
            measured: None,
        }
    }
}

/// Runs `app` in the phases that are called for.
pub fn run(app: &App) -> AppResult {
    let about = kept::about(app.name);
    match kept::start(&about) {
        Found::Nothing => measure_and_replay(app, &about),
        Found::Started { origin, tasks } => {
            println!(
                "PBG follows the profile {}: {tasks} tasks.\n",
                origin.phrase()
            );
            print_late_tasks(&about);
            // A changed program may differ from its profile: that is no failure.
            let replay = run_phase(app, "replay");
            let measured_ns = measured_ns(&about);
            let line = measured_ns.and_then(|ns| followed(app, origin, ns, &replay));
            let mut result = AppResult::of_phase(replay);
            result.profiles.extend(line);
            result
        }
        Found::Refused { origin, why } => {
            let origin_phrase = origin.phrase();
            let mut result = if origin == Origin::Disk {
                println!("PBG refuses the profile {origin_phrase}: {why}.\n");
                measure_and_replay(app, &about)
            } else {
                println!(
                    "PBG refuses the profile {origin_phrase}: {why}. One ordinary run instead.\n"
                );
                AppResult::of_phase(run_phase(app, "run"))
            };
            let line = refused_line(&setting(app.name), origin.name(), &why);
            result.profiles.insert(0, line);
            result
        }
    }
}

/// Prints the tasks that the plan ends after their deadline.
fn print_late_tasks(about: &About) {
    if !CONTROL.status().is_ok_and(|status| status.late > 0) {
        return; // mostly, and then no second plan is made to look for them
    }
    let (Ok(Some(plan)), Ok(Some(profile))) = (CONTROL.plan(), CONTROL.profile(about)) else {
        return;
    };
    let ms = |counts: Counts| counts.0 as f64 * 1e3 / profile.header.frequency_hz.max(1) as f64;
    for late in plan.late() {
        let task = profile.tasks.iter().find(|task| task.key == late.key);
        let name = match task.and_then(|task| task.label) {
            Some(label) => label.as_str().to_string(),
            None => late.key.to_string(),
        };
        println!(
            "PBG cannot end task {name} in time: expected after {:.3} ms at the latest, found {:.3} in the plan.",
            ms(late.deadline),
            ms(late.end)
        );
    }
    println!();
}

/// Returns the average turnaround of the run that the scheduler's profile was measured in. Returns
/// `None` if there is no profile.
fn measured_ns(about: &About) -> Option<u64> {
    let profile = CONTROL.profile(about).ok()??;
    let sum: u128 = (profile.tasks.iter())
        .map(|task| u128::from(task.turnaround().0))
        .sum();
    let counts = sum / profile.tasks.len().max(1) as u128;
    let ns = counts * 1_000_000_000 / u128::from(profile.header.frequency_hz.max(1));
    u64::try_from(ns).ok()
}

/// Returns the line of a replay that has ended; `None` if the scheduler has no account of one.
fn followed(app: &App, origin: Origin, measured_ns: u64, replay: &Phase) -> Option<PbgLine> {
    let status = CONTROL.status().ok()?;
    let (setting, replayed_ns) = (setting(app.name), replay.avg_turnaround_ns());
    let line = followed_line(&setting, origin.name(), &status, measured_ns, replayed_ns);
    Some(PbgLine::Followed(line))
}

/// Measures the application, and lets it follow the plan that results.
fn measure_and_replay(app: &App, about: &About) -> AppResult {
    if let Err(error) = syscall::measure_start_under(config::PBG_BASE) {
        println!("No measurement, no profile: {error}. One ordinary run instead.\n");
        let mut run = run_phase(app, "run");
        run.pass &= error == syscall::Error::NotSupported && platform::cpus() > 1;
        return AppResult::of_phase(run);
    }
    let mut measure = run_phase(app, "measure");
    let recorded = syscall::measure_end();
    // A plan for some of the tasks only could still be followed in full.
    measure.pass &= recorded.is_ok_and(|tasks| tasks == measure.tasks.len() + app.spawned_beside);
    let profile = if measure.pass {
        keep(about, &mut measure)
    } else {
        None // of a run that went wrong
    };
    let planned = recorded.and_then(|_| syscall::start_pbg());
    match (recorded, planned) {
        (Ok(recorded), Ok(planned)) => {
            println!("PBG recorded {recorded} tasks and planned {planned}.\n");
            print_late_tasks(about);
        }
        (Err(error), _) | (_, Err(error)) => {
            println!("PBG has no plan: {error}. The replay runs without one and fails.\n");
        }
    }
    let mut replay = run_phase(app, "replay");
    let all_matched = |planned| {
        CONTROL
            .status()
            .is_ok_and(|s| s.matched as usize == planned)
    };
    replay.pass &= planned.is_ok_and(all_matched);
    let line = followed(app, Origin::Boot, measure.avg_turnaround_ns(), &replay);
    AppResult {
        phases: [measure, replay].into(),
        profiles: line.into_iter().collect(),
        measured: profile,
    }
}

/// Returns the profile as bytes, and puts it on the disk, if there is one. If either fails, so does
/// the phase.
fn keep(about: &About, measure: &mut Phase) -> Option<Vec<u8>> {
    let profile = match kept::measured(about) {
        Ok(profile) => profile,
        Err(error) => {
            println!("PBG cannot keep the profile: {error}.\n");
            measure.pass = false;
            return None;
        }
    };
    match kept::save(&profile) {
        None => {}
        Some(Ok(())) => println!(
            "PBG wrote the profile to the disk: {} bytes.\n",
            profile.len()
        ),
        Some(Err(error)) => {
            println!("PBG cannot write the profile to the disk: {error}.\n");
            measure.pass = false;
        }
    }
    Some(profile)
}
