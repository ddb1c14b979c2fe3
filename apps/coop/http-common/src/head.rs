//! Turns bytes into the head of a request, or into the status with which it is refused.
//!
//! `edge-http` splits a head into its fields. The layer here decides all that the library accepts
//! wrongly, refuses wrongly, or panics at (a `Content-Length` that is no number).
//!
//! Rules (RFC 9110 and 9112 where a number is given):
//! 1. A head of more than [`HEAD_LIMIT`] bytes or [`HEADERS_LIMIT`] fields is refused with 431, at
//!    the latest when [`HEAD_LIMIT`] bytes have come without its end.
//! 2. Empty lines before a request line are skipped, and are no part of a request (9112, 2.2).
//! 3. A method is compared with its case (9110, 9.1). One that the library does not know is 501.
//! 4. HTTP/1.2 and later is served as HTTP/1.1 (9110, 2.5). Another major version is 505.
//! 5. A target is a path, or an `http` URI with one (9112, 3.2.2). `*` is for OPTIONS. A host with
//!    a port of 1 to 65535 is for CONNECT, and nothing else is (9110, 9.3.6). Anything else is 400, as
//!    is a character that no URI has. An encoded character that needs no code is decoded (9110, 4.2.3).
//! 6. Two `Host` fields, an invalid one, or none in a request of HTTP/1.1, are 400 (9112, 3.2).
//! 7. Two lengths that differ, or one that is no number, are 400 (9112, 6.3). A body longer than
//!    [`BODY_LIMIT`] is 413 before it is read. A transfer coding is 501: a length is all that is
//!    understood (9112, 6.1).
//! 8. A connection stays open after HTTP/1.1, and after HTTP/1.0 if the request says `keep-alive`;
//!    `close` beside it takes precedence (9112, 9.3).
//! 9. A client of HTTP/1.0 is never told to go on with its body (9110, 10.1.1).

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::future::Future;
use core::net::Ipv6Addr;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use edge_http::io::Error;
use edge_http::{Method, RequestHeaders};

/// The most bytes of a request line and its fields.
pub const HEAD_LIMIT: usize = 4096;
/// The most fields of a request.
pub const HEADERS_LIMIT: usize = 32;
/// The most bytes of a body.
pub const BODY_LIMIT: usize = 16 * 1024;

/// The head of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// The method of the request.
    pub method: Method,
    /// The path, without a query.
    pub path: String,
    /// True if another request may follow (rule 8).
    pub keep_alive: bool,
    /// The length of the body, in bytes.
    pub length: usize,
    /// True if the client waits to be told that it may send the body (rule 9).
    pub expects: bool,
}

/// Returns the output of a future that has nothing to wait for: the library's, on memory.
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("memory is always ready"),
    }
}

/// Takes the head at the beginning of these bytes out of them. Returns `None` if it is not whole
/// yet.
///
/// # Errors
/// The status with which the request is refused. The bytes begin with it then.
pub fn take_head(bytes: &mut Vec<u8>) -> Result<Option<Head>, u16> {
    while bytes.starts_with(b"\r\n") {
        bytes.drain(..2);
    }
    if !has_begun(bytes) {
        return Ok(None);
    }
    // Nonsense need not be waited for.
    let method = bytes.split(|&byte| byte == b' ').next().unwrap_or_default();
    if method.is_empty() || !method.iter().all(|&byte| is_token(byte)) {
        return Err(400);
    }
    let Some(length) = length_of_head(&bytes[..bytes.len().min(HEAD_LIMIT)]) else {
        return if bytes.len() >= HEAD_LIMIT {
            Err(431)
        } else {
            Ok(None)
        };
    };
    let head = parse(bytes[..length].to_vec())?;
    bytes.drain(..length);
    Ok(Some(head))
}

/// Returns true if these bytes are a part of a request (rule 2).
pub(crate) fn has_begun(bytes: &[u8]) -> bool {
    !matches!(bytes, b"" | b"\r" | b"\r\n")
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn length_of_head(bytes: &[u8]) -> Option<usize> {
    let mut length = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        length += line.len();
        if matches!(line, b"\n" | b"\r\n") {
            return Some(length);
        }
    }
    None
}

