//! The rules of the crate, each in a test of its name, with a disk in memory.

#[path = "../../../axcoop/tests/domains/mod.rs"]
mod domains;
#[path = "../../../axcoop/tests/giving_way/mod.rs"]
mod giving_way;

use std::boxed::Box;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::string::{String, ToString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use std::vec::Vec;

use axcoop::host::HOST;
use axcoop::{
    Domain, DomainId, Elapsed, Ended, JoinHandle, Priority, SUMMARY, cancel, set_priority, sleep,
    timeout,
};

use self::domains::{Buffer, Buffers, leaked, wait_until as until};
use self::giving_way::{assert_each_gives_way, awaited};
use crate::system::{hold, pool, state, wait_until_stopped, wait_until_stopped_or};
use crate::{Error, File, Result, remove};

/// The disk and a program with one worker, of one test at a time.
struct Machine {
    program: &'static Domain,
    buffers: Buffers,
    _one: MutexGuard<'static, ()>,
}

impl Machine {
    fn new() -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        hold(false);
        let mut state = state();
        state.files.clear();
        state.trace.clear();
        drop(state);
        let program = leaked(Domain::new(DomainId::new(4), &SUMMARY, &HOST));
        program.open().unwrap();
        program.set_workers(1).unwrap();
        Self {
            program,
            buffers: Buffers::default(),
            _one: one,
        }
    }

    fn buffer(&self, bytes: &[u8]) -> Buffer {
        self.buffers.with(bytes)
    }

    /// Runs a future in a coroutine of the program.
    fn run<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.program
            .spawn(future, Priority::DEFAULT)
            .join()
            .unwrap()
    }

    /// Creates a file with these bytes.
    fn file(&self, path: &str, bytes: &[u8]) -> File {
        let mut file = File::create(path.to_string()).wait().unwrap();
        file.write_all(self.buffer(bytes)).wait().0.unwrap();
        file.seek(0);
        file
    }

    /// Begins to read a file, and stops the pool before it does so.
    fn stop_at_read(&self, file: &File, priority: Priority) -> JoinHandle<(Result<usize>, Buffer)> {
        hold(true);
        let read = file.read_at(0, self.buffer(&[0]));
        let read = self.program.spawn(read, priority);
        wait_until_stopped();
        read
    }

    fn contents(&self, path: &str) -> Vec<u8> {
        state().files[path].clone()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if !thread::panicking() {
            until(|| pool().coroutines() == 0);
            until(|| self.buffers.count() == 0);
        }
        self.program.set_workers(0).unwrap();
        if !thread::panicking() {
            until(|| self.program.close().is_ok());
        }
    }
}

fn trace() -> Vec<String> {
    std::mem::take(&mut state().trace)
}

/// A macro because a coroutine awaits each operation, and a thread waits for it.
macro_rules! transfers {
    ($whole:expr, $rest:expr, $($get:tt)*) => {
        let mut file = File::create("a".into()) $($get)*.unwrap();
        let (written, buffer) = file.write_all($whole) $($get)*;
        assert_eq!((written, &*buffer.bytes), (Ok(10), &b"0123456789"[..]));
        assert_eq!(file.length() $($get)*, Ok(10));
        file.seek(4);
        let (read, buffer) = file.read($rest) $($get)*;
        assert_eq!((read, &buffer.bytes[..3]), (Ok(3), &b"456"[..]));
        assert_eq!(file.position(), 7);
        let (read, buffer) = file.read_at(9, buffer) $($get)*;
        assert_eq!((read, &buffer.bytes[..1]), (Ok(1), &b"9"[..]));
        let (read, _) = file.read_at(10, buffer) $($get)*;
        assert_eq!((read, file.position()), (Ok(0), 7));
        file.close() $($get)*;
    };
}

#[test]
fn rule_1_buffer_comes_back_with_the_result() {
    let machine = Machine::new();
    let buffers = || (machine.buffer(b"0123456789"), machine.buffer(&[0; 8]));
    let (whole, rest) = buffers();
    machine.run(async move {
        transfers!(whole, rest, .await);
    });
    let by_coroutine = trace();
    let (whole, rest) = buffers();
    transfers!(whole, rest, .wait());
    assert_eq!(trace(), by_coroutine, "coroutine and thread differ");
    assert_eq!(
        File::open("b".into()).wait().map(drop),
        Err(Error::NotFound)
    );
    assert_eq!(machine.run(remove("a".into())), Ok(()));
    assert_eq!(remove("a".into()).wait(), Err(Error::NotFound));
}

