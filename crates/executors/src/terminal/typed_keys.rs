//! Reading what is typed, as an agent with a screen does: it knows pasted text, shows what it was given, and takes it when
//! a key says so.

use std::ffi::OsStr;
use std::io::{self, Write as _};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::OptionalActions;

use super::Display;

/// How a program asks to be told where pasted text begins and ends, and how it is told.
const TELL_PASTES: &str = "\x1b[?2004h";
const TELL_NO_PASTES: &str = "\x1b[?2004l";
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// The longest pasted text that is shown as it is, in bytes.
const SHOWN_BYTES_MAX: usize = 1_000;

/// Reads the keys typed at the terminal of this process, up to the key that sends them.
pub fn read_typed() -> io::Result<String> {
    // Keys that were typed before this call are not lost.
    let display = Display::at(OsStr::new("/dev/tty"), OptionalActions::Now)?.ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, "there is no terminal to read from")
    })?;
    let show = |text: &str| display.file().write_all(text.as_bytes());
    show(&format!("{TELL_PASTES}> "))?;
    let mut typed = TypedKeys::default();
    loop {
        let mut byte = [0];
        match rustix::io::read(&display, &mut byte) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                let echo = typed.take(byte[0]);
                show(&echo)?;
                if typed.is_sent {
                    break;
                }
            }
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&display, PollFlags::IN)], None);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    show(&format!("\r\nreceived {} bytes\r\n{TELL_NO_PASTES}", typed.text.len()))?;
    Ok(String::from_utf8_lossy(&typed.text).into_owned())
}

/// The keys typed so far.
#[derive(Debug, Default)]
struct TypedKeys {
    text: Vec<u8>,
    /// Where the text began that is being pasted.
    paste_begun: Option<usize>,
    is_sent: bool,
}

impl TypedKeys {
    /// Takes one more byte, and gives the text that the screen shows for it.
    fn take(&mut self, byte: u8) -> String {
        match (byte, self.paste_begun) {
            (b'\r' | b'\n', None) => {
                self.is_sent = true;
                return String::new();
            }
            (b'\r', Some(_)) => self.text.push(b'\n'),
            _ => self.text.push(byte),
        }
        let ends_with = |mark: &[u8]| self.text.ends_with(mark);
        match self.paste_begun {
            None if ends_with(PASTE_BEGIN) => {
                self.text.truncate(self.text.len() - PASTE_BEGIN.len());
                self.paste_begun = Some(self.text.len());
                String::new()
            }
            Some(begun) if ends_with(PASTE_END) => {
                self.text.truncate(self.text.len() - PASTE_END.len());
                self.paste_begun = None;
                let pasted = &self.text[begun.min(self.text.len())..];
                if pasted.len() <= SHOWN_BYTES_MAX && !pasted.contains(&b'\n') {
                    String::from_utf8_lossy(pasted).into_owned()
                } else {
                    format!("[pasted {} bytes]", pasted.len())
                }
            }
            None if byte.is_ascii_graphic() || byte == b' ' => char::from(byte).to_string(),
            None | Some(_) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(bytes: &[u8]) -> (String, String) {
        let mut typed = TypedKeys::default();
        let shown: String = bytes.iter().map(|byte| typed.take(*byte)).collect();
        assert!(typed.is_sent);
        (String::from_utf8(typed.text).unwrap(), shown)
    }

    #[test]
    fn keys_and_pasted_text_are_told_apart() {
        assert_eq!(typed(b"hello\r"), ("hello".to_owned(), "hello".to_owned()));
        let (text, shown) = typed("a\x1b[200~b ä\x1b[201~c\r".as_bytes());
        assert_eq!(text, "ab äc");
        assert!(shown.ends_with("b äc"), "{shown}");
        let (text, shown) = typed(b"\x1b[200~one\rtwo\r\x1b[201~\r");
        assert_eq!(text, "one\ntwo\n");
        assert!(shown.ends_with("[pasted 8 bytes]"), "{shown}");
    }
}
