//! The makes that are running, and how they are stopped.
//!
//! Each child leads a process group of its own, so that one signal reaches make,
//! its runner and QEMU alike. A Ctrl-C at the terminal therefore goes to this
//! program only, which passes it on. The runner ends its QEMU on an interrupt;
//! whoever is left after a grace period is killed.

use std::{
    io::{BufRead, BufReader, pipe},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, ExitStatus},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

/// For QEMU's runner to end in good order; it allows QEMU one second itself.
const GRACE: Duration = Duration::from_secs(4);

#[derive(Clone)]
pub struct Children {
    shared: Arc<Shared>,
}

struct Shared {
    stopped: AtomicBool,
    groups: Mutex<Vec<Pid>>,
}

impl Children {
    /// From now on an interrupt, a termination and a hang-up stop the children
    /// and are seen in [`stopped`](Self::stopped), but do not end this program.
    pub fn new() -> Result<Self> {
        let shared = Shared {
            stopped: AtomicBool::new(false),
            groups: Mutex::default(),
        };
        let children = Self {
            shared: Arc::new(shared),
        };
        let handler = children.clone();
        ctrlc::set_handler(move || handler.stop()).context("signals cannot be caught")?;
        Ok(children)
    }

    /// Whether nothing more is to be started.
    pub fn stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::SeqCst)
    }

    /// Ends all children; returns when they are gone or killed.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.signal(Signal::SIGINT);
        let end = Instant::now() + GRACE;
        while Instant::now() < end && !self.groups().is_empty() {
            thread::sleep(Duration::from_millis(50));
        }
        self.signal(Signal::SIGKILL);
    }

    /// Runs a command to its end. Its output and errors are one stream of lines,
    /// in the order in which they were written.
    pub fn run(&self, mut command: Command) -> Result<(Vec<String>, ExitStatus)> {
        let (reader, writer) = pipe().context("no pipe could be made")?;
        command
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0);
        let mut child = {
            // Under the lock, so that `stop` sees either the flag's effect here
            // or the child in the list.
            let mut groups = self.groups();
            if self.stopped() {
                return Ok((Vec::new(), ExitStatus::from_raw(Signal::SIGINT as i32)));
            }
            let child = command.spawn().context("cannot be started")?;
            groups.push(Pid::from_raw(child.id() as i32));
            child
        };
        drop(command); // it holds the pipe's other end
        let mut lines = Vec::new();
        for line in BufReader::new(reader).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            lines.push(line.trim_end_matches('\r').to_owned());
        }
        // All writers are gone, so the child is about to be; until it has been
        // waited for its number is not given to anybody else.
        self.groups()
            .retain(|group| group.as_raw() != child.id() as i32);
        Ok((lines, child.wait()?))
    }

    fn signal(&self, signal: Signal) {
        for group in self.groups().iter() {
            // A group that is gone already is what was wanted.
            let _ = killpg(*group, signal);
        }
    }

    fn groups(&self) -> MutexGuard<'_, Vec<Pid>> {
        self.shared.groups.lock().expect("no thread panics with it")
    }
}
