//! The cases, with a file for each group. [`all`] begins with long cases, and with those on whose
//! results others build.

mod adopt;
mod arceos_2026;
mod balance;
mod boots;
mod clocks;
mod connections;
mod console;
mod coop;
mod cost;
mod damage;
mod figures;
mod files;
mod guest;
mod helpers;
mod host;
mod http;
mod joins;
mod kvm;
mod manners;
mod matrix;
mod polls;
mod profiles;
mod published;
mod record;
mod signals;
mod simulate;
mod soak;
mod trace;
mod wrong_calls;

use anyhow::Result;

use crate::{frame::Case, project::Project};

/// Returns the cases of all groups. The gate takes a part of some groups in turn, because each case there
/// has images of its own.
pub fn all(project: &Project) -> Result<Vec<Case<'_>>> {
    let mut cases = host::cases();
    cases.extend(matrix::cases(project)?);
    cases.extend(published::cases());
    cases.extend(adopt::cases(project));
    cases.extend(arceos_2026::cases(project));
    cases.push(guest::rules());
    // Each half has an ArceOS to build that no other case needs.
    let [hello, echo] = joins::cases();
    let [replay, limits] = guest::boots();
    let halves = [
        vec![replay, limits, hello],
        vec![arceos_2026::cost_gate(), echo],
    ];
    cases.extend(project.in_turn(halves, 1, 2).into_iter().flatten());
    cases.extend(manners::cases());
    cases.extend(kvm::cases());
    cases.extend(figures::cases(project));
    cases.extend(cost::cases(project));
    cases.extend(coop::cases());
    cases.extend(balance::cases(project));
    cases.extend(soak::cases());
    cases.extend(project.in_turn(http::cases(), 0, 3));
    cases.extend(files::cases());
    cases.extend(connections::cases());
    cases.extend(trace::cases(project));
    cases.extend(simulate::cases());
    cases.extend(profiles::cases(project));
    cases.extend(project.in_turn(record::cases(), 1, 3));
    cases.extend(damage::cases(project));
    cases.extend(project.in_turn(polls::cases(), 0, 2));
    cases.extend(boots::cases(project));
    cases.extend(console::cases());
    cases.extend(signals::cases());
    cases.extend(wrong_calls::cases());
    cases.extend(clocks::cases(project));
    Ok(cases)
}
