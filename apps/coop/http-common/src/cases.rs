//! The cases of RFC 9110 and 9112, as a table: the bytes that a client sends, and the answers that
//! it gets. Each ends with the server's end of the connection, for which the client does nothing.
//! The unit tests play them on the host, and `tools/http-load` over a network.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A case.
pub struct Case {
    /// The section that demands it.
    pub rule: &'static str,
    /// The behaviour.
    pub name: &'static str,
    /// What the client sends, in pieces with a rest between them.
    pub sends: Vec<String>,
    gets: Vec<Gets>,
}

/// An answer.
struct Gets {
    status: u16,
    /// `None` for a head alone; a refusal's content is its own business.
    content: Option<&'static str>,
    allow: Option<&'static str>,
}

const fn ok(content: &'static str) -> Gets {
    Gets {
        status: 200,
        content: Some(content),
        allow: None,
    }
}

const fn refused(status: u16) -> Gets {
    Gets {
        status,
        content: Some(""),
        allow: None,
    }
}

const fn bare(status: u16) -> Gets {
    Gets {
        content: None,
        ..refused(status)
    }
}

const fn allows(allow: &'static str) -> Gets {
    Gets {
        allow: Some(allow),
        ..refused(405)
    }
}

/// Returns the table.
pub fn cases() -> Vec<Case> {
    const LAST: &str = "GET /p/3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut cases = Vec::new();
    let mut case = |rule, name, sends: &[&str], gets: Vec<Gets>| {
        cases.push(Case {
            rule,
            name,
            sends: sends.iter().map(|piece| piece.to_string()).collect(),
            gets,
        });
    };
    let last = || ok("priority 3\n");

    case(
        "9112 9.6",
        "the server ends its side first",
        &[LAST],
        [last()].into(),
    );
    case(
        "9112 9.3",
        "HTTP/1.0 ends the connection",
        &["GET / HTTP/1.0\r\n\r\n"],
        [ok("axcoop\n")].into(),
    );
    let expects = |version| {
        format!(
            "POST /echo HTTP/1.{version}\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n"
        )
    };
    case(
        "9110 10.1.1",
        "a client of HTTP/1.1 is told to go on",
        &[&expects(1), "hi"],
        [bare(100), ok("hi")].into(),
    );
    case(
        "9110 10.1.1",
        "a client of HTTP/1.0 is not",
        &[&expects(0), "hi"],
        [ok("hi")].into(),
    );
    for target in ["http://a/p/3", "http://a:80/p/3?x", "HTTP://a/p/3"] {
        let send = LAST.replace("/p/3", target);
        case(
            "9112 3.2.2",
            "an absolute target is served",
            &[&send],
            [last()].into(),
        );
    }
    for target in ["p/3", "*", "http:///p/3", "http://u@a/p/3"] {
        let send = LAST.replace("/p/3", target);
        case(
            "9112 3.2",
            "a target that is none is 400",
            &[&send, LAST],
            [refused(400)].into(),
        );
    }
    for (send, status) in [
        ("HEAD / HTTP/1.1\r\n\r\n", 400),
        ("HEAD / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (
            "HEAD /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            404,
        ),
        (
            "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n",
            413,
        ),
    ] {
        case(
            "9110 9.3.2",
            "a refused HEAD has no body",
            &[send],
            [bare(status)].into(),
        );
    }
    for version in [0, 1] {
        let send = format!("GET / HTTP/1.{version}\r\nHost: a\r\nHost: a\r\n\r\n");
        case(
            "9112 3.2",
            "two Hosts are 400",
            &[&send, LAST],
            [refused(400)].into(),
        );
    }
    case(
        "9112 3.2",
        "no Host is 400",
        &["GET / HTTP/1.1\r\n\r\n", LAST],
        [refused(400)].into(),
    );
    for host in ["a b", "a/b", "u@a", "a:b", "[::1"] {
        let send = LAST.replace("Host: a", &format!("Host: {host}"));
        case(
            "9112 3.2",
            "an invalid Host is 400",
            &[&send, LAST],
            [refused(400)].into(),
        );
    }
    for host in ["", "a:80", "[::1]:80", "127.0.0.1"] {
        let send = LAST.replace("Host: a", &format!("Host: {host}"));
        case(
            "9112 3.2",
            "a valid Host is served",
            &[&send],
            [last()].into(),
        );
    }
    for fields in [
        "close, keep-alive",
        "keep-alive, close",
        "keep-alive\r\nConnection: Close",
    ] {
        for version in [0, 1] {
            let send = format!("GET / HTTP/1.{version}\r\nHost: a\r\nConnection: {fields}\r\n\r\n");
            case(
                "9112 9.3",
                "close beside keep-alive closes",
                &[&send, LAST],
                [ok("axcoop\n")].into(),
            );
        }
    }
    case(
        "9112 9.3",
        "HTTP/1.0 stays if it says so",
        &["GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", LAST],
        [ok("axcoop\n"), last()].into(),
    );
    for (send, allow) in [
        ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", "GET, HEAD"),
        ("DELETE /work/3 HTTP/1.1\r\nHost: a\r\n\r\n", "GET, HEAD"),
        ("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", "POST"),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "GET, HEAD, POST"),
    ] {
        case(
            "9110 15.5.6",
            "405 says what is allowed",
            &[send, LAST],
            [allows(allow), last()].into(),
        );
    }
    for method in ["BREW", "get", "GETS"] {
        let send = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
        case(
            "9110 9.1",
            "an unknown method is 501",
            &[&send, LAST],
            [refused(501)].into(),
        );
    }
    let later = "GET / HTTP/1.2\r\nHost: a\r\n\r\n";
    case(
        "9110 2.5",
        "HTTP/1.2 is served as HTTP/1.1",
        &[later, LAST],
        [ok("axcoop\n"), last()].into(),
    );
    for (version, status) in [
        ("HTTP/2.0", 505),
        ("HTTP/0.9", 505),
        ("HTTP/1.1x", 400),
        ("http/1.1", 400),
    ] {
        let send = format!("GET / {version}\r\nHost: a\r\n\r\n");
        case(
            "9112 2.3",
            "another version is refused",
            &[&send, LAST],
            [refused(status)].into(),
        );
    }
    case(
        "9112 2.2",
        "empty lines before a request are skipped",
        &["\r\n", "\r\n", LAST],
        [last()].into(),
    );
    let both = ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", LAST].concat();
    case(
        "9112 9.3.2",
        "requests may follow each other",
        &[&both],
        [ok("axcoop\n"), last()].into(),
    );

    // What would let one server see another request than the next.
    for (fields, status) in [
        ("Content-Length: 1\r\nContent-Length: 2", 400),
        ("Content-Length: +1", 400),
        ("Content-Length: 1,1", 400),
        ("Content-Length: one", 400),
        ("Content-Length: 99999999999999999999999999", 413),
        ("Transfer-Encoding: chunked", 501),
        ("Transfer-Encoding: chunked\r\nContent-Length: 1", 501),
        ("Content-Length : 1", 400),
        (" Content-Length: 1", 400),
        ("X: y\r\n z", 400),
        ("X: \0", 400),
        ("X: y\rContent-Length: 1", 400),
    ] {
        let send = format!("POST /echo HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{LAST}");
        case(
            "9112 6.3",
            "a doubtful length is refused",
            &[&send],
            [refused(status)].into(),
        );
    }
    cases
}

