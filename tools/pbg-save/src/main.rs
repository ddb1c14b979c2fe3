//! Takes the profile that a guest has printed out of its console, checks it, and
//! writes it to a file: `pbg-save CONSOLE FILE`. Called by scripts/qemu-run.sh.
//!
//! Prints `FILE, N tasks, M bytes`; or one line that says what is wrong, and exits
//! with 1. The file is replaced as a whole or not at all.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{self, ExitCode},
};

use axsched_ext::pbg::stored;

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(Into::into).collect();
    let [console, file] = &arguments[..] else {
        eprintln!("pbg-save: expected CONSOLE FILE");
        return ExitCode::from(2);
    };
    match save(console, file) {
        Ok(what) => {
            println!("{}, {what}", file.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn save(console: &Path, file: &Path) -> Result<String, Box<dyn Error>> {
    let at = |path: &Path, error| format!("{}: {error}", path.display());
    let text = fs::read(console).map_err(|error| at(console, error))?;
    let bytes = stored::read_frame(&text)?;
    let profile = stored::decode(&bytes)?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|error| at(folder, error))?;
    }
    // Beside the file, so that the rename stays within one file system; of this
    // process, since several may be here at once.
    let mut new = file.as_os_str().to_owned();
    new.push(format!(".{}", process::id()));
    let new = PathBuf::from(new);
    let written = fs::write(&new, &bytes).and_then(|()| fs::rename(&new, file));
    if let Err(error) = written {
        let _ = fs::remove_file(&new);
        return Err(at(file, error).into());
    }
    Ok(format!(
        "{} tasks, {} bytes",
        profile.tasks.len(),
        bytes.len()
    ))
}