/// One operation is under way when the others come, in a shuffled order.
#[test]
fn rule_2_most_urgent_operation_is_next() {
    const PRIORITIES: [u8; 8] = [3, 7, 0, 5, 1, 6, 2, 4];
    let machine = Machine::new();
    let files = PRIORITIES.map(|priority| machine.file(&priority.to_string(), b"x"));
    for by_coroutine in [true, false] {
        let slow = machine.file("slow", b"x");
        trace();
        let begun = machine.stop_at_read(&slow, Priority::LAST);
        let mut handles = Vec::new();
        for (priority, file) in PRIORITIES.into_iter().zip(&files) {
            let read = file.read_at(0, machine.buffer(&[0]));
            // The priority of the coroutine, or that of the operation.
            handles.push(match by_coroutine {
                true => machine.program.spawn(read, Priority::new(priority.into())),
                false => machine.program.spawn(read.at(priority), Priority::LAST),
            });
        }
        until(|| pool().coroutines() == 1 + PRIORITIES.len());
        hold(false);
        for handle in handles {
            assert_eq!(handle.join().unwrap().0, Ok(1));
        }
        drop(begun.join().unwrap());
        let expected = ["slow", "0", "1", "2", "3", "4", "5", "6", "7"];
        assert_eq!(trace(), expected.map(|path| std::format!("read {path}")));
        slow.close().wait();
    }
}

#[test]
fn rule_2_operation_inherits_a_raised_priority() {
    let machine = Machine::new();
    let slow = machine.file("slow", b"x");
    let files = ["3", "6"].map(|path| machine.file(path, b"x"));
    trace();
    let begun = machine.stop_at_read(&slow, Priority::LAST);
    let [third, sixth] = [(&files[0], 3), (&files[1], 6)].map(|(file, priority)| {
        let read = file.read_at(0, machine.buffer(&[0]));
        machine.program.spawn(read, Priority::new(priority))
    });
    until(|| pool().coroutines() == 3);
    set_priority(sixth.cid(), Priority::FIRST).unwrap();
    // The priority of the read that is ready in the pool.
    until(|| SUMMARY.of(pool().id()) == Some(Priority::FIRST));
    hold(false);
    for handle in [begun, third, sixth] {
        drop(handle.join().unwrap());
    }
    assert_eq!(trace(), ["read slow", "read 6", "read 3"]);
}

/// The disk asserts that one operation is under way at a time.
#[test]
fn rule_3_threads_and_the_pool_exclude_one_another() {
    let machine = Machine::new();
    let file = Arc::new(machine.file("a", &[0; 64]));
    let coroutines = [0, 1, 2, 3].map(|n| {
        let (file, mut buffer) = (file.clone(), machine.buffer(&[n; 3]));
        let writes = async move {
            for turn in 0..200 {
                let done = file.write_at(turn % 60, buffer).await;
                done.0.unwrap();
                buffer = done.1;
            }
        };
        machine.program.spawn(writes, Priority::new(n.into()))
    });
    thread::scope(|scope| {
        for n in 4..6 {
            let (file, mut buffer) = (&file, machine.buffer(&[n; 3]));
            scope.spawn(move || {
                for turn in 0..200 {
                    let done = file.write_at(turn % 60, buffer).wait();
                    done.0.unwrap();
                    buffer = done.1;
                }
            });
        }
    });
    for coroutine in coroutines {
        coroutine.join().unwrap();
    }
    let writes = trace().iter().filter(|what| *what == "write a").count();
    assert_eq!(writes, 22 + 1200);
}

/// The way in which an operation is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Drop,
    Cancel,
    Timeout,
}

/// The stage at which an operation is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Made,
    /// It waits behind another one.
    Waits,
    /// It is under way.
    Begun,
    /// It is done, and its result has not been taken.
    Done,
}

