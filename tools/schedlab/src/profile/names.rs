//! Names of tasks.

use anyhow::{Result, bail};
use axsched_ext::{
    pbg::stored::{Place, StoredProfile},
    units::TaskKey,
};

/// The names of a profile's tasks.
pub struct Names {
    keys: Vec<TaskKey>,
    labels: Vec<Option<String>>,
    /// The place of each in the tree: `0.2` is the third child of the root's first one.
    paths: Vec<String>,
}

impl Names {
    pub fn of(profile: &StoredProfile) -> Self {
        let mut paths: Vec<String> = Vec::new();
        for task in &profile.tasks {
            paths.push(match task.place {
                Place::Root { ordinal } => ordinal.to_string(),
                // A parent stands before its children.
                Place::Child { parent, ordinal } => format!("{}.{ordinal}", paths[parent as usize]),
                // It has no path, so those below it begin with its key.
                Place::Several => task.key.to_string(),
            });
        }
        Self {
            keys: profile.tasks.iter().map(|task| task.key).collect(),
            labels: (profile.tasks.iter())
                .map(|task| task.label.map(|label| label.to_string()))
                .collect(),
            paths,
        }
    }

    /// Returns the path of a task, or its key if it has none.
    pub fn path(&self, index: usize) -> &str {
        &self.paths[index]
    }

    /// Returns the label or the path of a task, with the key after it if another task has the same.
    pub fn name(&self, index: usize) -> String {
        let plain = |i: usize| self.labels[i].as_ref().unwrap_or(&self.paths[i]);
        let name = plain(index);
        let alone = (0..self.keys.len()).all(|other| other == index || plain(other) != name);
        match alone {
            true => name.clone(),
            false => format!("{name} ({})", self.keys[index]),
        }
    }

    /// Returns the task with this label, key or path; a label goes first, then a key.
    pub fn find(&self, wanted: &str) -> Result<usize> {
        let matching = |is: &dyn Fn(usize) -> bool| -> Vec<usize> {
            (0..self.keys.len()).filter(|index| is(*index)).collect()
        };
        let key = wanted.trim_start_matches("0x").to_lowercase();
        let mut found = matching(&|i| self.labels[i].as_deref() == Some(wanted));
        if found.is_empty() {
            found = matching(&|i| self.keys[i].to_string() == key);
        }
        if found.is_empty() {
            found = matching(&|i| self.paths[i] == wanted);
        }
        match found[..] {
            [index] => Ok(index),
            [] => {
                const ENOUGH: usize = 8;
                let names: Vec<_> = (0..self.keys.len().min(ENOUGH))
                    .map(|i| self.name(i))
                    .collect();
                let more = if self.keys.len() > ENOUGH { " …" } else { "" };
                bail!(
                    "--task: expected a label, key or path of the profile, found `{wanted}`; it has {}{more}",
                    names.join(" ")
                )
            }
            _ => {
                let keys: Vec<_> = found.iter().map(|i| self.keys[*i].to_string()).collect();
                bail!(
                    "--task: expected one task, found {} called `{wanted}`; their keys are {}",
                    found.len(),
                    keys.join(" ")
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::{sample, task};
    use crate::testing::assert_has;

    #[test]
    fn task_is_found_by_label_key_and_path() {
        let profile = sample();
        let names = Names::of(&profile);
        assert_eq!([0, 1, 2].map(|i| names.name(i)), ["0", "worker", "1.0"]);
        for (name, index) in [("0", 0), ("worker", 1), ("1", 1), ("1.0", 2)] {
            assert_eq!(names.find(name).unwrap(), index, "{name}");
            let key = profile.tasks[index].key.to_string();
            for key in [format!("0x{}", key.to_uppercase()), key] {
                assert_eq!(names.find(&key).unwrap(), index);
            }
        }
        assert_eq!(
            names.find("none").unwrap_err().to_string(),
            "--task: expected a label, key or path of the profile, found `none`; it has 0 worker 1.0"
        );
    }

    #[test]
    fn names_that_are_not_unique_have_their_key() {
        let mut profile = sample();
        let mut twin = task(Place::Several, TaskKey::ROOT, Some("worker"), [0; 3]);
        twin.key = TaskKey::from_bits(0xabc);
        profile.tasks.push(twin);
        let names = Names::of(&profile);
        assert_eq!(names.name(3), "worker (0000000000000abc)");
        assert_eq!(names.path(3), "0000000000000abc");
        assert_has(
            names.find("worker").unwrap_err().to_string(),
            "found 2 called `worker`",
        );
        assert_eq!(names.find("abc").ok(), None);
        assert_eq!(names.find("0000000000000abc").unwrap(), 3);
    }
}
