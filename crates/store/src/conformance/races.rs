//! Writers that want contradictory things at the same moment, each through a door of its own.

use std::sync::Barrier;
use std::thread;

use gt_core::decide::{IdSeed, find_path};
use gt_core::{Bead, BeadId, DependencyType, EventKind, Prefix, Status};

use super::Subject;
use super::kit::{Town, at, bead, by, edge, id, texts};
use crate::{Store, StoreError, Writer};

/// How often a race is run: often enough that both orders happen.
const ROUNDS: usize = 8;

/// Runs `work` for every contestant at the same moment, and gives their answers.
fn race<T: Send, const N: usize>(
    subject: &dyn Subject,
    town: &Town,
    work: impl Fn(&Store, usize) -> T + Sync,
) -> [T; N] {
    let start = Barrier::new(N);
    let doors: [Store; N] = std::array::from_fn(|_| subject.another(&town.store));
    let answers = thread::scope(|scope| {
        let running = doors.each_ref().map(|door| {
            let (start, work) = (&start, &work);
            let place = doors.iter().position(|other| std::ptr::eq(other, door));
            scope.spawn(move || {
                start.wait();
                work(door, place.unwrap_or(0))
            })
        });
        running.map(|thread| thread.join().expect("a contestant finishes"))
    });
    town.check();
    answers
}

fn close(writer: &mut Writer<'_>, text: &str) -> Result<bool, StoreError> {
    let old = writer.bead(&id(text))?.expect("the bead is there");
    let new = Bead { status: Status::Closed, closed_at: Some(writer.now()), ..old.clone() };
    writer.save_bead(&old, &new, EventKind::Closed)
}

pub(super) fn the_last_two_closes_unblock_once(subject: &dyn Subject) {
    for _ in 0..ROUNDS {
        let town = Town::new(subject);
        town.add_open(&["gt-0", "gt-1", "gt-c"]);
        town.link("gt-c", DependencyType::Blocks, "gt-0");
        town.link("gt-c", DependencyType::Blocks, "gt-1");

        let mut story = town.story_of(|town| {
            race::<_, 2>(subject, town, |store, place| {
                store
                    .write(&by(1), |writer| close(writer, &format!("gt-{place}")))
                    .expect("the close succeeds")
            });
        });

        assert_eq!(town.blockers_of("gt-c"), 0);
        assert_eq!(story.pop().as_deref(), Some("unblocked gt-c"));
        story.sort();
        assert_eq!(story, texts(["closed gt-0", "closed gt-1"]));
    }
}

pub(super) fn a_close_beside_a_new_dependency_blocks_nobody(subject: &dyn Subject) {
    for _ in 0..ROUNDS {
        let town = Town::new(subject);
        town.add_open(&["gt-a", "gt-b"]);

        race::<_, 2>(subject, &town, |store, place| {
            store
                .write(&by(1), |writer| match place {
                    0 => close(writer, "gt-a").map(drop),
                    _ => writer
                        .put_dependency(&edge("gt-b", DependencyType::Blocks, "gt-a"), true)
                        .map(drop),
                })
                .expect("the write succeeds");
        });

        assert_eq!(town.blockers_of("gt-b"), 0);
    }
}

pub(super) fn of_two_crossing_dependencies_one_is_a_circle(subject: &dyn Subject) {
    for _ in 0..ROUNDS {
        let town = Town::new(subject);
        town.add_open(&["gt-0", "gt-1"]);

        let added: [bool; 2] = race(subject, &town, |store, place| {
            let (from, to) = (format!("gt-{place}"), format!("gt-{}", 1 - place));
            store
                .write(&by(1), |writer| {
                    let path = find_path(&id(&to), &id(&from), |at| writer.blocking_targets(at))?;
                    if path.is_some() {
                        return Ok(false);
                    }
                    let new = edge(&from, DependencyType::Blocks, &to);
                    writer.put_dependency(&new, true)?;
                    Ok::<_, StoreError>(true)
                })
                .expect("the write succeeds")
        });

        assert_eq!(added.iter().filter(|added| **added).count(), 1);
    }
}

pub(super) fn one_of_many_takes_a_bead(subject: &dyn Subject) {
    let town = Town::new(subject);
    town.add_open(&["gt-a"]);

    let taken: [bool; 8] = race(subject, &town, |store, place| {
        store
            .write(&by(1), |writer| {
                let old = writer.bead(&id("gt-a"))?.expect("the bead is there");
                if !old.assignee.is_empty() {
                    return Ok(false);
                }
                let mine = Bead {
                    assignee: format!("worker-{place}"),
                    status: Status::InProgress,
                    ..old.clone()
                };
                writer.save_bead(&old, &mine, EventKind::Claimed)
            })
            .expect("the write succeeds")
    });

    assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
    let winner = taken.iter().position(|taken| *taken).expect("somebody won");
    assert_eq!(town.get("gt-a").assignee, format!("worker-{winner}"));
}

pub(super) fn nobody_gets_the_id_of_somebody_else(subject: &dyn Subject) {
    const EACH: usize = 5;
    let town = Town::new(subject);
    town.add_open(&["gt-p"]);
    let prefix = Prefix::parse("gt").expect("a valid prefix");
    let seed = IdSeed { title: "The same title", description: "", creator: "everybody", at: at(1) };

    let answers: [Vec<(BeadId, BeadId)>; 8] = race(subject, &town, |store, _| {
        let make = |writer: &mut Writer<'_>| {
            let top = writer.free_id(&prefix, &seed)?;
            writer.insert_bead(&bead(top.as_str()), EventKind::Created)?;
            let child = writer.next_child_id(&id("gt-p"))?;
            writer.insert_bead(&bead(child.as_str()), EventKind::Created)?;
            Ok::<_, StoreError>((top, child))
        };
        let one = |_| store.write(&by(1), make).expect("the write succeeds");
        (0..EACH).map(one).collect()
    });

    let (mut tops, mut children): (Vec<BeadId>, Vec<BeadId>) =
        answers.into_iter().flatten().unzip();
    for ids in [&mut tops, &mut children] {
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 8 * EACH);
    }
    assert_eq!(town.last_event(), 1 + 2 * 8 * EACH as u64);
    assert!(children.contains(&id("gt-p.40")));
}
