//! The lanes of the board, and runs page by page.

use gt_core::board::BoardLane;
use gt_core::cost::{SpendingChange, Spent};
use gt_core::merging::RequestState;
use gt_core::schedule::{CloseReason, Money, Run, RunState};
use gt_core::{Bead, DependencyType, Outcome, Status, Timestamp};

use super::EngineUnderTest;
use super::contexts::{new, schedule};
use super::kit::{CheckedStore, at, bead, id, kind, priority, rig, slug};
use super::merge_requests::put;
use super::runs::{begin, end};
use gt_store::{BoardFilter, NewContext, RunPage};

fn filter(limit: usize) -> BoardFilter {
    BoardFilter { rig: None, convoy: None, now: at(3_000), landed_since: at(1_500), limit }
}

#[track_caller]
fn assert_lane(town: &CheckedStore, lane: BoardLane, filter: &BoardFilter, expected: &[&str]) {
    let (found, count) = town
        .read(|reader| Ok((reader.board_lane(lane, filter)?, reader.board_count(lane, filter)?)));
    let found: Vec<&str> = found.iter().map(gt_core::BeadId::as_str).collect();
    assert_eq!(found, expected, "{}", lane.as_str());
    assert_eq!(count, expected.len() as u64, "{}", lane.as_str());
}

/// A bead in each lane, two in some, and beads that are in none.
fn town(subject: &dyn EngineUnderTest) -> CheckedStore {
    let town = CheckedStore::new(subject);
    town.write(|writer| writer.insert_rig(&rig("gear", "ge")));
    let of_rig = |text: &str| Bead { rig: Some(slug("gear")), ..bead(text) };
    for text in ["ge-ready", "ge-run", "ge-review", "ge-queue", "ge-done", "ge-waits"] {
        town.add(of_rig(text));
    }
    town.add(Bead { priority: priority(0), ..bead("hq-urgent") });
    town.add(Bead { status: Status::Deferred, ..bead("hq-later") });
    town.add(Bead { status: Status::InProgress, ..bead("hq-hand") });
    town.add(Bead { issue_type: kind("convoy"), ..bead("hq-cv-1") });
    town.add(Bead { issue_type: kind("epic"), ..bead("hq-epic") });
    town.add(Bead { issue_type: kind("gate"), ..bead("hq-gate") });
    town.add_open(&["hq-failed", "hq-old"]);
    town.link("ge-waits", DependencyType::Blocks, "ge-ready");
    town.write(|writer| writer.track(&id("hq-cv-1"), &[id("ge-run"), id("ge-waits")]));
    begin(&town, "ge-run", |_| {});
    put(&town, "ge-queue", "main");
    let old = put(&town, "ge-review", "main");
    let mut new = old.clone();
    new.state = RequestState::Review;
    town.write(|writer| writer.save_merge_request(old.state, &new).map(drop));
    let close = |text: &str, outcome: Option<Outcome>, seconds: i64| {
        town.change(text, gt_core::BeadChangeKind::Closed, |bead| {
            (bead.status, bead.outcome, bead.closed_at) =
                (Status::Closed, outcome, Some(at(seconds)));
        });
    };
    close("ge-done", None, 2_000);
    close("hq-failed", Some(Outcome::Failed), 2_000);
    close("hq-old", Some(Outcome::Success), 1_000);
    town
}

pub(super) fn each_bead_is_in_the_lane_where_it_stands(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let all = filter(10);
    assert_lane(&town, BoardLane::Ready, &all, &["hq-urgent", "ge-ready"]);
    assert_lane(&town, BoardLane::Blocked, &all, &["ge-waits", "hq-later"]);
    assert_lane(&town, BoardLane::Running, &all, &["ge-run", "hq-hand"]);
    assert_lane(&town, BoardLane::Review, &all, &["ge-review"]);
    assert_lane(&town, BoardLane::Queue, &all, &["ge-queue"]);
    assert_lane(&town, BoardLane::Landed, &all, &["ge-done"]);
}

pub(super) fn a_bead_that_does_not_start_is_not_ready(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.write(|writer| writer.insert_rig(&rig("gear", "ge")));
    let names = ["ge-backs-off", "ge-broken", "ge-cancelled", "ge-cleared", "ge-new", "ge-waited"];
    town.add_open(&names);
    schedule(&town, NewContext { next_attempt_at: Some(at(3_001)), ..new("ge-backs-off") });
    schedule(&town, NewContext { next_attempt_at: Some(at(2_999)), ..new("ge-waited") });
    let closed = |text: &str, reason: CloseReason| {
        let context = schedule(&town, new(text));
        town.write(|writer| writer.close_context(&context, reason, ""));
        context
    };
    closed("ge-broken", CloseReason::CircuitBroken);
    closed("ge-cleared", CloseReason::Cleared);
    let context = closed("ge-cancelled", CloseReason::Dispatched);
    let run = begin(&town, "ge-cancelled", |run| run.context = context.number);
    end(&town, &run, RunState::Cancelled);
    let all = filter(10);
    assert_lane(&town, BoardLane::Ready, &all, &["ge-cleared", "ge-new", "ge-waited"]);
    assert_lane(&town, BoardLane::Blocked, &all, &["ge-backs-off", "ge-broken", "ge-cancelled"]);
}

