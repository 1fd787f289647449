//! The expected answers of the store, computed from scratch and by other means than the store's.

use std::collections::{BTreeMap, BTreeSet};

use gt_core::{Outcome, Status};

use super::step::{Deferral, Link, Place, Shape, Step};
use super::work::Work;

/// A bead, as far as waiting is concerned.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) shape: Shape,
    pub(super) outcome: Option<Outcome>,
    pub(super) labelled: bool,
    pub(super) run: Option<Taken>,
}

/// Whether a worker has taken a live run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    No,
    Yes,
}

/// Everything that is remembered. All else is derived when asked.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) members: BTreeMap<Place, Member>,
    pub(super) links: BTreeMap<(Place, Place), Link>,
}

impl Model {
    pub(super) fn apply_all<'s>(&mut self, steps: impl IntoIterator<Item = &'s Step>) {
        for step in steps {
            self.apply(step);
        }
    }

    pub(super) fn apply(&mut self, step: &Step) {
        match step {
            Step::Create(place, shape) => self.create(*place, *shape),
            Step::Import(place, shape, links) => {
                if !self.members.contains_key(place) {
                    self.create(*place, *shape);
                    let own = links.iter().filter(|(target, _)| *target != place);
                    self.links.extend(own.map(|(target, link)| ((*place, *target), *link)));
                }
            }
            Step::Work(work) => self.work(work),
            Step::Close(place, outcome) => self.change(*place, |member| {
                member.run = None;
                member.shape.status = Standing::CLOSED;
                member.outcome = *outcome;
            }),
            Step::Reopen(place) => self.change(*place, |member| {
                member.run = None;
                member.shape.status = Standing::OPEN;
                member.outcome = None;
            }),
            Step::SetStatus(place, status) => self.change(*place, |member| {
                member.run = None;
                member.shape.status = *status;
                member.outcome = None;
            }),
            Step::SetPinned(place, pinned) => {
                self.change(*place, |member| member.shape.pinned = *pinned);
            }
            Step::Defer(place, deferral) => {
                self.change(*place, |member| member.shape.deferral = *deferral);
            }
            Step::Label(place, labelled) => {
                self.change(*place, |member| member.labelled = *labelled);
            }
            Step::Put(issue, target, link) => self.link(*issue, *target, *link),
            Step::Remove(issue, target) => drop(self.links.remove(&(*issue, *target))),
            Step::Reparent(child, parent) => {
                self.links.retain(|(issue, _), link| issue != child || *link != Link::Part);
                self.link(*child, *parent, Link::Part);
            }
            Step::Delete(place) => {
                if self.members.remove(place).is_some() {
                    self.links.retain(|(issue, target), _| issue != place && target != place);
                }
            }
        }
    }

    /// Runs change the status of their beads; contexts change nothing of them.
    fn work(&mut self, work: &Work) {
        match work {
            Work::Schedule(..) | Work::Unschedule(..) | Work::Postpone(..) | Work::Wake => {}
            Work::Start(place) => self.change(*place, |member| {
                if member.shape.status == Standing::OPEN {
                    member.shape.status = Standing("hooked");
                    member.run = Some(Taken::No);
                }
            }),
            Work::Claim(place) => self.change(*place, |member| {
                if member.run == Some(Taken::No) {
                    member.shape.status = Standing("in_progress");
                    member.run = Some(Taken::Yes);
                }
            }),
            Work::End(place, done) => self.change(*place, |member| {
                if member.run.take().is_some() {
                    member.shape.status = if *done { Standing::CLOSED } else { Standing::OPEN };
                }
            }),
        }
    }

    fn create(&mut self, place: Place, shape: Shape) {
        let member = Member { shape, outcome: None, labelled: false, run: None };
        self.members.entry(place).or_insert(member);
    }

    fn change(&mut self, place: Place, change: impl FnOnce(&mut Member)) {
        if let Some(member) = self.members.get_mut(&place) {
            change(member);
        }
    }

    fn link(&mut self, issue: Place, target: Place, link: Link) {
        if issue != target && self.members.contains_key(&issue) {
            self.links.insert((issue, target), link);
        }
    }

    /// Whether this link holds its issue up now.
    fn holds_up(&self, target: Place, link: Link) -> bool {
        let Some(member) = self.members.get(&target) else {
            return false;
        };
        if member.is_reference() {
            return false;
        }
        match link {
            Link::Blocks => !member.is_done(),
            Link::Conditional => !member.is_over(),
            Link::WaitsForAll | Link::WaitsForAny if !member.is_done() => true,
            Link::WaitsForAll => self.parts_of(target).any(|part| !part.is_done()),
            Link::WaitsForAny => {
                let parts: Vec<&Member> = self.parts_of(target).collect();
                !parts.is_empty() && !parts.iter().any(|part| part.is_done())
            }
            Link::Part | Link::Tracks | Link::Related => false,
        }
    }

    /// The parts of a bead that count.
    fn parts_of(&self, parent: Place) -> impl Iterator<Item = &Member> {
        self.links
            .iter()
            .filter(move |((_, target), link)| *target == parent && **link == Link::Part)
            .filter_map(|((issue, _), _)| self.members.get(issue))
            .filter(|part| !part.is_reference())
    }

    /// The blockers of a bead: those that are not over yet, and those that failed.
    pub(super) fn blockers(&self, place: Place) -> (BTreeSet<Place>, BTreeSet<Place>) {
        let holding = self
            .links
            .iter()
            .filter(|((issue, target), link)| *issue == place && self.holds_up(*target, **link))
            .map(|((_, target), _)| *target);
        holding.partition(|target| {
            let target = &self.members[target];
            !target.is_over() || target.is_done()
        })
    }

    pub(super) fn is_held_up(&self, place: Place) -> bool {
        let (open, failed) = self.blockers(place);
        !open.is_empty() || !failed.is_empty()
    }

    pub(super) fn is_ready(&self, place: Place) -> bool {
        let Some(Member { shape, .. }) = self.members.get(&place) else {
            return false;
        };
        let stands_open = match shape.status {
            Standing::OPEN => true,
            Standing::DEFERRED => shape.deferral != Deferral::None,
            _ => false,
        };
        let parent_is_put_off = self.links.iter().any(|((issue, target), link)| {
            *issue == place
                && *link == Link::Part
                && self
                    .members
                    .get(target)
                    .is_some_and(|parent| parent.shape.deferral == Deferral::Later)
        });
        stands_open
            && shape.deferral != Deferral::Later
            && !parent_is_put_off
            && !shape.pinned
            && !shape.ephemeral
            && !shape.gate
            && !self.is_held_up(place)
    }

    /// The beads that were held up in `before` and are not any more.
    pub(super) fn freed_since(&self, before: &Self) -> BTreeSet<Place> {
        let free = self
            .members
            .iter()
            .filter(|(place, member)| !member.is_over() && !self.is_held_up(**place));
        free.map(|(place, _)| *place)
            .filter(|place| before.members.contains_key(place) && before.is_held_up(*place))
            .collect()
    }
}

impl Member {
    fn is_over(&self) -> bool {
        self.shape.status == Standing::CLOSED
    }

    fn is_done(&self) -> bool {
        self.is_over() && self.outcome != Some(Outcome::Failed)
    }

    fn is_reference(&self) -> bool {
        self.shape.status == Standing::PINNED
    }
}

/// A status, small enough to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing(pub(crate) &'static str);

impl Standing {
    pub(crate) const OPEN: Self = Self("open");
    pub(crate) const CLOSED: Self = Self("closed");
    pub(crate) const PINNED: Self = Self("pinned");
    pub(crate) const DEFERRED: Self = Self("deferred");

    pub(crate) fn status(self) -> Status {
        Status::parse(self.0).expect("a valid status")
    }
}
