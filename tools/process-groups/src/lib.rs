//! The programs that are running, and how they are stopped: of schedlab and of the tests, which
//! call make.
//!
//! Each leads a process group of its own, so that one signal reaches make, its runner and
//! QEMU alike, and nobody else's. A Ctrl-C at the terminal therefore goes to this program
//! only, which passes it on. QEMU's runner (`scripts/qemu-run.sh`) ends its QEMU on an
//! interrupt; whoever is left after a grace period is killed.

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

/// How often somebody looks whether a limit has passed, or all have ended.
const TICK: Duration = Duration::from_millis(100);

/// All that run. A clone is a handle of the same.
#[derive(Clone)]
pub struct Children {
    shared: Arc<Shared>,
}

struct Shared {
    /// Between asking a group to end and killing it.
    grace: Duration,
    stopped: AtomicBool,
    groups: Mutex<Vec<Group>>,
}

struct Group {
    leader: Pid,
    limit: Option<Instant>,
    /// The limit has passed, and the group was asked to end.
    is_late: bool,
}

impl Children {
    /// None so far. Who has to end has `grace` for it before it is killed: at least a second
    /// more than the program allows to those that it has started itself.
    pub fn new(grace: Duration) -> Self {
        let shared = Shared {
            grace,
            stopped: AtomicBool::new(false),
            groups: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// From now on an interrupt, a termination and a hang-up stop the children and are seen
    /// in [`stopped`](Self::stopped), but do not end this program.
    pub fn catch_signals(&self) -> Result<()> {
        let children = self.clone();
        ctrlc::set_handler(move || children.stop()).context("signals cannot be caught")
    }

    /// Ends the groups whose time is up, for as long as the program runs. Nobody else looks at
    /// the limits.
    pub fn watch(&self) {
        let children = self.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(TICK);
                children.end_late(Instant::now());
            }
        });
    }

    /// Whether nothing more is to be started.
    pub fn stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::SeqCst)
    }

    /// Ends all children; returns when they are gone or killed.
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
    /// in which they were written; each is shown to `line` as it comes, without its end.
    ///
    /// # Errors
    /// It cannot be started, or not any more ([`stopped`](Self::stopped)), or was not done
    /// within `limit` and is ended, with its group.
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
        // All writers are gone, so the child is about to be; until it has been waited for its
        // number is not given to anybody else.
        let is_late = self.forget(&child);
        let status = child.wait()?;
        if let (true, Some(limit)) = (is_late, limit) {
            bail!("not done within {} s, and ended", limit.as_secs());
        }
        Ok(status)
    }

    /// Starts a command whose output goes where it says.
    ///
    /// # Errors
    /// It cannot be started, or not any more ([`stopped`](Self::stopped)).
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
        // Under the lock, so that `stop` sees either the flag's effect here or the child in
        // the list.
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

    /// Whether its time was up.
    fn forget(&self, child: &Child) -> bool {
        let mut groups = self.groups();
        let found = groups
            .iter()
            .position(|group| group.leader == leader(child));
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
            // A group that is gone already is what was wanted.
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

/// A program that runs beside the case that started it, and is killed with its group when the
/// case forgets it.
pub struct Running<'a> {
    children: &'a Children,
    child: Child,
    /// It was waited for, and its number may be another's.
    is_over: bool,
}

impl Running<'_> {
    /// A signal to the program alone.
    ///
    /// # Errors
    /// It has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(leader(&self.child), signal)?)
    }

    /// A signal to it and all that it has started.
    pub fn signal_group(&self, signal: Signal) -> Result<()> {
        Ok(killpg(leader(&self.child), signal)?)
    }

    /// Whether it has ended. Until somebody asks, its number stays taken, and to the programs
    /// that it has started it seems to be there.
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
    fn lines_come_in_their_order_without_carriage_returns() {
        let mut lines = Vec::new();
        let children = Children::new(GRACE);
        let status = children
            .run(
                shell("printf 'one\\r\\n'; echo two >&2; printf three; exit 7"),
                Some(LIMIT),
                |line| lines.push(line.to_owned()),
            )
            .unwrap();
        assert_eq!(lines, ["one", "two", "three"]);
        assert_eq!(status.code(), Some(7));
    }

    #[test]
    fn who_is_late_ends_with_its_group_and_nobody_else() {
        let children = Children::new(GRACE);
        children.watch();
        let mut other = children.start(shell("sleep 1; exit 5"), LIMIT).unwrap();
        // The second sleep holds the pipe open, so the run ends only if it was ended, too.
        let begin = Instant::now();
        let error = children
            .run(
                shell("sleep 50 & sleep 50"),
                Some(Duration::from_millis(200)),
                |_| {},
            )
            .unwrap_err();
        assert!(error.to_string().starts_with("not done within"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert_eq!(other.wait().unwrap().code(), Some(5));
    }

    #[test]
    fn who_is_forgotten_is_killed() {
        let children = Children::new(GRACE);
        let running = children.start(shell("sleep 50"), LIMIT).unwrap();
        let pid = leader(&running.child);
        drop(running);
        assert!(kill(pid, None).is_err());
        assert!(children.groups().is_empty());
    }

    #[test]
    fn a_stop_ends_who_heeds_it_and_kills_who_does_not() {
        let children = Children::new(Duration::from_millis(500));
        thread::scope(|scope| {
            let run = |script: &str| {
                let command = shell(script);
                let children = children.clone();
                let (up, is_up) = std::sync::mpsc::channel();
                let run = move || {
                    children.run(command, None, |_| {
                        let _ = up.send(());
                    })
                };
                let running = scope.spawn(run);
                is_up.recv().unwrap();
                running
            };
            let heeds = run("trap 'exit 7' INT; echo up; for i in $(seq 500); do sleep 0.01; done");
            let does_not = run("trap '' INT; echo up; for i in $(seq 500); do sleep 0.01; done");
            children.stop();
            assert_eq!(heeds.join().unwrap().unwrap().code(), Some(7));
            let killed = does_not.join().unwrap().unwrap();
            assert_eq!(killed.signal(), Some(Signal::SIGKILL as i32));
        });
        assert!(children.stopped());
    }

    #[test]
    fn nothing_starts_after_a_stop() {
        let children = Children::new(GRACE);
        children.stop();
        assert!(children.run(shell("true"), None, |_| {}).is_err());
    }
}
