//! The inbox: a row for each thing that needs a person, and none for anything else.

use gt_beads::beads::{self, Close};
use gt_beads::dependencies;
use gt_beads::merge_requests::cancel_request_in;
use gt_beads::messages::{self, Escalation, MessageToSend, escalate_in};
use gt_beads::run_records::set_status_in;
use gt_core::inbox::{InboxItem, InboxKind};
use gt_core::merging::{
    MergeRequest, PullRequestName, RequestHold, RequestPurpose, RequestState, ReviewDecision,
};
use gt_core::message::{MessageBody, Severity};
use gt_core::schedule::{
    CloseReason, ContextOrigin, DoneStatus, Rescued, RunEnd, RunId, RunState, Workplace,
};
use gt_core::{
    BeadChangeKind, BeadId, DependencyType, MessageAddress, Outcome, Priority, Rig, RigSlug,
    Sender, Status, Timestamp,
};
use gt_daemon::inbox::inbox;
use gt_execution::merge_queue::{self, RequestReview};
use gt_executors::git::Commit;
use gt_scheduling::dispatch::{Dispatcher, MemorySpawner};
use gt_scheduling::run_transitions::claim;
use gt_scheduling::schedule::{SlingOutcome, retry};
use gt_store::NewContext;
use gt_town::{Town, settings};

use crate::scheduling::{bead, shown, sling_all, town_with_rig};

/// The rows, without that of the daemon: none runs in these tests.
fn rows(town: &Town) -> Vec<InboxItem> {
    let mut rows = inbox(town).unwrap();
    rows.retain(|row| row.kind != InboxKind::DaemonAway);
    rows
}

fn keys(town: &Town) -> Vec<String> {
    rows(town).iter().map(InboxItem::key).collect()
}

/// A merge request of a new bead in this state.
fn request(town: &Town, id: &str, state: RequestState) -> MergeRequest {
    request_at(town, id, state, &Commit::parse(&"c0ffee42".repeat(5)).unwrap())
}

/// The same for this accepted commit.
pub(crate) fn request_at(
    town: &Town,
    id: &str,
    state: RequestState,
    accepted: &Commit,
) -> MergeRequest {
    let bead = bead(town, id);
    let (rig, now) = (RigSlug::parse("web").unwrap(), Timestamp::from_nanos(0));
    let request = MergeRequest {
        branch: "polecat/nux".to_owned(),
        accepted: accepted.to_string(),
        base: format!("{:0>40}", "beef"),
        state,
        detail: "words".to_owned(),
        ..MergeRequest::new(bead, RequestPurpose::Work, rig, "main".to_owned(), now)
    };
    town.write(|writer| Ok(writer.insert_merge_request(request)?)).unwrap()
}

fn set(town: &Town, name: &str, value: &str) {
    settings::set(town, name, value, gt_scheduling::runtimes::check_name).unwrap();
}

#[test]
fn a_town_at_rest_has_an_empty_inbox() {
    let town = town_with_rig(None);
    bead(&town, "web-1");
    request(&town, "web-2", RequestState::Queued);
    assert_eq!(keys(&town), Vec::<String>::new());
}

