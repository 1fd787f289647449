//! Which commands of `gt` and `bd` a worker may have carried out by a process that has the store.

use crate::Invalid;

/// Where a worker is that calls a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerMachine {
    /// On the machine of the town, where files mean the same for both. The rights of workers decide about changes.
    Same,
    /// On another one, which may be less trusted.
    Other,
}

/// The verbs of `gt` that a worker needs.
const GT_VERBS: [&str; 14] = [
    "bd", "done", "escalate", "feed", "handoff", "help", "hook", "mail", "nudge", "prime",
    "status", "step", "unsling", "why",
];

/// Further verbs of `gt` for workers on the machine of the town: they look at its state, or change it as far as
/// `worker.rights` allows.
const GT_VERBS_HERE: [&str; 24] = [
    "config",
    "convoy",
    "cost",
    "deacon",
    "deck",
    "doctor",
    "formula",
    "host",
    "inbox",
    "mcp",
    "mq",
    "outbox",
    "peek",
    "polecat",
    "queue",
    "rescue",
    "review",
    "rig",
    "run",
    "scheduler",
    "sling",
    "token",
    "wait",
    "work",
];

/// Verbs of `bd` that are for no worker: they make a store, or start a program in a directory that the worker chooses.
const BD_VERBS_REFUSED: [&str; 3] = ["edit", "init", "orphans"];

/// The call of the hook that git asks before a worker changes a reference.
const FENCE: [&str; 2] = ["worker", "fence"];

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

/// The arguments of `gt` for a command that a worker called as `program`. Verbs that a worker does not need are refused. Another
/// machine may be less trusted than home: arguments of it that name files or towns at home are refused too.
pub fn home_call(
    program: &str,
    arguments: Vec<String>,
    caller: CallerMachine,
) -> Result<Vec<String>, Invalid> {
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
    let next = words.next();
    let refused = verb.filter(|verb| !verb.starts_with('-') && !is_for(caller, is_bd, verb));
    if let Some(verb) = refused.filter(|verb| !is_fence(caller, is_bd, verb, next)) {
        let called = if is_bd { "bd" } else { "gt" };
        let (workers, place) = match caller {
            CallerMachine::Same => ("workers", "in a shell of your own"),
            CallerMachine::Other => ("workers on other machines", "on the machine of the town"),
        };
        return Err(Invalid(format!(
            "{called} {} is not for {workers}; run it {place}",
            verb.escape_debug()
        )));
    }
    let bd = (program == "bd").then(|| "bd".to_owned());
    if caller == CallerMachine::Same {
        return Ok(bd.into_iter().chain(arguments).collect());
    }
    let reads_file = is_bd && verb.is_some_and(|verb| READS_FILE.contains(&verb));
    let mut rest = arguments.iter().map(String::as_str).peekable();
    while let Some(word) = rest.next() {
        if word == "--" {
            break;
        }
        check_word(word, rest.peek().copied(), reads_file)?;
    }
    Ok(bd.into_iter().chain(arguments).collect())
}

fn is_for(caller: CallerMachine, is_bd: bool, verb: &str) -> bool {
    match (caller, is_bd) {
        (CallerMachine::Other, true) => BD_VERBS.contains(&verb),
        (CallerMachine::Other, false) => GT_VERBS.contains(&verb),
        (CallerMachine::Same, true) => !BD_VERBS_REFUSED.contains(&verb),
        (CallerMachine::Same, false) => GT_VERBS.contains(&verb) || GT_VERBS_HERE.contains(&verb),
    }
}

fn is_fence(caller: CallerMachine, is_bd: bool, verb: &str, next: Option<&str>) -> bool {
    caller == CallerMachine::Same && !is_bd && [Some(verb), next] == FENCE.map(Some)
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
        let done = home_call(&program, words.collect(), CallerMachine::Other);
        done.map(|words| words.join(" ")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_worker_on_the_same_machine_may_name_files_and_use_its_rights() {
        let here = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let program = words.next().unwrap();
            home_call(&program, words.collect(), CallerMachine::Same)
        };
        for allowed in [
            "gt done",
            "gt sling we-b web",
            "gt --json run show we-a",
            "gt worker fence prepared",
            "gt bd import x.jsonl",
            "bd create Tea --body-file plan.md",
            "bd -C /somewhere list",
        ] {
            assert!(here(allowed).is_ok(), "{allowed}");
        }
        for refused in [
            "gt worker exec we-a#1",
            "gt worker",
            "gt up",
            "gt daemon stop",
            "gt store backup",
            "gt install x",
            "bd init",
            "gt bd init",
        ] {
            let error = here(refused).unwrap_err().to_string();
            assert!(error.contains("is not for workers; run it in a shell"), "{error}");
        }
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
            bd in any::<bool>(), same in any::<bool>(), words in prop::collection::vec("[a-zC -]{0,8}|--|-C|bd|list|done", 0..6)
        ) {
            let program = if bd { "bd" } else { "gt" };
            let caller = if same { CallerMachine::Same } else { CallerMachine::Other };
            if let Ok(done) = home_call(program, words.clone(), caller) {
                let given: Vec<String> =
                    bd.then(|| "bd".to_owned()).into_iter().chain(words).collect();
                prop_assert_eq!(done, given);
            }
        }
    }
}
