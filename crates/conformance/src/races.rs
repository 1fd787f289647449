//! Writers that want contradictory things at the same moment, each through a door of its own.

use gt_core::decide::{IdSeed, find_path};
use gt_core::{Bead, BeadChangeKind, BeadId, DependencyType, Event, EventKind, Prefix, Status};

use super::EngineUnderTest;
use super::contest::{Contest, ContestTurn};
use super::kit::{CheckedStore, at, bead, edge, id, told};
use gt_store::{Authorship, Store, StoreError, Writer};

/// A contestant by the name of its role.
fn actor(turn: ContestTurn) -> Authorship {
    Authorship { actor: format!("contestant-{}", turn.role), at: at(1), worker: None }
}

/// Does it the way half of the callers do, and the other way in every second round.
fn write<T: Send + 'static>(
    store: &Store,
    turn: ContestTurn,
    work: impl FnOnce(&mut Writer<'_>) -> Result<T, StoreError> + Send + 'static,
) -> T {
    let by = actor(turn);
    let written = if (turn.round / 2 + turn.role).is_multiple_of(2) {
        store.write(&by, work)
    } else {
        store.submit(by, work).wait()
    };
    written.expect("the write succeeds")
}

/// An open bead of this round.
fn named(name: &str, round: usize) -> String {
    format!("gt-{name}{round}")
}

fn add(writer: &mut Writer<'_>, name: &str, round: usize) -> Result<(), StoreError> {
    writer.insert_bead(&bead(&named(name, round)), EventKind::Created)
}

fn get(writer: &Writer<'_>, text: &str) -> Result<Bead, StoreError> {
    Ok(writer.bead(&id(text))?.expect("the bead is there"))
}

fn close(writer: &mut Writer<'_>, text: &str) -> Result<bool, StoreError> {
    let old = get(writer, text)?;
    let new = Bead { status: Status::Closed, closed_at: Some(writer.now()), ..old.clone() };
    writer.save_bead(&old, &new, BeadChangeKind::Closed)
}

fn block(writer: &mut Writer<'_>, issue: &str, target: &str) -> Result<(), StoreError> {
    let new = edge(issue, DependencyType::Blocks, target);
    writer.put_dependency(&new, true).map(drop)
}

/// The events since the last call.
fn news(town: &CheckedStore, last: &mut u64) -> Vec<Event> {
    let events = town.events_since(*last);
    *last += events.len() as u64;
    assert_eq!(events.last().map_or(*last, |event| event.number), *last, "no number is left out");
    events
}

fn winners(answers: &[bool]) -> Vec<usize> {
    (0..answers.len()).filter(|role| answers[*role]).collect()
}

pub(super) fn the_last_of_several_closes_unblocks_and_only_the_last(subject: &dyn EngineUnderTest) {
    const TARGETS: usize = 2;
    let contest = Contest::new(subject, TARGETS).prepare(|writer, round| {
        add(writer, "c", round)?;
        (0..TARGETS).try_for_each(|role| {
            let target = format!("t{role}-");
            add(writer, &target, round)?;
            block(writer, &named("c", round), &named(&target, round))
        })
    });
    let mut last = contest.town.last_event();

    contest.run(
        |store, turn| {
            write(store, turn, move |writer| {
                close(writer, &named(&format!("t{}-", turn.role), turn.round))?;
                Ok(get(writer, &named("c", turn.round))?.open_blockers)
            })
        },
        |town, round, mut left| {
            left.sort_unstable();
            assert_eq!(left, [0, 1], "each sees what the others did before it, and its own close");
            let events = news(town, &mut last);
            let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
            assert_eq!(kinds, ["closed", "closed", "unblocked"]);
            assert_eq!(told(&events[2]), format!("unblocked gt-c{round}"));
            assert_ne!(events[0].bead, events[1].bead);
            assert_ne!(events[0].actor, events[1].actor);
            assert_eq!(events[2].actor, events[1].actor, "the last close unblocks");
        },
    );
}

