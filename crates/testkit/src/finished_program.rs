//! The result of a finished program, and the expectations of a test.

use std::fmt;

use serde_json::Value;

/// How much of one output stream a transcript shows. The end is the interesting part.
const TRANSCRIPT_BYTES_MAX: usize = 16 * 1024;

/// A program that ran to its end.
#[derive(Debug, Clone)]
pub struct FinishedProgram {
    /// The exit code; 128 plus the signal's number if a signal ended it, as in a shell.
    pub code: i32,
    /// Its standard output. Bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error. Bytes that are not UTF-8 are replaced.
    pub stderr: String,
    /// The command line and its directory, for messages.
    pub command: String,
}

impl FinishedProgram {
    /// Expects success; panics with a transcript otherwise.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "expecting it can be the whole test")]
    pub fn ok(self) -> Self {
        self.fails(0)
    }

    /// Expects this exit code; panics with a transcript otherwise.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "expecting it can be the whole test")]
    pub fn fails(self, code: i32) -> Self {
        assert!(self.code == code, "expected exit code {code}\n{self}");
        self
    }

    /// Standard output as one JSON value.
    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("expected JSON on stdout: {error}\n{self}"),
        }
    }

    /// Standard output as JSON values, one on each line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |(index, line)| match serde_json::from_str(line) {
            Ok(value) => value,
            Err(error) => panic!("expected JSON on line {} of stdout: {error}\n{self}", index + 1),
        };
        self.stdout.lines().enumerate().map(parse).collect()
    }

    /// Standard output without white space around it: the id a command printed, for example.
    pub fn line(&self) -> &str {
        self.stdout.trim()
    }
}

/// The transcript shown when an expectation fails.
impl fmt::Display for FinishedProgram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "$ {}", self.command)?;
        writeln!(formatter, "exit code {}", self.code)?;
        write_stream(formatter, "stdout", &self.stdout)?;
        write_stream(formatter, "stderr", &self.stderr)
    }
}

fn write_stream(formatter: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    if text.is_empty() {
        return writeln!(formatter, "--- {name}: empty");
    }
    let left_out = text.ceil_char_boundary(text.len().saturating_sub(TRANSCRIPT_BYTES_MAX));
    if left_out == 0 {
        writeln!(formatter, "--- {name}")?;
    } else {
        writeln!(formatter, "--- {name}, without its first {left_out} bytes")?;
    }
    writeln!(formatter, "{}", text[left_out..].trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(code: i32, stdout: &str, stderr: &str) -> FinishedProgram {
        FinishedProgram {
            code,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            command: "gt status".to_owned(),
        }
    }

    #[test]
    fn expectations_that_hold_return_the_run() {
        assert_eq!(ran(0, " gt-1 \n", "").ok().line(), "gt-1");
        assert_eq!(ran(3, "", "no").fails(3).stderr, "no");
    }

    #[test]
    fn json_is_read_whole_or_by_line() {
        assert_eq!(ran(0, "{\"a\": [1]}\n", "").json()["a"][0], 1);
        let lines = ran(0, "{\"a\": 1}\n{\"a\": 2}\n", "").json_lines();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["a"], 2);
    }

    #[test]
    #[should_panic(
        expected = "expected exit code 0\n$ gt status\nexit code 2\n--- stdout: empty\n\
                               --- stderr\nError: lost\n"
    )]
    fn a_failure_shows_the_transcript() {
        ran(2, "", "Error: lost\n").ok();
    }

    #[test]
    #[should_panic(expected = "expected JSON on stdout")]
    fn bad_json_shows_the_transcript() {
        ran(0, "hello", "").json();
    }

    #[test]
    fn a_transcript_shows_the_end_of_long_output() {
        // Two bytes each, and a limit that falls in the middle of one.
        let text = format!("x{}end", "é".repeat(TRANSCRIPT_BYTES_MAX));
        let transcript = ran(0, &text, "").to_string();
        assert!(transcript.len() < TRANSCRIPT_BYTES_MAX + 200, "{} bytes", transcript.len());
        assert!(transcript.contains("éend\n"));
        assert!(transcript.contains("without its first"));
    }
}
