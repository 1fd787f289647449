//! A line that a person types while other lines are printed.

/// The text typed so far.
#[derive(Debug, Default)]
pub(super) struct InputLine {
    text: String,
    /// The beginning of a character of which further bytes follow.
    begun: Vec<u8>,
    escape: EscapeState,
}

/// Where in an escape sequence the keys are: arrows and the like do nothing here.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EscapeState {
    #[default]
    None,
    /// After the escape.
    Begun,
    /// After the bracket, until a letter or a tilde.
    Parameters,
}

/// The action of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedAction {
    /// Send this line.
    Send(String),
    /// Leave.
    Leave,
}

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const CTRL_U: u8 = 21;
const CTRL_W: u8 = 23;
const ESCAPE: u8 = 27;

/// The longest line, in bytes. Further keys are ignored.
const LINE_BYTES_MAX: usize = 16 * 1024;

impl InputLine {
    /// The text so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Takes the byte of a key.
    pub(super) fn take(&mut self, byte: u8) -> Option<TypedAction> {
        match (self.escape, byte) {
            (EscapeState::Begun, b'[' | b'O') => self.escape = EscapeState::Parameters,
            (EscapeState::Parameters, b'A'..=b'Z' | b'a'..=b'z' | b'~')
            | (EscapeState::Begun, _) => self.escape = EscapeState::None,
            (EscapeState::None, ESCAPE) => self.escape = EscapeState::Begun,
            (EscapeState::None, b'\r' | b'\n') => return self.end_line(),
            (EscapeState::None, CTRL_C) => return Some(TypedAction::Leave),
            (EscapeState::None, CTRL_D) if self.text.is_empty() => {
                return Some(TypedAction::Leave);
            }
            (EscapeState::None, 8 | 127) => {
                self.text.pop();
            }
            (EscapeState::None, CTRL_U) => self.text.clear(),
            (EscapeState::None, CTRL_W) => {
                let kept = self.text.trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.text.truncate(kept);
            }
            (EscapeState::None, b'\t') => self.add(b' '),
            (EscapeState::Parameters, _) | (EscapeState::None, 0..=31) => {}
            (EscapeState::None, _) => self.add(byte),
        }
        None
    }

    fn add(&mut self, byte: u8) {
        if self.text.len() >= LINE_BYTES_MAX {
            return;
        }
        self.begun.push(byte);
        match str::from_utf8(&self.begun) {
            Ok(whole) => {
                self.text.extend(whole.chars().filter(|c| !c.is_control()));
                self.begun.clear();
            }
            // More bytes follow, unless these are no beginning of a character.
            Err(error) if error.error_len().is_some() => self.begun.clear(),
            Err(_) => {}
        }
    }

    fn end_line(&mut self) -> Option<TypedAction> {
        self.begun.clear();
        let line = std::mem::take(&mut self.text);
        let line = line.trim();
        (!line.is_empty()).then(|| TypedAction::Send(line.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn typed(keys: &[u8]) -> (String, Vec<TypedAction>) {
        let mut line = InputLine::default();
        let actions = keys.iter().filter_map(|key| line.take(*key)).collect();
        (line.text().to_owned(), actions)
    }

    fn send(text: &str) -> TypedAction {
        TypedAction::Send(text.to_owned())
    }

    #[test]
    fn keys_edit_the_line_and_send_it() {
        assert_eq!(typed("schön\r".as_bytes()).1, [send("schön")]);
        assert_eq!(typed("schö\u{7f}u\n".as_bytes()).1, [send("schu")]);
        assert_eq!(typed(b"one two three\x17\x17x\r").1, [send("one x")]);
        assert_eq!(typed(b"one\x15two\r \r").1, [send("two")]);
        assert_eq!(typed(b"a\x1b[Db\x1b[3~\x1bOPc").0, "abc");
    }

    #[test]
    fn a_person_can_leave() {
        assert_eq!(typed(b"abc\x03").1, [TypedAction::Leave]);
        assert_eq!(typed(b"\x04").1, [TypedAction::Leave]);
        assert_eq!(typed(b"abc\x04d\r").1, [send("abcd")]);
    }

    proptest! {
        #[test]
        fn no_keys_put_a_control_character_into_the_line(keys in prop::collection::vec(any::<u8>(), 0..60)) {
            let (text, actions) = typed(&keys);
            let has_control = |action: &TypedAction| {
                matches!(action, TypedAction::Send(line) if line.contains(char::is_control))
            };
            prop_assert!(!text.contains(char::is_control), "{text:?}");
            prop_assert!(!actions.iter().any(has_control), "{actions:?}");
        }
    }
}
