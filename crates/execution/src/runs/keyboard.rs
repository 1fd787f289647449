//! Typing into the terminal of a worker, key by key, as a person who is attached to its session does.

use gt_core::Invalid;
use gt_core::schedule::Run;
use gt_executors::runs::{RunFiles, supervisor_at_work};
use gt_executors::tmux::{Tmux, TmuxError};

use super::{has_screen, session_server};
use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _};
use gt_town::{OperationError, Result, Town};

/// The longest text that is typed at once, in bytes.
pub const TYPED_BYTES_MAX: usize = 4096;

/// The keys that have a name, and the names that tmux has for them.
const KEYS: [(&str, &str); 15] = [
    ("enter", "Enter"),
    ("escape", "Escape"),
    ("tab", "Tab"),
    ("backtab", "BTab"),
    ("backspace", "BSpace"),
    ("delete", "DC"),
    ("up", "Up"),
    ("down", "Down"),
    ("left", "Left"),
    ("right", "Right"),
    ("home", "Home"),
    ("end", "End"),
    ("pageup", "PPage"),
    ("pagedown", "NPage"),
    ("space", "Space"),
];

/// A key that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedKey(String);

impl NamedKey {
    /// Reads `enter`, `up`, `ctrl-c` and the like.
    pub fn parse(text: &str) -> std::result::Result<Self, Invalid> {
        if let Some((_, key)) = KEYS.iter().find(|(name, _)| *name == text) {
            return Ok(Self((*key).to_owned()));
        }
        if let Some([letter @ b'a'..=b'z']) = text.strip_prefix("ctrl-").map(str::as_bytes) {
            return Ok(Self(format!("C-{}", char::from(*letter))));
        }
        let names: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
        Err(Invalid(format!("this is no key; write {} or ctrl-a to ctrl-z", names.join(", "))))
    }
}

/// Something to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyStrokes {
    /// This text, as it is.
    Text(String),
    /// One key.
    Key(NamedKey),
}

impl KeyStrokes {
    /// A text that can be typed: not too long, and no control characters but line feeds and tabs, which could be any key.
    pub fn text(text: String) -> std::result::Result<Self, Invalid> {
        if text.is_empty() || text.len() > TYPED_BYTES_MAX {
            return Err(Invalid(format!("a text to type has 1 to {TYPED_BYTES_MAX} bytes")));
        }
        if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
            return Err(Invalid::new(
                "a text to type has no control characters; name keys instead",
            ));
        }
        Ok(Self::Text(text))
    }
}

/// The result of typing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeysTyped {
    /// The program in this session has them.
    Session(String),
    /// Another process has the keyboard.
    Taken,
    /// The worker has no screen to type at.
    NoScreen,
}

/// Types into the session of a run. The keyboard is held meanwhile, so that no nudge or prompt gets keys in between.
pub fn type_keys(town: &Town, run: &Run, strokes: &KeyStrokes) -> Result<KeysTyped> {
    if !run.state.is_live() {
        return Err(OperationError::rejected(format!(
            "{} is {}, so there is nothing to type into",
            run.id,
            run.state.as_str()
        )));
    }
    if !run.is_on(LocalProcesses::of(town)?.host()) {
        return Err(OperationError::rejected(format!(
            "{} is on {}; type there",
            run.id,
            run.host_name()
        )));
    }
    if !has_screen(town, run) {
        return Ok(KeysTyped::NoScreen);
    }
    let files = RunFiles::of(&town.runs_directory(), &run.id.to_string());
    type_at(town, &files, strokes).map_err(|error| OperationError::rejected(error.to_string()))
}

fn type_at(
    town: &Town,
    files: &RunFiles,
    strokes: &KeyStrokes,
) -> std::result::Result<KeysTyped, TmuxError> {
    let Some(_keyboard) = files.try_keyboard()? else { return Ok(KeysTyped::Taken) };
    let Some(supervisor) = supervisor_at_work(files)? else { return Ok(KeysTyped::NoScreen) };
    let tmux = Tmux::of_town(&session_server(town));
    let Some(pane) = tmux.pane_of(supervisor)? else { return Ok(KeysTyped::NoScreen) };
    match strokes {
        KeyStrokes::Text(text) => tmux.type_text(&pane, text)?,
        KeyStrokes::Key(NamedKey(key)) => tmux.press(&pane, key)?,
    }
    Ok(KeysTyped::Session(pane.session().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_with_a_name_are_pressed() {
        assert_eq!(NamedKey::parse("pageup").unwrap(), NamedKey("PPage".to_owned()));
        assert_eq!(NamedKey::parse("ctrl-c").unwrap(), NamedKey("C-c".to_owned()));
        for wrong in ["", "Enter", "ctrl-", "ctrl-C", "ctrl-cc", "C-c", "-X", "up down"] {
            assert!(NamedKey::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_text_has_no_hidden_keys() {
        assert!(KeyStrokes::text("Use the ä\nfixture\t".to_owned()).is_ok());
        for wrong in ["", "\x1b[A", "a\x03", "\u{9b}A", "a\rb"] {
            assert!(KeyStrokes::text(wrong.to_owned()).is_err(), "{wrong:?}");
        }
        assert!(KeyStrokes::text("x".repeat(TYPED_BYTES_MAX + 1)).is_err());
    }
}