pub(super) fn a_close_beside_a_new_dependency_blocks_no_bead(subject: &dyn EngineUnderTest) {
    let contest = Contest::new(subject, 2).prepare(|writer, round| {
        add(writer, "a", round)?;
        add(writer, "b", round)
    });
    let mut last = contest.town.last_event();

    contest.run(
        |store, turn| {
            write(store, turn, move |writer| {
                let (a, b) = (named("a", turn.round), named("b", turn.round));
                if turn.role == 0 { close(writer, &a).map(drop) } else { block(writer, &b, &a) }
            });
        },
        |town, round, _| {
            assert_eq!(town.blockers_of(&named("b", round)), 0);
            let story: Vec<String> = news(town, &mut last).iter().map(told).collect();
            let (closed, added) =
                (format!("closed gt-a{round}"), format!("dependency_added gt-b{round}"));
            let possible = [
                vec![closed.clone(), added.clone()],
                vec![added, closed, format!("unblocked gt-b{round}")],
            ];
            assert!(possible.contains(&story), "{story:?}");
        },
    );
}

pub(super) fn of_two_crossing_dependencies_one_is_a_circle(subject: &dyn EngineUnderTest) {
    let contest = Contest::new(subject, 2).prepare(|writer, round| {
        add(writer, "x0-", round)?;
        add(writer, "x1-", round)
    });

    contest.run(
        |store, turn| {
            let end = |role: usize| named(&format!("x{role}-"), turn.round);
            let (from, to) = (end(turn.role), end(1 - turn.role));
            write(store, turn, move |writer| {
                let path = find_path(&id(&to), &id(&from), |at| writer.blocking_targets(at))?;
                if path.is_none() {
                    block(writer, &from, &to)?;
                }
                Ok(path.is_none())
            })
        },
        |town, round, added| {
            let added = winners(&added);
            assert_eq!(added.len(), 1, "round {round}: {added:?}");
            let end = |role: usize| named(&format!("x{role}-"), round);
            assert_eq!(town.blockers_of(&end(added[0])), 1);
            assert_eq!(town.blockers_of(&end(1 - added[0])), 0);
        },
    );
}

pub(super) fn one_of_many_takes_a_bead(subject: &dyn EngineUnderTest) {
    let contest = Contest::new(subject, 4).prepare(|writer, round| add(writer, "a", round));
    let mut last = contest.town.last_event();

    contest.run(
        |store, turn| {
            write(store, turn, move |writer| {
                let old = get(writer, &named("a", turn.round))?;
                if !old.assignee.is_empty() {
                    return Ok(false);
                }
                let assignee = writer.actor().to_owned();
                let mine = Bead { assignee, status: Status::InProgress, ..old.clone() };
                writer.save_bead(&old, &mine, BeadChangeKind::Claimed)
            })
        },
        |town, round, taken| {
            let winners = winners(&taken);
            assert_eq!(winners.len(), 1, "round {round}: {taken:?}");
            let winner = format!("contestant-{}", winners[0]);
            assert_eq!(town.get(&named("a", round)).assignee, winner);
            let events = news(town, &mut last);
            assert_eq!(events.len(), 1);
            assert_eq!(
                (told(&events[0]), &events[0].actor),
                (format!("claimed gt-a{round}"), &winner)
            );
        },
    );
}

pub(super) fn no_two_writers_get_the_same_id(subject: &dyn EngineUnderTest) {
    const CONTESTANTS: usize = 4;
    let contest = Contest::new(subject, CONTESTANTS);
    contest.town.add_open(&["gt-p"]);
    let mut seen = std::collections::HashSet::from([id("gt-p")]);
    let mut rounds = 0;

    contest.run(
        |store, turn| {
            let at = at(i64::try_from(turn.round).expect("there are few rounds"));
            write(store, turn, move |writer| {
                let prefix = Prefix::parse("gt").expect("a valid prefix");
                let (title, creator) = ("The same title", "the same creator");
                let seed = IdSeed { title, description: "", creator, at };
                let top = writer.free_id(&prefix, &seed)?;
                writer.insert_bead(&bead(top.as_str()), EventKind::Created)?;
                let child = writer.next_child_id(&id("gt-p"))?;
                writer.insert_bead(&bead(child.as_str()), EventKind::Created)?;
                Ok::<(BeadId, BeadId), StoreError>((top, child))
            })
        },
        |_, round, made| {
            for (top, child) in made {
                assert!(seen.insert(top) && seen.insert(child), "given twice in round {round}");
            }
            rounds = round + 1;
        },
    );

    let made = rounds * CONTESTANTS;
    assert!(seen.contains(&id(&format!("gt-p.{made}"))), "children are numbered without gaps");
    assert_eq!(contest.town.last_event(), 1 + 2 * made as u64);
}
