//! An answer becomes bytes.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A status and a body of text.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// As in RFC 9110, 15.
    pub status: u16,
    /// What comes behind the head.
    pub body: Vec<u8>,
}

impl Answer {
    /// 200, with this body.
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            body: body.into(),
        }
    }

    /// This status, which the body says in words.
    pub fn status(status: u16) -> Self {
        let body = format!("{status} {}\n", reason(status)).into_bytes();
        Self { status, body }
    }

    /// Head and body, or the head alone.
    pub fn to_bytes(&self, keep_alive: bool, body: bool) -> Vec<u8> {
        let (status, reason, length) = (self.status, reason(self.status), self.body.len());
        let connection = if keep_alive { "keep-alive" } else { "close" };
        // Who refuses a method says which there are (9110, 15.5.6).
        let allow = if status == 405 {
            "Allow: GET, HEAD, POST\r\n"
        } else {
            ""
        };
        let head: String = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
             {allow}Connection: {connection}\r\n\r\n"
        );
        let mut bytes = head.into_bytes();
        if body {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => unreachable!("no answer has the status {status}"),
    }
}

#[test]
fn an_answer_is_its_bytes() {
    let bytes = Answer::ok("hello\n").to_bytes(true, true);
    let expected = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\
                    Connection: keep-alive\r\n\r\nhello\n";
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    let bytes = Answer::status(405).to_bytes(false, false);
    let expected = "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\n\
                    Content-Length: 23\r\nAllow: GET, HEAD, POST\r\nConnection: close\r\n\r\n";
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}
