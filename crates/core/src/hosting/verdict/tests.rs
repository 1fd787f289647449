use proptest::prelude::*;

use super::super::{PullRequestFeedbackKind, PullRequestReviewState};
use super::*;

/// A comment of a person with write access, an hour old.
pub(in super::super) fn feedback(id: &str, author: &str) -> PullRequestFeedback {
    PullRequestFeedback {
        id: id.to_owned(),
        kind: PullRequestFeedbackKind::Review(PullRequestReviewState::Commented),
        author: author.to_owned(),
        is_bot: false,
        may_write: true,
        access: "MEMBER".to_owned(),
        body: "Rename this.".to_owned(),
        file: None,
        line: None,
        url: None,
        submitted_at: Some(now().minus(Duration::from_hours(1))),
        is_resolved: false,
    }
}

fn now() -> Timestamp {
    Timestamp::parse("2026-05-31T12:00:00Z").unwrap()
}

fn check(name: &str, state: HostedCheckState, minutes_ago: u64) -> HostedCheck {
    let ended_at = now().minus(Duration::from_mins(minutes_ago));
    let has_ended = state != HostedCheckState::Pending;
    let link = Some(format!("https://ci.example.com/{name}"));
    HostedCheck { name: name.to_owned(), state, link, ended_at: has_ended.then_some(ended_at) }
}

fn open() -> PullRequest {
    PullRequest {
        number: 7,
        state: PullRequestState::Open,
        url: "https://github.com/acme/web/pull/7".to_owned(),
        author: "robot".to_owned(),
        head_branch: "gt/web-1-login".to_owned(),
        head_commit: "b".repeat(40),
        base_branch: "main".to_owned(),
        merge_commit: None,
        has_conflict: false,
        approval: PullRequestApproval::NotRequired,
        checks: Vec::new(),
        feedback: Vec::new(),
    }
}

/// The tracking state: a first push, a second one that is the tip, `comment:1` answered.
struct Known {
    heads: Vec<String>,
    repaired_head: Option<String>,
    repaired: BTreeSet<String>,
    trust: PullRequestTrust,
}

impl Known {
    fn new() -> Self {
        Self {
            heads: vec!["a".repeat(40), "b".repeat(40)],
            repaired_head: None,
            repaired: BTreeSet::from(["comment:1".to_owned()]),
            trust: PullRequestTrust::default(),
        }
    }

    fn judge(&self, fetched: &PullRequest, is_in_target: bool) -> PullRequestVerdict {
        let record = PullRequestRecord {
            base_branch: "main",
            known_heads: &self.heads,
            repaired_head: self.repaired_head.as_deref(),
            repaired_feedback: &self.repaired,
            trust: &self.trust,
            own_login: "robot",
        };
        judge_pull_request(&record, fetched, is_in_target, now())
    }
}

#[test]
fn a_merge_has_landed_only_once_its_commit_is_in_the_target() {
    let known = Known::new();
    let merged = PullRequest {
        state: PullRequestState::Merged,
        merge_commit: Some("c".repeat(40)),
        ..open()
    };
    let landed = known.judge(&merged, true);
    assert_eq!(landed.next, PullRequestNext::Landed { commit: "c".repeat(40) });
    assert!(landed.is_settled);
    let unseen = known.judge(&merged, false);
    assert_eq!(unseen.next, PullRequestNext::MergedNotSeen { commit: Some("c".repeat(40)) });
    assert!(!unseen.is_settled, "the next poll asks again");
    let unnamed = PullRequest { merge_commit: None, ..merged.clone() };
    assert_eq!(known.judge(&unnamed, true).next, PullRequestNext::MergedNotSeen { commit: None });
    let elsewhere = PullRequest { base_branch: "next".to_owned(), ..merged };
    let verdict = known.judge(&elsewhere, false);
    assert_eq!(verdict.next, PullRequestNext::MergedElsewhere { base: "next".to_owned() });
    // The other branch may be merged into the target later.
    assert!(!verdict.is_settled);
    let there = known.judge(&elsewhere, true);
    assert_eq!(there.next, PullRequestNext::Landed { commit: "c".repeat(40) });
}