#[test]
fn every_state_of_a_request_that_only_a_person_ends_has_a_row() {
    let states = [RequestState::Review, RequestState::Conflict, RequestState::Failed];
    let held = RequestHold::ALL.iter().copied().map(RequestState::Held);
    for state in states.into_iter().chain(held) {
        let town = town_with_rig(None);
        request(&town, "web-1", state);
        let listed = keys(&town);
        let expected = match state {
            RequestState::Review => Some("review:web-1@1"),
            RequestState::Conflict => Some("conflict:web-1@1"),
            RequestState::Failed => Some("check-failed:web-1@1"),
            RequestState::Held(hold) => match hold {
                RequestHold::Paused => Some("queue-paused:web/main"),
                RequestHold::Unmerged => Some("unmerged:web-1@1"),
                RequestHold::TargetRed => Some("target-red:web/main"),
                RequestHold::TargetGone => Some("target-gone:web/main"),
                RequestHold::OriginRefused => Some("origin-refused:web-1@1"),
                RequestHold::CheckoutInTheWay => Some("checkout-in-the-way:web-1@1"),
                RequestHold::HostingTool => Some("hosting-tool:web"),
                RequestHold::PullRequestChanged => Some("pull-request-changed:web-1@1"),
                RequestHold::CheckError => Some("check-error:web-1@1"),
                RequestHold::CommitElsewhere => Some("commit-elsewhere:web-1@1"),
                RequestHold::WorkMissing => Some("work-missing:web-1@1"),
                RequestHold::QueueError => Some("queue-error:web/main"),
                // Tried again by itself; the origin counts as away after ten minutes.
                RequestHold::TargetMoves
                | RequestHold::OriginUnreachable
                | RequestHold::PullRequestOpen => None,
            },
            _ => None,
        };
        assert_eq!(listed, expected.into_iter().collect::<Vec<_>>(), "{state}");
        for row in rows(&town) {
            assert!(!row.commands.is_empty() && !row.remedy.is_empty(), "{state}");
            assert!(row.since.is_some(), "{state}");
        }
    }
}

#[test]
fn a_repair_that_is_scheduled_needs_no_person() {
    let town = town_with_rig(None);
    let request = request(&town, "web-1", RequestState::Conflict);
    let repair = |writer: &mut gt_store::Writer<'_>| {
        let rig = RigSlug::parse("web").unwrap();
        let (bead, origin) = (request.id.bead.clone(), ContextOrigin::Repair);
        let new = NewContext::plain(bead, rig, Priority::default(), origin);
        Ok(writer.insert_contexts(vec![new])?.remove(0))
    };
    let context = town.write(repair).unwrap();
    assert_eq!(keys(&town), Vec::<String>::new());

    let give_up = |writer: &mut gt_store::Writer<'_>| {
        Ok(writer.close_context(&context, CloseReason::CircuitBroken, "no tree")?)
    };
    town.write(give_up).unwrap();
    assert_eq!(keys(&town), ["conflict:web-1@1"], "one row for the bead");
}

#[test]
fn a_queue_that_stands_still_is_one_row() {
    let town = town_with_rig(None);
    for id in ["web-1", "web-2"] {
        request(&town, id, RequestState::Queued);
    }
    let rig = RigSlug::parse("web").unwrap();
    town.write(|writer| Ok(writer.set_red_target(&rig, "main", Some(("beef", "test")))?)).unwrap();

    let listed = rows(&town);

    assert_eq!(keys(&town), ["target-red:web/main"]);
    assert_eq!(listed[0].context.check.as_deref(), Some("test"));
    assert!(listed[0].what.contains("2 merge requests wait"), "{}", listed[0].what);
    assert_eq!(listed[0].rig.as_ref(), Some(&rig));
    town.write(|writer| Ok(writer.set_red_target(&rig, "main", None)?)).unwrap();
    town.write(|writer| Ok(writer.pause_queue(&rig, "main", Some("ann"))?)).unwrap();
    assert_eq!(keys(&town), ["queue-paused:web/main"]);
    assert!(rows(&town)[0].what.contains("by ann"));
}

/// A town whose rig `web` has its origin on a hosting service.
fn town_with_hosted_rig() -> Town {
    let town = town_with_rig(None);
    town.write(|writer| {
        let rig = writer.rig("web")?.unwrap();
        let hosted = Rig { repo: "https://github.com/acme/web.git".to_owned(), ..rig.clone() };
        writer.delete_rig(&rig)?;
        Ok(writer.insert_rig(&hosted)?)
    })
    .unwrap();
    town
}

