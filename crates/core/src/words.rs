//! A line of text as words, quoted the way a shell has it.

use crate::Invalid;

/// One word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The text, without quotes and backslashes.
    pub text: String,
    /// How many bytes at its beginning stood there without quotes and backslashes.
    bare_bytes: usize,
}

impl Word {
    /// Splits `key=value`, if this word has that form. A word whose key is quoted is text, with any
    /// signs are in it.
    pub fn assignment(&self) -> Option<(&str, &str)> {
        let (key, value) = self.text.split_once('=')?;
        let is_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let named = key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.chars().all(is_key);
        (named && key.len() < self.bare_bytes).then_some((key, value))
    }
}

/// The quoting of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

/// Splits a line into words. White space separates them; `'…'` and `"…"` hold words together, a
/// backslash keeps the next character as it is (between double quotes only before `"` and `\`, between
/// single quotes nowhere). Nothing is expanded.
pub fn split(line: &str) -> Result<Vec<Word>, Invalid> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut bare = true;
    let mut quote = Quote::None;
    let mut opened_at = 0;
    let mut characters = line.chars().enumerate().peekable();
    while let Some((at, c)) = characters.next() {
        if quote == Quote::None && c.is_whitespace() {
            words.extend(word.take());
            bare = true;
            continue;
        }
        let current = word.get_or_insert_with(|| Word { text: String::new(), bare_bytes: 0 });
        let mut kept = Some(c);
        match (quote, c) {
            (Quote::None, '\'' | '"') => {
                quote = if c == '"' { Quote::Double } else { Quote::Single };
                (opened_at, bare, kept) = (at, false, None);
            }
            (Quote::Single, '\'') | (Quote::Double, '"') => {
                (quote, kept) = (Quote::None, None);
            }
            (Quote::None, '\\') => {
                let (_, next) = characters.next().ok_or_else(|| {
                    Invalid::new("the line ends with a backslash; write two to mean one")
                })?;
                (bare, kept) = (false, Some(next));
            }
            (Quote::Double, '\\') => {
                if let Some((_, next)) = characters.next_if(|(_, next)| matches!(next, '"' | '\\'))
                {
                    kept = Some(next);
                }
            }
            _ => {}
        }
        if let Some(c) = kept {
            current.text.push(c);
        }
        if bare {
            current.bare_bytes = current.text.len();
        }
    }
    if quote != Quote::None {
        let sign = if quote == Quote::Double { "\"" } else { "'" };
        let column = opened_at + 1;
        return Err(Invalid(format!("the {sign} at column {column} is never closed")));
    }
    words.extend(word);
    Ok(words)
}

/// A number in base 36, with at least so many digits.
pub(crate) fn base36(number: u64, digits_min: usize) -> String {
    let mut digits = Vec::new();
    let mut rest = number;
    while rest > 0 || digits.len() < digits_min {
        let digit = usize::try_from(rest % 36).unwrap_or(0);
        digits.push(char::from(b"0123456789abcdefghijklmnopqrstuvwxyz"[digit]));
        rest /= 36;
    }
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line).unwrap().into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        for (line, expected) in [
            ("", &[] as &[&str]),
            ("  close  gt-1\t ", &["close", "gt-1"]),
            (r#"a "b c" 'd "e"' f\ g"#, &["a", "b c", "d \"e\"", "f g"]),
            (r#""a\"b\\c\d" 'a\b'"#, &["a\"b\\c\\d", "a\\b"]),
            (r#""" '' x"#, &["", "", "x"]),
            (r#"title="two words"more"#, &["title=two wordsmore"]),
            ("fix #12 → done", &["fix", "#12", "→", "done"]),
        ] {
            assert_eq!(texts(line), expected, "{line}");
        }
    }

    #[test]
    fn an_unclosed_quote_is_refused() {
        for line in ["\"a", "'", "a 'b\" c", "a\\"] {
            assert!(split(line).is_err(), "{line}");
        }
        assert_eq!(split("ab \"c").unwrap_err().0, "the \" at column 4 is never closed");
    }

    #[test]
    fn an_assignment_has_a_bare_key() {
        let assignment = |line: &str| {
            let word = split(line).unwrap().remove(0);
            word.assignment().map(|(key, value)| (key.to_owned(), value.to_owned()))
        };
        let pair = |key: &str, value: &str| Some((key.to_owned(), value.to_owned()));
        assert_eq!(assignment("priority=1"), pair("priority", "1"));
        assert_eq!(assignment("title=\"a = b\""), pair("title", "a = b"));
        assert_eq!(assignment("assignee="), pair("assignee", ""));
        for text in ["\"a=b\"", "a\\=b", "'a'=b", "=b", "a b", "1=2", "--title=x", "a b=c"] {
            assert_eq!(assignment(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(line in any::<String>()) {
            let _ = split(&line);
        }

        #[test]
        fn quoted_words_come_back(words in prop::collection::vec(any::<String>(), 0..6)) {
            let single = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
            let double = |word: &String| {
                format!("\"{}\"", word.replace('\\', r"\\").replace('"', "\\\""))
            };
            let line: Vec<String> = words.iter().map(single).collect();
            prop_assert_eq!(texts(&line.join(" ")), words.clone());
            let line: Vec<String> = words.iter().map(double).collect();
            prop_assert_eq!(texts(&line.join("\t")), words);
        }
    }
}
