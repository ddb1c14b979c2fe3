//! `switch COROUTINES YIELDS`: coroutines that yield this often each, for Callgrind. The difference of two runs is the
//! cost of the additional yields.

use axcoop::host::HOST;
use axcoop::{Domain, DomainId, Priority, SUMMARY, yield_now};

static DOMAIN: Domain = Domain::new(DomainId::new(0), &SUMMARY, &HOST);

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse());
    let (Some(Ok(coroutines)), Some(Ok(yields))) = (words.next(), words.next()) else {
        eprintln!("switch: expected COROUTINES YIELDS");
        std::process::exit(2);
    };
    DOMAIN.open().expect("it is the only one");
    let handles: Vec<_> = (0..coroutines)
        .map(|_: usize| {
            let yields = async move {
                for _ in 0..yields {
                    yield_now().await;
                }
            };
            DOMAIN.spawn(yields, Priority::DEFAULT)
        })
        .collect();
    DOMAIN.set_workers(1).expect("the host has a thread");
    for handle in handles {
        handle.join().expect("it only yields");
    }
}
