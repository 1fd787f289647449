use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread::JoinHandle;

use gt_testkit::Certificates;
use proptest::prelude::*;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;

const LONG: Duration = Duration::from_secs(30);

/// A service that reads one request of any kind and says `answer`.
fn service(answer: &'static str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        serve(stream, answer)
    });
    (format!("http://127.0.0.1:{port}/hook?x=1"), heard)
}

fn serve(mut stream: impl Read + Write, answer: &str) -> String {
    let mut heard = Vec::new();
    while !heard.ends_with(b"the end") {
        let mut chunk = [0; 1024];
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(count) => heard.extend_from_slice(&chunk[..count]),
        }
    }
    let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.flush());
    String::from_utf8(heard).unwrap()
}

fn request<'a>(address: &'a WebAddress, content: Option<RequestBody<'a>>) -> WebRequest<'a> {
    let method = if content.is_some() { Method::Post } else { Method::Get };
    WebRequest { method, address, headers: &[], content, limit: LONG, interrupt: None }
}

fn post(address: &str, limit: Duration) -> Result<WebAnswer, WebError> {
    let address = WebAddress::parse(address).unwrap();
    let headers = [("Idempotency-Key", "a:1")];
    let content = RequestBody { kind: "application/json", body: b"the end" };
    WebRequest { headers: &headers, limit, ..request(&address, Some(content)) }.tell()
}

#[test]
fn a_request_is_complete_and_its_answer_read() {
    let (address, heard) = service("HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n");

    let answer = post(&address, LONG).unwrap();

    assert_eq!(answer, WebAnswer { status: 204, location: None, words: String::new() });
    let heard = heard.join().unwrap();
    let (head, body) = heard.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "the end");
    let authority = address.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines[0], "POST /hook?x=1 HTTP/1.1");
    for line in [
        &format!("host: {authority}"),
        "user-agent: gt",
        "accept: */*",
        "Content-Type: application/json",
        "content-length: 7",
        "Connection: close",
        "Idempotency-Key: a:1",
    ] {
        assert!(lines.contains(&line), "{line} in {head}");
    }
    assert_eq!(lines.len(), 8, "{head}");
}

#[test]
fn an_address_may_have_any_printable_character() {
    let (address, heard) = service("HTTP/1.1 204 No Content\r\n\r\n");
    let printable: String = ('!'..='~').filter(|c| !['#', '?'].contains(c)).collect();
    let target = format!("/{printable}?{printable}");
    post(&address.replace("/hook?x=1", &target), LONG).unwrap();
    let sent =
        target.replace('"', "%22").replace('<', "%3C").replace('>', "%3E").replace('`', "%60");
    assert_eq!(heard.join().unwrap().lines().next(), Some(&*format!("POST {sent} HTTP/1.1")));
}

