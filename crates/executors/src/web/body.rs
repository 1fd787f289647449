//! The body of an answer: as many bytes as its head says, chunks, or all that comes.

use super::answer::Head;

/// Longest line of a chunked body that is read, in bytes.
const LINE_BYTES_MAX: usize = 1024;

/// It does not follow the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Takes a body out of its encoding, in pieces of any size.
#[derive(Debug)]
pub(super) enum Decoder {
    /// So many bytes are left.
    Length(u64),
    /// It comes in chunks.
    Chunked(Chunk),
    /// It ends with the connection.
    ToTheEnd,
}

/// Where one is in a chunked body.
#[derive(Debug)]
pub(super) enum Chunk {
    /// In the line that says how long the next chunk is.
    Size(Vec<u8>),
    /// In a chunk, of which so many bytes are left.
    Data(u64),
    /// In the line break after it.
    DataEnd(Vec<u8>),
    /// In a line after the last chunk.
    Trailer(Vec<u8>),
    /// Behind all of it.
    Over,
}

impl Decoder {
    /// How the body of this answer is wrapped.
    pub(super) fn of(head: &Head) -> Self {
        let is_chunked = head.field("transfer-encoding").is_some_and(|wrapping| {
            wrapping
                .rsplit(',')
                .next()
                .is_some_and(|last| last.trim().eq_ignore_ascii_case("chunked"))
        });
        let length = head.field("content-length").and_then(|length| length.parse().ok());
        match (head.status, length) {
            (204 | 304, _) => Self::Length(0),
            _ if is_chunked => Self::Chunked(Chunk::Size(Vec::new())),
            (_, Some(length)) => Self::Length(length),
            (_, None) => Self::ToTheEnd,
        }
    }

    /// Whether the body is complete.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunk::Over))
    }

    /// Whether the body is complete if the connection ends now.
    pub(super) fn may_end(&self) -> bool {
        self.is_over() || matches!(self, Self::ToTheEnd)
    }

    /// Takes the next bytes, and adds the decoded ones to `out`. Bytes after the end are ignored.
    pub(super) fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        match self {
            Self::ToTheEnd => out.extend_from_slice(bytes),
            Self::Length(left) => take(left, &mut bytes, out),
            Self::Chunked(chunk) => {
                while !bytes.is_empty() && !matches!(chunk, Chunk::Over) {
                    chunk.feed(&mut bytes, out)?;
                }
            }
        }
        Ok(())
    }
}

impl Chunk {
    fn feed(&mut self, bytes: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        match self {
            Self::Size(line) => {
                if let Some(line) = complete(line, bytes)? {
                    *self = match size(&line).ok_or(Malformed)? {
                        0 => Self::Trailer(Vec::new()),
                        size => Self::Data(size),
                    };
                }
            }
            Self::Data(left) => {
                take(left, bytes, out);
                if *left == 0 {
                    *self = Self::DataEnd(Vec::new());
                }
            }
            Self::DataEnd(line) => match complete(line, bytes)? {
                Some(line) if line.is_empty() => *self = Self::Size(Vec::new()),
                Some(_) => return Err(Malformed),
                None => {}
            },
            Self::Trailer(line) => match complete(line, bytes)? {
                Some(line) if line.is_empty() => *self = Self::Over,
                Some(_) => *self = Self::Trailer(Vec::new()),
                None => {}
            },
            Self::Over => {}
        }
        Ok(())
    }
}

/// Moves at most `left` bytes.
fn take(left: &mut u64, bytes: &mut &[u8], out: &mut Vec<u8>) {
    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
    let (taken, rest) = bytes.split_at(count);
    out.extend_from_slice(taken);
    *left -= count as u64;
    *bytes = rest;
}

/// Moves bytes up to the end of a line; the line without its break, if it is complete now.
fn complete(line: &mut Vec<u8>, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (taken, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
    line.extend_from_slice(taken);
    *bytes = rest;
    if line.len() > LINE_BYTES_MAX {
        return Err(Malformed);
    }
    if end.is_none() {
        return Ok(None);
    }
    let mut line = std::mem::take(line);
    line.pop();
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(Some(line))
}

/// The number in `1a;name=value`.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(fields: &str) -> Head {
        Head::parse(&format!("HTTP/1.1 200 OK\r\n{fields}")).unwrap()
    }

    fn decoded(fields: &str, parts: &[&[u8]]) -> Result<(Vec<u8>, bool), Malformed> {
        let mut decoder = Decoder::of(&head(fields));
        let mut out = Vec::new();
        for part in parts {
            decoder.feed(part, &mut out)?;
        }
        Ok((out, decoder.is_over()))
    }

    #[test]
    fn a_body_ends_where_its_head_says() {
        let whole = |text: &[u8]| Ok((text.to_vec(), true));
        assert_eq!(decoded("Content-Length: 3", &[b"ab", b"cd"]), whole(b"abc"));
        assert_eq!(decoded("", &[b"ab", b"cd"]), Ok((b"abcd".to_vec(), false)));
        let chunked = "Transfer-Encoding: Chunked\r\nContent-Length: 1";
        assert_eq!(decoded(chunked, &[b"2;a=b\r\nab\r\n1\nc\n0\r\nX: y\r\n\r\nzz"]), whole(b"abc"));
        assert!(Decoder::of(&Head::parse("HTTP/1.1 204 No Content").unwrap()).is_over());
        assert!(Decoder::of(&head("")).may_end());
        assert!(!Decoder::of(&head("Content-Length: 1")).may_end());
    }

    #[test]
    fn a_chunk_that_breaks_the_rules_is_refused() {
        let long = [b'1'; 2000];
        for wrong in
            [&b"x\r\n"[..], b"\r\n", b"+1\r\n", b"1\r\nab\r\n", b"11111111111111111\r\n", &long]
        {
            assert_eq!(
                decoded("transfer-encoding: chunked", &[wrong]),
                Err(Malformed),
                "{wrong:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_body_in_pieces_of_any_size_is_decoded(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..6),
            cuts in prop::collection::vec(0_usize..200, 0..8),
        ) {
            let mut wrapped = Vec::new();
            for chunk in &chunks {
                wrapped.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                wrapped.extend_from_slice(chunk);
                wrapped.extend_from_slice(b"\r\n");
            }
            wrapped.extend_from_slice(b"0\r\n\r\n");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(wrapped.len())).collect();
            cuts.extend([0, wrapped.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|cut| &wrapped[cut[0]..cut[1]]).collect();
            let expected = Ok((chunks.concat(), true));
            prop_assert_eq!(decoded("Transfer-Encoding: chunked", &parts), expected);
        }

        #[test]
        fn nothing_makes_it_panic(parts in prop::collection::vec("[0-9a-f;\r\n]{0,8}|.{0,8}", 0..8)) {
            let parts: Vec<&[u8]> = parts.iter().map(String::as_bytes).collect();
            let _ = decoded("Transfer-Encoding: chunked", &parts);
        }
    }
}
