//! The work queue: items, their lists, offers to agents, leases, and tokens.

use std::time::Duration;

use gt_core::schedule::{CloseReason, ContextOrigin, Run, RunId, RunState, WorkerPlace};
use gt_core::work::{
    ItemRef, Lease, Position, Scopes, Token, TokenSecret, TokenUse, WorkFilter, WorkItem,
    WorkStatus,
};
use gt_core::{
    Bead, BeadChangeKind, DependencyType, EventKind, ExecutorKind, Outcome, Rig, RigSlug, RigState,
    Status, Timestamp, Uid,
};

use super::EngineUnderTest;
use super::contest::Contest;
use super::kit::{ACTOR, CheckedStore, at, bead, id, kind, priority, rig, slug};
use gt_store::{
    Authorship, NewContext, Offer, Offered, Pause, PullQuery, SettingScope, StoreError, Writer,
};

/// When agents ask, in the cases that do not care.
const NOW: Timestamp = at(50_000);

/// A rig whose work is pulled.
fn pulled(name: &str, prefix: &str) -> Rig {
    Rig { executor: ExecutorKind::Pull, ..rig(name, prefix) }
}

/// A town with the rig `gear` (prefix `gr`), whose work is pulled.
fn pull_town(subject: &dyn EngineUnderTest) -> CheckedStore {
    let town = CheckedStore::new(subject);
    town.write(|writer| writer.insert_rig(&pulled("gear", "gr")));
    town
}

/// An open bead of the rig `gear`, made then.
fn item(text: &str, seconds: i64) -> Bead {
    let made = at(seconds);
    let bead = bead(text);
    let uid = Uid::of_bead(&bead.id, made);
    Bead { rig: Some(slug("gear")), created_at: made, updated_at: made, uid, ..bead }
}

fn ask(agent: &str) -> PullQuery<'_> {
    PullQuery {
        agent,
        kinds: &[],
        rig: None,
        dispatched: false,
        dispatched_below: false,
        after: None,
        now: NOW,
    }
}

fn offer(town: &CheckedStore, ask: &PullQuery<'_>) -> Offer {
    town.read(|reader| reader.offer(ask))
}

/// The bead that an agent is offered.
fn offered(town: &CheckedStore, ask: &PullQuery<'_>) -> Option<String> {
    offer(town, ask).first.map(|first| first.bead.id.to_string())
}

/// The agent takes the bead it is offered; returns that bead.
fn take(writer: &mut Writer<'_>, agent: &str) -> Result<Option<RunId>, StoreError> {
    let now = writer.now();
    let offer = writer.offer(&PullQuery { now, ..ask(agent) })?;
    if offer.busy_with.is_some() {
        return Ok(None);
    }
    let Some(Offered { bead, next_run, .. }) = offer.first else { return Ok(None) };
    let lease = Lease::default();
    let run = Run {
        agent: agent.to_owned(),
        created_by: ACTOR.to_owned(),
        state: RunState::Running,
        running_at: Some(now),
        lease: Some(lease),
        lease_expires_at: Some(lease.ends(now)),
        ..Run::begun(
            next_run.clone(),
            Uid::of_run(&next_run, now),
            0,
            slug("gear"),
            ExecutorKind::Pull,
            now,
        )
    };
    let taken = Bead {
        status: Status::InProgress,
        assignee: agent.to_owned(),
        started_at: Some(now),
        updated_at: now,
        ..bead.clone()
    };
    writer.take_offered(&run, &bead, &taken)?;
    Ok(Some(next_run))
}

/// Gives a bead to an agent that has not picked it up yet.
fn give(town: &CheckedStore, text: &str, agent: &str) -> Run {
    town.write(|writer| {
        let run = writer.next_run_id(&id(text))?;
        let uid = Uid::of_run(&run, writer.now());
        let run = Run {
            agent: agent.to_owned(),
            created_by: ACTOR.to_owned(),
            ..Run::begun(run, uid, 0, slug("gear"), ExecutorKind::Pull, writer.now())
        };
        writer.insert_run(&run)?;
        let old = writer.bead(&id(text))?.expect("the bead is there");
        let assignee = agent.to_owned();
        let new = Bead { status: Status::Hooked, assignee, ..old.clone() };
        writer.save_bead(&old, &new, BeadChangeKind::StatusChanged)?;
        Ok(run)
    })
}

