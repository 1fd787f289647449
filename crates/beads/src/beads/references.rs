//! References to a bead.

use gt_core::bead::Title;
use gt_core::decide::{mentions, rewrite_ids};
use gt_core::query::{Expression, FieldCondition, Query, TextField, TextTest};
use gt_core::{Bead, BeadId, Dependency};
use gt_store::{BeadFilter, Reader};

use crate::lookup::require;
use gt_town::{Result, Town};

/// A bead that mentions another.
#[derive(Debug, Clone)]
pub struct Mention {
    /// The bead with the text.
    pub bead: Bead,
    /// In which of its fields, by their names in the record.
    pub fields: Vec<&'static str>,
}

/// All references to a bead.
#[derive(Debug, Clone)]
pub struct References {
    /// The bead.
    pub bead: Bead,
    /// The beads that depend on it, in any way.
    pub dependents: Vec<(Dependency, Bead)>,
    /// The beads that mention it.
    pub mentions: Vec<Mention>,
}

/// The references to each of the beads that `inputs` means, all from one state of the town.
pub fn references(town: &Town, inputs: &[String]) -> Result<Vec<Result<References>>> {
    town.read(|reader| {
        let one = |input: &String| -> Result<References> {
            let bead = require(town, reader, input)?;
            let mut dependents = Vec::new();
            for edge in reader.edges_to(&bead.id)? {
                if let Some(dependent) = reader.bead(&edge.issue)? {
                    dependents.push((edge, dependent));
                }
            }
            let mentions = mentions_of(town, reader, &bead.id)?;
            Ok(References { bead, dependents, mentions })
        };
        Ok(inputs.iter().map(one).collect())
    })
}

/// How one field of a bead is read.
type TextOfBead = fn(&Bead) -> &str;

/// The fields in which a bead may mention others: their names in the record, and in queries.
const TEXTS: [(&str, TextField, TextOfBead); 6] = [
    ("title", TextField::Title, |bead| bead.title.as_str()),
    ("description", TextField::Description, |bead| &bead.description),
    ("design", TextField::Design, |bead| &bead.design),
    ("acceptance_criteria", TextField::Acceptance, |bead| &bead.acceptance_criteria),
    ("notes", TextField::Notes, |bead| &bead.notes),
    ("close_reason", TextField::CloseReason, |bead| &bead.close_reason),
];

/// The store finds texts that contain the id; whether that is a mention is decided here, because the id
/// may only be the beginning of a longer one.
pub(crate) fn mentions_of(town: &Town, reader: &Reader<'_>, id: &BeadId) -> Result<Vec<Mention>> {
    let contains = |(_, field, _): &(&str, TextField, TextOfBead)| {
        let test = TextTest::Contains(id.to_string());
        Expression::Is(FieldCondition::Text { field: field.clone(), test })
    };
    let expression = Expression::Any(TEXTS.iter().map(contains).collect());
    let query = Some(Query { expression, now: town.now() });
    let mut found = Vec::new();
    for other in reader.find(&BeadFilter { query, ..BeadFilter::everything() })? {
        let Some(bead) = reader.bead(&other)?.filter(|bead| bead.id != *id) else {
            continue;
        };
        let speaks = TEXTS.iter().filter(|(_, _, text)| mentions(text(&bead), id));
        let fields: Vec<&'static str> = speaks.map(|(name, _, _)| *name).collect();
        if !fields.is_empty() {
            found.push(Mention { bead, fields });
        }
    }
    Ok(found)
}

/// The bead with texts that mention other ids, where `other` has one; nothing if no text of it changes.
pub(crate) fn with_other_ids(
    bead: &Bead,
    other: impl Fn(&str) -> Option<BeadId>,
) -> Result<Option<Bead>> {
    let mut changed = bead.clone();
    for text in [
        &mut changed.description,
        &mut changed.design,
        &mut changed.acceptance_criteria,
        &mut changed.notes,
        &mut changed.close_reason,
    ] {
        if let Some(rewritten) = rewrite_ids(text, &other) {
            *text = rewritten;
        }
    }
    if let Some(title) = rewrite_ids(bead.title.as_str(), &other) {
        changed.title = Title::parse(&title)?;
    }
    Ok((changed != *bead).then_some(changed))
}
