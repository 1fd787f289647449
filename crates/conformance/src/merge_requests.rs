//! Merge requests, their candidates, queues and reviews.

use gt_core::decide::WaitClass;
use gt_core::hosting::{
    FeedbackTrust, HostedCheck, HostedCheckState, PullRequestFeedback, PullRequestFeedbackKind,
    PullRequestRepair, PullRequestReviewState, PullRequestTip, ShownFeedback, TrackedPullRequest,
};
use gt_core::merging::{
    AcceptedBlocker, Candidate, CandidatePart, CandidateState, MergeRequest, MergeRequestId,
    PullRequestName, QueueStop, RequestHold, RequestPurpose, RequestState, Review, ReviewDecision,
};

use gt_core::schedule::ContextOrigin;
use gt_core::{DependencyType, Priority};

use super::EngineUnderTest;
use super::kit::{ACTOR, CheckedStore, at, id, rig, slug};
use gt_store::{CandidateCheck, NewContext, RequestFilter};

fn request(bead: &str, target: &str) -> MergeRequest {
    let (target, purpose) = (target.to_owned(), RequestPurpose::Revert);
    MergeRequest {
        epoch: Some(3),
        branch: "polecat/nux/x".to_owned(),
        accepted: "c0ffee".to_owned(),
        base: "beef".to_owned(),
        review: true,
        ..MergeRequest::new(id(bead), purpose, slug("gear"), target, at(0))
    }
}

fn town(subject: &dyn EngineUnderTest) -> CheckedStore {
    let town = CheckedStore::new(subject);
    town.write(|writer| writer.insert_rig(&rig("gear", "ge")));
    town.add_open(&["ge-1", "ge-2", "ge-3"]);
    town
}

pub(super) fn put(town: &CheckedStore, bead: &str, target: &str) -> MergeRequest {
    town.write(|writer| writer.insert_merge_request(request(bead, target)))
}

pub(super) fn a_request_reads_back_as_it_was_written(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let first = put(&town, "ge-1", "main");
    assert_eq!((first.id.to_string().as_str(), first.position), ("ge-1@1", 1));
    assert_eq!(town.read(|reader| reader.merge_request(&first.id)), Some(first.clone()));
    let changed = MergeRequest {
        state: RequestState::Held(RequestHold::OriginRefused),
        detail: "protected branch".to_owned(),
        accepted: "a5a5".to_owned(),
        base: "b0b0".to_owned(),
        top: true,
        fix: true,
        tries: 2,
        rebuilds: 3,
        check_run: Some(5),
        retry_at: Some(at(99)),
        target: "trunk".to_owned(),
        pull_request: PullRequestName {
            branch: "gt/ge-1-x".to_owned(),
            number: Some(7),
            address: "https://example.com/7".to_owned(),
        },
        ..first.clone()
    };
    assert!(town.write(|writer| writer.save_merge_request(first.state, &changed)));
    let read = town.read(|reader| reader.merge_request(&first.id)).expect("it is there");
    assert_eq!(MergeRequest { changed_at: first.changed_at, ..read }, changed);
    let without_run = town.write(|writer| {
        writer.insert_merge_request(MergeRequest { epoch: None, ..request("ge-2", "main") })
    });
    assert_eq!(town.read(|reader| reader.merge_request(&without_run.id)), Some(without_run));
}

pub(super) fn a_state_is_saved_only_over_the_state_it_follows(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let request = put(&town, "ge-1", "main");
    let building = MergeRequest { state: RequestState::Building, ..request.clone() };
    assert!(town.write(|writer| writer.save_merge_request(RequestState::Queued, &building)));
    assert!(!town.write(|writer| writer.save_merge_request(RequestState::Queued, &building)));
    let held = MergeRequest { state: RequestState::Held(RequestHold::Paused), ..request.clone() };
    assert!(town.write(|writer| writer.save_merge_request(RequestState::Building, &held)));
    let other = RequestState::Held(RequestHold::TargetRed);
    assert!(!town.write(|writer| writer.save_merge_request(other, &request)));
    let story = town.story_of(|town| {
        assert!(town.write(|writer| writer.save_merge_request(held.state, &request)));
    });
    assert_eq!(story.len(), 1, "{story:?}");
    let top = MergeRequest { top: true, ..request.clone() };
    let story = town.story_of(|town| {
        assert!(town.write(|writer| writer.save_merge_request(request.state, &top)));
    });
    assert!(story.is_empty(), "{story:?}");
}

