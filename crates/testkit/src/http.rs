//! An HTTP client, byte by byte: it sends exactly the bytes of the test, and no library hides
//! anything.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// How long an answer may take. Generous, as a busy machine must not make a test fail.
const PATIENCE: Duration = Duration::from_mins(1);

/// An answer.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, put together if it came in chunks.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The same, if it has this status.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "often the status is all that matters")]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

/// Asks the server at `address`, such as `127.0.0.1:8080`, on a connection of its own.
#[track_caller]
pub fn ask(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> HttpAnswer {
    try_to_ask(address, method, path, headers, body).expect("the server answers")
}

/// The same, for a server that may be gone.
pub fn try_to_ask(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<HttpAnswer> {
    let length = body.len().to_string();
    let mut lines = vec![("connection", "close")];
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        lines.push(("host", address));
    }
    lines.extend(headers);
    if !body.is_empty() {
        lines.push(("content-length", &length));
    }
    let text = format!("{}{body}", head(method, path, &lines));
    let mut stream = connect(address)?;
    stream.write_all(text.as_bytes())?;
    read_answer(stream)
}

fn head(method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut lines = vec![format!("{method} {path} HTTP/1.1")];
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    format!("{}\r\n\r\n", lines.join("\r\n"))
}

/// A connection to the server at `address`.
pub fn connect(address: &str) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Reads one answer to its end.
pub fn read_answer(stream: TcpStream) -> std::io::Result<HttpAnswer> {
    let mut reader = BufReader::new(stream);
    let (status, headers) = read_head(&mut reader)?;
    let find = |name: &str| headers.iter().find(|(found, _)| found == name).map(|(_, value)| value);
    let mut body = Vec::new();
    if find("transfer-encoding").is_some_and(|value| value == "chunked") {
        while let Some(chunk) = read_chunk(&mut reader)? {
            body.extend(chunk);
        }
    } else if let Some(length) = find("content-length").and_then(|length| length.parse().ok()) {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
    } else if status >= 200 && status != 204 && status != 304 {
        reader.read_to_end(&mut body)?;
    }
    Ok(HttpAnswer { status, headers, body })
}

type HttpHead = (u16, Vec<(String, String)>);

fn read_head(reader: &mut BufReader<TcpStream>) -> std::io::Result<HttpHead> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other(format!("no answer but {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok((status, headers))
}

fn read_chunk(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let length = usize::from_str_radix(line.trim_end(), 16).map_err(std::io::Error::other)?;
    let mut chunk = vec![0; length + 2];
    reader.read_exact(&mut chunk)?;
    chunk.truncate(length);
    Ok((length > 0).then_some(chunk))
}

/// A client that listens to server-sent events.
#[derive(Debug)]
pub struct EventListener {
    reader: BufReader<TcpStream>,
    text: String,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSentEvent {
    /// Its number, if it has one.
    pub id: Option<u64>,
    /// Its kind.
    pub event: String,
    /// Its data.
    pub data: String,
}

impl EventListener {
    /// Begins to listen.
    #[track_caller]
    pub fn to(address: &str, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut lines = vec![("host", address)];
        lines.extend(headers);
        let mut stream = connect(address).expect("the server listens");
        stream.write_all(head("GET", path, &lines).as_bytes()).expect("the server reads");
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader).expect("the server answers");
        assert_eq!(status, 200, "{headers:?}");
        Self { reader, text: String::new() }
    }
}

impl Iterator for EventListener {
    type Item = ServerSentEvent;

    /// Waits for the next event; nothing when the stream has ended.
    fn next(&mut self) -> Option<ServerSentEvent> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                if let Some(heard) = read_event(&block) {
                    return Some(heard);
                }
                continue;
            }
            let chunk = read_chunk(&mut self.reader).ok()??;
            self.text.push_str(&String::from_utf8_lossy(&chunk));
        }
    }
}

/// Comments and times to wait are no events.
fn read_event(block: &str) -> Option<ServerSentEvent> {
    let mut heard = ServerSentEvent { id: None, event: String::new(), data: String::new() };
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("id", id)) => heard.id = id.parse().ok(),
            Some(("event", event)) => event.clone_into(&mut heard.event),
            Some(("data", data)) => heard.data.push_str(data),
            _ => {}
        }
    }
    (!heard.data.is_empty()).then_some(heard)
}