fn listed(town: &CheckedStore, filter: &WorkFilter) -> Vec<String> {
    let items = town.read(|reader| reader.work_items(filter, None, 1000));
    items.iter().map(|item| item.bead.to_string()).collect()
}

pub(super) fn every_bead_that_is_no_container_or_machinery_is_an_item(
    subject: &dyn EngineUnderTest,
) {
    let town = pull_town(subject);
    let statuses =
        ["open", "hooked", "in_progress", "blocked", "deferred", "pinned", "staged_ready"];
    let kinds =
        ["task", "code_review", "epic", "convoy", "molecule", "gate", "event", "merge-request"];
    let mut beads = Vec::new();
    for (at, status) in statuses.iter().enumerate() {
        let status = Status::parse(status).expect("a status");
        beads.push(Bead { status, ..item(&format!("gr-s{at}"), 1000) });
    }
    for (number, kind) in kinds.iter().enumerate() {
        let issue_type = gt_core::IssueType::trusted((*kind).to_owned());
        beads.push(Bead { issue_type, ..item(&format!("gr-k{number}"), 1000) });
    }
    for (number, outcome) in
        [None, Some(Outcome::Success), Some(Outcome::Failed), Some(Outcome::Cancelled)]
            .into_iter()
            .enumerate()
    {
        let closed_at = Some(at(2000));
        let over = item(&format!("gr-c{number}"), 1000);
        beads.push(Bead { status: Status::Closed, closed_at, outcome, ..over });
    }
    beads.push(Bead { ephemeral: true, ..item("gr-e", 1000) });
    beads.push(Bead { is_template: true, ..item("gr-t", 1000) });
    for bead in &beads {
        town.add(bead.clone());
    }

    for bead in beads {
        let expected = WorkItem::is_one(&bead).then(|| WorkItem::of(bead.clone(), None, None));
        let project = town.read(|reader| reader.rig("gear")).map(|rig| rig.uid);
        let expected = expected.map(|item| WorkItem { project, ..item });
        for reference in [ItemRef::Bead(bead.id.clone()), ItemRef::Uid(bead.uid)] {
            let found = town.read(|reader| reader.work_item(&reference));
            assert_eq!(found, expected, "{}", bead.id);
        }
    }
}

pub(super) fn an_item_without_a_project_has_none(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let inbox = Rig { slug: RigSlug::inbox(), ..pulled("gear", "wq") };
    town.write(|writer| writer.insert_rig(&inbox));
    town.add(Bead { rig: Some(RigSlug::inbox()), ..bead("wq-a") });
    town.add(bead("hq-a"));
    for text in ["wq-a", "hq-a"] {
        let found = town.read(|reader| reader.work_item(&id(text).into()));
        assert_eq!(found.expect("it is there").project, None, "{text}");
    }
    let by_uid = town.read(|reader| reader.rig_by_uid(&inbox.uid));
    assert_eq!(by_uid.map(|rig| rig.slug), Some(RigSlug::inbox()));
}

