//! Commits as git stores them. Authors and messages are bytes, so they survive a rebase as they are.

use super::commit::{Commit, Signature};

/// A line at the end of a message: a key and a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitTrailer {
    /// The key, without a colon: `Bead`.
    pub key: String,
    /// The value.
    pub value: String,
}

/// The parts of a commit that a rewritten commit keeps. A signature does not survive a rewrite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommitObject {
    /// The tree object.
    pub(super) tree: Commit,
    pub(super) parents: Vec<Commit>,
    /// Name, address and time.
    pub(super) author: Vec<u8>,
    /// The encoding of the message, if that is not UTF-8.
    pub(super) encoding: Option<Vec<u8>>,
    pub(super) message: Vec<u8>,
}

impl CommitObject {
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let mut rest = content;
        let (mut tree, mut parents, mut author, mut encoding) = (None, Vec::new(), None, None);
        loop {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if line.is_empty() {
                break;
            }
            let hash = |bytes: &[u8]| std::str::from_utf8(bytes).ok().and_then(Commit::parse);
            if let Some(value) = line.strip_prefix(b"tree ") {
                tree = hash(value);
            } else if let Some(value) = line.strip_prefix(b"parent ") {
                parents.push(hash(value)?);
            } else if let Some(value) = line.strip_prefix(b"author ") {
                author = Some(value.to_vec());
            } else if let Some(value) = line.strip_prefix(b"encoding ") {
                encoding = Some(value.to_vec());
            }
        }
        Some(Self { tree: tree?, parents, author: author?, encoding, message: rest.to_vec() })
    }

    /// The content of the object.
    pub(super) fn content(&self, committer: &[u8]) -> Vec<u8> {
        let mut content = format!("tree {}\n", self.tree).into_bytes();
        for parent in &self.parents {
            content.extend(format!("parent {parent}\n").bytes());
        }
        let encoding = self.encoding.as_deref().map(|encoding| (&b"encoding "[..], encoding));
        let lines = [(&b"author "[..], &*self.author), (b"committer ", committer)];
        for (key, value) in lines.into_iter().chain(encoding) {
            content.extend(key);
            content.extend(value);
            content.push(b'\n');
        }
        content.push(b'\n');
        content.extend(&self.message);
        content
    }

    /// Name and address of the author.
    pub(super) fn author_person(&self) -> &[u8] {
        let end = self.author.iter().rposition(|byte| *byte == b'>');
        end.map_or(&*self.author, |end| &self.author[..=end])
    }

    /// The time of the author, as git writes it; nothing if the author is not written as git demands it.
    pub(super) fn author_time(&self) -> Option<&[u8]> {
        let person = self.author_person();
        let time = self.author.get(person.len()..)?.strip_prefix(b" ")?;
        let (seconds, zone) = std::str::from_utf8(time).ok()?.split_once(' ')?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_time = is_number(seconds)
            && (seconds == "0" || !seconds.starts_with('0'))
            && seconds.parse::<i64>().is_ok();
        let is_zone = zone.len() == 5 && zone.starts_with(['+', '-']) && is_number(&zone[1..]);
        let opened = person.iter().position(|byte| *byte == b'<')?;
        let (name, address) = (&person[..opened], &person[opened + 1..person.len() - 1]);
        let is_plain = |text: &[u8]| !text.iter().any(|byte| b"<>\0".contains(byte));
        let is_person = name.ends_with(b" ") && is_plain(name) && is_plain(address);
        (is_time && is_zone && is_person).then_some(time)
    }
}

/// A person as git writes one: without the characters that have a meaning there.
pub(super) fn person(signature: &Signature) -> Vec<u8> {
    let plain = |text: &str| {
        let kept = text.chars().filter(|c| !matches!(c, '<' | '>' | '\n' | '\0'));
        kept.collect::<String>().trim().to_owned()
    };
    format!("{} <{}>", plain(&signature.name), plain(&signature.email)).into_bytes()
}

/// The message with those of the trailers that it does not have. A message without text begins with `subject`.
pub(super) fn with_trailers(message: &[u8], trailers: &[CommitTrailer], subject: &str) -> Vec<u8> {
    let end = message.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |at| at + 1);
    let (text, _) = message.split_at(end);
    let block = last_paragraph(text).filter(|block| is_trailer_block(block));
    let has = |trailer: &&CommitTrailer| {
        block.is_some_and(|block| lines_of(block).any(|line| is_line_of(line, trailer)))
    };
    let missing: Vec<&CommitTrailer> = trailers.iter().filter(|trailer| !has(trailer)).collect();
    if missing.is_empty() && !text.is_empty() {
        return message.to_vec();
    }
    let mut written = if text.is_empty() { subject.as_bytes().to_vec() } else { text.to_vec() };
    written.push(b'\n');
    if block.is_none() && !missing.is_empty() {
        written.push(b'\n');
    }
    for CommitTrailer { key, value } in missing {
        let value = value.replace(['\n', '\r', '\0'], " ");
        written.extend(format!("{key}: {}\n", value.trim()).bytes());
    }
    written
}

fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end)
}

/// The last paragraph, unless it is the only one: the first names the change.
fn last_paragraph(text: &[u8]) -> Option<&[u8]> {
    let (mut at, mut from) = (0, 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        if line.trim_ascii().is_empty() {
            from = at;
        }
    }
    let (before, last) = text.split_at(from);
    (!before.trim_ascii().is_empty()).then_some(last)
}

fn is_trailer_block(block: &[u8]) -> bool {
    lines_of(block).all(|line| {
        line.first().is_some_and(|byte| b" \t".contains(byte))
            || line.starts_with(b"(cherry picked from commit ")
            || line.iter().position(|byte| *byte == b':').is_some_and(|at| {
                at > 0
                    && line[..at].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
                    && line.get(at + 1).is_none_or(|byte| *byte == b' ')
            })
    })
}

fn is_line_of(line: &[u8], trailer: &CommitTrailer) -> bool {
    let Some(at) = line.iter().position(|byte| *byte == b':') else { return false };
    let (key, value) = (&line[..at], line[at + 1..].trim_ascii());
    key.eq_ignore_ascii_case(trailer.key.as_bytes()) && value == trailer.value.trim().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trailers(pairs: &[(&str, &str)]) -> Vec<CommitTrailer> {
        let trailer = |(key, value): &(&str, &str)| CommitTrailer {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        pairs.iter().map(trailer).collect()
    }

    fn added(message: &str) -> String {
        let two = trailers(&[("Bead", "al-1"), ("Run", "al-1#2")]);
        String::from_utf8(with_trailers(message.as_bytes(), &two, "work")).unwrap()
    }

    #[test]
    fn trailers_are_added_where_they_are_missing() {
        let both = "Bead: al-1\nRun: al-1#2\n";
        assert_eq!(added("one line"), format!("one line\n\n{both}"));
        assert_eq!(added("fix: one line\n"), format!("fix: one line\n\n{both}"));
        assert_eq!(added("a\n\nmore text\n"), format!("a\n\nmore text\n\n{both}"));
        assert_eq!(added("a\n\nSigned-off-by: x\n"), format!("a\n\nSigned-off-by: x\n{both}"));
        assert_eq!(added("a\n\nbead: al-1\n"), "a\n\nbead: al-1\nRun: al-1#2\n");
        assert_eq!(added("\n"), format!("work\n\n{both}"));
        assert_eq!(added("a\n\nsee http://x: y\n"), format!("a\n\nsee http://x: y\n\n{both}"));
    }

    #[test]
    fn a_message_that_has_all_trailers_stays_as_it_is() {
        for message in ["a\n\nRun: al-1#2\nBead: al-1", "a\r\n\r\nBead: al-1\r\nRun: al-1#2\r\n\n"]
        {
            assert_eq!(added(message), message);
        }
        assert_eq!(with_trailers(b"a\xff", &[], "work"), b"a\xff");
    }

    #[test]
    fn a_commit_is_written_as_it_was_read() {
        let hash = "a".repeat(40);
        let content = format!(
            "tree {hash}\nparent {hash}\nauthor J. Doe Jr. <j@x> 12 +0100\ncommitter C <c@x> 13 +0000\n\
             encoding latin1\n\ntext\n\nmore"
        );
        let read = CommitObject::parse(content.as_bytes()).unwrap();
        assert_eq!(read.content(b"C <c@x> 13 +0000"), content.as_bytes());
        assert_eq!(read.author_person(), b"J. Doe Jr. <j@x>");
        assert_eq!(read.author_time(), Some(&b"12 +0100"[..]));
    }

    #[test]
    fn authors_that_git_does_not_accept_have_no_time() {
        let with = |author: &str| CommitObject {
            tree: Commit::parse(&"a".repeat(40)).unwrap(),
            parents: Vec::new(),
            author: author.as_bytes().to_vec(),
            encoding: None,
            message: Vec::new(),
        };
        for author in [
            "",
            ">",
            "a <b>",
            "a <b> x +0000",
            "a <b> 1 0000",
            "a<b> 1 +0000",
            "a <<b> 1 +0000",
            "<b> 1 +0000",
            "a <b> 01 +0000",
            "a <b> 99999999999999999999 +0000",
            "a> <b> 1 +0000",
            "a <b>  1 +0000",
            "a <b> 1 +00é",
        ] {
            assert_eq!(with(author).author_time(), None, "{author}");
        }
        assert_eq!(with("a <> 0 -0000").author_time(), Some(&b"0 -0000"[..]));
    }
}
