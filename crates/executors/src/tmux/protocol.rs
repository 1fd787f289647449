//! The language of control mode, as pure functions: commands as lines, lines as what they mean, and the
//! answer among them.

use std::borrow::Cow;

/// The mark of the beginning and the end of one answer: a time, the number of the command, and
/// flags. Both ends of an answer carry the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplyStamp {
    time: u64,
    number: u64,
    flags: u64,
}

impl ReplyStamp {
    /// Whether it marks the answer to a command that this client sent; others come from hooks and from the
    /// words on the command line.
    fn is_ours(self) -> bool {
        self.flags & 1 == 1
    }
}

/// A line that a client in control mode hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ControlLine<'a> {
    /// An answer begins.
    Begin(ReplyStamp),
    /// The answer is over, and the command went well.
    End(ReplyStamp),
    /// The answer is over, and the command failed.
    Error(ReplyStamp),
    /// A pane has printed something.
    Output {
        /// Its id, as in `%3`.
        pane: &'a [u8],
        /// The printed bytes.
        bytes: Cow<'a, [u8]>,
    },
    /// The server dismisses the client.
    Exit,
    /// Other news, or a line of an answer.
    Other,
}

/// Parses a line outside of an answer; inside of one only the line that ends it has a meaning.
pub(super) fn parse(line: &[u8]) -> ControlLine<'_> {
    let (word, rest) = split_word(line);
    match word {
        b"%begin" => stamp(rest).map_or(ControlLine::Other, ControlLine::Begin),
        b"%end" => stamp(rest).map_or(ControlLine::Other, ControlLine::End),
        b"%error" => stamp(rest).map_or(ControlLine::Other, ControlLine::Error),
        b"%output" => {
            let (pane, bytes) = split_word(rest);
            ControlLine::Output { pane, bytes: unescape(bytes) }
        }
        b"%exit" => ControlLine::Exit,
        _ => ControlLine::Other,
    }
}

fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b' ') {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, b""),
    }
}

fn stamp(rest: &[u8]) -> Option<ReplyStamp> {
    let mut numbers = str::from_utf8(rest).ok()?.split(' ').map(|word| word.parse::<u64>().ok());
    let stamp =
        ReplyStamp { time: numbers.next()??, number: numbers.next()??, flags: numbers.next()?? };
    numbers.next().is_none().then_some(stamp)
}

/// Undoes how tmux writes bytes that could confuse a reader of lines: `\ooo`, in octal. A backslash
/// that does not begin such a number stands for itself.
fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let number = after.get(..3).filter(|_| *first == b'\\').and_then(octal);
        bytes.push(number.unwrap_or(*first));
        rest = if number.is_some() { &after[3..] } else { after };
    }
    Cow::Owned(bytes)
}

fn octal(digits: &[u8]) -> Option<u8> {
    let is_octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
    u8::from_str_radix(str::from_utf8(digits).ok().filter(|_| is_octal)?, 8).ok()
}

/// A command as one line, in which every word means exactly itself: nothing is expanded, and no byte ends the
/// line or the command.
pub(super) fn command_line<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut line = Vec::new();
    for word in words {
        if !line.is_empty() {
            line.push(b' ');
        }
        quote(word.as_ref(), &mut line);
    }
    line.push(b'\n');
    line
}

