//! The bead that a name in a plan stands for.

use std::collections::HashMap;

use super::{BeadName, BeadReference, Draft, PlacedText, PlanNaming, PlannedEdge, at, shown};
use crate::Invalid;
use crate::bead::{Direction, NewDependency};

/// The names of the beads of a plan.
pub(super) struct Names<'d> {
    drafts: &'d [Draft],
    places: HashMap<&'d str, Vec<usize>>,
}

impl<'d> Names<'d> {
    /// Collects the names; two beads with the same key or id are refused.
    pub(super) fn of(drafts: &'d [Draft], naming: PlanNaming) -> Result<Self, Invalid> {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut ids: HashMap<&str, &Draft> = HashMap::new();
        for (index, draft) in drafts.iter().enumerate() {
            if let Some(id) = draft.id.as_deref() {
                if let Some(first) = ids.insert(id, draft) {
                    return Err(twice("id", id, draft, first));
                }
                places.entry(id).or_default().push(index);
            }
            let name = match naming {
                PlanNaming::Keys => draft.key.as_deref(),
                PlanNaming::Titles => Some(draft.title.trim()),
            };
            let Some(name) = name else {
                continue;
            };
            let same = places.entry(name).or_default();
            if let (PlanNaming::Keys, Some(first)) = (naming, same.first())
                && *first != index
            {
                return Err(twice("key", name, draft, &drafts[*first]));
            }
            if same.last() != Some(&index) {
                same.push(index);
            }
        }
        Ok(Self { drafts, places })
    }

    /// The bead of the plan that `name` means, if there is one.
    fn find(&self, place: &str, name: &str) -> Result<Option<usize>, Invalid> {
        match self.places.get(name).map(Vec::as_slice) {
            None | Some([]) => Ok(None),
            Some([only]) => Ok(Some(*only)),
            Some([first, second, ..]) => {
                let (first, second) = (&self.drafts[*first], &self.drafts[*second]);
                Err(Invalid(format!(
                    "{place}: {} could be the one at {} or the one at {}",
                    shown(first),
                    first.place,
                    second.place
                )))
            }
        }
    }

    /// The bead of the plan that `key` means.
    pub(super) fn planned(&self, place: &str, key: &str) -> Result<usize, Invalid> {
        self.find(place, key)?.ok_or_else(|| {
            Invalid(format!("{place}: nothing in this file has the key \"{}\"", key.escape_debug()))
        })
    }

    pub(super) fn reference(&self, place: &str, name: &BeadName) -> Result<BeadReference, Invalid> {
        Ok(match name {
            BeadName::Planned(key) => BeadReference::Planned(self.planned(place, key)?),
            BeadName::Existing(id) => BeadReference::Existing(id.clone()),
            BeadName::Either(name) => match self.find(place, name)? {
                Some(index) => BeadReference::Planned(index),
                None => BeadReference::Existing(name.clone()),
            },
        })
    }

    /// The dependencies that a text beside the bead at `index` asks for. A title may contain every sign
    /// that separates: a text that is the name of a bead as a whole is not split.
    pub(super) fn links(
        &self,
        index: usize,
        said: &PlacedText,
    ) -> Result<Vec<PlannedEdge>, Invalid> {
        let text = said.text.trim();
        if let Some(link) = self.link_to_planned(&said.place, text)? {
            return Ok(vec![edge(index, &said.place, &link.0, link.1)]);
        }
        let mut edges = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if let Some((link, other)) = self.link_to_planned(&said.place, part)? {
                edges.push(edge(index, &said.place, &link, other));
                continue;
            }
            let link = NewDependency::parse(part).map_err(|invalid| at(&said.place, &invalid))?;
            let other = BeadReference::Existing(link.other.clone());
            edges.push(edge(index, &said.place, &link, other));
        }
        Ok(edges)
    }

    /// The link that `text` asks for, if it means a bead of the plan: by its name, or behind a type.
    fn link_to_planned(
        &self,
        place: &str,
        text: &str,
    ) -> Result<Option<(NewDependency, BeadReference)>, Invalid> {
        if let Some(other) = self.find(place, text)? {
            return Ok(Some((NewDependency::blocked_by(text), BeadReference::Planned(other))));
        }
        let Some((_, name)) = text.split_once(':') else {
            return Ok(None);
        };
        match self.find(place, name.trim())? {
            Some(other) => {
                let link = NewDependency::parse(text).map_err(|invalid| at(place, &invalid))?;
                Ok(Some((link, BeadReference::Planned(other))))
            }
            None => Ok(None),
        }
    }
}

fn edge(index: usize, place: &str, link: &NewDependency, other: BeadReference) -> PlannedEdge {
    let new = BeadReference::Planned(index);
    let (issue, target) = match link.direction {
        Direction::DependsOn => (new, other),
        Direction::DependedOnBy => (other, new),
    };
    PlannedEdge { place: place.to_owned(), issue, target, kind: link.kind.clone() }
}

fn twice(what: &str, name: &str, second: &Draft, first: &Draft) -> Invalid {
    Invalid(format!(
        "{}: the {what} \"{}\" is already taken at {}",
        second.place,
        name.escape_debug(),
        first.place
    ))
}
