//! Runs programs and stops them: for schedlab and for the tests, which call make.
//!
//! Each program leads a process group of its own, so that one signal reaches make, its runner and
//! QEMU, and no other process. A Ctrl-C at the terminal reaches only this program, which passes it
//! on. QEMU's runner (`scripts/qemu-run.sh`) ends its QEMU on an interrupt. Processes that are
//! left after a grace period are killed.

use std::{
    io::{BufRead, BufReader, pipe},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};

/// Interval at which limits, and the ends of groups, are looked at.
const TICK: Duration = Duration::from_millis(100);

/// All programs that run. A clone is a handle of the same list.
#[derive(Clone)]
pub struct Children {
    shared: Arc<Shared>,
}

struct Shared {
    /// Time between asking a group to end and killing it.
    grace: Duration,
    stopped: AtomicBool,
    groups: Mutex<Vec<Group>>,
}

struct Group {
    leader: Pid,
    limit: Option<Instant>,
    /// Its limit has passed, and it was asked to end.
    is_late: bool,
}

impl Children {
    /// Makes an empty list. A program that is asked to end is killed after `grace`, which is at
    /// least a second longer than the program's own grace period for its children.
    pub fn new(grace: Duration) -> Self {
        let shared = Arc::new(Shared {
            grace,
            stopped: AtomicBool::new(false),
            groups: Mutex::default(),
        });
        Self { shared }
    }

    /// Makes an interrupt, a termination and a hang-up stop the children. They are seen in
    /// [`stopped`](Self::stopped), and do not end this program.
    pub fn catch_signals(&self) -> Result<()> {
        let children = self.clone();
        ctrlc::set_handler(move || children.stop()).context("signals cannot be caught")
    }

    /// Starts a thread that ends the groups whose time is up. Without it limits have no effect.
    pub fn watch(&self) {
        let children = self.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(TICK);
                children.end_late(Instant::now());
            }
        });
    }

    /// Returns true if nothing more may be started.
    pub fn stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::SeqCst)
    }

    /// Ends all children. Returns when they are gone or killed.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.signal(Signal::SIGINT);
        let end = Instant::now() + self.shared.grace;
        while Instant::now() < end && !self.groups().is_empty() {
            thread::sleep(TICK);
        }
        self.signal(Signal::SIGKILL);
    }

    /// Runs a command to its end. Its output and errors are one stream of lines, in the order
    /// in which they were written. Shows each line to `line` as it comes, without its end.
    ///
    /// # Errors
    /// It cannot be started, or nothing may be started ([`stopped`](Self::stopped)), or it was
    /// not done within `limit` and was ended with its group.
    pub fn run(
        &self,
        mut command: Command,
        limit: Option<Duration>,
        mut line: impl FnMut(&str),
    ) -> Result<ExitStatus> {
        let (reader, writer) = pipe().context("a pipe cannot be made")?;
        command.stdout(writer.try_clone()?).stderr(writer);
        let mut child = self.spawn(&mut command, limit)?;
        drop(command); // it holds the pipe's other end
        for bytes in BufReader::new(reader).split(b'\n') {
            line(&String::from_utf8_lossy(&bytes?).replace('\r', ""));
        }
        // All writers are gone, so the child is about to end. Its number is its own until it has
        // been waited for.
        let is_late = self.forget(&child);
        let status = child.wait()?;
        if let (true, Some(limit)) = (is_late, limit) {
            bail!("not done within {} s, and ended", limit.as_secs());
        }
        Ok(status)
    }

    /// Starts a command, which says where its output goes.
    ///
    /// # Errors
    /// It cannot be started, or nothing may be started ([`stopped`](Self::stopped)).
    pub fn start(&self, mut command: Command, limit: Duration) -> Result<Running<'_>> {
        let child = self.spawn(&mut command, Some(limit))?;
        Ok(Running {
            children: self,
            child,
            is_over: false,
        })
    }

    fn spawn(&self, command: &mut Command, limit: Option<Duration>) -> Result<Child> {
        command.stdin(Stdio::null()).process_group(0);
        // Under the lock, so that either `stop` finds the child in the list, or this finds the
        // flag.
        let mut groups = self.groups();
        if self.stopped() {
            bail!("stopped by a signal");
        }
        let child = command
            .spawn()
            .with_context(|| format!("{:?} cannot be started", command.get_program()))?;
        groups.push(Group {
            leader: leader(&child),
            limit: limit.map(|limit| Instant::now() + limit),
            is_late: false,
        });
        Ok(child)
    }

    /// Takes a group off the list. Returns true if its time was up.
    fn forget(&self, child: &Child) -> bool {
        let mut groups = self.groups();
        let is_it = |group: &Group| group.leader == leader(child);
        let found = groups.iter().position(is_it);
        found.is_some_and(|at| groups.swap_remove(at).is_late)
    }

    fn end_late(&self, now: Instant) {
        for group in self.groups().iter_mut() {
            let Some(limit) = group.limit else { continue };
            if now >= limit + self.shared.grace {
                let _ = killpg(group.leader, Signal::SIGKILL);
            } else if now >= limit && !group.is_late {
                group.is_late = true;
                let _ = killpg(group.leader, Signal::SIGTERM);
            }
        }
    }

    fn signal(&self, signal: Signal) {
        for group in self.groups().iter() {
            // An error means that the group is gone already.
            let _ = killpg(group.leader, signal);
        }
    }

    fn groups(&self) -> MutexGuard<'_, Vec<Group>> {
        self.shared.groups.lock().expect("no thread panics with it")
    }
}