fn parse(mut bytes: Vec<u8>) -> Result<Head, u16> {
    let line_end = |&byte: &u8| matches!(byte, b'\r' | b'\n');
    let end = bytes.iter().position(line_end).ok_or(400_u16)?;
    let mut words = bytes[..end].split(|&byte| byte == b' ');
    let (Some(name), Some(_), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(400);
    };
    let (major, minor) = match *version {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            (major, minor)
        }
        _ => return Err(400),
    };
    if major != b'1' {
        return Err(505);
    }
    // The library takes `get` for GET.
    let known = str::from_utf8(name).ok().and_then(Method::new);
    if known.is_none_or(|method| method.to_string().as_bytes() != name) {
        return Err(501);
    }
    if minor > b'1' {
        bytes[end - 1] = b'1';
    }

    let mut buffer = vec![0; bytes.len()];
    let mut request = RequestHeaders::<HEADERS_LIMIT>::new();
    // Not exact: that would read a byte at a time.
    let parsed = ready(request.receive(&mut buffer, bytes.as_slice(), false));
    match parsed {
        Ok(_) => {}
        Err(Error::TooManyHeaders) => return Err(431),
        _ => return Err(400),
    }
    let path = path(request.method, request.path).ok_or(400_u16)?;
    let (mut hosts, mut length, mut expects) = (0, None, false);
    let (mut close, mut keep_alive) = (false, false);
    for (name, value) in request.headers.iter_raw() {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("host") {
            hosts += 1;
            if !str::from_utf8(value).is_ok_and(is_authority) {
                return Err(400);
            }
        } else if is("content-length") {
            let value = decimal(value).ok_or(400_u16)?;
            if length.replace(value).is_some_and(|before| before != value) {
                return Err(400);
            }
        } else if is("transfer-encoding") {
            return Err(501);
        } else if is("expect") {
            expects |= value.eq_ignore_ascii_case(b"100-continue");
        } else if is("connection") {
            for word in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                close |= word.eq_ignore_ascii_case(b"close");
                keep_alive |= word.eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }
    if hosts > 1 || hosts == 0 && request.http11 {
        return Err(400);
    }
    let length = length.unwrap_or(0);
    if length > BODY_LIMIT as u64 {
        return Err(413);
    }
    Ok(Head {
        method: request.method,
        path: decoded(path),
        keep_alive: !close && (request.http11 || keep_alive),
        length: length as usize,
        expects: expects && request.http11,
    })
}

/// Returns the path of a target, or what stands in its place (rule 5).
fn path(method: Method, target: &str) -> Option<&str> {
    let path = match target.split_at_checked("http://".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http://") => {
            let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            if authority.is_empty() || authority.starts_with(':') || !is_authority(authority) {
                return None;
            }
            if path.starts_with('/') { path } else { "/" }
        }
        _ => target,
    };
    let is_valid = match method {
        Method::Connect => is_authority(target) && has_port(target),
        Method::Options if target == "*" => true,
        _ => path.starts_with('/') && is_made_of(path, b"/:@?"),
    };
    is_valid.then(|| path.split('?').next().unwrap_or_default())
}

fn has_port(authority: &str) -> bool {
    let port = authority
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    port.is_some_and(|port: u16| port > 0)
}

/// Returns a path with each character as itself that needs no code (9110, 4.2.3).
fn decoded(path: &str) -> String {
    let mut pieces = path.split('%');
    let first = String::from(pieces.next().unwrap_or_default());
    pieces.fold(first, |path, piece| {
        let (digits, rest) = piece.split_at(2);
        match u8::from_str_radix(digits, 16) {
            Ok(byte) if is_unreserved(byte) => path + char::from(byte).encode_utf8(&mut [0]) + rest,
            _ => path + "%" + piece,
        }
    })
}

/// Returns true if this is a host and, behind a colon, a port (9110, 7.2; RFC 3986, 3.2.2). Both
/// may be empty.
fn is_authority(text: &str) -> bool {
    let (is_host, port) = match text.strip_prefix('[') {
        Some(literal) => match literal.split_once(']') {
            Some((address, port)) => (is_address(address), port),
            None => return false,
        },
        None => {
            let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            (is_made_of(name, b""), port)
        }
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    is_host && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

/// Returns true if this is an address of IPv6, or of a later version (RFC 3986, 3.2.2).
fn is_address(text: &str) -> bool {
    let later = text
        .strip_prefix(['v', 'V'])
        .and_then(|rest| rest.split_once('.'));
    match later {
        Some((version, address)) => {
            let is_version = version.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_version
                && !version.is_empty()
                && !address.is_empty()
                && !address.contains('%')
                && is_made_of(address, b":")
        }
        None => text.parse::<Ipv6Addr>().is_ok(),
    }
}

/// Returns true if all characters are those of a name (RFC 3986, 3.2.2), whole codes, or of `more`.
fn is_made_of(text: &str, more: &[u8]) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_valid = match byte {
            b'%' => (0..2).all(|_| bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit())),
            _ => is_unreserved(byte) || b"!$&'()*+,;=".contains(&byte) || more.contains(&byte),
        };
        if !is_valid {
            return false;
        }
    }
    true
}

