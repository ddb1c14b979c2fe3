//! The traits of `embedded-io-async`, used as a library uses them.

use core::time::Duration;

use embedded_io_async::{Error as _, ErrorKind, Read, ReadExactError, Write};

use super::{Begun, Net};
use crate::{SEND_BUFFER, TimedStream, system};

/// Reads into memory that it borrows.
async fn exactly<R: Read>(mut from: R, length: usize) -> std::vec::Vec<u8> {
    let mut bytes = std::vec![0; length];
    from.read_exact(&mut bytes).await.unwrap();
    bytes
}

/// Writes what it borrows. The connection's own methods have these names, too, and own buffers.
async fn all<W: Write>(mut to: W, bytes: &[u8]) -> Result<(), W::Error> {
    to.write_all(bytes).await?;
    to.flush().await
}

#[test]
fn more_than_a_buffer_is_written_and_read() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let (one, mut other) = net.pair(&listener, 80);
    let sent: std::vec::Vec<u8> = (0..3 * SEND_BUFFER).map(|n| (n * 7) as u8).collect();
    // Both directions at once: a reference for each.
    let mut write = Begun::new(async {
        all(&one, &sent).await.unwrap();
    });
    let mut read = Begun::new(exactly(&mut other, sent.len()));
    let (mut written, mut got) = (false, None);
    net.until(|| {
        written = written || write.poll().is_ready();
        if got.is_none()
            && let core::task::Poll::Ready(bytes) = read.poll()
        {
            got = Some(bytes);
        }
        written && got.is_some()
    });
    assert!(got.unwrap() == sent);
    drop((write, read));
    net.goes_on(&one, &other);
}

#[test]
fn the_end_and_a_reset_are_told_apart() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let (one, mut other) = net.pair(&listener, 80);
    one.shutdown();
    let end = net.done(async { other.read_exact(&mut [0; 4]).await });
    assert_eq!(end, Err(ReadExactError::UnexpectedEof));
    other.shutdown();
    let error = net.done(all(other, b"more")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_deadline_is_that_of_all_that_follows() {
    let mut net = Net::new();
    let listener = net.listen(80);
    let (one, other) = net.pair(&listener, 80);
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
    // A new one, until the other end takes no more.
    one.within(Duration::from_secs(1));
    net.write_all(&other, b"here");
    let mut bytes = [0; 4];
    net.done(async { one.read_exact(&mut bytes).await.unwrap() });
    assert_eq!(&bytes, b"here");
    net.goes_on(one.stream(), &other);
    let error = net.done(async {
        loop {
            if let Err(error) = one.write(&[0; 1000]).await {
                break error;
            }
        }
    });
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}
