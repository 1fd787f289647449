//! From characters to words, texts and signs.

use super::error::QueryError;

/// A piece of a query and where it begins, counted in characters from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueryToken {
    pub(super) column: usize,
    pub(super) kind: TokenKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word(String),
    Quoted(String),
    Sign(Sign),
    Comma,
    Open,
    Close,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Contains,
}

impl Sign {
    const ALL: [(&'static str, Self); 8] = [
        ("!=", Self::NotEqual),
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("==", Self::Equal),
        ("=", Self::Equal),
        ("<", Self::Less),
        (">", Self::Greater),
        ("~", Self::Contains),
    ];

    pub(super) fn as_str(self) -> &'static str {
        Self::ALL.iter().rev().find(|(_, sign)| *sign == self).map_or("", |(text, _)| text)
    }
}

impl TokenKind {
    /// Its name in messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(text) | Self::Quoted(text) => {
                let shown: String = text.chars().take(40).collect();
                format!("\"{}\"", shown.escape_debug())
            }
            Self::Sign(sign) => sign.as_str().to_owned(),
            Self::Comma => "a comma".to_owned(),
            Self::Open => "(".to_owned(),
            Self::Close => ")".to_owned(),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Characters that end a word. A quotation mark does not: it may stand inside one, as in *don't*.
pub(super) fn ends_word(c: char) -> bool {
    c.is_whitespace() || "()=!<>~,".contains(c)
}

/// Cuts a query into its pieces; the last one is always the end.
pub(super) fn tokens(text: &str) -> Result<Vec<QueryToken>, QueryError> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let column = at + 1;
        if c == '\0' {
            return Err(QueryError::new(text, column, "a query has no NUL characters"));
        }
        if c.is_whitespace() {
            at += 1;
            continue;
        }
        let (kind, length) = match c {
            '(' => (TokenKind::Open, 1),
            ')' => (TokenKind::Close, 1),
            ',' => (TokenKind::Comma, 1),
            '"' | '\'' => {
                let (quoted, length) = quoted(&chars[at..]).ok_or_else(|| {
                    QueryError::new(
                        text,
                        column,
                        format!("expected another {c} that closes this one"),
                    )
                })?;
                (TokenKind::Quoted(quoted), length)
            }
            _ => match sign(&chars[at..]) {
                Some((sign, length)) => (TokenKind::Sign(sign), length),
                None if ends_word(c) => {
                    let message = "expected != here, or NOT before a condition";
                    return Err(QueryError::new(text, column, message));
                }
                None => {
                    let word = chars[at..].iter().take_while(|c| !ends_word(**c) && **c != '\0');
                    let word: String = word.collect();
                    let length = word.chars().count();
                    (TokenKind::Word(word), length)
                }
            },
        };
        tokens.push(QueryToken { column, kind });
        at += length;
    }
    tokens.push(QueryToken { column: chars.len() + 1, kind: TokenKind::End });
    Ok(tokens)
}

fn sign(chars: &[char]) -> Option<(Sign, usize)> {
    let begins = |text: &str| text.chars().eq(chars.iter().take(text.len()).copied());
    let (text, sign) = Sign::ALL.into_iter().find(|(text, _)| begins(text))?;
    Some((sign, text.len()))
}

/// The text between quotation marks and how many characters it takes with them. A backslash before a
/// quotation mark or a backslash makes it an ordinary character.
fn quoted(chars: &[char]) -> Option<(String, usize)> {
    let mark = *chars.first()?;
    let mut text = String::new();
    let mut at = 1;
    loop {
        let c = *chars.get(at)?;
        let next = chars.get(at + 1).copied();
        match c {
            _ if c == mark => return Some((text, at + 1)),
            '\0' => return None,
            '\\' if next == Some('\\') || next == Some('"') || next == Some('\'') => {
                text.extend(next);
                at += 2;
            }
            _ => {
                text.push(c);
                at += 1;
            }
        }
    }
}
