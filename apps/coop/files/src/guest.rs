//! Coroutines that write files while an urgent one writes and reads, and a thread that checks the files.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::string::String;
use std::vec::Vec;
use std::{format, println, vec};

use axcoop_arceos::{Priority, Semaphore};
use axcoop_fs::{File, remove};

/// The number of coroutines that are not urgent, the bytes that each writes at a time, and how often it does.
const OTHERS: u8 = 3;
const CHUNK: usize = 4096;
const CHUNKS: usize = 24;
/// The number of times that the urgent coroutine runs, and the operations of the others in between.
const TIMES: usize = 10;
const EVERY: usize = 6;

/// The operations done so far for the coroutines that are not urgent.
static DONE: AtomicUsize = AtomicUsize::new(0);
static NEXT_URGENT: Semaphore = Semaphore::new(0);

pub fn main() {
    axcoop_fs::start().expect("there is a domain for the pool, and memory");
    let domain = axcoop_arceos::domain("files").expect("there is one, and memory for it");
    let others: Vec<_> = (0..OTHERS)
        .map(|number| domain.spawn(write_file(number), Priority::LAST))
        .collect();
    let urgent = domain.spawn(write_at_intervals(), Priority::FIRST);
    let most = urgent.join().expect("it is not cancelled");
    let all = usize::from(OTHERS) * CHUNKS;
    assert!(
        most <= 1,
        "an urgent operation has waited for {most} others"
    );
    assert!(
        DONE.load(Relaxed) < all,
        "the urgent one has ended before the others, or has not been urgent"
    );
    for other in others {
        other.join().expect("it is not cancelled");
    }
    for number in 0..OTHERS {
        let file = File::open(path(number)).wait().expect("it was written");
        assert_eq!(file.length().wait(), Ok((CHUNKS * CHUNK) as u64));
        let mut at = 0;
        let mut buffer = vec![0; CHUNK];
        // A thread makes the same calls.
        loop {
            let (read, bytes) = file.read_at(at, buffer).wait();
            let read = read.expect("the disk is whole");
            let chunk = at / CHUNK as u64;
            assert!(
                bytes[..read]
                    .iter()
                    .all(|&byte| byte == number + chunk as u8),
                "other bytes than were written"
            );
            if read == 0 {
                break;
            }
            at = (at + read as u64).min((chunk + 1) * CHUNK as u64);
            buffer = bytes;
        }
        file.close().wait();
        remove(path(number)).wait().expect("it is there");
    }
    println!(
        "files: {all} chunks written and read; {TIMES} times an urgent operation waited for {most} of the others' at most"
    );
}

fn path(number: u8) -> String {
    format!("/OTHER{number}.BIN")
}

/// Writes a file, a chunk at a time.
async fn write_file(number: u8) {
    let mut file = File::create(path(number)).await.expect("there is a disk");
    for chunk in 0..CHUNKS {
        let bytes = vec![number + chunk as u8; CHUNK];
        let (written, _) = file.write_all(bytes).await;
        assert_eq!(written, Ok(CHUNK));
        if DONE.fetch_add(1, Relaxed) % EVERY == EVERY - 1 {
            NEXT_URGENT.release(1);
        }
    }
    file.close().await;
}

/// Writes and reads a little at intervals. Returns the most operations of others that ended between a call and its
/// result.
async fn write_at_intervals() -> usize {
    const PATH: &str = "/URGENT.BIN";
    let mut most = 0;
    let file = File::create(PATH.into()).await.expect("there is a disk");
    for turn in 0..TIMES {
        NEXT_URGENT.acquire().await.forget();
        let before = DONE.load(Relaxed);
        let (written, mut buffer) = file.write_at(0, vec![turn as u8; 8]).await;
        most = most.max(DONE.load(Relaxed) - before);
        assert_eq!(written, Ok(8));
        buffer.fill(0xff);
        let (read, buffer) = file.read_at(0, buffer).await;
        assert_eq!((read, buffer), (Ok(8), vec![turn as u8; 8]));
    }
    file.close().await;
    remove(PATH.into()).await.expect("it is there");
    most
}
