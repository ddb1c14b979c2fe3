//! Which cells a folder of results has.

use std::collections::HashSet;

use anyhow::Result;

use crate::{
    cli::CompareArgs,
    project::{Cell, short},
    store::Store,
};

/// The cells that are in a folder and were asked for, whatever the project has.
pub fn present(store: &Store, args: &CompareArgs) -> Result<Vec<Cell>> {
    let wanted =
        |words: &[String], name: &str| words.is_empty() || words.iter().any(|word| word == name);
    let select = &args.select;
    let mut cells = Vec::new();
    let mut seen = HashSet::new();
    for [arch, app, policy] in store.contents()? {
        let policies = [policy.clone(), short(&policy)];
        let policy_wanted = policies.iter().any(|name| wanted(&select.policy, name));
        if wanted(&select.arch, &arch) && wanted(&args.app, &app) && policy_wanted {
            let cell = Cell::new(&arch, &app, &policy);
            if seen.insert(cell.to_string()) {
                cells.push(cell);
            }
        }
    }
    Ok(cells)
}