pub(super) fn items_are_listed_by_urgency_and_age_with_every_filter(subject: &dyn EngineUnderTest) {
    let town = pull_town(subject);
    town.write(|writer| writer.insert_rig(&rig("web", "web")));
    // Given items whose names say in which order they belong,
    for (text, urgency, made, agent) in [
        ("gr-6", 2, 3000, "ann"),
        ("gr-2", 0, 2000, "bob"),
        ("gr-3", 1, 1000, "ann"),
        ("gr-4", 1, 1000, "bob"),
        ("gr-1", 0, 1000, "ann"),
        ("gr-5", 2, 1000, ""),
    ] {
        let assignee = agent.to_owned();
        town.add(Bead { priority: priority(urgency), assignee, ..item(text, made) });
    }
    town.set_status("gr-3", Status::Blocked);
    town.change("gr-5", BeadChangeKind::Updated, |bead| {
        bead.rig = Some(slug("web"));
        bead.issue_type = kind("bug");
        "carl".clone_into(&mut bead.created_by);
        "Mend 100% of it".clone_into(&mut bead.description);
    });
    let all = WorkFilter::default;

    // when a client asks for some of them, then they come in that order.
    for (filter, expected) in [
        (all(), "1 2 3 4 5 6"),
        (WorkFilter { statuses: vec![WorkStatus::Queued], ..all() }, "1 2 4 5 6"),
        (WorkFilter { statuses: vec![WorkStatus::Blocked], ..all() }, "3"),
        (WorkFilter { agent: Some("ann".to_owned()), ..all() }, "1 3 6"),
        (WorkFilter { project: Some(slug("gear")), ..all() }, "1 2 3 4 6"),
        (WorkFilter { kind: Some(kind("bug")), ..all() }, "5"),
        (WorkFilter { created_by: Some("carl".to_owned()), ..all() }, "5"),
        (WorkFilter { text: Some("100%".to_owned()), ..all() }, "5"),
        (WorkFilter { text: Some("TITLE OF".to_owned()), ..all() }, "1 2 3 4 5 6"),
        (WorkFilter { executor: Some(ExecutorKind::Pull), ..all() }, "1 2 3 4 6"),
        (WorkFilter { executor: Some(ExecutorKind::Ssh), ..all() }, ""),
    ] {
        let expected: Vec<String> =
            expected.split_whitespace().map(|number| format!("gr-{number}")).collect();
        assert_eq!(listed(&town, &filter), expected, "{filter:?}");
        // And part by part they are the same.
        let mut parts = Vec::new();
        let mut after: Option<Position> = None;
        loop {
            let part = town.read(|reader| reader.work_items(&filter, after.as_ref(), 2));
            let Some(last) = part.last() else { break };
            after = Some(Position::of(last));
            parts.extend(part.iter().map(|item| item.bead.to_string()));
        }
        assert_eq!(parts, expected, "{filter:?}");
    }
}

pub(super) fn since_when_is_when_it_was_made_or_when_it_ended(subject: &dyn EngineUnderTest) {
    let town = pull_town(subject);
    for (text, made, urgency) in [("gr-a", 1000, 0), ("gr-b", 2000, 4), ("gr-c", 3000, 2)] {
        town.add(Bead { priority: priority(urgency), ..item(text, made) });
    }
    // Made before the others, and ended after them.
    let (closed_at, outcome) = (Some(at(4000)), Some(Outcome::Failed));
    town.add(Bead { status: Status::Closed, closed_at, outcome, ..item("gr-d", 500) });
    let since = |seconds, statuses: &[WorkStatus]| WorkFilter {
        since: Some(at(seconds)),
        statuses: statuses.to_vec(),
        ..WorkFilter::default()
    };
    let (queued, failed) = (WorkStatus::Queued, WorkStatus::Failed);
    for (filter, expected) in [
        (since(1000, &[]), &["gr-b", "gr-c"][..]),
        (since(0, &[]), &["gr-d", "gr-a", "gr-b", "gr-c"]),
        (since(2500, &[queued]), &["gr-c"]),
        (since(2500, &[failed]), &["gr-d"]),
        (since(4000, &[failed]), &[]),
        (since(2500, &[queued, failed]), &["gr-d", "gr-c"]),
    ] {
        assert_eq!(listed(&town, &filter), expected, "{filter:?}");
    }
}

pub(super) fn an_agent_is_offered_the_most_urgent_and_oldest(subject: &dyn EngineUnderTest) {
    let town = pull_town(subject);
    for (text, urgency, made) in
        [("gr-4", 2, 3000), ("gr-3", 2, 1000), ("gr-1", 0, 2000), ("gr-2", 1, 1000)]
    {
        town.add(Bead { priority: priority(urgency), ..item(text, made) });
    }
    let mut order = Vec::new();
    for number in 0..5 {
        let agent = format!("agent-{number}");
        order.extend(town.write(|writer| take(writer, &agent)));
    }
    let order: Vec<String> = order.iter().map(ToString::to_string).collect();
    assert_eq!(order, ["gr-1#1", "gr-2#1", "gr-3#1", "gr-4#1"]);
}

