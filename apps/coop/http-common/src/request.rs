//! Bytes become requests. Parsing is `httparse`'s; here is what it leaves to others: where a head
//! ends, how long it may be, what a body is, and with what status a wrong one is refused.
//!
//! Rules (RFC 9110 and 9112 where a number is given):
//! 1. A head of more than [`HEAD_LIMIT`] bytes or [`HEADERS_LIMIT`] fields is refused with 431, at
//!    the latest when so many bytes have come without an end of it.
//! 2. Two lengths that differ, or one that is no number, are 400 (9112, 6.3); so is a request of
//!    HTTP/1.1 without one `Host` (9112, 3.2).
//! 3. A body longer than [`BODY_LIMIT`] is refused with 413 before it is read. A transfer coding is
//!    501: a length is all that is understood (9112, 6.1).
//! 4. After a refusal nothing more is read from the connection as a request: where the next one
//!    would begin is not known.
//! 5. Requests may follow each other without waiting (pipelining); bytes behind one request are
//!    the beginning of the next.
//! 6. A connection stays open after HTTP/1.1 unless the request says `close`, and after HTTP/1.0 if
//!    it says `keep-alive` (9112, 9.3).

use alloc::string::String;
use alloc::vec::Vec;

/// Bytes of a request line and its fields.
pub const HEAD_LIMIT: usize = 4096;
/// Fields of a request.
pub const HEADERS_LIMIT: usize = 32;
/// Bytes of a body.
pub const BODY_LIMIT: usize = 16 * 1024;

/// What is to be done with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Read it.
    Get,
    /// The same without its content.
    Head,
    /// Give it a body.
    Post,
    /// A method that no resource here has.
    Other,
}

/// A whole request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// What is to be done.
    pub method: Method,
    /// With what: the path, without a query.
    pub path: String,
    /// As long as `Content-Length` said.
    pub body: Vec<u8>,
    /// Whether another request may follow (rule 6).
    pub keep_alive: bool,
}

/// What the bytes so far amount to.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Less than a request; the flag says whether it is any part of one.
    More {
        /// Whether bytes of a request have come.
        begun: bool,
        /// Whether the client waits to be told that it may send the body (9110, 10.1.1); said once.
        expects: bool,
    },
    /// A request.
    Whole(Request),
    /// A request that is refused with this status; then the connection ends (rule 4).
    Refused(u16),
}

/// The bytes of one connection, as they come.
#[derive(Default)]
pub struct Reader {
    bytes: Vec<u8>,
    /// The head of the request whose body is missing, and how long both are together.
    head: Option<(Head, usize)>,
    refused: bool,
}

struct Head {
    method: Method,
    path: String,
    keep_alive: bool,
    length: usize,
    expects: bool,
}

impl Reader {
    /// Takes what has come.
    pub fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next request, if it is there.
    #[must_use]
    pub fn next_request(&mut self) -> Next {
        if self.refused {
            return Next::More {
                begun: false,
                expects: false,
            };
        }
        if self.head.is_none() {
            match parse(&self.bytes) {
                Ok(Some((head, length))) => {
                    let end = length + head.length;
                    // Of the body, only what belongs to it is kept once it is whole.
                    self.bytes.drain(..length);
                    self.head = Some((head, end - length));
                }
                Ok(None) if self.bytes.len() >= HEAD_LIMIT => return self.refuse(431),
                Ok(None) => {
                    let begun = !self.bytes.is_empty();
                    return Next::More {
                        begun,
                        expects: false,
                    };
                }
                Err(status) => return self.refuse(status),
            }
        }
        match &mut self.head {
            Some((_, length)) if self.bytes.len() >= *length => {
                let rest = self.bytes.split_off(*length);
                let body = core::mem::replace(&mut self.bytes, rest);
                let (head, _) = self.head.take().expect("it was there");
                let Head {
                    method,
                    path,
                    keep_alive,
                    ..
                } = head;
                Next::Whole(Request {
                    method,
                    path,
                    body,
                    keep_alive,
                })
            }
            Some((head, _)) => {
                let expects = core::mem::take(&mut head.expects);
                Next::More {
                    begun: true,
                    expects,
                }
            }
            None => unreachable!("a head was there or has just been parsed"),
        }
    }

    fn refuse(&mut self, status: u16) -> Next {
        self.refused = true;
        self.bytes = Vec::new();
        Next::Refused(status)
    }
}

/// The head at the beginning of these bytes and its length, nothing if it is not whole, or a status.
fn parse(bytes: &[u8]) -> Result<Option<(Head, usize)>, u16> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_LIMIT];
    let mut parsed = httparse::Request::new(&mut fields);
    let length = match parsed.parse(&bytes[..bytes.len().min(HEAD_LIMIT)]) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(431),
        Err(httparse::Error::Version) => return Err(505),
        Err(_) => return Err(400),
    };
    let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version)
    else {
        return Err(400);
    };
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        _ => Method::Other,
    };
    let (mut hosts, mut body, mut expects) = (0, None, false);
    let mut keep_alive = version >= 1;
    for field in parsed.headers.iter() {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("host") {
            hosts += 1;
        } else if is("content-length") {
            let length = decimal(field.value).ok_or(400_u16)?;
            if body.replace(length).is_some_and(|before| before != length) {
                return Err(400);
            }
        } else if is("transfer-encoding") {
            return Err(501);
        } else if is("expect") {
            expects |= field.value.eq_ignore_ascii_case(b"100-continue");
        } else if is("connection") {
            for word in field.value.split(|&byte| byte == b',') {
                let word = word.trim_ascii();
                if word.eq_ignore_ascii_case(b"close") {
                    keep_alive = false;
                } else if version == 0 && word.eq_ignore_ascii_case(b"keep-alive") {
                    keep_alive = true;
                }
            }
        }
    }
    if version >= 1 && hosts != 1 {
        return Err(400);
    }
    let body = body.unwrap_or(0);
    if body > BODY_LIMIT as u64 {
        return Err(413);
    }
    let path = target.split('?').next().unwrap_or_default();
    let head = Head {
        method,
        path: String::from(path),
        keep_alive,
        length: body as usize,
        expects: expects && body > 0,
    };
    Ok(Some((head, length)))
}

/// A decimal number and nothing else; one that is too large is as large as possible.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add((digit - b'0').into());
    Some(digits.iter().fold(0, add))
}

#[cfg(test)]
mod tests;
