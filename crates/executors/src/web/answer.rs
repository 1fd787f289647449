//! The head of an answer.

use std::io::{self, Read};

/// Longest head of an answer that is read, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The status line and the fields of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// The fields, their names in lower case.
    fields: Vec<(String, String)>,
}

impl Head {
    /// The value of a field; the name in lower case.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let status = status_of(lines.next()?)?;
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields =
            fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        Some(Self { status, fields: fields.collect() })
    }
}

/// Reads an answer up to the end of its head, and what came with it; nothing if it is none.
pub(super) fn read_head(stream: &mut impl Read) -> io::Result<Option<(Head, Vec<u8>)>> {
    let mut seen = Vec::new();
    loop {
        if let Some(end) = find(&seen, b"\r\n\r\n") {
            let rest = seen.split_off(end + 4);
            let Some(head) = Head::parse(&String::from_utf8_lossy(&seen)) else { return Ok(None) };
            // An interim answer comes before the answer itself.
            if (100..200).contains(&head.status) {
                seen = rest;
                continue;
            }
            return Ok(Some((head, rest)));
        }
        if seen.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk) {
            Ok(0) if seen.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(0) => return Ok(None),
            Ok(count) => seen.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// The number in `HTTP/1.1 204 No Content`.
fn status_of(line: &str) -> Option<u16> {
    let mut words = line.split(' ');
    let version = words.next()?;
    let status = words.next()?;
    let plain = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
    if version.starts_with("HTTP/1.") && plain { status.parse().ok() } else { None }
}

/// Text of others on one line, without anything that a terminal would obey.
pub(super) fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