pub(super) fn items_that_are_not_ready_or_for_others_are_not_offered(
    subject: &dyn EngineUnderTest,
) {
    let town = pull_town(subject);
    town.write(|writer| writer.insert_rig(&rig("web", "web")));
    town.write(|writer| writer.insert_rig(&pulled("park", "pk")));
    let parked = town.read(|reader| reader.rig("park")).expect("it is there");
    town.write(|writer| writer.set_rig_state(&parked, RigState::Parked));
    town.add_open(&["hq-first", "hq-parent"]);
    let put_off = Some(NOW.plus(Duration::from_secs(1)));
    for bead in [
        Bead { rig: Some(slug("web")), ..item("web-a", 1000) },
        Bead { rig: Some(slug("park")), ..item("pk-a", 1000) },
        Bead { assignee: "bob".to_owned(), ..item("gr-bob", 1000) },
        Bead { status: Status::Blocked, ..item("gr-blocked", 1000) },
        Bead { status: Status::Deferred, defer_until: put_off, ..item("gr-later", 1000) },
        Bead { status: Status::Deferred, ..item("gr-someday", 1000) },
        Bead { pinned: true, ..item("gr-pinned", 1000) },
        Bead { ephemeral: true, ..item("gr-machine", 1000) },
        Bead { issue_type: kind("epic"), ..item("gr-epic", 1000) },
        item("gr-waits", 1000),
        item("gr-part", 1000),
    ] {
        town.add(bead);
    }
    town.link("gr-waits", DependencyType::Blocks, "hq-first");
    town.link("gr-part", DependencyType::ParentChild, "hq-parent");
    town.change("hq-parent", BeadChangeKind::Updated, |bead| bead.defer_until = put_off);

    assert_eq!(offered(&town, &ask("ann")), None);
    assert_eq!(offered(&town, &ask("bob")).as_deref(), Some("gr-bob"));

    town.close("hq-first");
    assert_eq!(offered(&town, &ask("ann")).as_deref(), Some("gr-waits"));
    let later = PullQuery { now: NOW.plus(Duration::from_secs(2)), ..ask("ann") };
    town.close("gr-waits");
    assert_eq!(offered(&town, &later).as_deref(), Some("gr-later"), "its date has come");
    town.close("gr-later");
    assert_eq!(offered(&town, &later).as_deref(), Some("gr-part"), "so has that of its parent");
}

pub(super) fn an_item_scheduled_for_an_agent_is_offered_to_no_other(subject: &dyn EngineUnderTest) {
    let town = pull_town(subject);
    town.add(item("gr-a", 1000));
    let place = Some(WorkerPlace::agent("bob").expect("a valid name"));
    let plain = NewContext::plain(id("gr-a"), slug("gear"), priority(2), ContextOrigin::Sling);
    let made = town.write(|writer| writer.insert_contexts(vec![NewContext { place, ..plain }]));

    assert_eq!(offered(&town, &ask("ann")), None);
    assert_eq!(offered(&town, &ask("bob")).as_deref(), Some("gr-a"));

    town.write(|writer| writer.close_context(&made[0], CloseReason::Cleared, ""));
    assert_eq!(offered(&town, &ask("ann")).as_deref(), Some("gr-a"));
}

pub(super) fn an_agent_may_be_particular(subject: &dyn EngineUnderTest) {
    let town = pull_town(subject);
    town.write(|writer| writer.insert_rig(&pulled("shop", "sh")));
    town.add(Bead { issue_type: kind("bug"), priority: priority(0), ..item("gr-bug", 1000) });
    town.add(Bead { issue_type: kind("chore"), ..item("gr-chore", 2000) });
    town.add(Bead { rig: Some(slug("shop")), ..item("sh-task", 3000) });
    let kinds = [kind("chore"), kind("task")];
    let shop = slug("shop");
    for (ask, expected) in [
        (ask("ann"), Some("gr-bug")),
        (PullQuery { kinds: &kinds, ..ask("ann") }, Some("gr-chore")),
        (PullQuery { kinds: &kinds[1..], ..ask("ann") }, Some("sh-task")),
        (PullQuery { rig: Some(&shop), ..ask("ann") }, Some("sh-task")),
        (PullQuery { rig: Some(&shop), kinds: &kinds[..1], ..ask("ann") }, None),
    ] {
        assert_eq!(offered(&town, &ask).as_deref(), expected, "{ask:?}");
    }
}