#[test]
fn answers_are_returned_with_status_and_text() {
    for (said, status, location, words) in [
        ("HTTP/1.0 400 No\r\n\r\nno such\n\x1b[31mfield", 400, None, "no such [31mfield"),
        ("HTTP/1.1 301 Gone\r\nLOCATION: https://b/\r\n\r\n", 301, Some("https://b/"), ""),
        ("HTTP/1.1 302 Found\r\nLocation: \\\r\nContent-Length: 0\r\n\r\n", 302, Some("\\"), ""),
        ("HTTP/1.1 307 Away\r\n\r\n", 307, None, ""),
        ("HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 200, None, ""),
        ("HTTP/1.1 500\r\n\r\n", 500, None, ""),
    ] {
        let (address, _heard) = service(said);
        let location = location.map(str::to_owned);
        let expected = WebAnswer { status, location, words: words.to_owned() };
        assert_eq!(post(&address, LONG).unwrap(), expected, "{said}");
    }
}

#[test]
fn an_answer_that_is_not_http_is_an_error() {
    for said in ["220 ftp ready\r\n\r\n", "HTTP/1.1 20x\r\n\r\n"] {
        let (address, _heard) = service(said);
        let error = post(&address, LONG).unwrap_err();
        assert!(matches!(error, WebError::Strange(_)), "{said}: {error:?}");
    }
    // An answer that ends within its head is no answer: it is not known what the service did.
    for said in ["", "HTTP/1.1 200 OK\r\n"] {
        let (address, _heard) = service(said);
        assert!(matches!(post(&address, LONG), Err(WebError::Silent { .. })), "{said}");
    }
    let endless: &'static str = Box::leak("x".repeat(100_000).into_boxed_str());
    let (address, _heard) = service(endless);
    assert!(post(&address, LONG).is_err());
}

#[test]
fn a_silent_service_is_waited_for_up_to_the_limit() {
    // A service that listens but never says anything.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    // Long enough to connect on a busy machine.
    let error = post(&address, Duration::from_secs(1)).unwrap_err();
    assert!(matches!(error, WebError::Silent { .. }), "{error:?}");

    // No service.
    drop(listener);
    let error = post(&address, LONG).unwrap_err();
    assert!(matches!(error, WebError::Unreachable { .. }), "{error:?}");
}

#[test]
fn a_field_cannot_begin_another() {
    let address = WebAddress::parse("http://127.0.0.1:1/").unwrap();
    let headers = [("Idempotency-Key", "a\r\nX: y")];
    let post = WebRequest { headers: &headers, ..request(&address, None) };
    assert!(matches!(post.tell(), Err(WebError::Field(name)) if name == "Idempotency-Key"));
}

#[test]
fn an_encrypted_request_arrives_only_where_the_certificate_says() {
    let certificates = Certificates::for_host("localhost");
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificates.server_certificate())
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let key = PrivateKeyDer::from_pem_file(certificates.server_key()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let heard =
                serve(StreamOwned::new(connection, stream), "HTTP/1.1 200 OK\r\n\r\nthanks");
            if !heard.is_empty() {
                return heard;
            }
        }
        unreachable!("a listener has no end")
    });
    let others = Certificates::for_host("localhost");
    let ask = |host: &str, signed_by: &Certificates| {
        let address = WebAddress::parse(&format!("https://{host}:{port}/")).unwrap();
        let roots = vec![CertificateDer::from_pem_file(signed_by.authority()).unwrap()];
        let content = RequestBody { kind: "text/plain", body: b"the end" };
        request(&address, Some(content)).tell_trusting(|| roots)
    };

    let stranger = ask("localhost", &others).unwrap_err();
    assert!(matches!(stranger, WebError::Untrusted { .. }), "{stranger:?}");
    let other_name = ask("127.0.0.1", &certificates).unwrap_err();
    assert!(matches!(other_name, WebError::Untrusted { .. }), "{other_name:?}");

    let answer = ask("localhost", &certificates).unwrap();
    assert_eq!((answer.status, answer.words.as_str()), (200, "thanks"));
    assert!(heard.join().unwrap().starts_with("POST / HTTP/1.1\r\n"));
}

#[test]
fn an_answer_is_read_to_its_end() {
    for (said, body) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", Some("ab")),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", Some("a")),
        ("HTTP/1.1 404 No\r\n\r\nall that comes", Some("all that comes")),
        ("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\ncut", None),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2;a=b\r\nab\r\n1\r\nc\r\n0\r\nX: y\r\n\r\nzz",
            Some("abc"),
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", None),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n", None),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ncut", None),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nstrange\r\n", None),
        ("HTTP/1.1 200 OK\r\n\r\nlonger than the limit of the request", None),
    ] {
        let (address, _heard) = service(said);
        let address = WebAddress::parse(&address).unwrap();
        let content = RequestBody { kind: "text/plain", body: b"the end" };
        let read = request(&address, Some(content)).ask(20);
        assert_eq!(
            read.ok().map(|reply| String::from_utf8(reply.body).unwrap()).as_deref(),
            body,
            "{said}"
        );
    }
}