impl Case {
    /// Returns true if the client waits for an answer before it sends its second piece.
    pub fn waits(&self) -> bool {
        self.gets[0].status == 100
    }

    /// Compares what a client got until the end of the connection.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn check(&self, got: &[u8]) -> Result<(), String> {
        let mut rest = String::from_utf8_lossy(got).into_owned();
        for (at, gets) in self.gets.iter().enumerate() {
            rest = gets
                .take(&rest, at + 1 == self.gets.len())
                .map_err(|error| format!("answer {}: {error}", at + 1))?;
        }
        match rest.as_str() {
            "" => Ok(()),
            _ => Err(format!("more than {} answers: {rest:?}", self.gets.len())),
        }
    }
}

impl Gets {
    /// Takes the answer off the beginning of the text, and returns what is behind it.
    fn take(&self, text: &str, is_last: bool) -> Result<String, String> {
        let line = format!("HTTP/1.1 {} ", self.status);
        let (head, rest) = text
            .strip_prefix(&line)
            .and_then(|text| text.split_once("\r\n\r\n"))
            .ok_or_else(|| format!("expected {line:?}, got {text:?}"))?;
        let field = |name: &str| {
            let mut fields = head.lines().filter_map(|line| line.split_once(": "));
            let field = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
            field.map(|(_, value)| value)
        };
        if self.allow.is_some() && field("Allow") != self.allow {
            let (expected, got) = (self.allow, field("Allow"));
            return Err(format!("expected Allow {expected:?}, got {got:?}"));
        }
        let closes = field("Connection").is_some_and(|it| it.eq_ignore_ascii_case("close"));
        if closes != is_last {
            return Err(format!(
                "expected Connection: close {is_last}, got {head:?}"
            ));
        }
        let Some(expected) = self.content else {
            return Ok(rest.to_string());
        };
        let length = field("Content-Length").and_then(|length| length.parse().ok());
        let (content, rest) = length
            .and_then(|length| rest.split_at_checked(length))
            .ok_or_else(|| format!("no content of its length: {text:?}"))?;
        if self.status == 200 && content != expected {
            return Err(format!("expected content {expected:?}, got {content:?}"));
        }
        Ok(rest.to_string())
    }
}
