//! The memory of coroutines of all sizes, and of connections until nothing is left.

use alloc::{alloc::Layout, sync::Arc, vec::Vec};
use core::{
    future::Future,
    pin::Pin,
    ptr::NonNull,
    sync::atomic::{AtomicUsize, Ordering::*},
    task::{Context, Poll},
    time::Duration,
};

use axalloc::{UsageKind, global_allocator};
use axcoop_arceos::{CoroutineId, Domain, JoinHandle, Priority, SpawnError, wake};
use axtask::{WaitQueue, WeakAxTaskRef};
use sched_tests_common::platform::now_ns;

/// 8 MiB of heap and 26 MiB of frames.
const SEEDS_BYTES: usize = 34 << 20;
const STACK_BYTES: usize = 16 * 1024;
const PAGE_BYTES: usize = 4096;
/// Kept for `axtask`, which allocates when it wakes a task, and panics if it cannot.
const RESERVE_BYTES: usize = 64 * 1024;
/// The most bytes of a thread beside its stack: the task, its name, its entry, its waker.
const BESIDE_STACK_BYTES: usize = 4 * 1024;
const PRIORITY: Priority = Priority::DEFAULT;
/// The bytes that ArceOS's allocator, TLSF, puts before each block, and the multiple to which it rounds the sum.
const HEAD_BYTES: usize = 16;
const GRAIN_BYTES: usize = 32;
/// The limit for all coroutines or threads to be gone, and the time between two looks.
const PATIENCE_NS: u64 = 60_000_000_000;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Returns the bytes in use of the byte allocator, without its heads.
fn used_bytes() -> usize {
    global_allocator().used_bytes()
}

/// Returns the free bytes in the byte allocator and in whole pages.
fn available_bytes() -> usize {
    let allocator = global_allocator();
    allocator.available_bytes() + allocator.available_pages() * PAGE_BYTES
}

/// Waits for a condition; returns false after the limit.
fn wait_for(is_so: impl Fn() -> bool) -> bool {
    let begin_ns = now_ns();
    while !is_so() {
        if now_ns() - begin_ns > PATIENCE_NS {
            return false;
        }
        axtask::sleep(LOOK_AGAIN);
    }
    true
}

/// A future of this many bytes that is ready when it has been woken once.
struct Waits<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Future for Waits<BYTES> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match core::mem::replace(&mut self.0[0], 1) {
            0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

type Spawns = fn(&'static Domain) -> JoinHandle<()>;

macro_rules! sizes {
    ($($bytes:literal)*) => {
        [$((
            size_of::<Waits<$bytes>>(),
            (|domain| domain.spawn(Waits([0; $bytes]), PRIORITY)) as Spawns,
        )),*]
    };
}

/// Returns the bytes of a coroutine beside its future, for the size for which they are most, with this many
/// coroutines of each size. Returns none if they do not end.
pub fn beside_a_future(domain: &'static Domain, coroutines: usize) -> Option<f64> {
    let sizes = sizes!(8 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128);
    let mut most = 0.0_f64;
    for (future_bytes, spawns) in sizes {
        let mut handles = Vec::with_capacity(coroutines + 2);
        // The first takes room in the table as well, so the second tells what a block takes.
        handles.push(spawns(domain));
        let second = used_bytes();
        handles.push(spawns(domain));
        let block = used_bytes() - second;
        let before = used_bytes();
        handles.extend((0..coroutines).map(|_| spawns(domain)));
        let each = (used_bytes() - before) as f64 / coroutines as f64;
        let allocator_bytes = (block + HEAD_BYTES).next_multiple_of(GRAIN_BYTES) - block;
        most = most.max(each + allocator_bytes as f64 - future_bytes as f64);
        handles.iter().for_each(JoinHandle::cancel);
        drop(handles);
        if !wait_for(|| domain.coroutines() == 0) {
            return None;
        }
    }
    Some(most)
}

/// All memory but [`SEEDS_BYTES`], taken away.
struct Hoard(Vec<(usize, usize)>);

impl Hoard {
    fn new() -> Self {
        let mut pieces = Vec::with_capacity(64);
        let mut pages = available_bytes().saturating_sub(SEEDS_BYTES) / PAGE_BYTES;
        let mut piece = pages;
        // In as few pieces as possible.
        while pages > 0 && piece > 0 && pieces.len() < pieces.capacity() {
            let taken = global_allocator().alloc_pages(piece, PAGE_BYTES, UsageKind::Global);
            match taken {
                Ok(at) => {
                    pieces.push((at, piece));
                    pages -= piece;
                    piece = piece.min(pages);
                }
                Err(_) => piece /= 2,
            }
        }
        Self(pieces)
    }
}

impl Drop for Hoard {
    fn drop(&mut self) {
        for (at, pages) in self.0.drain(..) {
            global_allocator().dealloc_pages(at, pages, UsageKind::Global);
        }
    }
}

/// [`RESERVE_BYTES`], until it is dropped. Taken from the allocator directly: the compiler removes an unused
/// allocation of the language's heap.
struct Reserve(Option<NonNull<u8>>);

impl Reserve {
    const LAYOUT: Layout = match Layout::from_size_align(RESERVE_BYTES, HEAD_BYTES) {
        Ok(layout) => layout,
        Err(_) => panic!("a size"),
    };

    fn new() -> Self {
        Self(global_allocator().alloc(Self::LAYOUT).ok())
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        if let Some(memory) = self.0 {
            global_allocator().dealloc(memory, Self::LAYOUT);
        }
    }
}

/// The number of connections that fitted, the bytes that were not freed at the end, and whether all were served.
#[derive(Clone, Copy, Debug)]
pub struct Connections {
    pub fitted: usize,
    pub left_bytes: usize,
    pub all_served: bool,
}

/// Measures the connections of coroutines and of threads, in the same memory.
pub fn connections(domain: &'static Domain) -> [Connections; 2] {
    let _hoard = Hoard::new();
    [of_coroutines(domain), of_threads()]
}

/// The common state of the connections of a run.
#[derive(Default)]
struct Server {
    /// The number of senders that have sent their answers.
    answered: AtomicUsize,
}

/// A coroutine of a connection: it waits for a wake, does its work, and ends. It has this many bytes in all.
struct Part<const PAD: usize> {
    server: &'static Server,
    /// The coroutines that it wakes: the next of its connection, and the first of the next connection.
    next: Option<CoroutineId>,
    also: Option<CoroutineId>,
    was_polled: bool,
    _state: [u8; PAD],
}

// The sizes of the seeds: receiver, handler, sender.
type Receiver = Part<{ 120 - PART_BYTES }>;
type Handler = Part<{ 64 - PART_BYTES }>;
type Sender = Part<{ 80 - PART_BYTES }>;
const PART_BYTES: usize = size_of::<Part<0>>() - 7;
const _: () = assert!(
    size_of::<Receiver>() == 120 && size_of::<Handler>() == 64 && size_of::<Sender>() == 80
);

impl<const PAD: usize> Part<PAD> {
    fn new(server: &'static Server, next: Option<CoroutineId>, also: Option<CoroutineId>) -> Self {
        Self {
            server,
            next,
            also,
            was_polled: false,
            _state: [0; PAD],
        }
    }
}

impl<const PAD: usize> Future for Part<PAD> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if !core::mem::replace(&mut self.was_polled, true) {
            return Poll::Pending;
        }
        for cid in [self.next, self.also].into_iter().flatten() {
            wake(cid).expect("it waits for this");
        }
        if self.next.is_none() {
            self.server.answered.fetch_add(1, Relaxed);
        }
        Poll::Ready(())
    }
}

