//! A client that asks and waits for the answer, again and again, on connections that stay open. It does as little as it
//! can besides: it shares the machine with whom it asks.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::BenchmarkResult;

/// A request, ready to be sent.
pub(super) fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let body_headers = if body.is_empty() {
        String::new()
    } else {
        format!("content-type: application/json\r\ncontent-length: {length}\r\n")
    };
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{body_headers}\r\n{body}").into_bytes()
}

/// A connection.
pub(super) struct ClientConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl ClientConnection {
    /// A new one.
    pub(super) async fn connect(address: SocketAddr) -> BenchmarkResult<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Asks, and gives the body of the answer; anything but success is an error.
    pub(super) async fn ask(&mut self, request: &[u8]) -> BenchmarkResult<&[u8]> {
        let head = self.begin(request).await?;
        let text = std::str::from_utf8(&self.buffer[..head])?;
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .ok_or_else(|| format!("an answer does not say how long it is: {text}"))?;
        let end = head + length.parse::<usize>()?;
        while self.buffer.len() < end {
            self.more().await?;
        }
        Ok(&self.buffer[head..end])
    }

    /// Asks, and gives how long the head of the answer is, which is in the buffer then.
    async fn begin(&mut self, request: &[u8]) -> BenchmarkResult<usize> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head = loop {
            self.more().await?;
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
        };
        if self.buffer.get(9) == Some(&b'2') {
            Ok(head)
        } else {
            Err(format!("refused: {}", String::from_utf8_lossy(&self.buffer)).into())
        }
    }

    async fn more(&mut self) -> BenchmarkResult<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err("the server hung up".into()),
            _ => Ok(()),
        }
    }

    /// Begins to listen to the events from now on.
    pub(super) async fn listen(&mut self) -> BenchmarkResult<()> {
        let head = self.begin(&request("GET", "/events", "")).await?;
        self.buffer.drain(..head);
        Ok(())
    }

    /// Listens until the event `last`; how many came, each once and in order from the one after `seen`.
    pub(super) async fn hear(&mut self, mut seen: u64, last: u64) -> BenchmarkResult<u64> {
        let mut heard = 0;
        while seen < last {
            let end = self.buffer.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            for line in self.buffer[..end].split(|byte| *byte == b'\n') {
                let Some(number) = line.strip_prefix(b"id: ") else { continue };
                let number: u64 = std::str::from_utf8(number)?.parse()?;
                if number != seen + 1 {
                    return Err(format!("event {number} came after {seen}").into());
                }
                (seen, heard) = (number, heard + 1);
            }
            self.buffer.drain(..end);
            if seen < last {
                self.more().await?;
            }
        }
        Ok(heard)
    }
}

/// The runtime of a client: one thread, so that the server has the other core.
pub(super) fn runtime() -> BenchmarkResult<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Asks so often on each of so many connections at once, and hands every answer to `take`. Returns how long it took from
/// the first request to the last answer.
pub(super) fn ask_all(
    address: SocketAddr,
    connections: u32,
    each: u32,
    request: impl Fn(u32, u32) -> Vec<u8>,
    take: impl Fn(&[u8]) -> BenchmarkResult<()>,
) -> BenchmarkResult<Duration> {
    runtime()?.block_on(async {
        let lines =
            try_join_all((0..connections).map(|_| ClientConnection::connect(address))).await?;
        let start = Instant::now();
        try_join_all(lines.into_iter().zip(0..).map(|(mut line, connection)| {
            let (request, take) = (&request, &take);
            async move {
                for number in 0..each {
                    take(line.ask(&request(connection, number)).await?)?;
                }
                Ok::<(), Box<dyn std::error::Error>>(())
            }
        }))
        .await?;
        Ok(start.elapsed())
    })
}

/// The text of a field of a JSON object, wherever it is in it.
pub(super) fn field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{name}\":\""))?;
    Some(rest.split_once('"')?.0)
}
