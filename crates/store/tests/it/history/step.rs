//! One thing that happens in a random history, and how it is told to the store.

use std::collections::{BTreeMap, HashMap};

use gt_core::decide::TargetFacts;
use gt_core::{
    Bead, BeadChangeKind, BeadId, Dependency, DependencyType, EventKind, IssueType, Outcome, Title,
};
use gt_store::{StoreError, Writer};
use proptest::prelude::*;

use super::batch::Perform;
use super::model::Standing;
use super::work::{Work, release, work};
use crate::subjects::NOW;

/// The number of a bead.
pub(crate) type Place = u8;

pub(crate) const PLACES: Place = 8;

pub(crate) fn id(place: Place) -> BeadId {
    BeadId::trusted(format!("gt-{place}"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Blocks,
    Conditional,
    WaitsForAll,
    WaitsForAny,
    Part,
    Tracks,
    Related,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deferral {
    None,
    Earlier,
    Later,
}

/// The fields of a new bead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) status: Standing,
    pub(crate) pinned: bool,
    pub(crate) ephemeral: bool,
    pub(crate) gate: bool,
    pub(crate) template: bool,
    pub(crate) deferral: Deferral,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create(Place, Shape),
    Import(Place, Shape, BTreeMap<Place, Link>),
    Close(Place, Option<Outcome>),
    Reopen(Place),
    SetStatus(Place, Standing),
    SetPinned(Place, bool),
    Defer(Place, Deferral),
    Label(Place, bool),
    Put(Place, Place, Link),
    Remove(Place, Place),
    Reparent(Place, Place),
    Delete(Place),
    Work(Work),
}

/// Mostly one of a few, so that steps depend on earlier steps.
pub(crate) fn place() -> impl Strategy<Value = Place> {
    prop_oneof![3 => 0..PLACES / 2, 2 => 0..PLACES]
}

pub(crate) fn link() -> impl Strategy<Value = Link> {
    prop_oneof![
        3 => Just(Link::Blocks),
        1 => Just(Link::Conditional),
        2 => Just(Link::WaitsForAll),
        2 => Just(Link::WaitsForAny),
        4 => Just(Link::Part),
        1 => Just(Link::Tracks),
        1 => Just(Link::Related),
    ]
}

/// One end of a link of a small family: the first bead is the parent, the next few are its parts,
/// the last ones wait for it. Without it hardly any history has all that `waits-for` looks at.
fn family() -> impl Strategy<Value = (Place, Link)> {
    let gate = prop_oneof![Just(Link::WaitsForAll), Just(Link::WaitsForAny)];
    prop_oneof![(1..PLACES / 2).prop_map(|part| (part, Link::Part)), (PLACES / 2..PLACES, gate),]
}

/// A link between two beads.
fn links() -> impl Strategy<Value = (Place, Place, Link)> {
    prop_oneof![(place(), place(), link()), family().prop_map(|(place, link)| (place, 0, link)),]
}

/// The links of a bead that is imported, of a family or not.
pub(crate) fn imported() -> impl Strategy<Value = (Place, BTreeMap<Place, Link>)> {
    let any = prop::collection::btree_map(place(), link(), 0..4);
    prop_oneof![
        (place(), any),
        family().prop_map(|(place, link)| (place, BTreeMap::from([(0, link)]))),
    ]
}

pub(super) fn deferral() -> impl Strategy<Value = Deferral> {
    prop_oneof![
        2 => Just(Deferral::None),
        1 => Just(Deferral::Earlier),
        1 => Just(Deferral::Later),
    ]
}

fn status() -> impl Strategy<Value = Standing> {
    let rare = ["in_progress", "hooked", "blocked", "deferred", "pinned", "staged_ready"];
    prop_oneof![
        3 => Just(Standing::OPEN),
        2 => Just(Standing::PINNED),
        3 => prop::sample::select(rare.to_vec()).prop_map(Standing),
    ]
}

pub(crate) fn shape() -> impl Strategy<Value = Shape> {
    let status = prop_oneof![
        6 => Just(Standing::OPEN),
        1 => Just(Standing::CLOSED),
        2 => status(),
    ];
    let rarely = || prop::bool::weighted(0.1);
    let no_deferral = prop_oneof![4 => Just(Deferral::None), 1 => deferral()];
    (status, rarely(), rarely(), rarely(), rarely(), no_deferral).prop_map(
        |(status, pinned, ephemeral, gate, template, deferral)| Shape {
            status,
            pinned,
            ephemeral,
            gate,
            template,
            deferral,
        },
    )
}

fn outcome() -> impl Strategy<Value = Option<Outcome>> {
    prop_oneof![
        2 => Just(None),
        1 => Just(Some(Outcome::Success)),
        1 => Just(Some(Outcome::Cancelled)),
        2 => Just(Some(Outcome::Failed)),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (place(), shape()).prop_map(|(place, shape)| Step::Create(place, shape)),
        4 => (imported(), shape())
            .prop_map(|((place, links), shape)| Step::Import(place, shape, links)),
        3 => Just(Step::Close(0, None)),
        6 => (place(), outcome()).prop_map(|(place, outcome)| Step::Close(place, outcome)),
        2 => place().prop_map(Step::Reopen),
        3 => (place(), status()).prop_map(|(place, status)| Step::SetStatus(place, status)),
        1 => (place(), any::<bool>()).prop_map(|(place, pinned)| Step::SetPinned(place, pinned)),
        1 => (place(), deferral()).prop_map(|(place, until)| Step::Defer(place, until)),
        1 => (place(), any::<bool>()).prop_map(|(place, on)| Step::Label(place, on)),
        14 => links().prop_map(|(from, to, link)| Step::Put(from, to, link)),
        3 => (place(), place()).prop_map(|(from, to)| Step::Remove(from, to)),
        2 => (place(), place()).prop_map(|(child, parent)| Step::Reparent(child, parent)),
        3 => place().prop_map(Step::Delete),
        12 => work().prop_map(Step::Work),
    ]
}

impl Step {
    /// Whether the store is told this in more than one verb, so that it passes through a state that
    /// was not asked for.
    pub(crate) fn has_stages(&self) -> bool {
        matches!(self, Self::Reparent(..))
    }
}

/// A step that cannot be done (the bead is not there) is left out, as the model does.
impl Perform for Step {
    fn perform(&self, writer: &mut Writer<'_>) -> Result<(), StoreError> {
        match self {
            Self::Create(place, shape) => create(writer, *place, *shape, EventKind::Created),
            Self::Import(place, shape, links) => {
                if writer.bead_exists(&id(*place))? {
                    return Ok(());
                }
                let bead = bead(*place, *shape);
                let edges: Vec<Dependency> = links
                    .iter()
                    .filter(|(target, _)| *target != place)
                    .map(|(target, link)| edge(*place, *target, *link))
                    .collect();
                let facts = TargetFacts { status: bead.status.clone(), outcome: bead.outcome };
                let expected = HashMap::from([(bead.id.clone(), facts)]);
                let mut bulk = writer.bulk(&expected)?;
                bulk.insert(&bead, &[], &[], &edges)?;
                bulk.finish()
            }
            Self::Close(place, outcome) => {
                release(writer, *place)?;
                save(writer, *place, BeadChangeKind::Closed, |bead| {
                    bead.status = Standing::CLOSED.status();
                    bead.closed_at = Some(NOW);
                    bead.outcome = *outcome;
                })
            }
            Self::Reopen(place) => set_status(writer, *place, Standing::OPEN),
            Self::SetStatus(place, status) => set_status(writer, *place, *status),
            Self::SetPinned(place, pinned) => {
                save(writer, *place, BeadChangeKind::Updated, |bead| {
                    bead.pinned = *pinned;
                })
            }
            Self::Defer(place, until) => save(writer, *place, BeadChangeKind::Updated, |bead| {
                bead.defer_until = until.instant();
            }),
            Self::Label(place, on) => match writer.bead(&id(*place))? {
                Some(bead) if *on => writer.add_label(&bead, "red", true).map(drop),
                Some(bead) => writer.remove_label(&bead, "red", true).map(drop),
                None => Ok(()),
            },
            Self::Put(issue, target, link) => put(writer, *issue, *target, *link),
            Self::Remove(issue, target) => match writer.edge(&id(*issue), &id(*target))? {
                Some(edge) => writer.remove_dependency(&edge, true),
                None => Ok(()),
            },
            Self::Reparent(child, parent) => {
                for edge in writer.edges_from(&id(*child))? {
                    if edge.kind == DependencyType::ParentChild {
                        writer.remove_dependency(&edge, true)?;
                    }
                }
                put(writer, *child, *parent, Link::Part)
            }
            Self::Delete(place) => match writer.bead(&id(*place))? {
                Some(bead) => writer.delete_bead(&bead),
                None => Ok(()),
            },
            Self::Work(work) => work.perform(writer),
        }
    }
}

impl Deferral {
    pub(super) fn instant(self) -> Option<gt_core::Timestamp> {
        let second = std::time::Duration::from_secs(1);
        match self {
            Self::None => None,
            Self::Earlier => Some(NOW),
            Self::Later => Some(NOW.plus(second)),
        }
    }
}

fn create(
    writer: &mut Writer<'_>,
    place: Place,
    shape: Shape,
    kind: EventKind,
) -> Result<(), StoreError> {
    let there = writer.bead_exists(&id(place))?;
    match writer.insert_bead(&bead(place, shape), kind) {
        Err(StoreError::AlreadyExists(_)) if there => Ok(()),
        Ok(()) if there => Err(StoreError::Corrupt("made twice".to_owned())),
        inserted => inserted,
    }
}

pub(super) fn save(
    writer: &mut Writer<'_>,
    place: Place,
    kind: BeadChangeKind,
    change: impl FnOnce(&mut Bead),
) -> Result<(), StoreError> {
    let Some(old) = writer.bead(&id(place))? else {
        return Ok(());
    };
    let mut new = old.clone();
    change(&mut new);
    writer.save_bead(&old, &new, kind).map(drop)
}

fn set_status(writer: &mut Writer<'_>, place: Place, status: Standing) -> Result<(), StoreError> {
    release(writer, place)?;
    save(writer, place, BeadChangeKind::StatusChanged, |bead| {
        bead.status = status.status();
        bead.closed_at = None;
        bead.outcome = None;
    })
}

fn put(writer: &mut Writer<'_>, issue: Place, target: Place, link: Link) -> Result<(), StoreError> {
    if issue == target || !writer.bead_exists(&id(issue))? {
        return Ok(());
    }
    writer.put_dependency(&edge(issue, target, link), true).map(drop)
}

pub(crate) fn edge(issue: Place, target: Place, link: Link) -> Dependency {
    let metadata = match link {
        Link::WaitsForAny => r#"{"gate":"any-children"}"#,
        _ => "",
    };
    Dependency {
        issue: id(issue),
        target: id(target),
        kind: link.kind(),
        created_at: NOW,
        created_by: String::new(),
        metadata: metadata.to_owned(),
        thread_id: String::new(),
        carried: Vec::new(),
    }
}

impl Link {
    pub(crate) fn kind(self) -> DependencyType {
        DependencyType::trusted(match self {
            Self::Blocks => "blocks",
            Self::Conditional => "conditional-blocks",
            Self::WaitsForAll | Self::WaitsForAny => "waits-for",
            Self::Part => "parent-child",
            Self::Tracks => "tracks",
            Self::Related => "related",
        })
    }
}

pub(crate) fn bead(place: Place, shape: Shape) -> Bead {
    let title = Title::trusted(format!("Bead {place}"));
    Bead {
        status: shape.status.status(),
        issue_type: IssueType::trusted(if shape.gate { "gate" } else { "task" }.to_owned()),
        closed_at: (shape.status == Standing::CLOSED).then_some(NOW),
        defer_until: shape.deferral.instant(),
        ephemeral: shape.ephemeral,
        pinned: shape.pinned,
        is_template: shape.template,
        ..Bead::new(id(place), title, NOW)
    }
}