#[test]
fn a_conflict_is_repaired_once_for_each_head_with_what_else_is_asked_for() {
    let mut known = Known::new();
    let text = feedback("comment:2", "ada");
    let fetched = PullRequest { has_conflict: true, feedback: vec![text.clone()], ..open() };
    let repair = PullRequestRepair { checks: Vec::new(), feedback: vec![text] };
    assert_eq!(known.judge(&fetched, false).next, PullRequestNext::Conflict(repair));
    let alone = PullRequest { feedback: Vec::new(), ..fetched };
    let next = known.judge(&alone, false).next;
    assert_eq!(next, PullRequestNext::Conflict(PullRequestRepair::default()));
    known.repaired_head = Some(alone.head_commit.clone());
    let next = known.judge(&alone, false).next;
    assert_eq!(next, PullRequestNext::Wait(PullRequestWait::RepairedHead));
    let older = PullRequest { head_commit: "a".repeat(40), ..alone };
    assert_eq!(known.judge(&older, false).next, PullRequestNext::Wait(PullRequestWait::OlderHead));
}

#[test]
fn a_person_decides_about_closed_ones_and_other_bases() {
    let known = Known::new();
    let closed = PullRequest { state: PullRequestState::Closed, ..open() };
    assert_eq!(known.judge(&closed, false).next, PullRequestNext::ClosedUnmerged);
    let moved = PullRequest { base_branch: "release".to_owned(), ..open() };
    let expected = PullRequestNext::BaseChanged { base: "release".to_owned() };
    assert_eq!(known.judge(&moved, false).next, expected);
}

#[test]
fn a_foreign_tip_is_built_upon_before_anything_is_repaired() {
    let mut known = Known::new();
    let mut foreign = PullRequest { head_commit: "f".repeat(40), ..open() };
    foreign.checks = vec![check("test", HostedCheckState::Failed, 1)];
    foreign.feedback = vec![feedback("review:9", "ada")];
    let expected = PullRequestNext::ForeignHead { commit: "f".repeat(40) };
    assert_eq!(known.judge(&foreign, false).next, expected);
    known.heads.push("f".repeat(40));
    let PullRequestNext::Repair(repair) = known.judge(&foreign, false).next else {
        panic!("once it is fetched, its checks and comments count");
    };
    assert_eq!((repair.checks.len(), repair.feedback.len()), (1, 1));
}

#[test]
fn the_checks_of_a_replaced_tip_do_not_count() {
    let known = Known::new();
    let mut older = PullRequest { head_commit: "a".repeat(40), ..open() };
    older.checks = vec![check("test", HostedCheckState::Failed, 1)];
    let verdict = known.judge(&older, false);
    assert_eq!(verdict.next, PullRequestNext::Wait(PullRequestWait::OlderHead));
    assert!(!verdict.is_settled);
    older.feedback = vec![feedback("review:9", "ada")];
    let PullRequestNext::Repair(repair) = known.judge(&older, false).next else {
        panic!("comments count at any tip");
    };
    assert_eq!((repair.checks.len(), repair.feedback.len()), (0, 1));
}

