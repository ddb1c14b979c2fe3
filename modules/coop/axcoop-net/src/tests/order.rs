//! The most urgent of several waiters is served first.

use std::format;
use std::string::{String, ToString};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use std::vec::Vec;

use super::cancel::Coroutines;
use super::{Begun, Net};
use crate::{Operation, system};

/// All priorities, shuffled.
const PRIORITIES: [u8; 8] = [3, 7, 0, 5, 1, 6, 2, 4];

type Trace = Arc<Mutex<Vec<String>>>;

fn recorder(trace: &Trace, what: &str) -> impl Fn() + Send + Sync + use<> {
    let (trace, what) = (trace.clone(), what.to_string());
    move || trace.lock().unwrap().push(what.clone())
}

/// The bytes of all reads come in one round, in which the time of an accept is over.
#[test]
fn rule_5_most_urgent_waiter_of_a_round_is_woken_first() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let pairs = PRIORITIES.map(|_| net.pair(&listener, 80));
    let trace = Trace::default();
    let mut reads: Vec<_> = PRIORITIES
        .iter()
        .zip(&pairs)
        .map(|(&priority, (stream, _))| {
            let read = stream.read(net.room(1)).at(priority);
            Begun::calling(read, recorder(&trace, &format!("read {priority}")))
        })
        .collect();
    reads.iter_mut().for_each(Begun::wait);
    let mut accept = Begun::calling(
        listener.accept().within(Duration::from_millis(30)).at(2),
        recorder(&trace, "accept 2"),
    );
    accept.wait();
    for (_, stream) in &pairs {
        assert!(Begun::new(stream.write(net.buffer(b"x"))).poll().is_ready());
    }
    // This round sends the bytes. The next one receives them, and the time of the accept is over.
    net.round();
    (0..30).for_each(|_| system::pass_tick());
    net.round();
    let trace = trace.lock().unwrap().clone();
    assert_eq!(
        trace,
        [
            "read 0", "read 1", "accept 2", "read 2", "read 3", "read 4", "read 5", "read 6",
            "read 7"
        ]
    );
    for mut read in reads {
        assert!(matches!(read.poll(), Poll::Ready((Ok(1), _))));
    }
}

/// The coroutines have one worker and one priority.
#[test]
fn rule_5_coroutines_go_on_in_the_order_of_their_operations_priorities() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let coroutines = Coroutines::new();
    let trace = Trace::default();
    let mut others = Vec::new();
    let mut handles = Vec::new();
    let begun = Arc::new(AtomicUsize::new(0));
    for priority in PRIORITIES {
        let (stream, other) = net.pair(&listener, 80);
        others.push(other);
        let (buffer, done) = (net.room(1), recorder(&trace, &priority.to_string()));
        let begun = begun.clone();
        handles.push(coroutines.spawn(async move {
            begun.fetch_add(1, SeqCst);
            let (read, _) = stream.read(buffer).at(priority).await;
            done();
            read
        }));
    }
    net.until(|| begun.load(SeqCst) == PRIORITIES.len());
    // Begins when all others wait.
    let hold = coroutines.hold_after_others();
    for other in &others {
        assert!(Begun::new(other.write(net.buffer(b"x"))).poll().is_ready());
    }
    net.rounds(5);
    drop(hold);
    for handle in handles {
        assert_eq!(handle.join().unwrap(), Ok(1));
    }
    assert_eq!(
        *trace.lock().unwrap(),
        ["0", "1", "2", "3", "4", "5", "6", "7"]
    );
}
