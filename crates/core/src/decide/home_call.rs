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

/// Verbs of `bd` that are for no worker: they make a store, change files, or start a program in a directory that the worker chooses.
const BD_VERBS_REFUSED: [&str; 5] = ["edit", "init", "merge-driver", "orphans", "setup"];

/// Verbs of `gt` that may be carried out twice: they only look, or the second time finds that the run is over.
const GT_VERBS_REPEATABLE: [&str; 6] = ["done", "hook", "inbox", "prime", "status", "why"];

/// Verbs of `bd` that only look.
const BD_VERBS_REPEATABLE: [&str; 5] = ["blocked", "list", "ready", "search", "show"];

/// The call of the hook that git asks before a worker changes a reference.
const FENCE: [&str; 2] = ["worker", "fence"];

/// Refuses a command that is not for workers: the verb of `gt`, or of `bd`, and the verb below it if there is one. The names are those
/// that the parser of the command line has found: a flag before the verb, or a short form, changes nothing.
pub fn admit_home_call(is_bd: bool, verb: &str, below: Option<&str>) -> Result<(), Invalid> {
    let is_fence = !is_bd && [Some(verb), below] == FENCE.map(Some);
    if is_fence || is_for_workers(is_bd, verb) {
        return Ok(());
    }
    let called = if is_bd { "bd" } else { "gt" };
    Err(Invalid(format!(
        "{called} {} is not for workers; run it in a shell of your own",
        verb.escape_debug()
    )))
}

/// Whether a worker may ask for a command again when the process that had it is gone, and it is not known whether it was done.
#[must_use]
pub fn is_repeatable_home_call(is_bd: bool, verb: &str, below: Option<&str>) -> bool {
    let is_fence = !is_bd && [Some(verb), below] == FENCE.map(Some);
    let verbs = if is_bd { &BD_VERBS_REPEATABLE[..] } else { &GT_VERBS_REPEATABLE[..] };
    is_fence || verbs.contains(&verb)
}

fn is_for_workers(is_bd: bool, verb: &str) -> bool {
    if is_bd { !BD_VERBS_REFUSED.contains(&verb) } else { GT_VERBS.contains(&verb) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Result<(), Invalid> {
        let mut words = line.split(' ');
        let is_bd = words.next() == Some("bd");
        admit_home_call(is_bd, words.next().unwrap(), words.next())
    }

    #[test]
    fn a_command_that_would_make_something_twice_is_not_repeated() {
        let is_repeated = |line: &str| {
            let mut words = line.split(' ');
            let is_bd = words.next() == Some("bd");
            is_repeatable_home_call(is_bd, words.next().unwrap(), words.next())
        };
        for line in ["gt done", "gt worker fence", "gt prime", "bd show"] {
            assert!(is_repeated(line), "{line}");
        }
        for line in ["bd create", "bd done", "gt handoff", "gt mail", "gt worker", "gt sling"] {
            assert!(!is_repeated(line), "{line}");
        }
    }

    #[test]
    fn verbs_for_workers_are_admitted_and_others_refused() {
        for admitted in [
            "gt done",
            "gt prime",
            "gt rig list",
            "gt worker fence",
            "bd import",
            "bd create",
            "bd list",
            "bd worker",
        ] {
            assert_eq!(call(admitted), Ok(()), "{admitted}");
        }
        for refused in [
            "gt worker exec",
            "gt worker",
            "gt up",
            "gt daemon stop",
            "gt store backup",
            "gt install",
            "bd init",
            "bd orphans",
        ] {
            let error = call(refused).unwrap_err().0;
            assert!(error.contains("is not for workers; run it in a shell"), "{error}");
        }
    }
}