pub(super) fn a_dispatched_item_comes_first_and_only_to_its_agent(subject: &dyn EngineUnderTest) {
    let town = pull_town(subject);
    town.add(Bead { priority: priority(0), ..item("gr-urgent", 1000) });
    town.add(item("gr-given", 2000));
    let given = give(&town, "gr-given", "ann");
    assert_eq!(offered(&town, &ask("bob")).as_deref(), Some("gr-urgent"));
    let first = offer(&town, &ask("ann")).first.expect("there is something");
    assert_eq!((first.bead.id, first.given), (id("gr-given"), Some(given.id.clone())));

    // An agent can ask for that alone, and a setting can say so for every agent.
    let only = |agent| PullQuery { dispatched: true, ..ask(agent) };
    assert_eq!(offered(&town, &only("ann")).as_deref(), Some("gr-given"));
    assert_eq!(offered(&town, &only("bob")), None);
    let claim =
        |value| town.write(|writer| writer.put_setting(SettingScope::Town, "work.claim", value));
    claim(Some("dispatched"));
    assert_eq!(offered(&town, &ask("ann")).as_deref(), Some("gr-given"));
    let nothing = offer(&town, &ask("bob"));
    assert!(nothing.only_dispatched && nothing.first.is_none());
    claim(Some("any"));
    assert_eq!(offered(&town, &ask("bob")).as_deref(), Some("gr-urgent"));
    // A file may say so too; the store counts before it.
    let below = |agent| PullQuery { dispatched_below: true, ..ask(agent) };
    assert_eq!(offered(&town, &below("bob")).as_deref(), Some("gr-urgent"));
    claim(None);
    assert_eq!(offered(&town, &below("ann")).as_deref(), Some("gr-given"));
    let nothing = offer(&town, &below("bob"));
    assert!(nothing.only_dispatched && nothing.first.is_none());

    let lease = Lease::default();
    let begin = |writer: &mut Writer<'_>| {
        let lease_expires_at = Some(lease.ends(writer.now()));
        let begun = Run { lease: Some(lease), lease_expires_at, ..given.clone() };
        let begun = writer.begin_given(&begun)?;
        super::runs::set_status(writer, "gr-given", Status::InProgress)?;
        Ok(begun)
    };
    assert!(town.write(begin));
    assert!(!town.write(begin), "it is picked up once");
    let run = town.read(|reader| reader.run_of_agent("ann")).expect("it is at work");
    assert_eq!((run.id, run.lease), (given.id, Some(lease)));
    assert_eq!(offer(&town, &ask("ann")).busy_with, Some(id("gr-given")));
}

pub(super) fn a_pause_is_told_to_agents_that_ask(subject: &dyn EngineUnderTest) {
    let town = pull_town(subject);
    town.add(item("gr-a", 1000));
    assert_eq!(offer(&town, &ask("ann")).paused, None);
    let pause = Pause { by: ACTOR.to_owned(), at: at(5) };
    town.write(|writer| writer.set_paused(Some(&pause)));
    assert_eq!(offer(&town, &ask("ann")).paused, Some(pause));
}

pub(super) fn a_taken_item_is_recorded_and_has_a_lease(subject: &dyn EngineUnderTest) {
    let town = pull_town(subject);
    town.add(item("gr-a", 1000));
    let story = town.story_of(|town| {
        assert!(town.write(|writer| take(writer, "ann")).is_some());
    });
    assert_eq!(story, ["dispatched gr-a", "status_changed gr-a"]);
    let run = town.read(|reader| reader.run_of_agent("ann")).expect("it is at work");
    let item = town.read(|reader| reader.work_item(&id("gr-a").into())).expect("it is there");
    assert_eq!((item.status, item.agent.as_deref()), (WorkStatus::InProgress, Some("ann")));
    assert_eq!((item.run, item.lease_expires_at), (Some(run.uid), run.lease_expires_at));
    assert_eq!(town.get("gr-a").started_at, run.running_at);
}

pub(super) fn a_lease_that_is_not_renewed_ends(subject: &dyn EngineUnderTest) {
    let town = pull_town(subject);
    for text in ["gr-a", "gr-b"] {
        town.add(item(text, 1000));
    }
    for agent in ["ann", "bob"] {
        assert!(town.write(|writer| take(writer, agent)).is_some());
    }
    let ends = |agent: &str| {
        town.read(|reader| reader.run_of_agent(agent)).and_then(|run| run.lease_expires_at)
    };
    let first = ends("ann").expect("it has a lease");
    assert_eq!(town.read(|reader| reader.next_expiry()), Some(first));
    let just_before = Timestamp::from_nanos(first.as_nanos() - 1);
    assert!(town.read(|reader| reader.expired_runs(just_before, 10)).is_empty());

    let (run, longer) = (RunId { bead: id("gr-a"), epoch: 1 }, Lease::of_seconds(3600));
    let longer = longer.expect("a valid lease");
    let before = town.last_event();
    let renewed = town.write(|writer| writer.renew_lease(&run, longer));
    assert_eq!(town.last_event(), before, "a renewed lease is no event");
    assert_eq!(ends("ann"), Some(renewed));
    let far = first.plus(Duration::from_mins(10));
    let expired = town.read(|reader| reader.expired_runs(far, 10));
    assert_eq!(expired.iter().map(|run| run.agent.as_str()).collect::<Vec<_>>(), ["bob"]);
    assert_eq!(town.read(|reader| reader.next_expiry()), ends("bob"));
}

