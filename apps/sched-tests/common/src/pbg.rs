//! An application under PBG: with a profile that was kept it follows that, else it
//! is measured first.

use alloc::{string::ToString, vec::Vec};

use axsched_ext::{
    pbg::{About, CONTROL},
    syscall,
    units::Counts,
};

use crate::{
    config,
    kept::{self, Found, Origin},
    platform::{self, println},
    results::{Fate, Phase, Replay, Report},
    runner::{App, run_phase},
};

/// What an application leaves to be printed.
pub struct Ran {
    /// Its phases.
    pub phases: Vec<Phase>,
    /// What became of profiles.
    pub reports: Vec<Report>,
    /// The profile that was measured.
    pub profile: Option<Vec<u8>>,
}

impl Ran {
    /// Phases, and nothing about profiles.
    pub fn of(phases: Vec<Phase>) -> Self {
        Self {
            phases,
            reports: Vec::new(),
            profile: None,
        }
    }
}

/// Runs `app` in the phases that are called for.
pub fn run(app: &App) -> Ran {
    let about = kept::about(app.name);
    match kept::start(&about) {
        Found::Nothing => measure_and_replay(app, &about),
        Found::Started { origin, tasks } => {
            println!(
                "PBG follows the profile {}: {tasks} tasks.\n",
                place(origin)
            );
            name_late_tasks(&about);
            // A changed program may differ from its profile: that is no failure.
            let replay = run_phase(app, "replay");
            let measured_ns = measured_ns(&about);
            let report = measured_ns.and_then(|ns| followed(origin, ns, &replay));
            let mut outcome = Ran::of([replay].into());
            outcome.reports.extend(report);
            outcome
        }
        Found::Refused { origin, why } => {
            let place = place(origin);
            let mut outcome = if origin == Origin::Disk {
                println!("PBG refuses the profile {place}: {why}.\n");
                measure_and_replay(app, &about)
            } else {
                println!("PBG refuses the profile {place}: {why}. One ordinary run instead.\n");
                Ran::of([run_phase(app, "run")].into())
            };
            let report = Report {
                from: origin.name(),
                fate: Fate::Refused(why),
            };
            outcome.reports.insert(0, report);
            outcome
        }
    }
}

/// Says which tasks no order ends by their latest time.
fn name_late_tasks(about: &About) {
    if !CONTROL.status().is_ok_and(|status| status.late > 0) {
        return; // hardly ever is there one: no second plan to find it so
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
            ms(late.latest),
            ms(late.end)
        );
    }
    println!();
}

const fn place(origin: Origin) -> &'static str {
    match origin {
        Origin::Boot => "of this boot",
        Origin::Image => "in this image",
        Origin::Disk => "on the disk",
    }
}

/// The average turnaround of the run that the present profile is of.
fn measured_ns(about: &About) -> Option<u64> {
    let profile = CONTROL.profile(about).ok()??;
    let sum: u128 = (profile.tasks.iter())
        .map(|task| u128::from(task.turnaround().0))
        .sum();
    let counts = sum / profile.tasks.len().max(1) as u128;
    let ns = counts * 1_000_000_000 / u128::from(profile.header.frequency_hz.max(1));
    u64::try_from(ns).ok()
}

/// The report of a replay that has ended.
fn followed(origin: Origin, measured_ns: u64, replay: &Phase) -> Option<Report> {
    Some(Report {
        from: origin.name(),
        fate: Fate::Followed(Replay {
            status: CONTROL.status().ok()?,
            measured_ns,
            replayed_ns: replay.avg_turnaround_ns(),
        }),
    })
}

fn measure_and_replay(app: &App, about: &About) -> Ran {
    if let Err(error) = syscall::measure_start_under(config::PBG_BASE) {
        println!("No measurement, no profile: {error}. One ordinary run instead.\n");
        let mut run = run_phase(app, "run");
        run.pass &= error == syscall::Error::NotSupported && platform::cpus() > 1;
        return Ran::of([run].into());
    }
    let mut measure = run_phase(app, "measure");
    let recorded = syscall::measure_end();
    // A plan for a part of the tasks could be followed to the letter.
    measure.pass &= recorded.is_ok_and(|tasks| tasks == measure.tasks.len());
    let profile = if measure.pass {
        keep(about, &mut measure)
    } else {
        None // of a run that went wrong
    };
    let planned = recorded.and_then(|_| syscall::start_pbg());
    match (recorded, planned) {
        (Ok(recorded), Ok(planned)) => {
            println!("PBG recorded {recorded} tasks and planned {planned}.\n");
            name_late_tasks(about);
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
    let report = followed(Origin::Boot, measure.avg_turnaround_ns(), &replay);
    Ran {
        phases: [measure, replay].into(),
        reports: report.into_iter().collect(),
        profile,
    }
}

/// The profile as bytes, now on the disk, too, if there is one. Where that fails,
/// so does the phase.
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
