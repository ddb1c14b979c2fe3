//! The cases of RFC 9110 and 9112, from the table `cases.txt`: the bytes that a client sends, and
//! the answers that it gets. Each ends with the server's end of the connection, for which the client
//! does nothing. The unit tests play them on the host, and `tools/http-load` over a network.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A case: what a client sends, and the answers that it has to get.
pub struct Case {
    /// The line of the table.
    pub line: &'static str,
    /// The pieces that the client sends.
    pub sends: Vec<String>,
    /// The answers that it accepts: a status, and what the head must also contain.
    gets: Vec<(String, String)>,
}

/// Returns the table.
pub fn cases() -> Vec<Case> {
    let lines = include_str!("cases.txt").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .map(Case::new)
        .collect()
}

fn unescaped(text: &str) -> String {
    text.replace(
        "LAST",
        "GET /p/3 HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n",
    )
    .replace("\\r", "\r")
    .replace("\\n", "\n")
    .replace("\\0", "\0")
}

impl Case {
    fn new(line: &'static str) -> Self {
        let columns: Vec<_> = line.split(" | ").collect();
        let [_, _, sends, gets] = columns[..] else {
            panic!("`{line}`: four columns are expected");
        };
        let answer = |text: &str| {
            let text = unescaped(text);
            let (status, rest) = text.split_once(' ').unwrap_or((&text, ""));
            (status.to_string(), rest.to_string())
        };
        Self {
            line,
            sends: sends.split(" ~ ").map(unescaped).collect(),
            gets: gets.split(" ~ ").map(answer).collect(),
        }
    }

    /// Returns true if the client waits for an answer before it sends its second piece.
    pub fn has_continue(&self) -> bool {
        self.gets[0].0 == "100"
    }

    /// Compares what a client got until the end of the connection.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn check(&self, got: &[u8]) -> Result<(), String> {
        let got = String::from_utf8_lossy(got);
        let mut rest = &*got;
        for (at, (status, content)) in self.gets.iter().enumerate() {
            let is_last = at + 1 == self.gets.len();
            rest = take(rest, status, content, is_last)
                .ok_or_else(|| format!("expected {:?}, got {got:?}", self.gets))?;
        }
        match rest {
            "" => Ok(()),
            _ => Err(format!("more than {:?}: {got:?}", self.gets)),
        }
    }
}

/// Takes an answer off the beginning of the text, and returns what is behind it. The last one says
/// that the connection ends.
fn take<'a>(text: &'a str, status: &str, content: &str, is_last: bool) -> Option<&'a str> {
    let text = text.strip_prefix(&format!("HTTP/1.1 {status} "))?;
    let (head, rest) = text.split_once("\r\n\r\n")?;
    let field = |name: &str| {
        let mut fields = head.lines().filter_map(|line| line.split_once(": "));
        let field = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
        field.map_or("", |(_, value)| value)
    };
    if field("Connection").eq_ignore_ascii_case("close") != is_last
        || status == "405" && field("Allow") != content
    {
        return None;
    }
    if status == "100" || content == "bare" {
        return Some(rest);
    }
    let (body, rest) = rest.split_at_checked(field("Content-Length").parse().ok()?)?;
    (status != "200" || body == content).then_some(rest)
}
