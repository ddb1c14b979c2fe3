//! The traits of `embedded-io-async`, as a library uses them.

use core::time::Duration;

use embedded_io_async::{Error as _, ErrorKind, Read, ReadExactError, Write};
use futures_util::future::join;

use super::Net;
use crate::{SEND_BUFFER, TimedStream, system};

/// Reads exactly this many bytes.
async fn exactly<R: Read>(mut from: R, length: usize) -> std::vec::Vec<u8> {
    let mut bytes = std::vec![0; length];
    from.read_exact(&mut bytes).await.unwrap();
    bytes
}

/// Writes borrowed bytes. The connection's own methods have these names, too, and own their buffers.
async fn all<W: Write>(mut to: W, bytes: &[u8]) -> Result<(), W::Error> {
    to.write_all(bytes).await?;
    to.flush().await
}

#[test]
fn transfers_more_than_a_buffer_both_ways() {
    let (mut net, _listener, one, mut other) = Net::connected();
    let sent: std::vec::Vec<u8> = (0..3 * SEND_BUFFER).map(|n| (n * 7) as u8).collect();
    // Both at once: a reference for each direction.
    let both = join(all(&one, &sent), exactly(&mut other, sent.len()));
    let (written, read) = net.done(both);
    written.unwrap();
    assert!(read == sent);
    net.assert_both_directions_work(&one, &other);
}

#[test]
fn end_and_reset_are_different_errors() {
    let (mut net, _listener, one, mut other) = Net::connected();
    one.shutdown();
    let end = net.done(async { other.read_exact(&mut [0; 4]).await });
    assert_eq!(end, Err(ReadExactError::UnexpectedEof));
    other.shutdown();
    let error = net.done(all(other, b"more")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn deadline_bounds_all_later_calls() {
    let (mut net, _listener, one, other) = Net::connected();
    let mut one = TimedStream::new(one);
    one.within(Duration::from_millis(50));
    let begin = system::now();
    for _ in 0..2 {
        let error = net.done(async { one.read(&mut [0; 4]).await.unwrap_err() });
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let took = system::now() - begin;
        assert!(took >= Duration::from_millis(50), "{took:?}");
        assert!(took < Duration::from_millis(100), "{took:?}");
    }
    // A new deadline, until the other end takes no more.
    one.within(Duration::from_secs(1));
    net.write_all(&other, b"here");
    let mut bytes = [0; 4];
    net.done(async { one.read_exact(&mut bytes).await.unwrap() });
    assert_eq!(&bytes, b"here");
    net.assert_both_directions_work(one.stream(), &other);
    let error = net.done(async {
        loop {
            if let Err(error) = one.write(&[0; 1000]).await {
                break error;
            }
        }
    });
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}