fn leader(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32)
}

/// A program that runs beside its starter. It is killed with its group when this is dropped.
pub struct Running<'a> {
    children: &'a Children,
    child: Child,
    /// It was waited for, and another process may have its number.
    is_over: bool,
}

impl Running<'_> {
    /// Sends a signal to the program alone.
    ///
    /// # Errors
    /// It has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(leader(&self.child), signal)?)
    }

    /// Sends a signal to the program and all programs that it has started.
    pub fn signal_group(&self, signal: Signal) -> Result<()> {
        Ok(killpg(leader(&self.child), signal)?)
    }

    /// Returns true if it has ended. Until the first such call its number stays taken, and it
    /// seems to be there to the programs that it has started.
    pub fn has_ended(&mut self) -> Result<bool> {
        self.is_over = self.child.try_wait()?.is_some();
        Ok(self.is_over)
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        let status = self.child.wait()?;
        self.is_over = true;
        Ok(status)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.signal_group(Signal::SIGKILL);
        }
        self.children.forget(&self.child);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    const GRACE: Duration = Duration::from_secs(8);
    const LIMIT: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_come_in_order_without_carriage_returns() {
        let mut lines = Vec::new();
        let children = Children::new(GRACE);
        let command = shell("printf 'one\\r\\n'; echo two >&2; printf three; exit 7");
        let status = children.run(command, Some(LIMIT), |line| lines.push(line.to_owned()));
        assert_eq!(status.unwrap().code(), Some(7));
        assert_eq!(lines, ["one", "two", "three"]);
    }

    #[test]
    fn late_program_ends_with_its_group_and_without_others() {
        let children = Children::new(GRACE);
        children.watch();
        let mut other = children.start(shell("sleep 1; exit 5"), LIMIT).unwrap();
        // The second sleep holds the pipe open, so the run ends only if both are ended.
        let (begin, limit) = (Instant::now(), Duration::from_millis(200));
        let run = children.run(shell("sleep 50 & sleep 50"), Some(limit), |_| {});
        let error = run.unwrap_err().to_string();
        assert!(error.starts_with("not done within"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert_eq!(other.wait().unwrap().code(), Some(5));
    }

    #[test]
    fn dropped_program_is_killed() {
        let children = Children::new(GRACE);
        let running = children.start(shell("sleep 50"), LIMIT).unwrap();
        let pid = leader(&running.child);
        drop(running);
        assert!(kill(pid, None).is_err());
        assert!(children.groups().is_empty());
    }

    #[test]
    fn stop_interrupts_and_then_kills_and_nothing_starts_after_it() {
        let children = Children::new(Duration::from_millis(500));
        let run = |trap: &str| {
            let command = shell(&format!(
                "trap '{trap}' INT; echo up; for i in $(seq 500); do sleep 0.01; done"
            ));
            let children = children.clone();
            let (up, is_up) = std::sync::mpsc::channel();
            let running = thread::spawn(move || {
                children.run(command, None, |_| {
                    let _ = up.send(());
                })
            });
            is_up.recv().unwrap();
            running
        };
        let (heeds, ignores) = (run("exit 7"), run(""));
        children.stop();
        assert_eq!(heeds.join().unwrap().unwrap().code(), Some(7));
        let killed = ignores.join().unwrap().unwrap();
        assert_eq!(killed.signal(), Some(Signal::SIGKILL as i32));
        assert!(children.stopped());
        assert!(children.run(shell("true"), None, |_| {}).is_err());
    }
}