pub(super) fn a_blocked_run_is_not_missed_and_a_silent_one_is(subject: &dyn EngineUnderTest) {
    let town = pull_town(subject);
    for text in ["gr-a", "gr-b"] {
        town.add(item(text, 1000));
    }
    // Given an agent with a lease, and one without,
    assert!(town.write(|writer| take(writer, "ann")).is_some());
    let given = give(&town, "gr-b", "bob");
    let set = |text: &str, status: Status| town.set_status(text, status);
    town.write(|writer| {
        assert!(writer.begin_given(&given)?);
        super::runs::set_status(writer, "gr-b", Status::InProgress)
    });
    // then only the one without is missed after a while,
    let silent = |now| {
        let runs = town.read(|reader| reader.silent_runs(now, 10));
        runs.into_iter().map(|run| run.agent).collect::<Vec<_>>()
    };
    let heard = town.get("gr-b").updated_at;
    assert_eq!(town.read(|reader| reader.longest_silent()), Some(heard));
    assert_eq!(silent(heard), ["bob"]);
    assert!(silent(Timestamp::from_nanos(heard.as_nanos() - 1)).is_empty());
    // and neither of them while it waits.
    for (text, epoch) in [("gr-a", 1), ("gr-b", 1)] {
        let run = RunId { bead: id(text), epoch };
        let run = town.read(|reader| reader.run(&run)).expect("it is there");
        let story = town.story_of(|town| {
            town.write(|writer| {
                assert!(writer.block_run(&run, "the vendor", false)?);
                assert!(!writer.block_run(&run, "the vendor", false)?);
                super::runs::set_status(writer, text, Status::Blocked)
            });
        });
        assert_eq!(story[0], format!("run_blocked {text}"));
    }
    assert!(silent(NOW).is_empty());
    assert_eq!(town.read(|reader| reader.next_expiry()), None);
    assert_eq!(town.read(|reader| reader.run_of_agent("ann")), None, "its agent is free");
    // An unblocked run has its lease from then on.
    let run = town.read(|reader| reader.run(&RunId { bead: id("gr-a"), epoch: 1 }));
    let run = run.expect("it is there");
    town.write(|writer| {
        assert!(writer.unblock_run(&run)?);
        super::runs::set_status(writer, "gr-a", Status::InProgress)
    });
    let again = town.read(|reader| reader.run_of_agent("ann")).expect("it is at work");
    assert!(again.lease_expires_at > run.lease_expires_at);
    set("gr-b", Status::Blocked);
}

pub(super) fn of_two_agents_that_ask_at_once_one_gets_the_item(subject: &dyn EngineUnderTest) {
    const AGENTS: usize = 3;
    let contest = Contest::new(subject, AGENTS);
    contest.town.write(|writer| writer.insert_rig(&pulled("gear", "gr")));
    let contest = contest.prepare(|writer, round| {
        let made = i64::try_from(round).expect("there are few rounds") + 1;
        writer.insert_bead(&item(&format!("gr-{round}"), made), EventKind::Created)
    });
    // Each round there is one more item than rounds that went before, and each agent is a new one.
    contest.run(
        |store, turn| {
            let by = Authorship { actor: ACTOR.to_owned(), at: at(60_000), worker: None };
            let agent = format!("agent-{}-{}", turn.round, turn.role);
            let taken = store.submit(by, move |writer| take(writer, &agent)).wait();
            taken.expect("the write succeeds").map(|run| run.bead)
        },
        |town, round, taken| {
            let mut got: Vec<_> = taken.into_iter().flatten().collect();
            let count = got.len();
            got.sort();
            got.dedup();
            assert_eq!(got.len(), count, "round {round}: handed out twice");
            for bead in got {
                let live = town.read(|reader| reader.live_run(&bead));
                assert!(live.is_some(), "round {round}: {bead}");
            }
        },
    );
}