#[test]
fn a_lost_login_is_one_row_with_the_command_that_ends_it() {
    let town = town_with_hosted_rig();
    let login = "gh auth login --hostname github.com";
    let held = RequestState::Held(RequestHold::HostingTool);
    let lost = |id: &str, words: &str, number: Option<u64>| {
        let request = request(&town, id, held);
        let pull_request = PullRequestName { number, ..PullRequestName::default() };
        let named = MergeRequest { detail: words.to_owned(), pull_request, ..request };
        town.write(|writer| Ok(writer.save_merge_request(held, &named)?)).unwrap();
    };
    let logged_out = format!("gh is not logged in to github.com; run: {login}");
    lost("web-1", &logged_out, Some(1));
    lost("web-2", &logged_out, Some(2));

    let listed = rows(&town);

    assert_eq!(keys(&town), ["hosting-tool:web"]);
    assert_eq!(listed[0].commands, [login, "gt mq sync web", "gt mq list --rig web"]);
    assert_eq!(listed[0].remedy, format!("{login}, then gt mq sync web"));
    assert!(listed[0].what.contains("2 merge requests wait in web"), "{}", listed[0].what);

    // A tool that is not installed cannot log in, and what has no pull request yet is not looked at by a sync.
    let town = town_with_hosted_rig();
    let request = request(&town, "web-1", held);
    let listed = rows(&town);
    assert_eq!(listed[0].commands, ["gt mq retry web-1@1", "gt mq list --rig web"]);
    assert_eq!(listed[0].context.detail, request.detail);
}

#[test]
fn an_open_pull_request_is_listed_while_no_daemon_looks_at_it() {
    let town = town_with_rig(None);
    request(&town, "web-1", RequestState::Held(RequestHold::PullRequestOpen));
    let listed = inbox(&town).unwrap();
    let keys: Vec<String> = listed.iter().map(InboxItem::key).collect();
    assert_eq!(keys, ["daemon-away:town"]);
    assert!(listed[0].what.contains("1 pull request is open"), "{}", listed[0].what);
    assert_eq!(listed[0].commands, ["gt up", "gt mq sync"]);
}

#[test]
fn a_pull_request_that_a_person_changed_can_be_closed() {
    let town = town_with_rig(None);
    request(&town, "web-1", RequestState::Held(RequestHold::PullRequestChanged));
    let commands = rows(&town).remove(0).commands;
    assert!(commands.contains(&"gt mq close web-1@1 -m <why>".to_owned()), "{commands:?}");
}

#[test]
fn questions_come_first_and_end_when_they_are_read() {
    let town = town_with_rig(None);
    request(&town, "web-1", RequestState::Review);
    let ask = |words: &str, severity| {
        let wanted = Escalation { words: words.to_owned(), severity, bead: None };
        messages::escalate(&town, None, &wanted).unwrap();
    };
    ask("which port?", Severity::Low);
    ask("the disk is full", Severity::Critical);

    assert_eq!(keys(&town), ["help-wanted:msg-2", "help-wanted:msg-1", "review:web-1@1"]);
    let first = &rows(&town)[0];
    assert_eq!(first.context.detail, "the disk is full");
    assert_eq!(first.commands[0], "gt mail read msg-2");
}

#[test]
fn the_second_answer_to_a_question_is_refused() {
    let town = town_with_rig(None);
    let wanted =
        Escalation { words: "which port?".to_owned(), severity: Severity::Low, bead: None };
    messages::escalate(&town, None, &wanted).unwrap();
    let answer = |words: &str| {
        let letter = MessageToSend { subject: None, body: words.to_owned(), nudge: false };
        messages::reply_to_unread(&town, "msg-1", &letter)
    };
    answer("8080").unwrap();
    let refusal = answer("9090").unwrap_err().to_string();
    assert!(refusal.starts_with("msg-1 was answered or read already"), "{refusal}");
}