pub(super) fn a_lane_is_narrowed_by_rig_and_convoy(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let of_rig = BoardFilter { rig: Some(slug("gear")), ..filter(10) };
    assert_lane(&town, BoardLane::Ready, &of_rig, &["ge-ready"]);
    assert_lane(&town, BoardLane::Blocked, &of_rig, &["ge-waits"]);
    assert_lane(&town, BoardLane::Running, &of_rig, &["ge-run"]);
    assert_lane(&town, BoardLane::Queue, &of_rig, &["ge-queue"]);
    assert_lane(&town, BoardLane::Landed, &of_rig, &["ge-done"]);
    let of_convoy = BoardFilter { convoy: Some(id("hq-cv-1")), ..filter(10) };
    assert_lane(&town, BoardLane::Ready, &of_convoy, &[]);
    assert_lane(&town, BoardLane::Blocked, &of_convoy, &["ge-waits"]);
    assert_lane(&town, BoardLane::Running, &of_convoy, &["ge-run"]);
    assert_lane(&town, BoardLane::Review, &of_convoy, &[]);
}

pub(super) fn a_long_lane_shows_its_first_beads_and_counts_all(subject: &dyn EngineUnderTest) {
    let town = town(subject);
    let (found, count) = town.read(|reader| {
        let (lane, first) = (BoardLane::Ready, filter(1));
        Ok((reader.board_lane(lane, &first)?, reader.board_count(lane, &first)?))
    });
    assert_eq!((found, count), (vec![id("hq-urgent")], 2));
}

pub(super) fn runs_are_listed_page_by_page_the_newest_first(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let one = |text: &str, seconds: i64| begin(&town, text, |run| run.created_at = at(seconds));
    let first = one("gt-a", 1);
    end(&town, &first, RunState::Lost);
    let second = one("gt-a", 2);
    end(&town, &second, RunState::Done);
    let third = begin(&town, "gt-a", |run| (run.created_at, run.rig) = (at(3), slug("web")));
    let fourth = one("gt-b", 3);
    let names =
        |runs: &[Run]| -> Vec<String> { runs.iter().map(|run| run.id.to_string()).collect() };
    let ask = |page: RunPage| {
        let (runs, count) =
            town.read(|reader| Ok((reader.runs_page(&page)?, reader.count_runs(&page)?)));
        (names(&runs), count)
    };
    let all = RunPage { limit: 3, ..RunPage::default() };
    let expected = [&fourth, &third, &second].map(|run| run.id.to_string());
    assert_eq!(ask(all.clone()), (expected.to_vec(), 4));
    let rest = RunPage { after: Some((at(2), second.id.clone())), ..all.clone() };
    assert_eq!(ask(rest), (vec![first.id.to_string()], 4));
    let live = RunPage { live: Some(true), ..all.clone() };
    assert_eq!(ask(live.clone()), (expected[..2].to_vec(), 2));
    let after: (Timestamp, _) = (at(3), fourth.id.clone());
    let rest = RunPage { after: Some(after), ..live };
    assert_eq!(ask(rest).0, [third.id.to_string()]);
    let ended = RunPage { live: Some(false), ..all.clone() };
    assert_eq!(ask(ended), ([&second, &first].map(|run| run.id.to_string()).to_vec(), 2));
    let of_rig = RunPage { rig: Some(slug("web")), ..all };
    assert_eq!(ask(of_rig), (vec![third.id.to_string()], 1));
}

pub(super) fn spending_is_summed_by_hour_and_by_run(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let run = begin(&town, "gt-a", |_| {});
    let spend = |seconds: i64, cost: i64, priced: i64| {
        let change = SpendingChange {
            model: "m".to_owned(),
            input: 5,
            cost,
            priced,
            ..SpendingChange::default()
        };
        town.write(|writer| writer.add_spending(&run, at(seconds), &change));
    };
    spend(100, 7, 0);
    spend(3_700, 1, 1);
    spend(3_800, 2, 0);
    spend(99, 9, 0);
    let (hours, by_run) = town.read(|reader| {
        Ok((reader.spent_by_hour(at(100))?, reader.spent_by_runs_of(&[id("gt-a")])?))
    });
    let spent = |tokens, cost| Spent { tokens, cost: Money(cost), unpriced: 0 };
    assert_eq!(hours, [(0, spent(5, 7)), (1, spent(10, 3))]);
    assert_eq!(by_run.get(&run.id), Some(&(spent(20, 19), Money(1))));
}