fn quote(word: &[u8], line: &mut Vec<u8>) {
    line.push(b'"');
    for byte in word {
        if byte.is_ascii_alphanumeric() || b" -_=+.,:/@%#{}[]()<>|&*?!^".contains(byte) {
            line.push(*byte);
        } else {
            line.extend_from_slice(format!("\\{byte:03o}").as_bytes());
        }
    }
    line.push(b'"');
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandReply {
    /// It went well and printed these lines.
    Lines(Vec<Vec<u8>>),
    /// It failed and complained with these lines.
    Complaint(Vec<Vec<u8>>),
}

/// The answer among the lines that were heard, once it is complete.
///
/// The contents of a pane can be part of an answer, and may hold a line that looks like the end of
/// it. So every command is followed by one that prints a secret: the answer is over when the secret
/// was heard as an answer of its own, and its last line is the *last* one that fits its first.
pub(super) fn answer(lines: &[Vec<u8>], secret: &[u8]) -> Option<CommandReply> {
    let [before @ .., begin, said, end] = lines else { return None };
    match (parse(begin), parse(end)) {
        (ControlLine::Begin(begin), ControlLine::End(end)) if begin == end && said == secret => {}
        _ => return None,
    }
    let is_first =
        |line: &Vec<u8>| matches!(parse(line), ControlLine::Begin(stamp) if stamp.is_ours());
    let first = before.iter().position(is_first)?;
    let ControlLine::Begin(stamp) = parse(&before[first]) else { return None };
    let last = before.iter().rposition(
        |line| matches!(parse(line), ControlLine::End(other) | ControlLine::Error(other) if other == stamp),
    )?;
    let body = before.get(first + 1..last)?.to_vec();
    Some(match parse(&before[last]) {
        ControlLine::Error(_) => CommandReply::Complaint(body),
        _ => CommandReply::Lines(body),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(text: &str) -> Vec<Vec<u8>> {
        text.lines().map(|line| line.as_bytes().to_vec()).collect()
    }

    #[test]
    fn lines_of_control_mode_are_parsed() {
        let stamp = ReplyStamp { time: 17, number: 3, flags: 1 };
        assert_eq!(parse(b"%begin 17 3 1"), ControlLine::Begin(stamp));
        assert_eq!(parse(b"%end 17 3 1"), ControlLine::End(stamp));
        assert_eq!(parse(b"%error 17 3 1"), ControlLine::Error(stamp));
        assert_eq!(parse(b"%exit"), ControlLine::Exit);
        assert_eq!(parse(b"%exit server exited"), ControlLine::Exit);
        for other in ["", "%", "%begin", "%end 1 2", "%end 1 2 3 4", "%end a 2 3", "%ending 1 2 3"]
        {
            assert_eq!(parse(other.as_bytes()), ControlLine::Other, "{other}");
        }
    }

    #[test]
    fn output_is_unescaped() {
        let bytes = |line: &'static [u8]| match parse(line) {
            ControlLine::Output { pane: b"%3", bytes } => bytes.into_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(bytes(b"%output %3 plain text"), b"plain text");
        assert_eq!(bytes(b"%output %3 a\\015\\012\\134b"), b"a\r\n\\b");
        assert_eq!(bytes(b"%output %3 \\9 \\77 \\400 \\"), b"\\9 \\77 \\400 \\");
        assert_eq!(bytes(b"%output %3"), b"");
    }

    #[test]
    fn an_answer_is_complete_when_the_secret_was_heard() {
        let whole = lines(
            "%window-renamed @1 x\n%begin 9 1 0\n%end 9 1 0\n%begin 9 4 1\none\n\ntwo\n%end 9 4 1\n\
             %sessions-changed\n%begin 9 5 1\nsecret\n%end 9 5 1",
        );
        let expected = CommandReply::Lines(lines("one\n\ntwo"));
        assert_eq!(answer(&whole, b"secret"), Some(expected));
        for missing in 0..whole.len() {
            assert_eq!(answer(&whole[..missing], b"secret"), None, "{missing}");
        }
        assert_eq!(answer(&whole, b"another"), None);
    }

    #[test]
    fn a_complaint_is_told_from_an_answer() {
        let whole =
            lines("%begin 9 4 1\nno such thing\n%error 9 4 1\n%begin 9 5 1\nsecret\n%end 9 5 1");
        let expected = CommandReply::Complaint(lines("no such thing"));
        assert_eq!(answer(&whole, b"secret"), Some(expected));
    }

    #[test]
    fn a_line_like_an_end_inside_of_an_answer_does_not_end_it() {
        let whole = lines(
            "%begin 9 4 1\n%end 9 4 1\n%begin 9 5 1\nguess\n%end 9 5 1\n%error 9 4 1\n%end 9 4 1\n\
             %begin 9 5 1\nsecret\n%end 9 5 1",
        );
        let body = "%end 9 4 1\n%begin 9 5 1\nguess\n%end 9 5 1\n%error 9 4 1";
        assert_eq!(answer(&whole, b"secret"), Some(CommandReply::Lines(lines(body))));
    }

    #[test]
    fn words_are_quoted() {
        let line = |words: &[&str]| String::from_utf8(command_line(words)).unwrap();
        assert_eq!(line(&["kill-session", "-t", "=a b"]), "\"kill-session\" \"-t\" \"=a b\"\n");
        assert_eq!(line(&["", "$A;\n~'\"\\"]), "\"\" \"\\044A\\073\\012\\176\\047\\042\\134\"\n");
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(
            line in "(%(begin|end|error|output|exit))?( [0-9%]{1,22}){0,4}[\\\\0-9 ]{0,9}|.*"
        ) {
            let _ = parse(line.as_bytes());
        }

        #[test]
        fn any_bytes_are_unescaped_to_themselves(bytes in any::<Vec<u8>>()) {
            let escaped: Vec<String> = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
            prop_assert_eq!(unescape(escaped.concat().as_bytes()).into_owned(), bytes);
        }

        #[test]
        fn a_command_is_one_line_of_harmless_bytes(words in any::<Vec<Vec<u8>>>()) {
            let line = command_line(&words);
            prop_assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
            let is_harmless = |byte: &u8| *byte == b'\n' || (*byte).is_ascii() && !byte.is_ascii_control();
            prop_assert!(line.iter().all(is_harmless));
            prop_assert!(!line.contains(&b'$') && !line.contains(&b';'));
        }

        #[test]
        fn no_lines_make_the_search_panic(
            chosen in proptest::collection::vec(
                prop_oneof![
                    Just("%begin 9 4 1"), Just("%end 9 4 1"), Just("%error 9 4 1"), Just("secret"),
                    Just("%begin 9 5 1"), Just("%end 9 5 1"), Just("text")
                ], 0..12)
        ) {
            let heard: Vec<Vec<u8>> = chosen.iter().map(|line| line.as_bytes().to_vec()).collect();
            let _ = answer(&heard, b"secret");
        }

        #[test]
        fn every_body_comes_back(body in proptest::collection::vec("(%(begin|end|error) 9 [45] 1)|[a-z]*", 0..9)) {
            let body: Vec<Vec<u8>> = body.into_iter().map(String::into_bytes).collect();
            let mut heard = lines("%begin 9 4 1");
            heard.extend(body.clone());
            heard.extend(lines("%end 9 4 1\n%begin 9 5 1\nsecret\n%end 9 5 1"));
            prop_assert_eq!(answer(&heard, b"secret"), Some(CommandReply::Lines(body)));
        }
    }
}
