//! Runs cases, several at a time.

use std::{
    fs,
    io::{self, Write},
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::{Condvar, Mutex, MutexGuard},
    thread,
    time::Instant,
};

use anyhow::Result;
use process_groups::Children;

use super::{
    case::{Case, Check},
    context::Context,
    order,
    report::{self, Totals},
};
use crate::project::Project;

/// Runs all cases, at most `jobs` at a time, with their logs in the folder `logs`. Writes a line
/// to `out` when a case is done.
pub fn run(
    cases: &[Case],
    project: &Project,
    children: &Children,
    jobs: usize,
    logs: &Path,
    out: &mut (impl Write + Send),
) -> Result<Totals> {
    fs::create_dir_all(logs)?;
    let queue = Queue::new(cases);
    let out = Mutex::new((out, Totals::default()));
    thread::scope(|scope| -> io::Result<()> {
        let worker = || -> io::Result<()> {
            while let Some(at) = queue.take(|| children.stopped()) {
                let Case { name, check, .. } = &cases[at];
                let begin = Instant::now();
                let log = logs.join(report::file_name(name)).with_extension("log");
                let tests = outcome(check, project, children, &log);
                let line = report::line(name, tests, begin.elapsed(), &log);
                queue.finish(at);
                if children.stopped() {
                    break; // a case that was stopped has neither passed nor failed
                }
                let (out, totals) = &mut *lock(&out);
                totals.add(tests);
                writeln!(out, "{line}")?;
                out.flush()?;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("cases may panic, workers do not"))
    })?;
    let (_, totals) = *lock(&out);
    Ok(totals)
}

/// Runs a check. Returns how many tests have passed, or none if it failed; the log says why.
fn outcome(check: &Check, project: &Project, children: &Children, log: &Path) -> Option<usize> {
    let context = match Context::new(project, children, log) {
        Ok(context) => context,
        Err(error) => {
            eprintln!("{}: {error:#}", log.display());
            return None;
        }
    };
    match panic::catch_unwind(AssertUnwindSafe(|| check(&context))) {
        Ok(Ok(())) => return Some(context.tests()),
        Ok(Err(error)) => context.say(format_args!("failed: {error:#}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("without a text");
            context.say(format_args!("panicked: {text}"));
        }
    }
    None
}

/// The cases that wait and those that run, by their index in `cases`.
struct Queue<'a> {
    cases: &'a [Case<'a>],
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: Vec<usize>,
    running: Vec<usize>,
}

impl<'a> Queue<'a> {
    fn new(cases: &'a [Case]) -> Self {
        Self {
            cases,
            state: Mutex::new(State {
                waiting: (0..cases.len()).collect(),
                running: Vec::new(),
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits until a case may start, and takes it. Returns none if no case waits, or if
    /// `is_over`.
    fn take(&self, is_over: impl Fn() -> bool) -> Option<usize> {
        let mut state = lock(&self.state);
        loop {
            if state.waiting.is_empty() || is_over() {
                self.changed.notify_all();
                return None;
            }
            let needs = |of: &[usize]| Vec::from_iter(of.iter().map(|&at| &self.cases[at].needs));
            if let Some(at) = order::next(&needs(&state.waiting), &needs(&state.running)) {
                let case = state.waiting.remove(at);
                state.running.push(case);
                return Some(case);
            }
            state = self.changed.wait(state).expect(UNPOISONED);
        }
    }

    /// Removes a case from the running ones, so that others may start.
    fn finish(&self, case: usize) {
        lock(&self.state).running.retain(|&running| running != case);
        self.changed.notify_all();
    }
}

const UNPOISONED: &str = "no thread panics with it";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect(UNPOISONED)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::SeqCst},
        },
        time::Duration,
    };

    use anyhow::bail;

    use super::*;
    use crate::frame::case;

    /// Runs the cases. Returns their lines and the last line.
    fn run_all(cases: &[Case], jobs: usize) -> String {
        let (project, children) = (Project::default(), Children::new(Duration::ZERO));
        let (folder, mut out) = (tempfile::tempdir().unwrap(), Vec::new());
        let totals = run(cases, &project, &children, jobs, folder.path(), &mut out).unwrap();
        format!("{}{totals}", String::from_utf8(out).unwrap())
    }

    #[test]
    fn failed_case_is_counted_and_shows_its_log() {
        let cases = [
            case("good", |context| {
                context.counts(5);
                Ok(())
            }),
            case("one", |_| Ok(())),
            case("bad", |context| {
                context.program("echo").args("'last words'").text()?;
                bail!("as it must")
            }),
            case("panics", |_| panic!("{}", "in the middle")),
        ];
        assert_eq!(
            run_all(&cases, 1),
            "ok      good (5 tests) 0 s\n\
             ok      one 0 s\n\
             not ok  bad 0 s\n        | $ echo last words\n        | last words\n        | failed: as it must\n\
             not ok  panics 0 s\n        | panicked: in the middle\n\
             6 passed, 2 failed"
        );
    }

    #[test]
    fn cases_run_beside_each_other_unless_they_are_alone() {
        let now = Arc::new(AtomicUsize::new(0));
        let most = Arc::new([const { AtomicUsize::new(0) }; 2]);
        // Runs until this many cases of its kind have run at once, or for ten seconds.
        let check = |kind: usize, wanted: usize| {
            let (now, most) = (now.clone(), most.clone());
            case("c", move |_| {
                let end = Instant::now() + Duration::from_secs(10);
                most[kind].fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                while most[kind].load(SeqCst) < wanted && Instant::now() < end {
                    thread::sleep(Duration::from_millis(1));
                }
                thread::sleep(Duration::from_millis(20));
                now.fetch_sub(1, SeqCst);
                Ok(())
            })
        };
        let mut cases: Vec<_> = (0..6).map(|_| check(0, 3)).collect();
        cases.extend((0..3).map(|_| check(1, 1).alone()));
        assert!(run_all(&cases, 3).ends_with("\n9 passed, 0 failed"));
        assert_eq!([most[0].load(SeqCst), most[1].load(SeqCst)], [3, 1]);
    }
}
