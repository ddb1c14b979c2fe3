use super::*;

fn read(bytes: &[u8]) -> Next {
    let mut reader = Reader::default();
    reader.take(bytes);
    reader.next_request()
}

fn get(path: &str, keep_alive: bool) -> Next {
    let (method, path, body) = (Method::Get, path.into(), Vec::new());
    Next::Whole(Request {
        method,
        path,
        body,
        keep_alive,
    })
}

const MORE: Next = Next::More {
    begun: true,
    expects: false,
};
const NOTHING: Next = Next::More {
    begun: false,
    expects: false,
};

#[test]
fn a_request_comes_a_byte_at_a_time() {
    let bytes = b"POST /echo?x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let mut reader = Reader::default();
    assert_eq!(reader.next_request(), NOTHING);
    for &byte in &bytes[..bytes.len() - 1] {
        reader.take(&[byte]);
        assert_eq!(reader.next_request(), MORE);
    }
    reader.take(b"o");
    let (method, path, body) = (Method::Post, "/echo".into(), b"hello".to_vec());
    let request = Request {
        method,
        path,
        body,
        keep_alive: true,
    };
    assert_eq!(reader.next_request(), Next::Whole(request));
    assert_eq!(reader.next_request(), NOTHING);
}

#[test]
fn rule_1_a_long_head_is_refused() {
    let fields = |n| {
        let mut head = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
        (1..n).for_each(|_| head.extend_from_slice(b"x: y\r\n"));
        head.extend_from_slice(b"\r\n");
        head
    };
    assert_eq!(read(&fields(HEADERS_LIMIT)), get("/", true));
    assert_eq!(read(&fields(HEADERS_LIMIT + 1)), Next::Refused(431));

    let mut endless = b"GET / HTTP/1.1\r\nHost: ".to_vec();
    endless.resize(HEAD_LIMIT - 1, b'a');
    assert_eq!(read(&endless), MORE);
    endless.push(b'a');
    assert_eq!(read(&endless), Next::Refused(431));

    // As long as is allowed, and one more.
    let mut longest = b"GET / HTTP/1.1\r\nHost: ".to_vec();
    longest.resize(HEAD_LIMIT - 4, b'a');
    let mut longer = longest.clone();
    longest.extend_from_slice(b"\r\n\r\n");
    longer.extend_from_slice(b"a\r\n\r\n");
    assert_eq!(read(&longest), get("/", true));
    assert_eq!(read(&longer), Next::Refused(431));
}

#[test]
fn rule_2_lengths_and_host_are_one_each() {
    let with = |fields: &str| read(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes());
    assert_eq!(with("Host: a\r\n"), get("/", true));
    assert_eq!(with(""), Next::Refused(400));
    assert_eq!(with("Host: a\r\nHost: a\r\n"), Next::Refused(400));
    assert_eq!(read(b"GET / HTTP/1.0\r\n\r\n"), get("/", false));
    let length = |text: &str| with(&format!("Host: a\r\nContent-Length: {text}\r\n"));
    assert_eq!(length("0"), get("/", true));
    for wrong in ["", "-1", "+1", "0x1", "1 2", "1,1", "one"] {
        assert_eq!(length(wrong), Next::Refused(400), "{wrong}");
    }
    let two = |a, b| {
        with(&format!(
            "Host: a\r\nContent-Length: {a}\r\ncontent-length: {b}\r\n"
        ))
    };
    assert_eq!(two(0, 0), get("/", true));
    assert_eq!(two(0, 1), Next::Refused(400));
}

#[test]
fn rule_3_a_long_body_is_refused_unread() {
    let length = |text: &str| {
        read(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {text}\r\n\r\n").as_bytes())
    };
    assert_eq!(length(&BODY_LIMIT.to_string()), MORE);
    assert_eq!(length(&(BODY_LIMIT + 1).to_string()), Next::Refused(413));
    assert_eq!(length("99999999999999999999999999"), Next::Refused(413));
    let chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(read(chunked), Next::Refused(501));
}

#[test]
fn rule_4_nothing_is_a_request_after_a_refusal() {
    let mut reader = Reader::default();
    reader.take(b"\0\0\0\0\r\n\r\n");
    assert_eq!(reader.next_request(), Next::Refused(400));
    reader.take(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(reader.next_request(), NOTHING);
}

#[test]
fn rule_5_requests_follow_each_other() {
    let mut reader = Reader::default();
    reader.take(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n");
    let (method, path, body) = (Method::Post, "/a".into(), b"abc".to_vec());
    let first = Request {
        method,
        path,
        body,
        keep_alive: true,
    };
    assert_eq!(reader.next_request(), Next::Whole(first));
    assert_eq!(reader.next_request(), MORE);
    reader.take(b"Host: a\r\n\r\n");
    assert_eq!(reader.next_request(), get("/b", true));
}

#[test]
fn rule_6_who_keeps_a_connection() {
    let with = |version, field: &str| {
        read(format!("GET / HTTP/1.{version}\r\nHost: a\r\n{field}\r\n").as_bytes())
    };
    assert_eq!(with(1, ""), get("/", true));
    assert_eq!(with(1, "Connection: upgrade, Close\r\n"), get("/", false));
    assert_eq!(with(0, ""), get("/", false));
    assert_eq!(with(0, "Connection: Keep-Alive\r\n"), get("/", true));
}

#[test]
fn who_expects_to_be_told_is_told_once() {
    let mut reader = Reader::default();
    reader.take(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(
        reader.next_request(),
        Next::More {
            begun: true,
            expects: true
        }
    );
    reader.take(b"a");
    assert_eq!(reader.next_request(), MORE);
    reader.take(b"b");
    assert!(matches!(reader.next_request(), Next::Whole(_)));
}

#[test]
fn other_versions_and_other_words_are_refused() {
    assert_eq!(read(b"GET / HTTP/2.0\r\n\r\n"), Next::Refused(505));
    assert_eq!(read(b"GET  / HTTP/1.1\r\n\r\n"), Next::Refused(400));
    assert_eq!(
        read(b"\x16\x03\x01\x02\x00\x01\x00\x01"),
        Next::Refused(400)
    );
    let other = read(b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(matches!(
        other,
        Next::Whole(Request {
            method: Method::Other,
            ..
        })
    ));
}
