//! Takes the profile that a guest has printed out of its console, checks it, and
//! writes it to a file: `pbg-save CONSOLE FILE`. Called by scripts/qemu-run.sh.
//!
//! Prints `FILE, N tasks, M bytes`; or one line that says what is wrong, and exits
//! with 1. The file is replaced as a whole or not at all.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use axsched_ext::pbg::stored;
use pbg_save::{destination, write};

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
    // Before any work is done for nothing.
    destination(file).map_err(|error| at(file, error))?;
    let text = fs::read(console).map_err(|error| at(console, error))?;
    let bytes = stored::read_frame(&text)?;
    let profile = stored::decode(&bytes)?;
    write(file, &bytes).map_err(|error| at(file, error))?;
    Ok(format!(
        "{} tasks, {} bytes",
        profile.tasks.len(),
        bytes.len()
    ))
}
