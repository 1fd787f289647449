//! A program around the commands of a rig, such as a sandbox or a container: agents, setup commands and checks.

use crate::Invalid;
use crate::command_template::{fill, has_place, words_of};

/// The word in whose place the words of the command are put.
const COMMAND: &str = "{command}";

/// The place for the name of a variable. A word that has it is repeated for each variable.
const VARIABLE: &str = "variable";

/// The setting of a rig that has no such program although the town has one.
const NONE: &str = "none";

/// The values that a template may use besides the command and the variables.
const VALUES: [&str; 5] = ["tree", "repository", "town", "rig", "run"];

/// The template of a program around commands, with `{command}` for the words of the command. Without that place they are
/// put at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWrap {
    words: Vec<String>,
}

impl CommandWrap {
    /// Reads a template; nothing if it is empty or `none`.
    pub fn parse(template: &str) -> Result<Option<Self>, Invalid> {
        if template.trim().is_empty() || template.trim() == NONE {
            return Ok(None);
        }
        let wrap = Self { words: words_of(template)? };
        if wrap.words.iter().filter(|word| *word == COMMAND).count() > 1 {
            return Err(Invalid::new("{command} stands in it twice; write it once"));
        }
        if wrap.words.first().is_some_and(|first| first == COMMAND) {
            return Err(Invalid::new(
                "the first word is the program around the command, not {command}",
            ));
        }
        wrap.around(&[], &VALUES.map(|name| (name, "x")), &["x"])?;
        Ok(Some(wrap))
    }

    /// The program around the commands of a rig: its own template, or that of the town if it has none.
    pub fn of_rig(rig: &str, town: &str) -> Result<Option<Self>, Invalid> {
        Self::parse(if rig.trim().is_empty() { town } else { rig })
    }

    /// The words of the template, for hashes.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The words of a command with this program around them. `variables` are the names of the variables that the command is
    /// given.
    pub fn around(
        &self,
        command: &[String],
        values: &[(&str, &str)],
        variables: &[&str],
    ) -> Result<Vec<String>, Invalid> {
        let mut filled = Vec::with_capacity(self.words.len() + command.len());
        let mut is_placed = false;
        for word in &self.words {
            if word == COMMAND {
                filled.extend_from_slice(command);
                is_placed = true;
            } else if has_place(word, "command")? {
                let word = word.escape_debug();
                return Err(Invalid(format!(
                    "{COMMAND} stands for several words, so it is a word by itself, not a part of {word}"
                )));
            } else if has_place(word, VARIABLE)? {
                for variable in variables {
                    let mut values = values.to_vec();
                    values.push((VARIABLE, *variable));
                    filled.push(fill(word, &values)?);
                }
            } else {
                // These have no place in the word; a place with a wrong name is told about all that there are.
                let mut values = values.to_vec();
                values.extend([("command", ""), (VARIABLE, "")]);
                filled.push(fill(word, &values)?);
            }
        }
        if !is_placed {
            filled.extend_from_slice(command);
        }
        if filled.first().is_none_or(String::is_empty) {
            return Err(Invalid::new("it names no program"));
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILLED: &[(&str, &str)] = &[
        ("tree", "/t/web/polecats/nux/rig"),
        ("repository", "/t/web/.repo.git"),
        ("town", "/t"),
        ("rig", "web"),
        ("run", "we-1#2"),
    ];

    fn around(template: &str) -> Vec<String> {
        let command = ["agent", "two words", "{tree}"].map(str::to_owned);
        let wrap = CommandWrap::parse(template).unwrap().unwrap();
        wrap.around(&command, FILLED, &["GT_RUN", "PATH"]).unwrap()
    }

    #[test]
    fn a_wrong_place_is_told_with_all_that_there_are() {
        let error = CommandWrap::parse("bwrap {comand}").unwrap_err().to_string();
        assert!(error.contains("{comand} stands for nothing"), "{error}");
        assert!(error.contains("{command}") && error.contains("{variable}"), "{error}");
    }

    #[test]
    fn the_command_is_put_in_its_place_or_at_the_end() {
        for (template, expected) in [
            ("nice", &["nice", "agent", "two words", "{tree}"] as &[&str]),
            ("box {command} end", &["box", "agent", "two words", "{tree}", "end"]),
            (
                "box --bind={town}:{town} -C {tree}",
                &[
                    "box",
                    "--bind=/t:/t",
                    "-C",
                    "/t/web/polecats/nux/rig",
                    "agent",
                    "two words",
                    "{tree}",
                ],
            ),
            (
                r#"["box", "--env={variable}", "{run} {rig}", "{{command}}", "{command}"]"#,
                &[
                    "box",
                    "--env=GT_RUN",
                    "--env=PATH",
                    "we-1#2 web",
                    "{command}",
                    "agent",
                    "two words",
                    "{tree}",
                ],
            ),
        ] {
            assert_eq!(around(template), expected, "{template}");
        }
    }

    #[test]
    fn a_template_that_cannot_work_is_refused() {
        for (template, message) in [
            (
                "box {home}",
                "{home} stands for nothing; there are {tree}, {repository}, {town}, {rig}, {run}",
            ),
            (
                "sh -c 'x {command}'",
                "{command} stands for several words, so it is a word by itself",
            ),
            ("box {command} {command}", "{command} stands in it twice"),
            ("{command} box", "the first word is the program around the command"),
            ("'' box", "it names no program"),
            ("box 'x", "the ' at column 5 is never closed"),
        ] {
            let error = CommandWrap::parse(template).unwrap_err().0;
            assert!(error.starts_with(message), "{template}: {error}");
        }
    }

    #[test]
    fn a_rig_has_its_own_that_of_the_town_or_none() {
        let program = |rig: &str, town: &str| {
            CommandWrap::of_rig(rig, town).unwrap().map(|wrap| wrap.words()[0].clone())
        };
        assert_eq!(program("", ""), None);
        assert_eq!(program("", "box").as_deref(), Some("box"));
        assert_eq!(program("cage", "box").as_deref(), Some("cage"));
        assert_eq!(program("none", "box"), None);
    }

    proptest! {
        #[test]
        fn every_word_of_the_command_arrives_as_it_is(command in prop::collection::vec(any::<String>(), 0..5)) {
            let wrap = CommandWrap::parse("box a {command} b").unwrap().unwrap();
            let filled = wrap.around(&command, &[], &[]).unwrap();
            prop_assert_eq!(&filled[2..filled.len() - 1], &command[..]);
        }

        #[test]
        fn a_template_that_was_read_can_be_filled(template in "[a-z{} ']{0,30}|.*") {
            if let Ok(Some(wrap)) = CommandWrap::parse(&template) {
                prop_assert!(wrap.around(&["a".to_owned()], FILLED, &[]).is_ok(), "{template}");
            }
        }
    }
}