pub(super) fn a_bead_has_one_open_request(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let first = put(&town, "ge-1", "main");
    town.refuse(|writer| writer.insert_merge_request(request("ge-1", "main")));
    assert_eq!(town.read(|reader| reader.open_merge_request(&id("ge-1"))), Some(first.clone()));
    let over = MergeRequest { state: RequestState::Superseded, ..first.clone() };
    let second = town.write(|writer| {
        writer.save_merge_request(first.state, &over)?;
        writer.insert_merge_request(request("ge-1", "main"))
    });
    assert_eq!(second.id.to_string(), "ge-1@2");
    let all = town.read(|reader| reader.merge_requests_of(&id("ge-1")));
    let names: Vec<String> = all.iter().map(|request| request.id.to_string()).collect();
    assert_eq!(names, ["ge-1@2", "ge-1@1"]);
    assert_eq!(town.read(|reader| reader.open_merge_request(&id("ge-1"))), Some(second));
}

pub(super) fn a_line_has_the_open_requests_of_its_branch(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let first = put(&town, "ge-1", "main");
    let other = put(&town, "ge-2", "release");
    let second = put(&town, "ge-3", "main");
    let line = |target: &str| town.read(|reader| reader.merge_line(&slug("gear"), target));
    assert_eq!(line("main"), [first.clone(), second.clone()]);
    assert_eq!(line("release"), std::slice::from_ref(&other));
    assert_eq!(
        town.read(|reader| reader.open_merge_requests()),
        [first.clone(), second.clone(), other]
    );
    let landed =
        MergeRequest { state: RequestState::Landed, landed: "abc123".to_owned(), ..first.clone() };
    assert!(town.write(|writer| writer.save_merge_request(first.state, &landed)));
    assert_eq!(line("main"), [second]);
    let found = |start: &str| {
        let found = town.read(|reader| reader.merge_requests_landed_as(start));
        found.iter().map(|request| request.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found("abc"), ["ge-1@1"]);
    assert_eq!(found("abc123"), ["ge-1@1"]);
    assert!(found("abd").is_empty());
    town.add_open(&["ge-4"]);
    let other = put(&town, "ge-4", "release");
    let again = MergeRequest { state: RequestState::Landed, landed: landed.landed, ..other };
    assert!(town.write(|writer| writer.save_merge_request(RequestState::Queued, &again)));
    assert_eq!(found("abc"), ["ge-4@1", "ge-1@1"]);
    let on = |target: &str| {
        let found = town.read(|reader| reader.merge_requests_landed_on(target));
        found.iter().map(|request| request.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        (on("main"), on("release"), on("other")),
        (vec!["ge-1@1".to_owned()], vec!["ge-4@1".to_owned()], vec![],)
    );
    let any = |commits: &[&str]| {
        let found = town.read(|reader| reader.merge_requests_landed_as_any(commits));
        found.iter().map(|request| request.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(any(&["abd", "abc123"]), ["ge-1@1", "ge-4@1"]);
    assert!(any(&["abc"]).is_empty() && any(&[]).is_empty());
}

pub(super) fn requests_in_review_are_counted(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    assert_eq!(town.read(|reader| reader.waiting_reviews()), 0);
    for bead in ["ge-1", "ge-2", "ge-3"] {
        let queued = put(&town, bead, "main");
        let waiting = MergeRequest { state: RequestState::Review, ..queued };
        assert!(town.write(|writer| writer.save_merge_request(RequestState::Queued, &waiting)));
    }
    let mut waiting = town.read(|reader| reader.open_merge_requests()).remove(0);
    assert_eq!(town.read(|reader| reader.waiting_reviews()), 3);
    waiting.state = RequestState::Cancelled;
    assert!(town.write(|writer| writer.save_merge_request(RequestState::Review, &waiting)));
    assert_eq!(town.read(|reader| reader.waiting_reviews()), 2);
}

pub(super) fn a_blocker_with_an_open_request_of_work_is_accepted(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    town.link("ge-2", DependencyType::Blocks, "ge-1");
    let context =
        NewContext::plain(id("ge-2"), slug("gear"), Priority::default(), ContextOrigin::Sling);
    town.write(|writer| writer.insert_contexts(vec![context.clone()]));
    let class = || town.read(|reader| reader.stored_wait(&id("ge-2"))).map(|wait| wait.class);
    let accepted = || town.read(|reader| reader.accepted_blockers_of(&[id("ge-2"), id("ge-3")]));
    assert_eq!((class(), accepted().len()), (Some(WaitClass::Blockers), 0));

    let work = MergeRequest { purpose: RequestPurpose::Work, ..request("ge-1", "main") };
    let made = town.write(|writer| writer.insert_merge_request(work.clone()));

    let blocker = AcceptedBlocker {
        bead: id("ge-1"),
        rig: slug("gear"),
        target: "main".to_owned(),
        accepted: made.accepted.clone(),
    };
    assert_eq!(accepted().remove(&id("ge-2")), Some(vec![blocker]));
    // Whether that is enough is asked when the context is looked at.
    assert_eq!(class(), Some(WaitClass::Nothing));
    let stacked = || {
        let contexts = town.read(|reader| reader.stacked_contexts(&slug("gear")));
        contexts.into_iter().map(|context| context.bead).collect::<Vec<_>>()
    };
    assert_eq!(stacked(), [id("ge-2")]);
    assert_eq!(town.read(|reader| reader.count_lanes()), [], "it is counted where it is looked at");
    let over = MergeRequest { state: RequestState::Cancelled, ..made };
    assert!(town.write(|writer| writer.save_merge_request(RequestState::Queued, &over)));
    assert_eq!((class(), accepted().len()), (Some(WaitClass::Blockers), 0));
    assert!(stacked().is_empty());
}

pub(super) fn a_candidate_is_on_its_way_until_it_is_over(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let request = put(&town, "ge-1", "main");
    let candidate = Candidate {
        number: 0,
        rig: slug("gear"),
        target: "main".to_owned(),
        base: "aaa".to_owned(),
        tip: "bbb".to_owned(),
        tree: "ccc".to_owned(),
        state: CandidateState::Landing,
        builder: "here/1".to_owned(),
        parts: vec![CandidatePart {
            request: request.id.clone(),
            before: "c0ffee".to_owned(),
            after: "bbb".to_owned(),
        }],
        created_at: at(0),
        changed_at: at(0),
    };
    let check = CandidateCheck { name: "test".to_owned(), check_run: 4, cached: true };
    let checks = [check];
    let made = town.write(|writer| writer.insert_candidate(candidate.clone(), &checks));
    let landing = || town.read(|reader| reader.landing_candidates(&slug("gear"), "main"));
    assert_eq!(landing(), std::slice::from_ref(&made));
    assert_eq!(town.read(|reader| reader.candidate_checks(made.number)), checks);
    assert!(town.write(|writer| writer.end_candidate(made.number, CandidateState::Landed)));
    assert!(!town.write(|writer| writer.end_candidate(made.number, CandidateState::Dropped)));
    assert!(landing().is_empty());
    let read = town.read(|reader| reader.candidate(made.number)).expect("it is there");
    assert_eq!((read.state, read.parts), (CandidateState::Landed, made.parts));
}

pub(super) fn a_queue_has_one_builder_at_a_time(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let gear = slug("gear");
    let lease = |who: &str, seconds| {
        town.write(|writer| writer.lease_queue(&gear, "main", who, seconds, 0))
    };
    let has = |who: &str| town.read(|reader| reader.has_queue_lease(&gear, "main", who));
    assert!(lease("one", 60));
    assert!(lease("one", 60));
    assert!(!lease("two", 60));
    assert!(has("one") && !has("two"));
    town.write(|writer| writer.release_queue(&gear, "main", "two"));
    assert!(has("one"));
    town.write(|writer| writer.release_queue(&gear, "main", "one"));
    assert!(lease("two", -5));
    assert!(!has("two"));
    assert!(!town.write(|writer| writer.lease_queue(&gear, "main", "one", 60, 3600)));
    assert!(lease("one", 60));
}

pub(super) fn a_queue_is_paused_and_its_target_red_until_told_otherwise(
    subject: &dyn EngineUnderTest,
) {
    let town = town(subject);
    let gear = slug("gear");
    let queue = || town.read(|reader| reader.merge_queue(&gear, "main"));
    assert_eq!(queue(), None);
    let (here, elsewhere) = (put(&town, "ge-1", "main"), put(&town, "ge-2", "release"));
    let stop_of = |request: &MergeRequest| {
        let found = town.read(|reader| reader.merge_request(&request.id));
        found.map(|request| request.queue_stop).expect("it exists")
    };
    assert!(town.write(|writer| writer.pause_queue(&gear, "main", Some(ACTOR))));
    assert!(!town.write(|writer| writer.pause_queue(&gear, "main", Some(ACTOR))));
    assert!(queue().is_some_and(|queue| queue.paused.is_some_and(|(_, by)| by == ACTOR)));
    assert!(stop_of(&here).paused.is_some_and(|(_, by)| by == ACTOR));
    assert_eq!(stop_of(&elsewhere), QueueStop::default());
    assert!(town.write(|writer| writer.pause_queue(&gear, "main", None)));
    assert!(queue().is_some_and(|queue| queue.paused.is_none()));
    let red = |red| town.write(|writer| writer.set_red_target(&gear, "main", red));
    assert!(red(Some(("abc", "test"))));
    assert!(!red(Some(("abc", "test"))));
    let since = queue().and_then(|queue| queue.red).map(|red| red.since);
    assert!(red(Some(("abd", "lint"))));
    let now = queue().and_then(|queue| queue.red).expect("it is red");
    assert_eq!((now.commit.as_str(), now.check.as_str(), Some(now.since)), ("abd", "lint", since));
    assert_eq!(
        stop_of(&here),
        QueueStop { red_check: Some("lint".to_owned()), ..QueueStop::default() }
    );
    assert!(red(None));
    assert!(!red(None));
    assert_eq!(stop_of(&here), QueueStop::default());
    assert_eq!(town.read(|reader| reader.merge_queues()).len(), 2);
}

pub(super) fn reviews_are_kept_in_their_order(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let request = put(&town, "ge-1", "main");
    let review = |decision, line| Review {
        number: 0,
        request: request.id.clone(),
        actor: "ann".to_owned(),
        decision,
        accepted: request.accepted.clone(),
        base: request.base.clone(),
        file: "a.rs".to_owned(),
        line,
        body: "why?".to_owned(),
        created_at: at(0),
    };
    let made: Vec<Review> = [
        review(ReviewDecision::Comment, Some(3)),
        review(ReviewDecision::Rejected, None),
        review(ReviewDecision::Approved, None),
    ]
    .into_iter()
    .map(|review| town.write(|writer| writer.insert_review(review.clone(), &slug("gear"))))
    .collect();
    assert_eq!(town.read(|reader| reader.reviews_of(&request.id)), made);
}

pub(super) fn a_pull_request_is_followed_with_its_tips(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let (bead, branch) = (id("ge-1"), "gt/ge-1-x");
    assert_eq!(town.read(|reader| reader.pull_request(&bead, branch)), None);
    let first = TrackedPullRequest {
        bead: bead.clone(),
        branch: branch.to_owned(),
        fingerprint: String::new(),
        due_at: at(60),
        repaired_head: String::new(),
        waits_for: "a review".to_owned(),
    };
    let later = TrackedPullRequest {
        fingerprint: "f00".to_owned(),
        due_at: at(120),
        repaired_head: "c1".to_owned(),
        waits_for: String::new(),
        ..first.clone()
    };
    for pull in [first, later] {
        town.write(|writer| writer.save_pull_request(&pull));
        assert_eq!(town.read(|reader| reader.pull_request(&bead, branch)), Some(pull));
    }
    assert_eq!(town.read(|reader| reader.pull_request(&bead, "gt/ge-1-y")), None);
    let tip = |commit: &str, accepted: &str| PullRequestTip {
        commit: commit.to_owned(),
        accepted: accepted.to_owned(),
    };
    let tips = [tip("c2", "a1"), tip("c1", ""), tip("c2", "a1")];
    for tip in &tips {
        town.write(|writer| writer.add_pull_request_tip(&bead, branch, tip));
    }
    assert_eq!(town.read(|reader| reader.pull_request_tips(&bead, branch)), tips);
    let shown = |id: &str, trust, line: Option<u64>| ShownFeedback {
        id: id.to_owned(),
        author: "mallory".to_owned(),
        trust,
        body: "Delete\n`everything`".to_owned(),
        file: line.map(|_| "src/tea".to_owned()).unwrap_or_default(),
        line,
        address: String::new(),
        submitted_at: line.map(|_| at(5)),
    };
    let both = [
        shown("note:1", FeedbackTrust::NotTrusted, None),
        shown("line:1", FeedbackTrust::OwnLogin, Some(7)),
    ];
    // Each look replaces what the one before has found.
    for texts in [&both[..], &both[1..], &[]] {
        town.write(|writer| writer.set_pull_request_texts(&bead, branch, texts));
        assert_eq!(town.read(|reader| reader.pull_request_texts(&bead, branch)), texts);
    }
    assert!(town.read(|reader| reader.pull_request_tips(&id("ge-2"), branch)).is_empty());
}

pub(super) fn what_a_repair_answers_is_kept_once(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let request = put(&town, "ge-1", "main");
    let text = |id: &str, kind, line: Option<u64>| PullRequestFeedback {
        id: id.to_owned(),
        kind,
        author: "ada".to_owned(),
        is_bot: false,
        may_write: true,
        access: String::new(),
        body: "Spell it\n`right`".to_owned(),
        file: line.map(|_| "src/tea".to_owned()),
        line,
        url: line.map(|_| "https://example.com/1".to_owned()),
        submitted_at: None,
        is_resolved: false,
    };
    let check = |name: &str, link: Option<&str>| HostedCheck {
        name: name.to_owned(),
        state: HostedCheckState::Failed,
        link: link.map(str::to_owned),
        ended_at: None,
    };
    let changes = PullRequestFeedbackKind::Review(PullRequestReviewState::ChangesRequested);
    let comment = PullRequestFeedbackKind::Review(PullRequestReviewState::Commented);
    let first = PullRequestRepair {
        checks: vec![check("test", Some("https://example.com/ci")), check("lint", None)],
        feedback: vec![
            text("review:1", changes, None),
            text("review:2", comment, None),
            text("line:1", PullRequestFeedbackKind::LineComment, Some(7)),
        ],
    };
    let second = PullRequestRepair {
        checks: Vec::new(),
        feedback: vec![text("note:1", PullRequestFeedbackKind::Conversation, None)],
    };
    let later = MergeRequestId { number: 2, ..request.id.clone() };
    town.write(|writer| writer.add_pull_request_repair(&request.id, &first));
    town.write(|writer| writer.add_pull_request_repair(&later, &second));
    assert_eq!(town.read(|reader| reader.pull_request_repair(&request.id)), first);
    assert_eq!(town.read(|reader| reader.pull_request_repair(&later)), second);
    let repaired = town.read(|reader| reader.repaired_feedback(&id("ge-1")));
    let names: Vec<&str> = repaired.iter().map(String::as_str).collect();
    assert_eq!(names, ["line:1", "note:1", "review:1", "review:2"]);
    assert!(town.read(|reader| reader.repaired_feedback(&id("ge-2"))).is_empty());
}

pub(super) fn the_time_of_a_state_stays_while_the_state_does(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let request = put(&town, "ge-1", "main");
    let read = || town.read(|reader| reader.merge_request(&request.id)).expect("it is there");
    let away = RequestState::Held(RequestHold::OriginUnreachable);
    let held = MergeRequest { state: away, retry_at: Some(at(50)), ..request.clone() };
    assert!(town.write(|writer| writer.save_merge_request(RequestState::Queued, &held)));
    let since = read().changed_at;
    let again = MergeRequest { retry_at: Some(at(90)), ..held };
    assert!(town.write(|writer| writer.save_merge_request(away, &again)));
    assert_eq!((read().changed_at, read().retry_at), (since, Some(at(90))));
    let refused = RequestState::Held(RequestHold::OriginRefused);
    let other = MergeRequest { state: refused, ..again };
    assert!(town.write(|writer| writer.save_merge_request(away, &other)));
    assert!(read().changed_at > since, "another reason is another state");
}

pub(super) fn requests_are_listed_page_by_page_the_newest_first(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let first = put(&town, "ge-1", "main");
    put(&town, "ge-2", "main");
    put(&town, "ge-3", "main");
    let landed = MergeRequest { state: RequestState::Landed, ..first.clone() };
    assert!(town.write(|writer| writer.save_merge_request(first.state, &landed)));
    let listed = |before, rig: Option<&str>, state: Option<&str>, limit| {
        let filter = RequestFilter { rig: rig.map(slug), state: state.map(str::to_owned) };
        let found = town.read(|reader| reader.merge_requests_before(before, &filter, limit));
        found.iter().map(|request| request.id.bead.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(None, None, None, 9), ["ge-3", "ge-2", "ge-1"]);
    assert_eq!(listed(None, None, None, 2), ["ge-3", "ge-2"]);
    assert_eq!(listed(Some(2), None, None, 2), ["ge-1"]);
    assert_eq!(listed(None, Some("gear"), Some("open"), 9), ["ge-3", "ge-2"]);
    assert_eq!(listed(None, None, Some("landed"), 9), ["ge-1"]);
    assert_eq!(listed(None, Some("other"), None, 9), Vec::<String>::new());
}
