//! Beads that are parts of parts: an operation costs the same at every depth.

use gt_beads::beads::{
    BeadChanges, Close, FieldEdit, NewBead, PlanOptions, close, create, create_all, ready, update,
};
use gt_beads::dependencies;
use gt_core::limits::ID_BYTES_MAX;
use gt_core::plan::{BeadName, Draft, Plan, PlanNaming};
use gt_core::{BeadId, DependencyType};
use gt_store::{BeadFilter, statements_run_by_this_thread};
use gt_town::{OperationError, Town};

use crate::town::town;

const LEVELS: usize = 3_000;

fn make(town: &Town, parent: Option<&str>) -> String {
    let parent = parent.map(str::to_owned);
    let new = NewBead { title: "Level".to_owned(), parent, ..NewBead::default() };
    create(town, &new, false).unwrap().bead.id.to_string()
}

/// A chain of so many levels; from the outermost to the innermost.
fn chain(town: &Town, levels: usize) -> Vec<String> {
    let mut ids = vec![make(town, None)];
    while ids.len() < levels {
        ids.push(make(town, ids.last().map(String::as_str)));
    }
    ids
}

/// How many statements this takes.
fn cost(work: impl FnOnce()) -> u64 {
    let before = statements_run_by_this_thread();
    work();
    statements_run_by_this_thread() - before
}

fn move_below(town: &Town, id: &str, parent: &str) {
    let changes =
        BeadChanges { parent: FieldEdit::Set(parent.to_owned()), ..BeadChanges::default() };
    update(town, &[id.to_owned()], &changes).unwrap().remove(0).unwrap();
}

#[test]
fn an_operation_costs_the_same_at_every_depth() {
    let costs = [10, 300].map(|levels| {
        let town = town();
        let ids = chain(&town, levels);
        let (top, deepest) = (ids[0].as_str(), ids[levels - 1].as_str());
        let listing = cost(|| drop(ready(&town, &BeadFilter::default(), Some(top)).unwrap()));
        assert!(listing < levels as u64 + 20, "one question for each level: {listing}");
        let family = chain(&town, 3);
        let waiting = chain(&town, 2);
        [
            cost(|| drop(make(&town, Some(deepest)))),
            cost(|| move_below(&town, &family[0], deepest)),
            cost(|| {
                let kind = DependencyType::Blocks;
                dependencies::add(&town, &waiting[1], deepest, &kind, false).unwrap();
                dependencies::add(&town, &waiting[1], &waiting[0], &kind, false).unwrap_err();
            }),
            cost(|| {
                let how = Close { force: true, ..Close::default() };
                close(&town, &[deepest.to_owned()], &how).unwrap().remove(0).unwrap();
            }),
        ]
    });
    assert_eq!(costs[0], costs[1]);
}

#[test]
fn a_chain_of_dependencies_is_checked_for_circles_with_one_statement() {
    let costs = [10, 300].map(|length| {
        let town = town();
        let ids: Vec<String> = (0..length).map(|_| make(&town, None)).collect();
        let link = |issue: &str, target: &str| {
            dependencies::add(&town, issue, target, &DependencyType::Blocks, false)
        };
        for pair in ids.windows(2) {
            link(&pair[0], &pair[1]).unwrap();
        }
        cost(|| {
            let refused = link(&ids[length - 1], &ids[0]).unwrap_err();
            let OperationError::Cycle { path, .. } = refused else { panic!("{refused:?}") };
            assert_eq!(path.len(), length + 1);
        })
    });
    assert_eq!(costs[0], costs[1]);
}

#[test]
fn a_part_cannot_contain_what_it_is_a_part_of() {
    let town = town();
    let ids = chain(&town, 200);
    let inside = FieldEdit::Set(ids[199].clone());
    let changes = BeadChanges { parent: inside, ..BeadChanges::default() };
    let refused = update(&town, &[ids[0].clone()], &changes).unwrap().remove(0).unwrap_err();
    let OperationError::Cycle { path, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(path.len(), 201);
}

#[test]
fn a_plan_of_three_thousand_levels_costs_as_much_as_as_many_beads() {
    let drafts = (0..LEVELS).map(|level| Draft {
        place: format!("plan:{level}"),
        key: Some(format!("k{level}")),
        title: "Level".to_owned(),
        parent: level.checked_sub(1).map(|above| BeadName::Planned(format!("k{above}"))),
        ..Draft::default()
    });
    let plan = Plan::new("plan", drafts.collect(), Vec::new(), PlanNaming::Keys).unwrap();
    let town = town();
    let mut made = None;
    let statements =
        cost(|| made = Some(create_all(&town, &plan, &PlanOptions::default()).unwrap()));
    assert!(statements < 40 * LEVELS as u64, "{statements}");
    // Every id can be written down and read back.
    for created in made.unwrap().beads {
        let id = created.bead.id;
        assert!(id.as_str().len() <= ID_BYTES_MAX);
        assert_eq!(BeadId::parse(id.as_str()).unwrap(), id);
    }
}
