//! The table of orders, and the way to use the profile.

use sched_sim::aim::Aim;

use super::{PHASES, Planned};
use crate::{grid, output::count, setting::scaled};

pub fn text(planned: &Planned) -> String {
    let (args, header) = (planned.args, &planned.profile.header);
    let (what, unit) = match args.aim {
        Aim::Average => ("average turnaround in ms", 1e6),
        Aim::Makespan => ("time until all have ended in ms", 1e6),
        Aim::Slowdown => ("worst turnaround over its CPU time", 1.0),
        Aim::Deadlines => ("time beyond deadlines, of all tasks, in ms", 1e6),
    };
    let row = |name: &str, value: f64| {
        let above = match planned.bound > 0.0 {
            true => format!("{:.1}", (value / planned.bound - 1.0) * 100.0),
            false => String::new(),
        };
        vec![name.to_owned(), format!("{:.3}", value / unit), above]
    };
    let mut rows = vec![vec![
        "(bound)".to_owned(),
        format!("{:.3}", planned.bound / unit),
        String::new(),
    ]];
    let (name, value) = planned.without;
    rows.push(row(&format!("{name}, the best without a plan"), value));
    rows.extend(planned.orders.iter().map(|(name, value)| row(name, *value)));
    let table = grid::text(&["order", ">value", ">above, %"], rows, grid::WIDE);
    let best = planned.orders[planned.best].0;
    let found = match best {
        "search" => "The search found a better order than the rules did",
        _ => "The search found no better order than the best of a rule",
    };
    format!(
        "{} on {}, {}: {what} (model, {PHASES} tick phases)\n\n{table}\n\
         {found}, in {} with seed {}.\nNo order has less than the bound.\n\
         Written is the order `{best}`. {}",
        header.program.name,
        header.architecture,
        count(usize::from(args.cpus), "CPU"),
        count(planned.plays, "play"),
        args.seed,
        to_follow(planned),
    )
}

/// Returns the commands that follow the order. Time is real on several CPUs, and a plan has its times
/// from a run of the same kind.
fn to_follow(planned: &Planned) -> String {
    let (header, out) = (&planned.profile.header, planned.out.display());
    let (app, arch) = (header.program.name, header.architecture.name());
    let run = format!(
        "  make run A={app} FEATURES=sched_pbg{}",
        variables(planned)
    );
    if planned.args.cpus == 1 {
        return format!("To follow it:\n{run} PROFILE={out}\n");
    }
    let scale = scaled(planned.args.source.scale);
    let real = format!("target/pbg/{app}-{arch}{scale}-real.pbg");
    format!(
        "To follow it, measure on as many CPUs, and take the order along:\n{run}\n  \
         make profile LAB='edit {real} --order {out}'\n{run} PROFILE={real}\n"
    )
}

/// Returns the variables of make that differ from what it takes by itself.
fn variables(planned: &Planned) -> String {
    let mut words = String::new();
    let arch = planned.profile.header.architecture.name();
    if arch != "x86_64" {
        words += &format!(" ARCH={arch}");
    }
    if planned.args.source.scale > 1 {
        words += &format!(" SCALE={}", planned.args.source.scale);
    }
    if planned.args.cpus > 1 {
        words += &format!(" SMP={}", planned.args.cpus);
    }
    words
}