pub(super) fn an_agent_that_asks_twice_at_once_gets_one_item(subject: &dyn EngineUnderTest) {
    let contest = Contest::new(subject, 2);
    contest.town.write(|writer| writer.insert_rig(&pulled("gear", "gr")));
    let contest = contest.prepare(|writer, round| {
        for which in ["a", "b"] {
            let text = format!("gr-{which}{round}");
            writer.insert_bead(&item(&text, 1000), EventKind::Created)?;
        }
        Ok(())
    });
    contest.run(
        |store, turn| {
            let by = Authorship { actor: ACTOR.to_owned(), at: at(60_000), worker: None };
            let agent = format!("agent-{}", turn.round);
            let taken = store.submit(by, move |writer| take(writer, &agent)).wait();
            taken.expect("the write succeeds").is_some()
        },
        |_, round, got| {
            assert_eq!(got.iter().filter(|got| **got).count(), 1, "round {round}: {got:?}");
        },
    );
}

pub(super) fn a_token_is_kept_without_its_secret_and_revoked_once(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let secret = TokenSecret::from_random([7; 32]);
    let token = Token {
        id: secret.hash().id(),
        name: "steve-w".to_owned(),
        hash: secret.hash(),
        scopes: Scopes::parse("read,work").expect("valid scopes"),
        agent: Some("steve-w".to_owned()),
        created_at: at(1),
        created_by: ACTOR.to_owned(),
        expires_at: Some(NOW),
        revoked_at: None,
        shown_as: TokenUse::Bearer,
        used_at: None,
    };
    assert!(!town.read(|reader| reader.any_token(at(2))));
    let story = town.story_of(|town| {
        town.write(|writer| writer.insert_token(&token));
        assert!(town.read(|reader| reader.any_token(at(2))));
        assert!(!town.read(|reader| reader.any_token(NOW)), "it has expired by then");
        let kept = town.read(|reader| reader.token(&token.id)).expect("it is there");
        assert!(kept.hash.matches(&secret.hash()));
        assert_eq!(
            (kept.name.as_str(), kept.scopes.to_string().as_str()),
            ("steve-w", "read,work")
        );
        assert_eq!(kept.agent.as_deref(), Some("steve-w"));
        assert!(town.write(|writer| writer.revoke_token(&token)));
        assert!(!town.write(|writer| writer.revoke_token(&token)));
    });
    assert_eq!(story, ["token_changed", "token_changed"]);
    assert!(!town.read(|reader| reader.any_token(at(2))));
    assert!(town.read(|reader| reader.tokens())[0].revoked_at.is_some());
    let told = town.events_since(0);
    assert!(told.iter().all(|event| !event.payload.as_str().contains("0707")));
}

pub(super) fn a_login_link_is_used_once_and_sessions_that_are_over_are_forgotten(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    let made = |seed: u8, shown_as: TokenUse, until: Timestamp| {
        let hash = TokenSecret::from_random([seed; 32]).hash();
        Token {
            id: hash.id(),
            shown_as,
            name: "ann".to_owned(),
            hash,
            scopes: Scopes::parse("view,type").expect("valid scopes"),
            agent: None,
            created_at: at(1),
            created_by: ACTOR.to_owned(),
            expires_at: Some(until),
            revoked_at: None,
            used_at: None,
        }
    };
    let (login, session) = (made(1, TokenUse::Login, at(60)), made(2, TokenUse::Session, NOW));
    let story = town.story_of(|town| {
        town.write(|writer| writer.insert_token(&login));
        assert!(town.write(|writer| writer.use_login(&login)));
        assert!(!town.write(|writer| writer.use_login(&login)), "it is used up");
        town.write(|writer| writer.insert_token(&session));
        town.write(|writer| writer.use_session(&session.id));
    });
    assert_eq!(story, ["token_changed", "token_changed"]);
    assert!(!town.read(|reader| reader.any_token(at(2))), "a server needs a token of another kind");
    let kept = town.read(|reader| reader.token(&session.id)).expect("it is there");
    assert_eq!(kept.shown_as, TokenUse::Session);
    assert!(kept.used_at.is_some());
    assert_eq!(town.write(|writer| writer.forget_sessions(at(61))), 1);
    let left = town.read(|reader| reader.tokens());
    assert_eq!(
        left.iter().map(|token| token.id.as_str()).collect::<Vec<_>>(),
        [session.id.as_str()]
    );
}
