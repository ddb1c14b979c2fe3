//! The sources of a measurement that this program did not boot.

use std::{env, fs, path::Path, time::SystemTime};

use anyhow::{Context, Result};

use super::{
    list::{Made, SourceList},
    rows::{Published, RowKey},
    tree::Tree,
};
use crate::{cli::TreeArgs, output::note, project::Project};

/// Returns the stamp of a measurement whose files make wrote into a list before. Returns `None` if
/// there is no list, or if a file has changed since.
pub fn made_beside(tree: &TreeArgs, list: &Path, scheduler: &str) -> Result<Option<Made>> {
    let Ok(text) = fs::read_to_string(list) else {
        return Ok(None);
    };
    let place = || list.display().to_string();
    let files = SourceList::read(&text).with_context(place)?;
    let tree = Tree::new(&Project::find(tree)?)?;
    if let Some(file) = tree.changed_since(&files, fs::metadata(list)?.modified()?) {
        note(format_args!(
            "{}: {file} has changed since: what was measured counts as out of date",
            place()
        ));
        return Ok(None);
    }
    Ok(Some(tree.made(files, &[scheduler])))
}

/// Returns the sources of figures of the model, of one app on one architecture: a recording of the
/// app under PBG, and the model, which is in this program.
pub fn made_by_model(tree: &TreeArgs, keys: Vec<RowKey>) -> Result<Vec<(RowKey, Option<Made>)>> {
    let project = Project::find(tree)?;
    let Some(RowKey { arch, app, .. }) = keys.first() else {
        return Ok(Vec::new());
    };
    if !project.can_list_sources() {
        return Ok(keys.into_iter().map(|key| (key, None)).collect());
    }
    let mut apps = project.lists()?.apps.into_iter();
    let found = apps.find(|of| of.name == *app);
    let app = found.with_context(|| format!("expected an app called {app}, found none"))?;
    let words = ["-s", "lab-sources"].map(str::to_owned).into_iter().chain([
        format!("A={}", app.folder),
        format!("ARCH={arch}"),
        "FEATURES=sched_pbg".to_owned(),
    ]);
    let begin = SystemTime::now();
    let output = project.make(&words.collect::<Vec<_>>()).output()?;
    let console: Vec<_> = String::from_utf8(output.stdout)?
        .lines()
        .map(str::to_owned)
        .collect();
    let mut list = SourceList::of_make(&console)?;
    let program = env::current_exe()?.with_extension("d");
    let built = fs::read_to_string(&program).with_context(|| program.display().to_string())?;
    let root = fs::canonicalize(&project.root)?;
    let own = built
        .split(' ')
        .filter_map(|path| Path::new(path).strip_prefix(&root).ok());
    let model = own.filter(|path| MODEL.iter().any(|folder| path.starts_with(folder)));
    list.files
        .extend(model.map(|path| path.display().to_string().trim_end().to_owned()));
    list.files.sort();
    list.files.dedup();
    let tree = Tree::new(&project)?;
    tree.check_unchanged(&list, begin)?;
    let made = |key: RowKey| {
        let made = tree.made(list.clone(), &Published::Simulate.schedulers(&key));
        (key, Some(made))
    };
    Ok(keys.into_iter().map(made).collect())
}

/// The part of this program that simulates.
const MODEL: [&str; 2] = ["modules", "tools/sched-sim"];