/// Returns true if this character is the same with and without a code (RFC 3986, 2.3).
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Returns a decimal number, or `None` if there is anything else; one that is too large is as
/// large as possible.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add((digit - b'0').into());
    Some(digits.iter().fold(0, add))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(bytes: impl AsRef<[u8]>) -> Result<Option<Head>, u16> {
        take_head(&mut bytes.as_ref().to_vec())
    }

    fn get(path: &str) -> Head {
        Head {
            method: Method::Get,
            path: path.into(),
            keep_alive: true,
            length: 0,
            expects: false,
        }
    }

    #[test]
    fn head_may_arrive_byte_by_byte() {
        let all = b"\r\nPOST /echo?x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
        let mut bytes = Vec::new();
        for &byte in &all[..all.len() - 6] {
            bytes.push(byte);
            assert_eq!(take_head(&mut bytes), Ok(None));
        }
        bytes.extend_from_slice(b"\nhello");
        let head = Head {
            method: Method::Post,
            length: 5,
            ..get("/echo")
        };
        assert_eq!(take_head(&mut bytes), Ok(Some(head)));
        assert_eq!(bytes, b"hello");
    }

    #[test]
    fn rule_1_long_head_is_refused() {
        let fields = |n| {
            let more = "x: y\r\n".repeat(n - 1);
            format!("GET / HTTP/1.1\r\nHost: a\r\n{more}\r\n")
        };
        assert_eq!(take(fields(HEADERS_LIMIT)), Ok(Some(get("/"))));
        assert_eq!(take(fields(HEADERS_LIMIT + 1)), Err(431));

        let mut endless = b"GET / HTTP/1.1\r\nHost: ".to_vec();
        endless.resize(HEAD_LIMIT - 4, b'a');
        let (mut longest, mut longer) = (endless.clone(), endless.clone());
        endless.resize(HEAD_LIMIT - 1, b'a');
        assert_eq!(take(&endless), Ok(None));
        endless.push(b'a');
        assert_eq!(take(&endless), Err(431));
        longest.extend_from_slice(b"\r\n\r\n");
        longer.extend_from_slice(b"a\r\n\r\n");
        assert_eq!(take(&longest), Ok(Some(get("/"))));
        assert_eq!(take(&longer), Err(431));
    }

    #[test]
    fn rule_2_empty_line_is_no_part_of_a_request() {
        for bytes in ["", "\r", "\r\n", "\r\n\r", "\r\n\r\n"] {
            let mut bytes = bytes.as_bytes().to_vec();
            assert_eq!(take_head(&mut bytes), Ok(None));
            assert!(!has_begun(&bytes), "{bytes:?}");
        }
        assert!(has_begun(b"G"));
        assert_eq!(take(" / HTTP/1.1\r\n\r\n"), Err(400));
    }

    #[test]
    fn rule_5_only_unreserved_characters_are_decoded() {
        for (path, expected) in [
            ("/%41%7a%2E%2d", "/Az.-"),
            ("/%2Fp%3f%80", "/%2Fp%3f%80"),
            ("/%2541", "/%2541"),
        ] {
            let head = take(format!("GET {path}?%41 HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!(head, Ok(Some(get(expected))));
        }
    }

    #[test]
    fn rule_6_authority_is_a_host_and_a_port() {
        for right in
            "|a|a:|a:80|a.b-c_d~|%41|127.0.0.1:5555|[::1]|[::1]:80|[v1.a]|[VfF.a:b]:80".split('|')
        {
            assert!(is_authority(right), "{right}");
        }
        for wrong in
            r"a b|a/b|a@b|a:b|a:1:2|%4|%4g|[::1|[a]|[::1]80|[v.a]|[v1.]|[vg.a]|[v1.%41]|a\|ä"
                .split('|')
        {
            assert!(!is_authority(wrong), "{wrong}");
        }
    }

    #[test]
    fn rule_7_length_is_one_number() {
        let with = |fields: &str| {
            take(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"))
                .map(|head| head.map(|head| head.length))
        };
        let length = |text: &str| with(&format!("Content-Length: {text}\r\n"));
        assert_eq!(length("0"), Ok(Some(0)));
        for wrong in ["", "-1", "+1", "0x1", "1 2", "1,1", "one"] {
            assert_eq!(length(wrong), Err(400), "{wrong}");
        }
        assert_eq!(length(&BODY_LIMIT.to_string()), Ok(Some(BODY_LIMIT)));
        assert_eq!(length(&(BODY_LIMIT + 1).to_string()), Err(413));
        assert_eq!(length("99999999999999999999999999"), Err(413));
        let two = |a, b| with(&format!("Content-Length: {a}\r\ncontent-length: {b}\r\n"));
        assert_eq!(two(1, 1), Ok(Some(1)));
        assert_eq!(two(0, 1), Err(400));
    }

    /// The library panics at a length that is no number, and at nothing else that is known.
    #[test]
    fn no_head_makes_the_library_panic() {
        let pieces = b"GET |/| HTTP/1.1|\r\n|Host: a\r\n|Content-Length: |x|9|\n|\0|\xff|: |\
                       Connection: close\r\n| |http://a|HTTP/1.2";
        let pieces: Vec<_> = pieces.split(|&byte| byte == b'|').collect();
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            let mut bytes = b"GET / HTTP/1.1\r\n".to_vec();
            for _ in 0..12 {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                bytes.extend_from_slice(pieces[x as usize % pieces.len()]);
            }
            bytes.extend_from_slice(b"\r\n\r\n");
            let _ = take(bytes);
        }
    }
}