#[test]
fn rule_4_cancelled_operation_takes_nothing_with_it() {
    for way in [Way::Drop, Way::Cancel, Way::Timeout] {
        for stage in [Stage::Made, Stage::Waits, Stage::Begun, Stage::Done] {
            for writes in [false, true] {
                std::println!("{way:?} {stage:?} {writes}");
                let mut time = Duration::from_millis(20);
                while !cancelled(way, stage, writes, time) {
                    time *= 4;
                }
            }
        }
    }
}

/// Returns false if the time was over before the operation had come to that stage.
fn cancelled(way: Way, stage: Stage, writes: bool, time: Duration) -> bool {
    let machine = Machine::new();
    let mut file = machine.file("a", b"before");
    let slow = machine.file("slow", b"x");
    trace();
    let begun = (stage == Stage::Waits).then(|| machine.stop_at_read(&slow, Priority::FIRST));
    if stage == Stage::Begun {
        hold(true);
    }
    let is_busy = begun.is_some() as usize;
    let had = Arc::new(Mutex::new(None));
    let file_back = Arc::new(Mutex::new(None));
    let buffer = machine.buffer(b"new");
    // Returns the file when the operation is dropped.
    struct Returns(Option<File>, Arc<Mutex<Option<File>>>);
    impl Drop for Returns {
        fn drop(&mut self) {
            *self.1.lock().unwrap() = self.0.take();
        }
    }
    let mut returns = Returns(Some(file), file_back.clone());
    let noted = had.clone();
    let operation = async move {
        let file = returns.0.as_mut().unwrap();
        let done = match writes {
            true => file.write(buffer).await,
            false => file.read(buffer).await,
        };
        *noted.lock().unwrap() = Some(done);
    };
    let reaches = |stage, is_over: &dyn Fn() -> bool| match stage {
        Stage::Made => {}
        Stage::Waits => until(|| pool().coroutines() == is_busy + 1),
        Stage::Begun => wait_until_stopped_or(is_over),
        Stage::Done if is_over() => {}
        Stage::Done => until(|| !trace_is_empty() && pool().coroutines() == 0),
    };
    match way {
        Way::Drop => {
            let mut operation = Box::pin(operation);
            if stage != Stage::Made {
                // So that it is not done before it has been polled.
                hold(true);
                let mut context = Context::from_waker(Waker::noop());
                assert!(operation.as_mut().poll(&mut context) == Poll::Pending);
            }
            if stage == Stage::Done {
                wait_until_stopped();
                hold(false);
            }
            reaches(stage, &|| false);
            drop(operation);
        }
        Way::Cancel | Way::Timeout => {
            // While this sender exists, the program's worker polls nothing else.
            let (lets_go, held) = std::sync::mpsc::channel::<()>();
            let time = match way {
                Way::Timeout => time,
                _ => Duration::from_secs(600),
            };
            let (has, is_held) = std::sync::mpsc::channel();
            let holds = async move {
                has.send(()).unwrap();
                held.recv().unwrap_err();
            };
            let holds = || {
                drop(machine.program.spawn(holds, Priority::FIRST));
                is_held.recv().unwrap();
            };
            let operation = timeout(time, operation);
            let handle = match stage {
                Stage::Made => {
                    holds();
                    machine.program.spawn(operation, Priority::DEFAULT)
                }
                Stage::Done => {
                    // It is under way when its worker becomes busy.
                    hold(true);
                    let handle = machine.program.spawn(operation, Priority::DEFAULT);
                    wait_until_stopped_or(|| handle.is_finished());
                    holds();
                    hold(false);
                    handle
                }
                _ => machine.program.spawn(operation, Priority::DEFAULT),
            };
            reaches(stage, &|| handle.is_finished());
            match way {
                Way::Cancel => cancel(handle.cid()).unwrap(),
                _ => thread::sleep(2 * time),
            }
            drop(lets_go);
            match handle.join() {
                Ok(Ok(())) => assert!((way, stage) != (Way::Timeout, Stage::Waits)),
                Ok(Err(Elapsed)) => assert_eq!(way, Way::Timeout),
                Err(why) => assert_eq!((way, why), (Way::Cancel, Ended::Cancelled)),
            }
        }
    }
    let had_it = had.lock().unwrap().take().is_some();
    hold(false);
    until(|| pool().coroutines() == 0);
    // The pool drops the buffer, a moment after the coroutine has ended.
    until(|| machine.buffers.count() == is_busy);
    drop(begun.map(|begun| begun.join().unwrap()));
    let wanted = if writes { "write a" } else { "read a" };
    let was_done = trace().iter().any(|what| what == wanted);
    file = file_back.lock().unwrap().take().unwrap();
    if way == Way::Timeout && matches!(stage, Stage::Begun | Stage::Done) && !was_done {
        file.close().wait();
        slow.close().wait();
        return false;
    }
    match stage {
        Stage::Made if way != Way::Timeout => assert!(!was_done),
        Stage::Waits => assert!(!was_done && !had_it),
        Stage::Begun | Stage::Done => assert!(was_done),
        Stage::Made => {}
    }
    // The cursor has not moved unless the result was taken.
    assert_eq!(file.position(), if had_it { 3 } else { 0 });
    let is_new = writes && was_done;
    assert_eq!(
        machine.contents("a"),
        if is_new { b"newore" } else { b"before" }
    );
    file.seek(0);
    let next = machine.buffer(b"next");
    let (file, result) = machine.run(async move {
        let done = file.write_all(next).await;
        (file, done.0)
    });
    assert_eq!(result, Ok(4));
    assert_eq!(machine.contents("a"), b"nextre");
    file.close().wait();
    slow.close().wait();
    true
}