#[test]
fn failed_checks_start_one_repair_when_the_others_have_ended() {
    let mut known = Known::new();
    let failed = check("test", HostedCheckState::Failed, 5);
    let passed = check("lint", HostedCheckState::Passed, 9);
    let fetched = PullRequest { checks: vec![failed.clone(), passed], ..open() };
    let repair = PullRequestRepair { checks: vec![failed.clone()], feedback: Vec::new() };
    assert_eq!(known.judge(&fetched, false).next, PullRequestNext::Repair(repair.clone()));

    let pending = check("slow", HostedCheckState::Pending, 0);
    let running = PullRequest { checks: vec![failed.clone(), pending.clone()], ..open() };
    let verdict = known.judge(&running, false);
    let wait = PullRequestWait::Checks {
        running: vec!["slow".to_owned()],
        failed: vec!["test".to_owned()],
    };
    assert_eq!(verdict.next, PullRequestNext::Wait(wait));
    assert!(!verdict.is_settled, "the grace ends without a change on the service");

    let long_ago = check("test", HostedCheckState::Failed, 31);
    let stuck = PullRequest { checks: vec![long_ago.clone(), pending.clone()], ..open() };
    let repair_of =
        |checks| PullRequestNext::Repair(PullRequestRepair { checks, feedback: vec![] });
    assert_eq!(known.judge(&stuck, false).next, repair_of(vec![long_ago]));
    let timeless = HostedCheck { ended_at: None, ..failed };
    let without_time = PullRequest { checks: vec![timeless.clone(), pending], ..open() };
    assert_eq!(known.judge(&without_time, false).next, repair_of(vec![timeless]));

    known.repaired_head = Some("b".repeat(40));
    let again = known.judge(&fetched, false);
    assert_eq!(again.next, PullRequestNext::Wait(PullRequestWait::RepairedHead));
    assert!(again.is_settled);
}

#[test]
fn an_open_one_says_what_it_waits_for() {
    let known = Known::new();
    let cases: [(PullRequestApproval, &[HostedCheckState], PullRequestWait); 6] = [
        (PullRequestApproval::NotRequired, &[], PullRequestWait::Merge),
        (PullRequestApproval::Approved, &[HostedCheckState::Passed], PullRequestWait::Merge),
        (PullRequestApproval::Required, &[], PullRequestWait::Review),
        (PullRequestApproval::ChangesRequested, &[], PullRequestWait::ChangesRequested),
        (
            PullRequestApproval::Required,
            &[HostedCheckState::Stopped],
            PullRequestWait::StoppedChecks(vec!["c".to_owned()]),
        ),
        (
            PullRequestApproval::Approved,
            &[HostedCheckState::Pending, HostedCheckState::Stopped],
            PullRequestWait::Checks { running: vec!["c".to_owned()], failed: vec![] },
        ),
    ];
    for (approval, states, expected) in cases {
        let checks = states.iter().map(|state| check("c", *state, 1)).collect();
        let fetched = PullRequest { approval, checks, ..open() };
        let verdict = known.judge(&fetched, false);
        assert_eq!(verdict.next, PullRequestNext::Wait(expected));
        assert!(verdict.is_settled);
    }
}

#[test]
fn comments_start_a_repair_once_and_together() {
    let mut known = Known::new();
    let mut answered = feedback("comment:1", "ada");
    answered.body = "Old.".to_owned();
    let first = feedback("comment:2", "ada");
    let second = feedback("review:2", "grace");
    let mut stranger = feedback("comment:3", "mallory");
    stranger.may_write = false;
    let texts = vec![answered, first.clone(), second.clone(), stranger.clone(), first.clone()];
    let mut fetched = PullRequest { feedback: texts, ..open() };
    let verdict = known.judge(&fetched, false);
    let repair = PullRequestRepair { checks: vec![], feedback: vec![first, second] };
    assert_eq!(verdict.next, PullRequestNext::Repair(repair));
    let shown = ShownFeedback::of(&stranger, FeedbackTrust::NotTrusted).unwrap();
    assert_eq!(verdict.shown, [shown]);

    known.repaired.extend(["comment:2", "review:2"].map(str::to_owned));
    let later = known.judge(&fetched, false);
    assert_eq!(later.next, PullRequestNext::Wait(PullRequestWait::Merge));

    let mut fresh = feedback("comment:4", "ada");
    fresh.submitted_at = Some(now().minus(Duration::from_secs(119)));
    fetched.feedback.push(fresh);
    let verdict = known.judge(&fetched, false);
    assert_eq!(verdict.next, PullRequestNext::Wait(PullRequestWait::MoreComments));
    assert!(!verdict.is_settled, "the quiet time ends without a change on the service");
}

