//! The files of a merge, which may be too many to be named one by one.

use std::{
    collections::HashSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{cli::MergeArgs, output::note};

/// The extensions of profiles and console logs.
const ENDS: [&str; 2] = ["pbg", "log"];

/// Stands for standard input.
const STDIN: &str = "-";

/// Returns the files of the arguments, of the folders among them, and of the list, in this order. A
/// file that is named twice is one boot, and comes once.
pub fn files(args: &MergeArgs) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in args.files.iter().cloned().chain(listed(args)?) {
        match path.is_dir() {
            true => files.extend(in_folder(&path, &args.out)?),
            false => files.push(path),
        }
    }
    let mut seen = HashSet::new();
    files.retain(|path| seen.insert(place(path)));
    Ok(files)
}

/// Returns the place of a file. A pipe has no other place than its name.
fn place(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the names in the list, one on each line; relative paths begin in the current folder. The
/// output of an earlier merge, which a pattern may have listed, is left out with a warning, as its
/// runs would be counted twice.
fn listed(args: &MergeArgs) -> Result<Vec<PathBuf>> {
    let Some(list) = &args.from_list else {
        return Ok(Vec::new());
    };
    let mut text = String::new();
    let read = match list.to_str() {
        Some(STDIN) => io::stdin().read_to_string(&mut text).map(|_| ()),
        _ => fs::read_to_string(list).map(|all| text = all),
    };
    read.with_context(|| format!("--from-list {}", list.display()))?;
    let mut names: Vec<_> = (text.lines().map(str::trim))
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .collect();
    let (named, out) = (names.len(), place(&args.out));
    names.retain(|path| place(path) != out);
    if names.len() < named {
        note(format_args!(
            "--from-list {}: left out {}, which is the output: its runs would be counted twice",
            list.display(),
            args.out.display()
        ));
    }
    if names.is_empty() {
        bail!(
            "--from-list {}: expected the names of profiles, one on each line, found none",
            list.display()
        );
    }
    Ok(names)
}

/// Returns the profiles and console logs of a folder, by name. Refuses an output among them, as the
/// next merge would count all its runs again.
fn in_folder(folder: &Path, out: &Path) -> Result<Vec<PathBuf>> {
    let wanted = |path: &Path| {
        let end = path.extension().and_then(|end| end.to_str());
        end.is_some_and(|end| ENDS.contains(&end))
    };
    let own = match out.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => out,
    };
    let same = |a: &Path, b: &Path| {
        let (a, b) = (fs::canonicalize(a), fs::canonicalize(b));
        a.ok().zip(b.ok()).is_some_and(|(a, b)| a == b)
    };
    if wanted(out) && same(own, folder) {
        bail!(
            "--out {}: expected a place outside of {}, whose profiles are merged, as the next merge would count its runs again",
            out.display(),
            folder.display()
        );
    }
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.with_context(|| folder.display().to_string())?;
    let mut files: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
    files.retain(|path| wanted(path) && !path.is_dir());
    files.sort();
    if files.is_empty() {
        bail!(
            "{}: expected files whose names end in .{}, found none",
            folder.display(),
            ENDS.join(" or .")
        );
    }
    Ok(files)
}
