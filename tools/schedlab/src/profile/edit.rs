//! `schedlab profile edit`: sets the priorities and deadlines that only the user knows, and takes over
//! the order of another profile.

use std::{collections::HashMap, num::NonZeroU8, path::Path};

use anyhow::{Context, Result, bail, ensure};
use axsched_ext::{
    pbg::stored::{StoredOrder, StoredProfile, StoredTask},
    units::Counts,
};

use super::{
    file::{read, save},
    names::Names,
    quantity::Clock,
};
use crate::{
    Verdict,
    cli::EditArgs,
    output::{count, print_line},
};

pub fn edit(args: &EditArgs) -> Result<Verdict> {
    let source = read(&args.file)?;
    let out = match &args.out {
        Some(out) => out,
        None if source.is_console => bail!(
            "{}: expected --out, as a console log is not overwritten with a profile; found none",
            args.file.display()
        ),
        None => &args.file,
    };
    let mut profile = source.profile;
    let clock = Clock::new(profile.header.frequency_hz);
    let priority = args.priority.as_deref().map(priority).transpose()?;
    let deadline = match args.deadline.as_deref() {
        Some("none") => Some(None),
        Some(text) => Some(Some(Counts(clock.counts(text)?))),
        None => None,
    };
    let mut lines = Vec::new();
    if let Some(file) = &args.order {
        let order = order(file, &profile)?;
        let cpus = count(order.cpus.into(), "CPU");
        lines.push(format!("the order of {}, for {cpus}", file.display()));
        profile.order = Some(order);
    }
    let names = Names::of(&profile);
    for name in &args.task {
        let index = names.find(name)?;
        let task = &mut profile.tasks[index];
        let before = shown(task, clock);
        if let Some(priority) = priority {
            task.priority = priority;
        }
        if let Some(deadline) = deadline {
            task.deadline = deadline;
        }
        lines.push(format!(
            "{}: {before} -> {}",
            names.name(index),
            shown(task, clock)
        ));
    }
    save(out, &profile)?;
    for line in lines {
        print_line(line)?;
    }
    Ok(Verdict::Good)
}

/// Returns the order in this file for the tasks of a profile.
fn order(file: &Path, profile: &StoredProfile) -> Result<StoredOrder> {
    let from = read(file)?.profile;
    let of = |profile: &StoredProfile| {
        let header = &profile.header;
        (header.program.hash, header.architecture)
    };
    ensure!(
        of(&from) == of(profile),
        "--order {}: expected an order of the same program, scale and architecture, found one of {} on {}",
        file.display(),
        from.header.program.name,
        from.header.architecture
    );
    let order = from.order.with_context(|| {
        let file = file.display();
        format!(
            "--order {file}: expected a profile with an order, as `make plan` writes it; found none"
        )
    })?;
    let keys = from.tasks.iter().map(|task| task.key);
    let group_of: HashMap<_, _> = keys.zip(order.groups).collect();
    let groups = profile.tasks.iter();
    let groups = groups.map(|task| group_of.get(&task.key).copied());
    let groups = groups.collect::<Option<Vec<_>>>();
    match groups.filter(|groups| groups.len() == group_of.len()) {
        Some(groups) => Ok(StoredOrder {
            cpus: order.cpus,
            groups,
        }),
        None => bail!(
            "--order {}: expected the {} of {}, found {} with other keys",
            file.display(),
            count(profile.tasks.len(), "task"),
            profile.header.program.name,
            count(group_of.len(), "task"),
        ),
    }
}

/// Parses a priority such as `3`. Both `0` and `none` are none.
fn priority(text: &str) -> Result<Option<NonZeroU8>> {
    match (text, text.parse()) {
        ("none", _) => Ok(None),
        (_, Ok(priority)) => Ok(NonZeroU8::new(priority)),
        _ => bail!("--priority: expected a whole number from 1 to 255, or none, found `{text}`"),
    }
}

/// Returns a task's priority and deadline, as in `priority 3, deadline 50.000 ms`.
pub fn shown(task: &StoredTask, clock: Clock) -> String {
    let priority = task
        .priority
        .map_or("none".to_owned(), |priority| priority.to_string());
    let deadline = task.deadline.map_or("none".to_owned(), |deadline| {
        format!("{} {}", clock.show(deadline.0 as f64), clock.unit())
    });
    format!("priority {priority}, deadline {deadline}")
}
