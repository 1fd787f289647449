//! Boolean flags with a value, such as `--json=true` and `--tree=false`, which programs of Go write.

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgAction, Command};

/// The arguments with every boolean flag as the parser knows it: `--flag=true` is `--flag`, and `--flag=false` takes back
/// an earlier `--flag`. The first argument is left alone if `named`: it is the name of the program.
pub(crate) fn without_boolean_values<S: AsRef<OsStr>>(
    command: &Command,
    arguments: &[S],
    named: bool,
) -> Vec<OsString> {
    let mut walk = Walk { levels: vec![command], kept: Vec::with_capacity(arguments.len()) };
    let mut rest = arguments.iter().map(AsRef::as_ref);
    if named && let Some(name) = rest.next() {
        walk.keep(name, None);
    }
    let mut is_value = false;
    while let Some(argument) = rest.next() {
        let text = argument.to_str().unwrap_or_default();
        if std::mem::take(&mut is_value) {
            walk.keep(argument, None);
        } else if text == "--" {
            walk.keep(argument, None);
            rest.by_ref().for_each(|word| walk.keep(word, None));
        } else if text.len() > 1 && text.starts_with('-') {
            is_value = walk.flag(argument, text);
        } else {
            walk.keep(argument, None);
            walk.descend(text);
        }
    }
    walk.kept.into_iter().map(|(argument, _)| argument).collect()
}

/// A command line that is read from left to right.
struct Walk<'c> {
    /// The command and its subcommands so far; the flags of each level that are global count below it.
    levels: Vec<&'c Command>,
    /// The arguments so far, with the boolean flag that each sets.
    kept: Vec<(OsString, Option<&'c str>)>,
}

impl<'c> Walk<'c> {
    fn keep(&mut self, argument: &OsStr, sets: Option<&'c str>) {
        self.kept.push((argument.to_owned(), sets));
    }

    fn descend(&mut self, word: &str) {
        let here = self.levels.last().copied();
        self.levels.extend(here.and_then(|command| command.find_subcommand(word)));
    }

    fn find(&self, is_named: impl Fn(&Arg) -> bool) -> Option<&'c Arg> {
        let here = self.levels.len();
        let at_level = |(depth, command): (usize, &&'c Command)| {
            let is_local = depth + 1 == here;
            command.get_arguments().find(|arg| (is_local || arg.is_global_set()) && is_named(arg))
        };
        self.levels.iter().enumerate().rev().find_map(at_level)
    }

    /// Keeps or drops a flag. Returns whether the next argument is its value.
    fn flag(&mut self, argument: &OsStr, text: &str) -> bool {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let found = match name.strip_prefix("--") {
            Some(long) => self.find(|arg| is_long(arg, long)),
            // The last letter of several, because the others have no value.
            None => name.chars().last().and_then(|letter| self.find(|arg| is_short(arg, letter))),
        };
        let Some(flag) = found else {
            self.keep(argument, None);
            return false;
        };
        if !matches!(flag.get_action(), ArgAction::SetTrue) {
            self.keep(argument, None);
            return value.is_none() && flag.get_action().takes_values();
        }
        let id = flag.get_id().as_str();
        match value.map(truth) {
            None => self.keep(argument, Some(id)),
            Some(Some(true)) => self.keep(OsStr::new(name), Some(id)),
            Some(Some(false)) => self.kept.retain(|(_, sets)| *sets != Some(id)),
            // The parser refuses it, with the usage.
            Some(None) => self.keep(argument, None),
        }
        false
    }
}

/// The truth values that Go reads.
fn truth(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn is_long(arg: &Arg, name: &str) -> bool {
    arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
}

fn is_short(arg: &Arg, letter: char) -> bool {
    arg.get_short() == Some(letter)
        || arg.get_all_short_aliases().is_some_and(|all| all.contains(&letter))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::super::Bd;
    use super::*;

    fn plain(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let words = without_boolean_values(&Bd::command(), &words, true);
        words.join(&OsString::from(" ")).into_string().unwrap()
    }

    #[test]
    fn boolean_flags_take_the_values_that_go_writes() {
        for (given, read) in [
            ("bd list --tree=true", "bd list --tree"),
            ("bd list --tree=false --flat", "bd list --flat"),
            ("bd --json list --json=false", "bd list"),
            ("bd list --json=false --json", "bd list --json"),
            ("bd list --json=T --all=0", "bd list --json"),
            ("bd close gt-a -f=true", "bd close gt-a -f"),
            ("bd dep add gt-a gt-b --retype=false", "bd dep add gt-a gt-b"),
            // Values of other flags and words behind `--` are no flags.
            ("bd create -d --json=true", "bd create -d --json=true"),
            ("bd create --title=--json=true", "bd create --title=--json=true"),
            ("bd create -- --json=true", "bd create -- --json=true"),
            ("bd list --tree=maybe", "bd list --tree=maybe"),
            ("bd list --nonsense=true", "bd list --nonsense=true"),
            ("bd list --limit=0", "bd list --limit=0"),
        ] {
            assert_eq!(plain(given), read, "{given}");
        }
    }

    #[test]
    fn every_boolean_flag_of_every_command_takes_a_value_and_may_be_repeated() {
        let mut root = Bd::command();
        root.build();
        let mut waiting: Vec<(Vec<String>, &Command)> = vec![(vec!["bd".to_owned()], &root)];
        let mut tried = 0;
        while let Some((path, command)) = waiting.pop() {
            for flag in command.get_arguments() {
                let (ArgAction::SetTrue, Some(long)) = (flag.get_action(), flag.get_long()) else {
                    continue;
                };
                let line = format!("{} --{long}=true --{long}=false --{long}=1", path.join(" "));
                assert_eq!(plain(&line), format!("{} --{long}", path.join(" ")));
                tried += 1;
            }
            for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
                let mut path = path.clone();
                path.push(below.get_name().to_owned());
                waiting.push((path, below));
            }
        }
        assert!(tried > 200, "{tried} flags");
    }

    #[test]
    fn the_last_of_a_repeated_flag_counts() {
        for line in [
            "bd list --json --json --limit 5 --limit 7 --status open --status all",
            "bd create Title -p 1 -p 2 --type bug --type task --silent --silent",
            "bd --actor a --actor b show gt-a --long --long",
        ] {
            let matches = Bd::command().try_get_matches_from(line.split(' '));
            let parsed = matches.and_then(|matches| Bd::from_arg_matches(&matches));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
        let matches =
            Bd::command().try_get_matches_from(["bd", "list", "--limit", "5", "--limit", "7"]);
        let matches = matches.unwrap();
        let list = matches.subcommand_matches("list").unwrap();
        assert_eq!(list.get_one::<usize>("limit"), Some(&7));
        let matches = Bd::command().try_get_matches_from(["bd", "list", "-l", "a", "-l", "b"]);
        let matches = matches.unwrap();
        let labels = matches.subcommand_matches("list").unwrap().get_many::<String>("label");
        assert_eq!(labels.unwrap().collect::<Vec<_>>(), ["a", "b"]);
    }
}
