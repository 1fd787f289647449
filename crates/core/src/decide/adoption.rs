//! How the state that an older queue left with a bead is adopted.

use crate::queue_block::{FoundBlock, QueueFields};
use crate::schedule::{CloseReason, Merge, SlingParameters, labels};
use crate::{BeadId, Prefix, RigSlug, Timestamp};

use super::breaker::START_FAILURES_MAX;

/// The state of a bead in an older queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OldState {
    /// It waits, to be dispatched like this.
    Queued(Box<QueueFields>),
    /// It waits, and goes where its id belongs; the oldest queue said no more than that.
    QueuedAtHome,
    /// It is marked as waiting, but nothing says where it goes.
    QueuedNowhere,
    /// It was taken out of the queue, or never put in: its block is there, but no label.
    Inert(Box<QueueFields>),
    /// It was given up.
    Failed(Box<QueueFields>),
    /// It was dispatched.
    Dispatched,
    /// Why the block cannot be used.
    Damaged(String),
}

impl OldState {
    /// The state by the labels and the description of a bead; nothing if no queue has been there.
    pub fn of(stored_labels: &[String], block: &FoundBlock) -> Option<Self> {
        let has = |label: &str| stored_labels.iter().any(|stored| stored == label);
        let queued = has(labels::QUEUED);
        let fields = match block {
            FoundBlock::Block(block) => Some(Box::new(block.fields.clone())),
            FoundBlock::Nothing | FoundBlock::Damaged { .. } => None,
        };
        Some(match (fields, block) {
            (fields, _) if has(labels::DISPATCH_FAILED) => Self::Failed(fields.unwrap_or_default()),
            (None, FoundBlock::Damaged { .. }) => {
                Self::Damaged("its queue block does not say which rig it goes to".to_owned())
            }
            (Some(fields), _) if queued || has(labels::QUEUED_PLAIN) => Self::Queued(fields),
            (_, _) if has(labels::DISPATCHED) => Self::Dispatched,
            (Some(fields), _) => Self::Inert(fields),
            (None, _) if has(labels::QUEUED_PLAIN) => Self::QueuedAtHome,
            (None, _) if queued => Self::QueuedNowhere,
            (None, _) => return None,
        })
    }
}

/// The facts that decide about an old state besides the state itself.
#[derive(Debug, Clone, Copy)]
pub struct AdoptionFacts<'a> {
    /// The rig that the bead's id belongs to.
    pub home: Option<&'a RigSlug>,
    /// Whether the bead is closed.
    pub is_closed: bool,
    /// The rigs there are.
    pub rigs: &'a [RigSlug],
    /// The accounts there are.
    pub accounts: &'a [String],
}

/// A context that takes the place of an old state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Successor {
    /// Where it goes; the town's own name if that cannot be said.
    pub rig: RigSlug,
    /// The parameters of the dispatch.
    pub parameters: SlingParameters,
    /// The account, if one was named.
    pub account: Option<String>,
    /// When it was queued.
    pub enqueued_at: Option<Timestamp>,
    /// How many starts failed.
    pub failures: u32,
    /// Why the last one did; empty if none.
    pub last_failure: String,
    /// Why it is closed at once, and in words; nothing if it waits to be dispatched.
    pub closed: Option<(CloseReason, String)>,
}

/// The context that takes the place of `old`. A state that cannot be dispatched as it stands becomes one that
/// is closed and says why; nothing is dropped.
pub fn adopt(old: &OldState, facts: AdoptionFacts<'_>) -> Successor {
    let nothing = QueueFields::default();
    let fields = match old {
        OldState::Queued(fields) | OldState::Inert(fields) | OldState::Failed(fields) => fields,
        OldState::QueuedAtHome
        | OldState::QueuedNowhere
        | OldState::Dispatched
        | OldState::Damaged(_) => &nothing,
    };
    let named = facts.rigs.iter().find(|rig| rig.as_str() == fields.target_rig);
    let written = || RigSlug::parse(&fields.target_rig).ok();
    let rig = named.cloned().or_else(written).or_else(|| facts.home.cloned());
    let read = parameters(fields);
    let closed = verdict(old, fields, named, read.as_ref().err(), facts);
    Successor {
        rig: rig.unwrap_or_else(|| RigSlug::trusted(Prefix::TOWN.to_owned())),
        parameters: read.unwrap_or_default(),
        account: fields.account.clone(),
        enqueued_at: fields.enqueued_at,
        failures: fields.dispatch_failures,
        last_failure: fields.last_failure.clone().unwrap_or_default(),
        closed,
    }
}