static SERVER: Server = Server {
    answered: AtomicUsize::new(0),
};

fn of_coroutines(domain: &'static Domain) -> Connections {
    SERVER.answered.store(0, Relaxed);
    let before = used_bytes();
    let reserve = Reserve::new();
    let (mut fitted, mut last) = (0, None);
    while let Ok(receiver) = connection(domain, last) {
        (fitted, last) = (fitted + 1, Some(receiver));
    }
    drop(reserve);
    // All of them wait now.
    axtask::sleep(LOOK_AGAIN);
    if let Some(receiver) = last {
        wake(receiver).expect("it waits for this");
    }
    let all_ended = wait_for(|| domain.coroutines() == 0);
    Connections {
        fitted,
        left_bytes: used_bytes().saturating_sub(before),
        all_served: all_ended && SERVER.answered.load(Relaxed) == fitted,
    }
}

/// Makes one more connection, whose receiver wakes this one, too; or none of its parts.
fn connection(
    domain: &'static Domain,
    last: Option<CoroutineId>,
) -> Result<CoroutineId, SpawnError> {
    let sender = domain.try_spawn(Sender::new(&SERVER, None, None), PRIORITY)?;
    let handler = Handler::new(&SERVER, Some(sender.cid()), None);
    let handler = domain
        .try_spawn(handler, PRIORITY)
        .inspect_err(|_| sender.cancel())?;
    let receiver = Receiver::new(&SERVER, Some(handler.cid()), last);
    let receiver = domain.try_spawn(receiver, PRIORITY).inspect_err(|_| {
        handler.cancel();
        sender.cancel();
    })?;
    Ok(receiver.cid())
}

fn of_threads() -> Connections {
    let before = used_bytes();
    let reserve = Reserve::new();
    let gate = Arc::new((AtomicUsize::new(0), WaitQueue::new()));
    let answered = Arc::new(AtomicUsize::new(0));
    let mut threads: Vec<WeakAxTaskRef> = Vec::with_capacity(SEEDS_BYTES / STACK_BYTES);
    while has_room_for_thread() {
        let (gate, answered) = (gate.clone(), answered.clone());
        let body = move || {
            gate.1.wait_until(|| gate.0.load(Acquire) == 1);
            answered.fetch_add(1, Relaxed);
        };
        let thread = axtask::spawn_raw(body, "".into(), STACK_BYTES);
        threads.push(Arc::downgrade(&thread));
        drop(thread);
        // The new thread waits, with all its memory, before the next one is made.
        axtask::yield_now();
    }
    drop(reserve);
    gate.0.store(1, Release);
    gate.1.notify_all(true);
    let all_ended = wait_for(|| threads.iter().all(|thread| thread.strong_count() == 0));
    let all_served = all_ended && answered.load(Relaxed) == threads.len();
    let fitted = threads.len() / 3;
    drop((threads, gate, answered));
    Connections {
        fitted,
        left_bytes: used_bytes().saturating_sub(before),
        all_served,
    }
}

/// Returns true if there is memory for a thread: `axtask` would panic without.
fn has_room_for_thread() -> bool {
    let needs = |bytes| Layout::from_size_align(bytes, HEAD_BYTES).expect("a size");
    let (stack, beside) = (needs(STACK_BYTES), needs(BESIDE_STACK_BYTES));
    let allocator = global_allocator();
    let taken: [Option<NonNull<u8>>; 2] =
        [stack, beside].map(|layout| allocator.alloc(layout).ok());
    for (memory, layout) in taken.into_iter().zip([stack, beside]) {
        if let Some(memory) = memory {
            allocator.dealloc(memory, layout);
        }
    }
    taken.iter().all(Option::is_some)
}
