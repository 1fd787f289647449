//! Giving text to the program in a session, with a receipt.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::invocation::ask;
use super::session::{Capture, Pane};
use super::{Tmux, TmuxError};

/// How to tell from the contents of a pane that a text has arrived.
#[derive(Clone, Copy)]
pub struct Confirmation<'a> {
    /// Whether the pane shows that the program has the text and the key may be pressed that sends
    /// it. Many programs take that key for a part of the text if it comes at once. Nothing: it is
    /// pressed at once.
    pub before_enter: Option<&'a dyn Fn(&str) -> bool>,
    /// Whether the pane shows that the program has taken the text.
    pub after_enter: &'a dyn Fn(&str) -> bool,
    /// How long to look for either.
    pub limit: Duration,
}

/// The result of a paste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pasted {
    /// The program has the text: the pane shows it.
    Confirmed,
    /// The pane does not show that the program has the text.
    Unconfirmed {
        /// Whether the text was sent; if not, it may stand where the program reads.
        entered: bool,
        /// The contents of the pane.
        screen: String,
    },
}

/// The pauses between two looks at a pane: first short, then longer.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// The mark that ends a paste for a program that asked to be told where pasted text begins and
/// ends.
const PASTE_END: &[u8] = b"\x1b[201~";

/// So that two pastes of one process have different buffers.
static PASTES: AtomicU64 = AtomicU64::new(0);

impl Tmux {
    /// Gives a text to the program in a pane as if a person had pasted it and pressed Enter, and looks at the
    /// pane until it shows that the program has it. A caller that has found the pane by its process can be sure that
    /// no other program gets the text, not even one that has taken the place of the pane.
    ///
    /// Bytes arrive as they are, but for line feeds, which arrive as the key that a terminal has
    /// for them, and for the mark that ends a paste, which loses its escape: the bytes after it
    /// would no longer be text but keys.
    pub fn paste_into(
        &self,
        pane: &Pane,
        text: &[u8],
        confirmation: &Confirmation<'_>,
    ) -> Result<Pasted, TmuxError> {
        let text = without_paste_end(text);
        if !text.is_empty() {
            self.paste_bytes(pane, &text)?;
        }
        if let Some(is_ready) = confirmation.before_enter
            && let Err(screen) = self.wait_for_screen(pane, is_ready, confirmation.limit)?
        {
            return Ok(Pasted::Unconfirmed { entered: false, screen });
        }
        // Not as a key: one goes to the person who reads what is further up, if there is one.
        self.paste_bytes(pane, b"\r")?;
        Ok(match self.wait_for_screen(pane, confirmation.after_enter, confirmation.limit)? {
            Ok(()) => Pasted::Confirmed,
            Err(screen) => Pasted::Unconfirmed { entered: true, screen },
        })
    }

    /// Gives a text to the program in a pane, as it is and without Enter. Several lines arrive as pasted text.
    pub fn type_text(&self, pane: &Pane, text: &str) -> Result<(), TmuxError> {
        let bytes = without_paste_end(text.as_bytes());
        self.give_bytes(pane, &bytes, bytes.contains(&b'\n'))
    }

    /// Presses a key that tmux knows by this name.
    pub fn press(&self, pane: &Pane, key: &str) -> Result<(), TmuxError> {
        self.ask(&["send-keys", "-t", &pane.id, key], b"")
            .map(drop)
            .map_err(|failure| pane.name.error_of(&self.socket, failure))
    }

    fn paste_bytes(&self, pane: &Pane, bytes: &[u8]) -> Result<(), TmuxError> {
        // Enter is no text.
        self.give_bytes(pane, bytes, bytes != b"\r")
    }

    fn give_bytes(&self, pane: &Pane, bytes: &[u8], is_pasted: bool) -> Result<(), TmuxError> {
        let number = PASTES.fetch_add(1, Ordering::Relaxed);
        let buffer = format!("gt-{}-{number}", std::process::id());
        let marked: &[&str] = if is_pasted { &["-p"] } else { &[] };
        let mut command = self.command();
        command
            .args(["load-buffer", "-b", &buffer, "-", ";", "paste-buffer", "-d", "-b", &buffer])
            .args(marked)
            .args(["-t", &pane.id]);
        ask(&mut command, bytes).map(|_| ()).map_err(|failure| {
            // A text that was not pasted must not stay in a buffer; without a server it does not.
            let _ = self.ask(&["delete-buffer", "-b", &buffer], b"");
            pane.name.error_of(&self.socket, failure)
        })
    }

    /// Looks at a pane until `is_it` accepts its contents; gives the contents if that takes too
    /// long.
    fn wait_for_screen(
        &self,
        pane: &Pane,
        is_it: &dyn Fn(&str) -> bool,
        limit: Duration,
    ) -> Result<Result<(), String>, TmuxError> {
        let begun = Instant::now();
        let mut pause = PAUSE_MIN;
        loop {
            // Asked before the look, so that a long pause of this process does not count against it.
            let is_last = begun.elapsed() >= limit;
            let screen = self.capture_pane(pane, Capture::Visible)?;
            if is_it(&screen) {
                return Ok(Ok(()));
            }
            if is_last {
                return Ok(Err(screen));
            }
            thread::sleep(pause.min(limit.saturating_sub(begun.elapsed())));
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// A text that cannot end its own paste.
fn without_paste_end(text: &[u8]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        if rest.starts_with(PASTE_END) {
            // Nor may one before it take its place.
            while clean.pop_if(|byte| Some(&*byte) == PASTE_END.first()).is_some() {}
        } else {
            clean.push(*first);
        }
        rest = after;
    }
    clean
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_cannot_end_its_own_paste() {
        assert_eq!(without_paste_end(b"a\x1b[201~b\x1b[1m"), b"a[201~b\x1b[1m");
        assert_eq!(without_paste_end(b"a\x1b\x1b[201~[201~"), b"a[201~[201~");
    }

    proptest! {
        #[test]
        fn no_text_can_end_its_own_paste(text in "(\x1b|\\[201~|\x1b\\[|201~|a){0,12}") {
            let clean = without_paste_end(text.as_bytes());
            prop_assert!(!clean.windows(PASTE_END.len()).any(|part| part == PASTE_END));
        }

        #[test]
        fn other_text_stays_as_it_is(text in any::<Vec<u8>>()) {
            prop_assume!(!text.windows(PASTE_END.len()).any(|part| part == PASTE_END));
            prop_assert_eq!(without_paste_end(&text), text);
        }
    }
}