fn any_feedback() -> impl Strategy<Value = PullRequestFeedback> {
    let authors = prop::sample::select(vec!["ada", "robot", "mallory", "ci"]);
    (authors, 0_u8..6, any::<bool>(), any::<bool>(), 0_u64..10).prop_map(
        |(author, id, may_write, is_resolved, minutes)| {
            let mut text = feedback(&format!("comment:{id}"), author);
            text.may_write = may_write;
            text.is_bot = author == "ci";
            text.is_resolved = is_resolved;
            text.submitted_at = Some(now().minus(Duration::from_mins(minutes)));
            text
        },
    )
}

fn any_pull_request() -> impl Strategy<Value = PullRequest> {
    use {HostedCheckState as Check, PullRequestApproval as Approval, PullRequestState as State};
    let states = prop::sample::select(vec![State::Open, State::Merged, State::Closed]);
    let check_states = vec![Check::Pending, Check::Passed, Check::Failed, Check::Stopped];
    let checks = prop::collection::vec(prop::sample::select(check_states), 0..4);
    let approvals = vec![Approval::Approved, Approval::Required, Approval::NotRequired];
    let texts = prop::collection::vec(any_feedback(), 0..6);
    let heads = prop::sample::select(vec!["a", "b", "f"]);
    let bases = prop::sample::select(vec!["main", "next"]);
    let details = (prop::sample::select(approvals), heads, bases, any::<bool>());
    (states, checks, texts, details).prop_map(|(state, checks, feedback, details)| {
        let (approval, head, base, has_merge_commit) = details;
        let named = checks.into_iter().enumerate();
        PullRequest {
            state,
            head_commit: head.repeat(40),
            base_branch: base.to_owned(),
            merge_commit: has_merge_commit.then(|| "c".repeat(40)),
            approval,
            checks: named.map(|(at, state)| check(&format!("c{at}"), state, 5)).collect(),
            feedback,
            ..open()
        }
    })
}

proptest! {
    #[test]
    fn nothing_lands_unless_merged_and_reachable(fetched in any_pull_request(), is_in_target: bool) {
        let verdict = Known::new().judge(&fetched, is_in_target);
        let may_land = fetched.state == PullRequestState::Merged
            && fetched.merge_commit.is_some()
            && is_in_target;
        prop_assert_eq!(matches!(verdict.next, PullRequestNext::Landed { .. }), may_land);
    }

    #[test]
    fn a_repair_holds_only_trusted_new_texts_and_is_not_repeated(fetched in any_pull_request()) {
        let mut known = Known::new();
        let verdict = known.judge(&fetched, false);
        let PullRequestNext::Repair(repair) = verdict.next else { return Ok(()) };
        prop_assert_eq!(fetched.state, PullRequestState::Open);
        prop_assert_eq!(fetched.base_branch.as_str(), "main");
        prop_assert!(!repair.checks.is_empty() || !repair.feedback.is_empty());
        for text in &repair.feedback {
            prop_assert!(text.author == "ada" || text.author == "mallory");
            prop_assert!(text.may_write && !text.is_bot && !text.is_resolved);
            prop_assert!(text.id != "comment:1");
        }
        if !repair.checks.is_empty() {
            known.repaired_head = Some(fetched.head_commit.clone());
        }
        known.repaired.extend(repair.feedback.into_iter().map(|text| text.id));
        let again = known.judge(&fetched, false).next;
        if let PullRequestNext::Repair(second) = again {
            // Only failures that the first repair did not include because its tip was replaced, or none.
            prop_assert!(second.feedback.is_empty() && !second.checks.is_empty(), "{second:?}");
            known.repaired_head = Some(fetched.head_commit.clone());
            let third = known.judge(&fetched, false).next;
            prop_assert!(!matches!(third, PullRequestNext::Repair(_)), "{third:?}");
        }
    }
}
