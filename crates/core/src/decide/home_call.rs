//! Which commands of `gt` and `bd` an agent on another machine may have done at home.

use crate::Invalid;

/// The verbs of `gt` that a worker needs.
const GT_VERBS: [&str; 14] = [
    "bd", "done", "escalate", "feed", "handoff", "help", "hook", "mail", "nudge", "prime",
    "status", "step", "unsling", "why",
];

/// The verbs of `bd` that a worker needs.
const BD_VERBS: [&str; 28] = [
    "activity", "blocked", "children", "close", "comment", "comments", "count", "create", "defer",
    "dep", "done", "help", "info", "label", "lint", "list", "prime", "query", "ready", "reopen",
    "search", "show", "stale", "stats", "status", "undefer", "update", "version",
];

/// Verbs whose `-f` names a file.
const READS_FILE: [&str; 4] = ["comment", "comments", "create", "dep"];

/// Flags that name a file.
const FILE_FLAGS: [&str; 6] =
    ["--body-file", "--design-file", "--file", "--from-file", "--graph", "--reason-file"];

/// Flags that every command takes, and whether a value follows.
const GLOBAL: [(&str, bool); 5] =
    [("--json", false), ("-q", false), ("--quiet", false), ("--version", false), ("--actor", true)];

/// The arguments of `gt` at home for a command that an agent called as `program` on another machine. That machine may be
/// less trusted than home: verbs that a worker does not need, and arguments that name files or towns at home, are refused.
pub fn home_call(program: &str, arguments: Vec<String>) -> Result<Vec<String>, Invalid> {
    let is_bd = program == "bd";
    let mut words = arguments.iter().map(String::as_str);
    let mut verb = verb_in(&mut words);
    let is_bd = match verb {
        Some("bd") if !is_bd => {
            verb = verb_in(&mut words);
            true
        }
        _ => is_bd,
    };
    let known: &[&str] = if is_bd { &BD_VERBS } else { &GT_VERBS };
    if let Some(verb) = verb.filter(|verb| !verb.starts_with('-') && !known.contains(verb)) {
        let called = if is_bd { "bd" } else { "gt" };
        return Err(Invalid(format!(
            "{called} {} is not for workers on other machines; run it on the machine of the town",
            verb.escape_debug()
        )));
    }
    let reads_file = is_bd && verb.is_some_and(|verb| READS_FILE.contains(&verb));
    let mut rest = arguments.iter().map(String::as_str).peekable();
    while let Some(word) = rest.next() {
        if word == "--" {
            break;
        }
        check_word(word, rest.peek().copied(), reads_file)?;
    }
    let bd = (program == "bd").then(|| "bd".to_owned());
    Ok(bd.into_iter().chain(arguments).collect())
}

/// The command itself, behind the flags that all of them take; another flag, if one stands before it.
fn verb_in<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<&'a str> {
    loop {
        let word = words.next()?;
        match GLOBAL.iter().find(|(flag, _)| *flag == word) {
            Some((_, true)) => drop(words.next()),
            Some((_, false)) => {}
            None if word.starts_with("--actor=") => {}
            None => return Some(word),
        }
    }
}

fn check_word(word: &str, next: Option<&str>, reads_file: bool) -> Result<(), Invalid> {
    let (flag, joined) =
        word.split_once('=').map_or((word, None), |(flag, value)| (flag, Some(value)));
    let value = joined.or(next).unwrap_or_default();
    if matches!(flag, "--directory" | "--db") || is_short(word, 'C') {
        return Err(Invalid(format!(
            "{flag} means something at home, where you are not; leave it out"
        )));
    }
    let is_file = FILE_FLAGS.contains(&flag) || (reads_file && is_short(word, 'f'));
    let names_file = (is_file && value != "-") || (flag == "--metadata" && value.starts_with('@'));
    if names_file {
        return Err(Invalid(format!(
            "{flag} would read a file at home, where you are not; give the text itself, or {flag} - and the text on \
             standard input"
        )));
    }
    Ok(())
}

/// Whether a word is this short flag, alone or behind others that take no value.
fn is_short(word: &str, short: char) -> bool {
    let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')) else {
        return false;
    };
    letters.trim_start_matches(['q', 'v']).starts_with(short)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call(line: &str) -> Result<String, String> {
        let mut words = line.split(' ').map(str::to_owned);
        let program = words.next().unwrap();
        let done = home_call(&program, words.collect());
        done.map(|words| words.join(" ")).map_err(|error| error.to_string())
    }

    #[test]
    fn verbs_for_workers_are_called_as_they_were_written() {
        for (called, done) in [
            ("gt done", "done"),
            ("gt --json prime", "--json prime"),
            ("gt --actor me bd list", "--actor me bd list"),
            ("bd create Tea --body-file -", "bd create Tea --body-file -"),
            ("bd create Tea -tfeature -f -", "bd create Tea -tfeature -f -"),
            ("bd comments add we-a --file=-", "bd comments add we-a --file=-"),
            ("bd close we-a -- -C", "bd close we-a -- -C"),
            ("gt --help", "--help"),
            ("bd", "bd "),
        ] {
            assert_eq!(call(called).as_deref(), Ok(done.trim_end()), "{called}");
        }
    }

    #[test]
    fn verbs_not_for_remote_workers_are_refused() {
        for (called, expected) in [
            ("gt config set notify.command x", "gt config is not for workers"),
            ("gt worker exec we-a#1", "gt worker is not"),
            ("gt --quiet store backup", "gt store is not"),
            ("bd import x.jsonl", "bd import is not"),
            ("gt bd init", "bd init is not"),
            ("gt bd config set a b", "bd config is not"),
            ("gt -C /etc done", "-C means something at home"),
            ("bd -qC/etc list", "-qC/etc means something at home"),
            ("bd --db=/x/gt.db list", "--db means something at home"),
            ("bd create Tea --body-file /etc/passwd", "--body-file would read a file at home"),
            ("bd create -f plan.md", "-f would read a file at home"),
            ("bd create -qf plan.md", "-qf would read a file"),
            ("bd create --graph=plan.json", "--graph would read a file"),
            ("bd update we-a --metadata @x.json", "--metadata would read a file"),
        ] {
            let error = call(called).unwrap_err();
            assert!(error.contains(expected), "{called}: {error}");
        }
    }

    proptest! {
        #[test]
        fn an_allowed_call_keeps_its_arguments(
            bd in any::<bool>(), words in prop::collection::vec("[a-zC -]{0,8}|--|-C|bd|list|done", 0..6)
        ) {
            let program = if bd { "bd" } else { "gt" };
            if let Ok(done) = home_call(program, words.clone()) {
                let given: Vec<String> =
                    bd.then(|| "bd".to_owned()).into_iter().chain(words).collect();
                prop_assert_eq!(done, given);
            }
        }
    }
}
