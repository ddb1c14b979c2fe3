//! Operations that are ready at once yield within a budget, and a coroutine cannot block its worker.

use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::string::String;
use std::vec;

use axcoop::Priority;

use super::domains::{leaked, with_domain};
use super::giving_way::{assert_each_gives_way, awaited};
use super::{Begun, Net};
use crate::{Error, TcpStream, Wait};

/// Frees a value that `leaked` has returned.
fn free<T>(value: &'static T) {
    // SAFETY: it comes from `leaked`, and the coroutines that used it have ended.
    drop(unsafe { Box::from_raw(core::ptr::from_ref(value).cast_mut()) });
}

#[test]
fn every_operation_gives_way_within_its_budget() {
    let mut net = Net::new();
    let listener = leaked(net.listen(80));
    let (one, other) = net.pair(listener, 80);
    let (one, other) = (leaked(one), leaked(other));
    // More bytes than all reads take.
    net.write_all(other, &[7; 4096]);
    net.rounds(50);
    // So that any other accept is refused at once.
    let mut accepts = Begun::new(listener.accept());
    accepts.wait();
    let elsewhere = "[::1]:80".parse().unwrap();
    with_domain(1, |domain| {
        let table = vec![
            awaited(&["Read"], 1, || async {
                assert_eq!(one.read([0; 1]).await, (Ok(1), [7]));
            }),
            awaited(&["Read"], 1, || async {
                assert_eq!(one.read([0; 0]).await.0, Ok(0));
            }),
            awaited(&["Write"], 1, || async {
                assert_eq!(one.write([8]).await.0, Ok(1));
            }),
            awaited(&["WriteAll"], 2, || async {
                one.write_all([9]).await.0.unwrap();
            }),
            awaited(&["Accept"], 1, || async {
                assert_eq!(listener.accept().await.err(), Some(Error::ResourceBusy));
            }),
            awaited(&["Connect"], 1, move || async move {
                let connects = TcpStream::connect(elsewhere);
                assert_eq!(connects.await.err(), Some(Error::Unsupported));
            }),
        ];
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert_each_gives_way(domain, &sources, table);
    });
    accepts.cancel();
    free(listener);
    free(one);
    free(other);
}

#[test]
fn waiting_in_a_coroutine_panics() {
    let mut net = Net::new();
    let listener = leaked(net.listen(80));
    with_domain(1, |domain| {
        let waits = async {
            let waits = AssertUnwindSafe(|| drop(listener.accept().wait()));
            let why = catch_unwind(waits).unwrap_err();
            why.downcast_ref::<String>().unwrap().clone()
        };
        let why = domain.spawn(waits, Priority::DEFAULT).join().unwrap();
        assert_eq!(
            why,
            "a coroutine awaits the operation: `wait` would block its worker"
        );
    });
    free(listener);
}