#[test]
fn a_stream_is_received_piece_by_piece() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/events", listener.local_addr().unwrap());
    let address = WebAddress::parse(&address).unwrap();
    let (more, wanted) = std::sync::mpsc::channel::<()>();
    let service = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Bytes that are left unread when it ends would cut off its answer.
        assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        wanted.recv().unwrap();
        stream.write_all(b"3\r\ntw").unwrap();
        wanted.recv().unwrap();
        stream.write_all(b"o\r\n0\r\n\r\n").unwrap();
    });
    let Ok(Listening::Begun(mut stream)) = request(&address, None).listen(100) else {
        panic!("the service speaks")
    };
    let bytes = |text: &str| StreamPart::Bytes(text.as_bytes().to_vec());
    assert_eq!(stream.next_within(LONG).unwrap(), bytes("one"));
    assert_eq!(stream.next_within(Duration::from_millis(1)).unwrap(), StreamPart::Nothing);
    more.send(()).unwrap();
    assert_eq!(stream.next_within(LONG).unwrap(), bytes("tw"));
    more.send(()).unwrap();
    assert_eq!(stream.next_within(LONG).unwrap(), bytes("o"));
    assert_eq!(stream.next_within(LONG).unwrap(), StreamPart::End);
    service.join().unwrap();

    let (address, _heard) = self::service("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nlate");
    let address = WebAddress::parse(&address).unwrap();
    let content = RequestBody { kind: "text/plain", body: b"the end" };
    let Ok(Listening::Refused(reply)) = request(&address, Some(content)).listen(100) else {
        panic!("the service refuses")
    };
    assert_eq!((reply.head.status, reply.body.as_slice()), (503, &b"late"[..]));
}

#[test]
fn a_wait_can_be_interrupted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let address = WebAddress::parse(&address).unwrap();
    let (wait, call) = std::io::pipe().unwrap();
    drop(call);
    let asked = WebRequest { interrupt: Some(wait.as_fd()), ..request(&address, None) };
    assert!(matches!(asked.ask(100), Err(WebError::Interrupted(_))));
}

#[test]
fn signatures_are_those_of_rfc_4231() {
    let signed = signature("Jefe", b"what do ya want for nothing?");
    assert_eq!(signed, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

#[test]
fn an_early_refusal_is_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let address = WebAddress::parse(&address).unwrap();
    // It closes the connection although most of the request is unread, so that the client cannot write the rest.
    let service = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 10]).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 413 Long\r\nContent-Length: 3\r\n\r\nbig").unwrap();
    });
    let body = vec![b'x'; 16 << 20];
    let content = RequestBody { kind: "text/plain", body: &body };
    let reply = request(&address, Some(content)).ask(100).unwrap();
    assert_eq!((reply.head.status, reply.body.as_slice()), (413, &b"big"[..]));
    service.join().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn no_answer_makes_it_panic_or_breaks_a_line(
        head in "(HTTP/1.[01] [0-9]{1,4}[ A-z]{0,5}\r\n)?((Location|Content-Length|Transfer-Encoding):.{0,10}\r\n){0,2}(\r\n)?",
        rest in "(chunked\r\n\r\n)?([0-9a-f;\r\n]{0,20}|.{0,20})",
    ) {
        let answer: &'static str = Box::leak(format!("{head}{rest}").into_boxed_str());
        let (address, _heard) = service(answer);
        if let Ok(answer) = post(&address, LONG) {
            prop_assert!((200..1000).contains(&answer.status));
            prop_assert!(!answer.words.chars().any(char::is_control));
            prop_assert!(!answer.location.unwrap_or_default().chars().any(char::is_control));
        }
        let (address, _heard) = service(answer);
        let address = WebAddress::parse(&address).unwrap();
        let content = RequestBody { kind: "text/plain", body: b"the end" };
        let _ = request(&address, Some(content)).ask(100);
    }
}