#[test]
fn a_question_of_the_merge_queue_ends_with_the_state_that_it_is_about() {
    let town = town_with_rig(None);
    let stuck = request(&town, "web-1", RequestState::Conflict);
    let words = MessageBody::parse("web-1@1 does not apply").unwrap();
    let queue = Sender::Standing(MessageAddress::Refinery(stuck.rig.clone()));
    let bead = Some(stuck.id.bead.clone());
    let asked = town.write(|writer| escalate_in(writer, queue, bead, words, Severity::High));
    asked.unwrap();
    assert_eq!(keys(&town), ["conflict:web-1@1"]);

    let why = "not wanted";
    town.write(|writer| cancel_request_in(writer, &stuck.id.bead, why)).unwrap().unwrap();
    assert_eq!(keys(&town), [""; 0]);
}

#[test]
fn a_bead_that_failed_without_a_run_is_listed_while_others_wait_for_it() {
    let town = town_with_rig(None);
    for id in ["web-1", "web-2", "web-alone"] {
        bead(&town, id);
    }
    dependencies::add(&town, "web-2", "web-1", &DependencyType::Blocks, false).unwrap();
    let fail = |id: &str| {
        let how = Close {
            reasons: vec!["no way".to_owned()],
            outcome: Some(Outcome::Failed),
            ..Close::default()
        };
        beads::close(&town, &[id.to_owned()], &how).unwrap().remove(0).unwrap();
    };
    fail("web-1");
    fail("web-alone");

    let listed = rows(&town);

    assert_eq!(keys(&town), ["failed:web-1"]);
    assert_eq!(listed[0].context.blocks, [BeadId::parse("web-2").unwrap()]);
    assert_eq!(listed[0].context.detail, "no way");
    // Nothing of it was saved.
    let rescue = |row: &InboxItem| row.commands.iter().any(|it| it.contains("gt rescue"));
    assert!(!rescue(&listed[0]), "{:?}", listed[0].commands);
    let saved = Rescued {
        run: RunId::parse("web-1#1").unwrap(),
        rig: RigSlug::parse("web").unwrap(),
        host: "here".to_owned(),
        reference: "refs/gt/rescue/web-1".to_owned(),
        commit: "c0ffee".to_owned(),
        base: "beef".to_owned(),
        bytes: 1,
        left_out: Vec::new(),
        created_at: town.now(),
    };
    town.write(|writer| Ok(writer.put_rescue(&saved)?)).unwrap();
    assert!(rescue(&rows(&town)[0]));
}

#[test]
fn words_of_a_person_are_not_blank() {
    let town = town_with_rig(None);
    request(&town, "web-1", RequestState::Review);
    request(&town, "web-2", RequestState::Held(RequestHold::Unmerged));
    let blank =
        |decision| RequestReview { decision, file: "", line: None, body: " \n", process: None };
    let refused = [
        merge_queue::comment(&town, "web-1", &blank(ReviewDecision::Comment)).unwrap_err(),
        merge_queue::review(&town, "web-1", &blank(ReviewDecision::Rejected)).unwrap_err(),
        merge_queue::close_unmerged(&town, "web-2", "  ").unwrap_err(),
    ];
    for error in refused {
        assert!(error.to_string().starts_with("say "), "{error}");
    }
    let approved = merge_queue::review(&town, "web-1", &blank(ReviewDecision::Approved)).unwrap();
    assert_eq!(approved.state, RequestState::Queued);
}

#[test]
fn a_spent_budget_and_a_rig_without_a_command_are_listed_while_work_waits() {
    let town = town_with_rig(None);
    set(&town, "budget.runs_per_hour", "1");
    bead(&town, "web-0");
    sling_all(&town, &["web-0"]);
    let started = Dispatcher::new(&town, &MemorySpawner::default()).dispatch().unwrap();
    assert_eq!(started.dispatched.len(), 1);
    assert_eq!(keys(&town), Vec::<String>::new(), "nothing waits for it");
    bead(&town, "web-1");
    sling_all(&town, &["web-1"]);
    assert_eq!(keys(&town), ["budget:budget.runs_per_hour"]);
    settings::unset(&town, "budget.runs_per_hour").unwrap();
    settings::unset(&town, "rig.web.command").unwrap();
    assert_eq!(keys(&town), ["rig-cannot-run:web"]);
}

