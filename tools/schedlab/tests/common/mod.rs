//! A project whose `make` is `tests/fake-make`, and runs of the program in it.

// Each test file is a program of its own and uses a part of this.
#![allow(dead_code, unused_imports)]

use std::{
    cell::RefCell,
    ffi::OsStr,
    fmt::Write,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

#[path = "../../src/testing.rs"]
mod testing;

pub use testing::{assert_begins, assert_ends, assert_golden, assert_has, assert_lacks};

use sched_tests_results::{COUNTED, Context, ResultLine, RunLine, TaskLine, TickPhase};

/// A phase of a boot on x86_64 with one task.
pub struct Printed<'a> {
    pub app: &'a str,
    pub sched: &'a str,
    pub phase: &'a str,
    pub tick_phase: u16,
    /// The turnaround of the task.
    pub ns: u64,
    pub srpt_bound_ns: u64,
}

impl Printed<'_> {
    pub fn lines(&self) -> String {
        let context = Context {
            app: self.app.into(),
            arch: "x86_64".into(),
            smp: 1,
            sched: self.sched.into(),
            phase: self.phase.into(),
        };
        let task = TaskLine {
            context: context.clone(),
            task: "a".into(),
            finish_ns: self.ns,
            turnaround_ns: self.ns,
            run_ns: self.ns,
            dispatches: 3,
            yields: 50,
            ..TaskLine::default()
        };
        let run = RunLine {
            context,
            timing: COUNTED.into(),
            scale: 1,
            tasks: 1,
            avg_turnaround_ns: self.ns,
            max_turnaround_ns: self.ns,
            makespan_ns: self.ns,
            context_switches: 7,
            srpt_bound_ns: self.srpt_bound_ns,
            jain: 0.5,
            tick_phase: Some(TickPhase::try_from(self.tick_phase).expect("a tick phase")),
            pass: true,
            ..RunLine::default()
        };
        format!("{}\n{}\n", task.to_line(), run.to_line())
    }
}

/// The variables that change an image or its boot.
pub const PROJECTS: [&str; 9] = [
    "BLK",
    "DISK",
    "LOG",
    "PBG_BASE",
    "PROFILE",
    "QEMU_ARGS",
    "T",
    "TICK_PHASE",
    "TRACE",
];

/// The real project's folder.
const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");

pub struct Lab {
    folder: tempfile::TempDir,
    /// The calls and files that were shown, for a golden file.
    record: RefCell<String>,
}

/// The exit status and the output of a run of the program.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("it prints text");
        Self {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

impl Lab {
    pub fn new() -> Self {
        let lab = Self {
            folder: tempfile::tempdir().expect("a folder for the test"),
            record: RefCell::default(),
        };
        for path in [
            "scripts/lab.mk",
            "Makefile",
            "apps/realtime/src/main.rs",
            "apps/yield/src/main.rs",
        ] {
            lab.write(path, "1");
        }
        lab
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn root(&self) -> String {
        format!("{}/", self.path("").display()).replace("//", "/")
    }

    /// Returns the words of a command line, in which `@` is this folder and `#` the real project's.
    pub fn words(&self, line: &str) -> Vec<String> {
        let folder = self.root();
        let word = |word: &str| word.replace('@', &folder).replace('#', PROJECT);
        line.split_whitespace().map(word).collect()
    }

    /// Runs the program with the words of a command line.
    pub fn call(&self, line: &str) -> Ended {
        self.run(&self.words(line))
    }

    /// Runs the program until its first line of progress, and interrupts it as Ctrl-C does. Returns
    /// that line, the last line of its errors, and the rest.
    pub fn interrupted(&self, line: &str) -> (String, String, Ended) {
        let mut child = self
            .command(&self.words(line))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // Where there is no terminal, a line says after three seconds how far it is.
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let first = lines.next().expect("a line").expect("text");
        let killed = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(killed.expect("kill is there").success());
        let last = lines.last().expect("a line").expect("text");
        let ended = Ended::from(child.wait_with_output().expect("it ends"));
        (first, last, ended)
    }

    /// Runs the program, which must succeed.
    #[track_caller]
    pub fn good(&self, line: &str) -> Ended {
        let end = self.call(line);
        assert_eq!(end.code, Some(0), "{line}: {end:?}");
        end
    }

    /// Runs the program and records the command line, the output and the exit status.
    pub fn shows(&self, line: &str) {
        let end = self.call(line);
        let errors: String = end.err.lines().map(|line| format!("2> {line}\n")).collect();
        let code = end.code.filter(|code| *code != 0);
        let code = code.map_or(String::new(), |code| format!("exit status {code}\n"));
        self.record(&format!("$ {line}"), &format!("{}{errors}{code}", end.out));
    }

    /// Records the content of a file.
    pub fn shows_file(&self, path: &str) {
        let text = fs::read_to_string(self.path(path)).unwrap_or_else(|_| "no such file\n".into());
        self.record(&format!("{path}:"), &text);
    }

    fn record(&self, title: &str, text: &str) {
        let fake = fake_make().display().to_string();
        let text = text
            .replace(&self.root(), "@")
            .replace(&fake, "make")
            .replace(PROJECT, "#");
        writeln!(self.record.borrow_mut(), "{title}\n{text}").expect("a text takes all");
    }

    /// Fails unless the golden file has what was recorded since the last call of this.
    #[track_caller]
    pub fn matches(&self, name: &str) {
        assert_golden(name, self.record.take());
    }

    /// Fails unless the golden file has these command lines with their outputs and exit statuses.
    #[track_caller]
    pub fn assert_session(&self, name: &str, lines: &[&str]) {
        lines.iter().for_each(|line| self.shows(line));
        self.matches(name);
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_default()
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).expect("it was there");
    }

    pub fn has_path(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Sets the behaviour of a cell in the boots that follow.
    pub fn behave(&self, cell: &str, what: &str) {
        self.write(&format!("behaviour/{cell}"), what);
    }

    /// Returns a call of the program in a folder of the project, with the fake make.
    pub fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        command
            .args(arguments)
            .env("MAKE", fake_make())
            .current_dir(self.path("apps/realtime"));
        // A `make -j` sets these variables, which must not reach the cells.
        command
            .env("SCALE", "77")
            .env("MAKEFLAGS", "j --jobserver-auth=3,4");
        for name in PROJECTS {
            command.env(name, "77");
        }
        command
    }

    pub fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Ended {
        self.command(arguments).output().expect("it starts").into()
    }

    /// Returns the number of calls of a target of make.
    pub fn calls(&self, target: &str) -> usize {
        self.read("calls")
            .lines()
            .filter(|line| line.split(' ').next() == Some(target))
            .count()
    }
}

fn fake_make() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-make")
}
