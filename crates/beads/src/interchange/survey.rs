//! The first look at the files of an import: is every line right, and how will every bead stand?

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use gt_core::decide::TargetFacts;
use gt_core::{Bead, BeadId, Timestamp};
use gt_records::{IssueRecord, RecordLine, parse_line_bytes};

use super::ImportOptions;
use super::lines::{LineBytes, LineFile};
use gt_town::{OperationError, Result};

/// A line: the number of its file, and its number there.
pub(super) type LinePosition = (usize, u64);

/// The result of the first look at the files.
#[derive(Default)]
pub(super) struct Survey {
    /// Lines that are wrong, and why.
    pub(super) invalid: BTreeMap<LinePosition, String>,
    /// How each bead of the files will stand.
    pub(super) expected: HashMap<BeadId, TargetFacts>,
    /// Whether any edge could make a circle.
    pub(super) any_blocking: bool,
    /// Beads that the files have more than once.
    repeated: HashSet<BeadId>,
    /// The line that counts of each of those.
    decisive: HashMap<BeadId, LinePosition>,
}

/// Checks every line of every file, without the store. A bead that was deleted here is not expected to come back, unless its
/// record is newer.
pub(super) fn survey(
    sources: &[LineFile],
    options: ImportOptions,
    now: Timestamp,
    deleted: &HashMap<BeadId, Timestamp>,
    progress: &mut impl FnMut(u64),
) -> Result<Survey> {
    let mut survey = Survey::default();
    let mut behind = 0;
    for (file, source) in sources.iter().enumerate() {
        let look = |survey: &mut Survey, number: u64, bytes: LineBytes<'_>| {
            let parsed = bytes
                .map_err(str::to_owned)
                .and_then(|bytes| parse_line_bytes(bytes, now).map_err(|error| error.to_string()));
            match parsed {
                Ok(RecordLine::Issue(record)) => {
                    let bead = &record.bead;
                    if deleted.get(&bead.id).is_none_or(|at| *at < bead.updated_at) {
                        survey.expect(&record);
                    }
                }
                Ok(_) => {}
                Err(problem) => {
                    survey.invalid.insert((file, number), problem);
                    if !options.skip_invalid {
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        };
        for part in source.survey(look, |position| progress(behind + position))? {
            survey.join(part);
        }
        if let (Some(((_, line), problem)), false) =
            (survey.invalid.first_key_value(), options.skip_invalid)
        {
            let name = source.name();
            let next = if options.follows_deletions {
                format!("nothing was taken over; mend the line, or git checkout -- {name}")
            } else {
                "nothing was imported; --skip-invalid leaves such lines out".to_owned()
            };
            return Err(OperationError::rejected(format!("{name}:{line}: {problem} ({next})")));
        }
        behind += source.bytes();
    }
    if !survey.repeated.is_empty() {
        survey.decide_repeated(sources, now)?;
    }
    Ok(survey)
}

impl Survey {
    /// Whether another line about this bead is the one that counts.
    pub(super) fn is_superseded(&self, id: &BeadId, place: LinePosition) -> bool {
        self.decisive.get(id).is_some_and(|decisive| *decisive != place)
    }

    fn expect(&mut self, record: &IssueRecord) {
        let IssueRecord { bead, dependencies, .. } = record;
        let facts = TargetFacts { status: bead.status.clone(), outcome: bead.outcome };
        if self.expected.insert(bead.id.clone(), facts).is_some() {
            self.repeated.insert(bead.id.clone());
        }
        self.any_blocking |= dependencies.iter().any(|edge| edge.kind.can_block());
    }

    /// Takes over what another looker found.
    fn join(&mut self, other: Self) {
        self.invalid.extend(other.invalid);
        self.repeated.extend(other.repeated);
        self.any_blocking |= other.any_blocking;
        if self.expected.is_empty() {
            self.expected = other.expected;
            return;
        }
        for (id, facts) in other.expected {
            match self.expected.entry(id) {
                Entry::Occupied(taken) => drop(self.repeated.insert(taken.key().clone())),
                Entry::Vacant(free) => drop(free.insert(facts)),
            }
        }
    }

    /// Of several records of a bead the newest counts; of equally old ones the last.
    fn decide_repeated(&mut self, sources: &[LineFile], now: Timestamp) -> Result<()> {
        let mut newest: HashMap<BeadId, Timestamp> = HashMap::new();
        for (file, source) in sources.iter().enumerate() {
            source.for_each_line(|number, _, bytes| {
                let parsed = bytes.ok().map(|bytes| parse_line_bytes(bytes, now));
                let Some(Ok(RecordLine::Issue(record))) = parsed else {
                    return Ok(());
                };
                let Bead { id, status, outcome, updated_at, .. } = record.bead;
                let is_newest = newest.get(&id).is_none_or(|newest| *newest <= updated_at);
                if is_newest && self.repeated.contains(&id) {
                    self.expected.insert(id.clone(), TargetFacts { status, outcome });
                    self.decisive.insert(id.clone(), (file, number));
                    newest.insert(id, updated_at);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
