//! Which commands of `gt` and `bd` a worker may have carried out by a process that has the store.

use crate::Invalid;

/// The verbs of `gt` for workers: they do their work, look at the state of the town, or change it as far as `worker.rights` allows.
const GT_VERBS: [&str; 38] = [
    "bd",
    "config",
    "convoy",
    "cost",
    "deacon",
    "deck",
    "doctor",
    "done",
    "escalate",
    "feed",
    "formula",
    "handoff",
    "help",
    "hook",
    "host",
    "inbox",
    "mail",
    "mcp",
    "mq",
    "nudge",
    "outbox",
    "peek",
    "polecat",
    "prime",
    "queue",
    "rescue",
    "review",
    "rig",
    "run",
    "scheduler",
    "sling",
    "status",
    "step",
    "token",
    "unsling",
    "wait",
    "why",
    "work",
];

/// Verbs of `bd` that are for no worker: they make a store, or start a program in a directory that the worker chooses.
const BD_VERBS_REFUSED: [&str; 3] = ["edit", "init", "orphans"];

/// The call of the hook that git asks before a worker changes a reference.
const FENCE: [&str; 2] = ["worker", "fence"];

/// Flags that every command takes, and whether a value follows.
const GLOBAL: [(&str, bool); 5] =
    [("--json", false), ("-q", false), ("--quiet", false), ("--version", false), ("--actor", true)];

/// The arguments of `gt` for a command that a worker called as `program`. Verbs that a worker does not need are refused.
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
    let next = words.next();
    let refused = verb.filter(|verb| !verb.starts_with('-') && !is_for_workers(is_bd, verb));
    let is_fence = |verb: &&str| !is_bd && [Some(*verb), next] == FENCE.map(Some);
    if let Some(verb) = refused.filter(|verb| !is_fence(verb)) {
        let called = if is_bd { "bd" } else { "gt" };
        return Err(Invalid(format!(
            "{called} {} is not for workers; run it in a shell of your own",
            verb.escape_debug()
        )));
    }
    let bd = (program == "bd").then(|| "bd".to_owned());
    Ok(bd.into_iter().chain(arguments).collect())
}

fn is_for_workers(is_bd: bool, verb: &str) -> bool {
    if is_bd { !BD_VERBS_REFUSED.contains(&verb) } else { GT_VERBS.contains(&verb) }
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
            ("gt sling we-b web", "sling we-b web"),
            ("gt worker fence prepared", "worker fence prepared"),
            ("gt bd import x.jsonl", "bd import x.jsonl"),
            ("bd create Tea --body-file plan.md", "bd create Tea --body-file plan.md"),
            ("bd -C /somewhere list", "bd -C /somewhere list"),
            ("gt --help", "--help"),
            ("bd", "bd "),
        ] {
            assert_eq!(call(called).as_deref(), Ok(done.trim_end()), "{called}");
        }
    }

    #[test]
    fn verbs_that_are_not_for_workers_are_refused() {
        for refused in [
            "gt worker exec we-a#1",
            "gt worker",
            "gt up",
            "gt daemon stop",
            "gt --quiet store backup",
            "gt install x",
            "bd init",
            "gt bd init",
        ] {
            let error = call(refused).unwrap_err();
            assert!(error.contains("is not for workers; run it in a shell"), "{error}");
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
