//! The answers to a row: keys that stand for commands.
//!
//! An answer is the command line that does it. `gt top` runs that command line, so it can do nothing that the command cannot.

use super::model::PageSource;

/// A key, and the command that it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowAnswer {
    pub(super) key: char,
    pub(super) name: &'static str,
    /// The command, with a word such as `<why>` where a text is asked for.
    pub(super) words: Vec<String>,
    /// The question for the text that the command needs.
    pub(super) asks: Option<&'static str>,
    /// The text that is there to be changed.
    pub(super) begins_with: String,
    /// It ends or throws away something, so it is asked whether it is meant.
    pub(super) is_destructive: bool,
    /// It shows a page instead.
    pub(super) opens: Option<PageSource>,
}

impl RowAnswer {
    fn new(key: char, name: &'static str, command: &str) -> Self {
        Self {
            key,
            name,
            words: command.split_whitespace().map(str::to_owned).collect(),
            asks: None,
            begins_with: String::new(),
            is_destructive: false,
            opens: None,
        }
    }

    fn asking(mut self, question: &'static str) -> Self {
        self.asks = Some(question);
        self
    }

    fn destructive(mut self) -> Self {
        self.is_destructive = true;
        self
    }

    /// The command with the text that was typed. The text stays one argument, also if it looks like a flag.
    pub(super) fn words_with(&self, text: &str) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for word in &self.words {
            if !is_placeholder(word) {
                words.push(word.clone());
                continue;
            }
            match words.last().map(String::as_str) {
                Some("-m") => {
                    words.pop();
                    words.push(format!("--message={text}"));
                }
                Some(flag) if flag.starts_with("--") => {
                    let flag = words.pop().unwrap_or_default();
                    words.push(format!("{flag}={text}"));
                }
                _ => words.extend(["--".to_owned(), text.to_owned()]),
            }
        }
        words
    }
}

fn is_placeholder(word: &str) -> bool {
    word.starts_with('<') && word.ends_with('>')
}

/// The keys of the answers among the commands that a row names.
pub(super) fn answers_of_commands(commands: &[String]) -> Vec<RowAnswer> {
    let mut answers: Vec<RowAnswer> = Vec::new();
    for command in commands {
        let begins = |words: &str| command.starts_with(words);
        let answer = if begins("gt review approve ") {
            RowAnswer::new('a', "approve", command)
        } else if begins("bd close ") {
            RowAnswer::new('a', "close", command).destructive()
        } else if begins("gt review reject ") {
            RowAnswer::new('d', "reject", command).asking("Reject, because")
        } else if begins("gt mail reply ") {
            RowAnswer::new('r', "reply", command).asking("Reply")
        } else if begins("gt nudge ") {
            RowAnswer::new('r', "reply", command).asking("Tell the worker")
        } else if begins("gt mq retry ")
            || begins("gt scheduler retry ")
            || begins("gt outbox retry")
        {
            RowAnswer::new('t', "retry now", command)
        } else if begins("gt sling ") {
            RowAnswer::new('t', "sling", command)
        } else if begins("gt mq resume ") || begins("gt deacon resume ") || begins("gt up") {
            RowAnswer::new('t', "resume", command)
        } else if begins("gt mq cancel ") || begins("gt run cancel ") || begins("gt unsling ") {
            RowAnswer::new('x', "cancel", command).destructive()
        } else {
            continue;
        };
        // The row names the best command first.
        if answers.iter().all(|known| known.key != answer.key) {
            answers.push(answer);
        }
    }
    answers
}

/// The answer that gives a bead another title.
pub(super) fn edit_answer(bead: &str, title: &str) -> RowAnswer {
    let mut answer = RowAnswer::new('e', "edit bead", &format!("bd update {bead} --title <title>"))
        .asking("Title");
    title.clone_into(&mut answer.begins_with);
    answer
}

/// The answer that shows the last screen of a worker.
pub(super) fn screen_answer(bead: &str) -> RowAnswer {
    let mut answer = RowAnswer::new('t', "terminal", &format!("gt peek {bead}"));
    answer.opens = Some(PageSource::command(&["gt", "peek", bead], true));
    answer
}

/// A command as it would be typed in a shell.
pub(super) fn shell_line(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./@#:=,+".contains(c);
    let quoted = |word: &String| {
        // A bead's run has a number sign, which begins no comment inside of a word.
        if !word.is_empty() && word.chars().all(is_plain) && !word.starts_with('#') {
            return word.clone();
        }
        match word.split_once('=') {
            Some((flag, text)) if flag.starts_with("--") => {
                format!("{flag}='{}'", text.replace('\'', r"'\''"))
            }
            _ => format!("'{}'", word.replace('\'', r"'\''")),
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(lines: &[&str]) -> Vec<RowAnswer> {
        answers_of_commands(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn keys_stand_for_the_commands_of_the_row() {
        let answers = commands(&[
            "gt review show we-a@1",
            "gt review approve we-a@1",
            "gt review reject we-a@1 -m <why>",
            "gt mq cancel we-a@1",
            "gt config set rig.web.command '<program> {bead}'",
        ]);
        let keys: String = answers.iter().map(|answer| answer.key).collect();
        assert_eq!(keys, "adx");
        assert!(answers[2].is_destructive && !answers[0].is_destructive);
    }

    #[test]
    fn a_typed_text_stays_one_argument() {
        let reject = &commands(&["gt review reject we-a@1 -m <why>"])[0];
        let words = reject.words_with("--force; it's wrong");
        assert_eq!(words.last().unwrap(), "--message=--force; it's wrong");
        assert_eq!(
            shell_line(&words),
            r"gt review reject we-a@1 --message='--force; it'\''s wrong'"
        );
        let nudge = &commands(&["gt nudge we-a <text>"])[0];
        assert_eq!(nudge.words_with("-x"), ["gt", "nudge", "we-a", "--", "-x"]);
        let edit = edit_answer("we-a", "Tea");
        assert_eq!(edit.begins_with, "Tea");
        assert_eq!(shell_line(&edit.words_with("Two teas")), "bd update we-a --title='Two teas'");
    }
}