#[test]
fn work_that_only_a_daemon_moves_is_listed_while_none_runs() {
    let town = town_with_rig(None);
    let away = |town: &Town| {
        let rows = inbox(town).unwrap();
        rows.into_iter().find(|row| row.kind == InboxKind::DaemonAway).map(|row| row.what)
    };
    assert_eq!(away(&town), None);
    request(&town, "web-1", RequestState::Queued);
    let said = away(&town).unwrap();
    assert!(said.contains("1 merge request waits to land"), "{said}");
    // The builder was killed in the middle of its work.
    for (id, state) in [
        ("web-3", RequestState::Building),
        ("web-4", RequestState::Checking),
        ("web-5", RequestState::Landing),
        ("web-6", RequestState::Review),
    ] {
        request(&town, id, state);
    }
    let said = away(&town).unwrap();
    assert!(said.contains("4 merge requests wait to land"), "{said}");
    let rig = RigSlug::parse("web").unwrap();
    let lease = |seconds| {
        town.write(|writer| Ok(writer.lease_queue(&rig, "main", "far/away", seconds, 0)?)).unwrap()
    };
    assert!(lease(120));
    assert_eq!(away(&town), None, "a builder on another host has them");
    assert!(lease(-1));
    let said = away(&town).unwrap();
    assert!(said.contains("4 merge requests wait to land"), "{said}");
    bead(&town, "web-2");
    sling_all(&town, &["web-2"]);
    let said = away(&town).unwrap();
    assert!(said.contains("1 bead is ready"), "{said}");
}

/// A town in which a run of `web-1` has ended with a question and has blocked its bead.
fn town_with_escalated_bead() -> Town {
    let town = town_with_rig(None);
    let id = bead(&town, "web-1");
    sling_all(&town, &["web-1"]);
    let started = Dispatcher::new(&town, &MemorySpawner::default()).dispatch().unwrap();
    let run = started.dispatched.into_iter().next().unwrap().run.unwrap();
    claim(&town, &run.id, &Workplace::default(), None).unwrap();
    town.write(|writer| {
        let run = writer.run(&run.id)?.unwrap();
        writer.accept_work(&run, DoneStatus::Escalated, "")?;
        writer.end_run(&run, &RunEnd::without_status(RunState::Cancelled, "it asks"), "")?;
        let words = MessageBody::parse("which port?")?;
        escalate_in(writer, Sender::Worker(run.id), Some(id.clone()), words, Severity::High)?;
        set_status_in(writer, &id, Status::Blocked, "", BeadChangeKind::StatusChanged)
    })
    .unwrap();
    town
}

#[test]
fn a_question_of_a_run_that_is_over_is_answered_by_a_comment_and_a_sling() {
    let town = town_with_escalated_bead();
    let asked = rows(&town).remove(0);
    assert_eq!(
        asked.commands,
        [
            "gt mail read msg-1",
            "bd comments add web-1 <text>",
            "gt scheduler retry web-1",
            "bd close web-1",
        ]
    );

    let slung = sling_all(&town, &["web-1"]);

    assert!(
        matches!(&slung.entries[0].outcome, SlingOutcome::Scheduled(_, waits) if waits.is_empty()),
        "{:?}",
        slung.entries[0].outcome
    );
    assert_eq!(keys(&town), [""; 0]);
    assert_eq!(shown(&town, "web-1").row.bead.status, Status::Open);
}

#[test]
fn a_bead_that_its_run_has_blocked_is_listed_until_it_is_scheduled() {
    let town = town_with_escalated_bead();
    town.write(|writer| {
        for question in writer.unseen_escalations()? {
            writer.message_seen(&question)?;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(keys(&town), ["escalated:web-1"]);
    assert!(retry(&town, &["web-1".to_owned()], false).unwrap().remove(0).is_ok());
    assert_eq!(keys(&town), [""; 0]);
    assert_eq!(shown(&town, "web-1").row.bead.status, Status::Open);
}
