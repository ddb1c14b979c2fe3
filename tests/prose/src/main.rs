//! `cargo run -p prose -- FILE...` prints the offences of the files, or of the whole tree.

use std::{env, fs, process::ExitCode};

fn main() -> ExitCode {
    let mut files: Vec<_> = env::args().skip(1).collect();
    if files.is_empty() {
        files = prose::files(".");
    }
    let mut count = 0;
    for path in files {
        let Ok(content) = fs::read_to_string(&path) else {
            eprintln!("prose: {path}: cannot be read; allowed are text files");
            return ExitCode::FAILURE;
        };
        for offence in prose::offences(&path, &content) {
            println!("{path}:{offence}");
            count += 1;
        }
    }
    println!("{count} offences");
    ExitCode::from(u8::from(count > 0))
}