/// Why a context is closed at once; nothing if it can wait for its turn.
fn verdict(
    old: &OldState,
    fields: &QueueFields,
    rig: Option<&RigSlug>,
    unreadable: Option<&String>,
    facts: AdoptionFacts<'_>,
) -> Option<(CloseReason, String)> {
    let failures = fields.dispatch_failures;
    let told = |otherwise: String| fields.last_failure.clone().unwrap_or(otherwise);
    let broken = || {
        let why = told(format!("{failures} starts failed"));
        Some((CloseReason::CircuitBroken, why))
    };
    let quarantined = |why: String| Some((CloseReason::Quarantined, why));
    match old {
        OldState::Dispatched => return Some((CloseReason::Dispatched, String::new())),
        _ if facts.is_closed => {
            let why = "its bead was closed before it was dispatched".to_owned();
            return Some((CloseReason::StaleWorkBead, why));
        }
        OldState::Damaged(why) => return Some((CloseReason::InvalidContext, why.clone())),
        OldState::Failed(_) if failures >= START_FAILURES_MAX => return broken(),
        OldState::Failed(_) => {
            return quarantined(told("the older queue had given it up".to_owned()));
        }
        OldState::QueuedNowhere => {
            return quarantined("it was queued, but nothing says to which rig".to_owned());
        }
        OldState::QueuedAtHome if facts.home.is_none() => {
            return quarantined("its id belongs to no rig, and nothing else names one".to_owned());
        }
        OldState::QueuedAtHome => return None,
        OldState::Inert(_) => {
            let why = format!("it has a queue block but not the label {}", labels::QUEUED);
            return Some((CloseReason::Cleared, why));
        }
        OldState::Queued(_) => {}
    }
    if let Some(why) = unreadable {
        return Some((CloseReason::InvalidContext, why.clone()));
    }
    if rig.is_none() {
        let name = fields.target_rig.escape_debug();
        return quarantined(format!("its rig \"{name}\" is not known; gt rig add makes one"));
    }
    if let Some(account) = &fields.account
        && !facts.accounts.contains(account)
    {
        let name = account.escape_debug();
        return quarantined(format!(
            "its account \"{name}\" is not known; gt config account add makes one"
        ));
    }
    if failures >= START_FAILURES_MAX { broken() } else { None }
}

