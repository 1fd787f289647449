//! Messages over a stream of bytes: lines of JSON, each followed by as many plain bytes as it announces.

use std::io::{self, BufRead, Read as _, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest line, and most bytes behind it.
const LINE_BYTES_MAX: usize = 16 << 20;
const PAYLOAD_BYTES_MAX: usize = 64 << 20;

#[derive(Serialize, Deserialize)]
struct Envelope<M> {
    #[serde(default, skip_serializing_if = "is_nothing")]
    bytes: usize,
    message: M,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_nothing(bytes: &usize) -> bool {
    *bytes == 0
}

/// Says something, and what stands behind it.
pub(crate) fn send<M: Serialize>(
    to: &mut impl Write,
    message: &M,
    payload: &[u8],
) -> io::Result<()> {
    let envelope = Envelope { bytes: payload.len(), message };
    let mut bytes = serde_json::to_vec(&envelope)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(payload);
    // In one piece, because others may speak through the same pipe.
    to.write_all(&bytes)?;
    to.flush()
}

/// The next message with what stands behind it; nothing at the end.
pub(crate) fn receive<M: DeserializeOwned>(
    from: &mut impl BufRead,
) -> io::Result<Option<(M, Vec<u8>)>> {
    let mut line = Vec::new();
    from.take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let (message, bytes) = parse_line(&line)?;
    let mut payload = Vec::new();
    // Memory is taken as the bytes arrive, not as they are announced.
    if from.take(bytes as u64).read_to_end(&mut payload)? < bytes {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a message is not whole"));
    }
    Ok(Some((message, payload)))
}

fn parse_line<M: DeserializeOwned>(line: &[u8]) -> io::Result<(M, usize)> {
    let Some(line) = line.strip_suffix(b"\n") else {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a message is not whole"));
    };
    let envelope: Envelope<M> = serde_json::from_slice(line)?;
    if envelope.bytes > PAYLOAD_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
    }
    Ok((envelope.message, envelope.bytes))
}