fn trace_is_empty() -> bool {
    state().trace.is_empty()
}

#[test]
fn rule_5_file_is_closed_once_by_a_thread_that_may_block() {
    let machine = Machine::new();
    let file = machine.file("a", b"x");
    trace();
    machine.run(async move { file.close().await });
    assert_eq!(trace(), ["close a"]);
    machine.file("a", b"x").close().wait();
    // Dropped by a coroutine, which does not wait: the pool closes the file.
    let file = machine.file("a", b"x");
    trace();
    hold(true);
    machine.run(async move { drop(file) });
    wait_until_stopped();
    machine.run(async { sleep(Duration::from_millis(1)).await });
    hold(false);
    until(|| pool().coroutines() == 0);
    assert_eq!(trace(), ["close a"]);
    // A cancelled operation on the file is under way.
    let file = machine.file("a", b"x");
    trace();
    hold(true);
    let mut read = Box::pin(file.read_at(0, machine.buffer(&[0])));
    let polled = read.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    wait_until_stopped();
    drop((read, file));
    hold(false);
    until(|| pool().coroutines() == 0);
    assert_eq!(trace(), ["read a", "close a"]);
}

/// An operation that the pool has done is ready at the first poll.
#[test]
fn every_operation_gives_way_within_its_budget() {
    const EACH: usize = 1_000;
    let machine = Machine::new();
    machine.file("a", b"0123456789").close().wait();
    let mut context = Context::from_waker(Waker::noop());
    let mut lengths = Vec::new();
    let mut reads = Vec::new();
    for _ in 0..EACH {
        let file = File::open("a".into()).wait().unwrap();
        let file: &'static mut File = Box::leak(Box::new(file));
        let mut length = Box::pin(file.length());
        let _ = length.as_mut().poll(&mut context);
        lengths.push(length);
        let mut read = Box::pin(file.read(machine.buffer(&[0])));
        let _ = read.as_mut().poll(&mut context);
        reads.push(read);
    }
    until(|| pool().coroutines() == 0);
    let table = std::vec![
        awaited(&["Operation"], 1, move || {
            let length = lengths.pop().unwrap();
            async { assert_eq!(length.await, Ok(10)) }
        }),
        awaited(&["Transfer"], 1, move || {
            let read = reads.pop().unwrap();
            async { assert_eq!(read.await.0, Ok(1)) }
        }),
    ];
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_each_gives_way(machine.program, &sources, table);
}

#[test]
fn waiting_in_a_coroutine_panics() {
    let machine = Machine::new();
    let why = machine.run(async {
        let waits = AssertUnwindSafe(|| remove("a".into()).wait());
        let why = catch_unwind(waits).unwrap_err();
        why.downcast_ref::<String>().unwrap().clone()
    });
    assert_eq!(
        why,
        "a coroutine awaits the operation: `wait` would block its worker"
    );
}