/// The parameters that the fields ask for, or why they cannot be understood.
fn parameters(fields: &QueueFields) -> Result<SlingParameters, String> {
    let variable = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("its variable \"{}\" is not of the form key=value", text.escape_debug())),
    };
    let words = |error: crate::Invalid| error.to_string();
    let ralph = match fields.mode.as_deref() {
        None | Some("normal") => false,
        Some("ralph") => true,
        Some(other) => return Err(format!("its mode \"{}\" is not known", other.escape_debug())),
    };
    Ok(SlingParameters {
        formula: fields.formula.clone(),
        args: fields.args.clone(),
        vars: fields.vars.iter().map(variable).collect::<Result<_, _>>()?,
        merge: fields.merge.as_deref().map(Merge::parse).transpose().map_err(words)?,
        convoy: fields.convoy.as_deref().map(BeadId::parse).transpose().map_err(words)?,
        base_branch: fields.base_branch.clone(),
        no_merge: fields.no_merge,
        review_only: fields.review_only,
        review: false,
        runtime: fields.agent.clone(),
        hook_raw_bead: fields.hook_raw_bead,
        owned: fields.owned,
        ralph,
        retries: 0,
        host: None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::queue_block::parse;

    const BLOCK: &str = "Fix it.\n---gt:queue:v1---\ntarget_rig: web";

    fn web() -> RigSlug {
        RigSlug::parse("web").unwrap()
    }

    fn state(labels: &[&str], description: &str) -> Option<OldState> {
        let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
        OldState::of(&labels, &parse(description))
    }

    /// How the successor ends, in a town with the rig web and the account main.
    fn ending(labels: &[&str], description: &str, is_closed: bool) -> Option<CloseReason> {
        let (home, accounts) = (web(), ["main".to_owned()]);
        let old = state(labels, description).expect("a queue has been there");
        let rigs = std::slice::from_ref(&home);
        let facts = AdoptionFacts { home: Some(&home), is_closed, rigs, accounts: &accounts };
        adopt(&old, facts).closed.map(|(reason, _)| reason)
    }

    #[test]
    fn a_bead_that_no_queue_has_seen_is_left_alone() {
        assert_eq!(state(&["urgent"], "Mind the ---gt:queue:v1--- of old."), None);
        assert_eq!(state(&[labels::SLING_CONTEXT], ""), None);
    }

    #[test]
    fn a_waiting_bead_goes_on_waiting() {
        assert_eq!(ending(&["gt:queued"], BLOCK, false), None);
        assert_eq!(ending(&["queued"], "", false), None);
        let known = format!("{BLOCK}\naccount: main\ndispatch_failures: 2");
        assert_eq!(ending(&["gt:queued"], &known, false), None);
    }

    #[test]
    fn a_state_that_was_over_stays_over() {
        use CloseReason::{CircuitBroken, Cleared, Dispatched, Quarantined, StaleWorkBead};
        let thrice = format!("{BLOCK}\ndispatch_failures: 3\nlast_failure: no tmux");
        for (labels, description, is_closed, expected) in [
            (&["gt:queue-dispatched"][..], "", false, Dispatched),
            (&["gt:queue-dispatched"], "", true, Dispatched),
            (&["gt:queued"], BLOCK, true, StaleWorkBead),
            (&["queued"], "", true, StaleWorkBead),
            (&["gt:dispatch-failed"], &thrice, false, CircuitBroken),
            (&["gt:queued"], &thrice, false, CircuitBroken),
            (&["gt:dispatch-failed"], BLOCK, false, Quarantined),
            (&["gt:dispatch-failed"], "", false, Quarantined),
            // Clearing took the label and left the block.
            (&[], BLOCK, false, Cleared),
        ] {
            assert_eq!(ending(labels, description, is_closed), Some(expected), "{labels:?}");
        }
    }

    #[test]
    fn an_undispatchable_context_is_closed_and_says_why() {
        use CloseReason::{InvalidContext, Quarantined};
        for (labels, description, expected) in [
            (&["gt:queued"][..], "", Quarantined),
            (&["gt:queued"], "---gt:queue:v1---", InvalidContext),
            (&["gt:queued"], "---gt:queue:v1---\ntarget_rig: attic", Quarantined),
            (&["gt:queued"], &format!("{BLOCK}\naccount: absent"), Quarantined),
            (&["gt:queued"], &format!("{BLOCK}\nmerge: sometimes"), InvalidContext),
            (&["gt:queued"], &format!("{BLOCK}\nvar: novalue"), InvalidContext),
            (&["gt:queued"], &format!("{BLOCK}\nmode: turbo"), InvalidContext),
        ] {
            assert_eq!(ending(labels, description, false), Some(expected), "{description}");
        }
    }

    #[test]
    fn parameters_failures_and_times_are_taken_over() {
        let description = format!(
            "{BLOCK}\nformula: mol-review\nvar: a=1\nvar: b=x=y\nmerge: mr\nagent: codex\n\
             mode: ralph\nno_merge: true\nenqueued_at: 2026-01-02T03:04:05Z\n\
             dispatch_failures: 1\nlast_failure: no room"
        );
        let (home, old) = (web(), state(&["gt:queued"], &description).unwrap());
        let rigs = std::slice::from_ref(&home);
        let facts = AdoptionFacts { home: None, is_closed: false, rigs, accounts: &[] };
        let successor = adopt(&old, facts);
        assert_eq!(
            successor.parameters.vars,
            [("a".into(), "1".into()), ("b".into(), "x=y".into())]
        );
        assert_eq!(successor.parameters.merge, Some(Merge::Mr));
        assert_eq!(successor.parameters.runtime.as_deref(), Some("codex"));
        assert!(successor.parameters.ralph && successor.parameters.no_merge);
        assert_eq!(successor.enqueued_at, Timestamp::parse("2026-01-02T03:04:05Z").ok());
        assert_eq!((successor.failures, successor.last_failure.as_str()), (1, "no room"));
        assert_eq!(successor.closed, None);
    }

    proptest! {
        #[test]
        fn nothing_starts_without_a_known_rig_or_on_a_closed_bead(
            marks in prop::sample::subsequence(labels::DERIVED.to_vec(), 0..5),
            body in "(---gt:queue:v1---\n|target_rig: (web|attic)\n|merge: [a-z]{0,3}\n|text\n){0,5}",
            at_home: bool,
            is_closed: bool,
        ) {
            let stored: Vec<String> = marks.iter().map(ToString::to_string).collect();
            let Some(old) = OldState::of(&stored, &parse(&body)) else { return Ok(()) };
            let home = web();
            let rigs = std::slice::from_ref(&home);
            let facts =
                AdoptionFacts { home: at_home.then_some(&home), is_closed, rigs, accounts: &[] };
            let successor = adopt(&old, facts);
            if successor.closed.is_none() {
                prop_assert!(!is_closed);
                prop_assert_eq!(successor.rig, home);
            }
        }
    }
}
