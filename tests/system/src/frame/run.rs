//! Takes cases one after the other, several at a time.

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
    case::{Case, Check, Needs},
    context::Context,
    order,
    report::{self, Totals},
};
use crate::project::Project;

/// Those whose name contains the word.
pub fn matching(cases: Vec<Case>, word: &str) -> Vec<Case> {
    let has_word = |case: &Case| case.name.contains(word);
    cases.into_iter().filter(has_word).collect()
}

/// Runs all cases, at most `jobs` at a time, with their logs in the folder `logs`. Each is
/// told to `out` when it is done.
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
                let job = &queue.jobs[at];
                let begin = Instant::now();
                let end = if job.is_preparation {
                    "before.log"
                } else {
                    "log"
                };
                let log = logs.join(report::file_name(job.name)).with_extension(end);
                let tests = outcome(job.check, project, children, &log);
                let line = report::line(job.name, tests, begin.elapsed(), &log);
                queue.give_back(at);
                if children.stopped() {
                    break; // what was stopped has neither passed nor failed
                }
                if job.is_preparation {
                    continue;
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

/// How many tests have passed; none if the case failed, and its log says why.
fn outcome(check: &Check, project: &Project, children: &Children, log: &Path) -> Option<usize> {
    let checked = |context: &Context| {
        match panic::catch_unwind(AssertUnwindSafe(|| check(context))) {
            Ok(Ok(())) => return Some(context.tests()),
            Ok(Err(error)) => context.say(format_args!("failed: {error:#}")),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or(panic.downcast_ref::<&str>().copied());
                context.say(format_args!(
                    "panicked: {}",
                    text.unwrap_or("without a text")
                ));
            }
        }
        None
    };
    match Context::new(project, children, log) {
        Ok(context) => checked(&context),
        Err(error) => {
            eprintln!("{}: {error:#}", log.display());
            None
        }
    }
}

/// A case, or what may be done of it before.
struct Job<'a> {
    name: &'a str,
    needs: &'a Needs,
    check: &'a Check,
    is_preparation: bool,
}

/// In the order of the cases. Only a case that is alone has a preparation, and those are after
/// all that are not.
fn jobs(cases: &[Case]) -> Vec<Job<'_>> {
    let of_case = |case| {
        let Case {
            name,
            needs,
            check,
            preparation,
        }: &Case = case;
        let job = |needs, check, is_preparation| Job {
            name,
            needs,
            check,
            is_preparation,
        };
        let before = preparation.as_ref();
        let before = before.map(|before| job(&before.needs, &before.check, true));
        before.into_iter().chain([job(needs, check, false)])
    };
    cases.iter().flat_map(of_case).collect()
}

/// The jobs that nobody has taken, and those that somebody has.
struct Queue<'a> {
    jobs: Vec<Job<'a>>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: Vec<usize>,
    running: Vec<usize>,
}

impl<'a> Queue<'a> {
    fn new(cases: &'a [Case]) -> Self {
        let jobs = jobs(cases);
        Self {
            state: Mutex::new(State {
                waiting: (0..jobs.len()).collect(),
                running: Vec::new(),
            }),
            jobs,
            changed: Condvar::new(),
        }
    }

    /// The next job, once one may start; none if all are taken or no more is wanted.
    fn take(&self, is_over: impl Fn() -> bool) -> Option<usize> {
        let mut state = lock(&self.state);
        loop {
            if state.waiting.is_empty() || is_over() {
                self.changed.notify_all();
                return None;
            }
            let needs = |of: &[usize]| -> Vec<&Needs> {
                of.iter().map(|&at| self.jobs[at].needs).collect()
            };
            if let Some(at) = order::next(&needs(&state.waiting), &needs(&state.running)) {
                let job = state.waiting.remove(at);
                state.running.push(job);
                return Some(job);
            }
            state = self.changed.wait(state).expect(UNPOISONED);
        }
    }

    fn give_back(&self, job: usize) {
        lock(&self.state).running.retain(|&running| running != job);
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

    fn run_all(cases: &[Case], jobs: usize) -> (Totals, String) {
        let folder = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        let totals = run(
            cases,
            &Project::default(),
            &Children::new(Duration::ZERO),
            jobs,
            folder.path(),
            &mut out,
        );
        (totals.unwrap(), String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_word_chooses_the_cases_that_have_it_in_their_name() {
        let cases = || ["make: help", "qemu: a", "qemu: b"].map(|name| case(name, |_| Ok(())));
        let names = |word| -> Vec<_> {
            let chosen = matching(cases().into(), word);
            chosen.into_iter().map(|case| case.name).collect()
        };
        assert_eq!(names("qemu: "), ["qemu: a", "qemu: b"]);
        assert_eq!(names("help"), ["make: help"]);
        assert_eq!(names("").len(), 3);
        assert!(names("nope").is_empty());
    }

    #[test]
    fn a_case_that_fails_is_counted_and_shows_its_log() {
        let cases = [
            case("good", |context| {
                context.counts(5);
                Ok(())
            }),
            case("bad", |context| {
                context.program("echo").args(["last words"]).text()?;
                bail!("as it must")
            }),
            case("panics", |_| panic!("{}", "in the middle")),
        ];
        let (totals, said) = run_all(&cases, 1);
        assert_eq!(
            said,
            "ok      good (5 tests) 0 s\n\
             not ok  bad 0 s\n        | $ echo last words\n        | last words\n        | failed: as it must\n\
             not ok  panics 0 s\n        | panicked: in the middle\n"
        );
        assert_eq!(
            totals,
            Totals {
                passed: 5,
                failed: 2
            }
        );
    }

    #[test]
    fn cases_are_beside_each_other_where_they_may() {
        let now = Arc::new(AtomicUsize::new(0));
        let most = Arc::new([const { AtomicUsize::new(0) }; 2]);
        // Stays until so many of its kind have been beside each other, or for a while.
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
        let (totals, _) = run_all(&cases, 3);
        assert_eq!(
            totals,
            Totals {
                passed: 9,
                failed: 0
            }
        );
        assert_eq!([most[0].load(SeqCst), most[1].load(SeqCst)], [3, 1]);
    }
    #[test]
    fn a_preparation_is_beside_others_and_before_its_case_and_has_no_line() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let says = |word: &'static str, is_good: bool| {
            let order = order.clone();
            move |_: &Context| {
                lock(&order).push(word);
                if is_good { Ok(()) } else { bail!("it fails") }
            }
        };
        let cases = [
            case("alone", says("check", true)).alone_after(says("preparation", false)),
            case("other", says("other", true)),
        ];
        let (totals, said) = run_all(&cases, 1);
        assert_eq!(*lock(&order), ["preparation", "other", "check"]);
        assert_eq!(said, "ok      other 0 s\nok      alone 0 s\n");
        assert_eq!(
            totals,
            Totals {
                passed: 2,
                failed: 0
            }
        );
        let before = cases[0].preparation.as_ref().expect("it has one");
        assert!(before.needs.goes_with(&cases[1].needs));
    }
}
