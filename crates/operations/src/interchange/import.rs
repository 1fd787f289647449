//! Reading beads, all of them or none.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Display;
use std::ops::ControlFlow;

use gt_core::decide::TargetFacts;
use gt_core::{Bead, BeadId, Comment, Dependency, EventKind, Rig, RigSlug, Timestamp};
use gt_records::{Line, Record, parse_line};
use gt_store::{Bulk, DependencyChange, Scope, Writer};

use super::lines::{Source, Text};
use crate::dependencies::Tangle;
use crate::{OperationError, Result, Town};

/// How to import.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImportOptions {
    /// Leave out lines that are wrong instead of refusing the file.
    pub skip_invalid: bool,
    /// Do everything, then undo it.
    pub dry_run: bool,
}

/// Something that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The line it stands in; 0 if it is about several.
    pub line: u64,
    /// The bead, if it is known.
    pub id: Option<BeadId>,
    /// Why.
    pub reason: String,
}

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Beads that are new.
    pub created: u64,
    /// Beads that changed.
    pub updated: u64,
    /// Beads that were there just like this.
    pub unchanged: u64,
    /// How much was left out.
    pub skipped: u64,
    /// What was left out and why; the first thousand.
    pub skipped_details: Vec<Skipped>,
    /// What was mended on the way in; the first thousand.
    pub repaired: Vec<Skipped>,
    /// Beads that carry the state of an older queue.
    pub old_queue_state: u64,
    /// Things to remember.
    pub memories: u64,
}

const DETAILS_MAX: usize = 1000;

impl ImportSummary {
    fn skip(&mut self, line: u64, id: Option<BeadId>, reason: impl Into<String>) {
        self.skipped += 1;
        if self.skipped_details.len() < DETAILS_MAX {
            self.skipped_details.push(Skipped { line, id, reason: reason.into() });
        }
    }
}

/// Reads the beads of `source` into the town in one transaction. The whole file is checked before the
/// store is touched; `progress` is told how many bytes of `2 × source.bytes()` are behind.
pub fn import(
    town: &Town,
    source: &Source,
    options: ImportOptions,
    mut progress: impl FnMut(u64),
) -> Result<ImportSummary> {
    let now = town.now();
    let survey = survey(source, options, now, &mut progress)?;
    town.take_in_or_rehearse(options.dry_run, |writer| {
        let rigs = writer.rigs()?;
        let mut summary = ImportSummary::default();
        for (line, why) in &survey.invalid {
            summary.skip(*line, None, why.clone());
        }
        let bulk = writer.bulk(&survey.expected)?;
        let mut import = Import { bulk, rigs, now, summary };
        let parse = |number: u64, text: Text<'_>| {
            if survey.invalid.contains_key(&number) {
                return Ok(None);
            }
            let text = text.map_err(|why| changed(source, number, why))?;
            let line = parse_line(text, now);
            line.map(Some).map_err(|error| changed(source, number, error))
        };
        source.for_each_parsed(parse, |number, position, line| {
            progress(source.bytes() + position);
            import.line(number, line)
        })?;
        let Import { bulk, mut summary, .. } = import;
        bulk.finish()?;
        if survey.any_blocking {
            untangle(writer, &survey.expected, &mut summary)?;
        }
        Ok(summary)
    })
}

/// What the first look at a file tells.
#[derive(Default)]
struct Survey {
    /// Lines that are wrong, and why.
    invalid: BTreeMap<u64, String>,
    /// How each bead of the file will stand.
    expected: HashMap<BeadId, TargetFacts>,
    /// Beads that the file has more than once.
    repeated: HashSet<BeadId>,
    any_blocking: bool,
}

/// Checks every line, without the store.
fn survey(
    source: &Source,
    options: ImportOptions,
    now: Timestamp,
    progress: &mut impl FnMut(u64),
) -> Result<Survey> {
    let look = |survey: &mut Survey, number: u64, text: Text<'_>| {
        let parsed = text.map_err(str::to_owned);
        match parsed.and_then(|text| parse_line(text, now).map_err(|error| error.to_string())) {
            Ok(Line::Issue(record)) => survey.expect(&record),
            Ok(_) => {}
            Err(problem) => {
                survey.invalid.insert(number, problem);
                if !options.skip_invalid {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    };
    let mut survey = Survey::default();
    for part in source.survey(look, progress)? {
        survey.join(part);
    }
    if let (Some((line, problem)), false) = (survey.invalid.first_key_value(), options.skip_invalid)
    {
        return Err(OperationError::rejected(format!(
            "{}:{line}: {problem} (nothing was imported; --skip-invalid leaves such lines out)",
            source.name()
        )));
    }
    if !survey.repeated.is_empty() {
        survey.expect_the_newest(source, now)?;
    }
    Ok(survey)
}

impl Survey {
    fn expect(&mut self, record: &Record) {
        let Record { bead, dependencies, .. } = record;
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

    /// Of several records of a bead, the newest is what it will be like; of equally old ones the last.
    fn expect_the_newest(&mut self, source: &Source, now: Timestamp) -> Result<()> {
        let mut newest: HashMap<BeadId, Timestamp> = HashMap::new();
        source.for_each_line(|_, _, text| {
            let Some(Ok(Line::Issue(record))) = text.ok().map(|text| parse_line(text, now)) else {
                return Ok(());
            };
            let Bead { id, status, outcome, updated_at, .. } = record.bead;
            let is_newest = newest.get(&id).is_none_or(|newest| *newest <= updated_at);
            if is_newest && self.repeated.contains(&id) {
                self.expected.insert(id.clone(), TargetFacts { status, outcome });
                newest.insert(id, updated_at);
            }
            Ok(())
        })
    }
}

struct Import<'w, 's> {
    bulk: Bulk<'w, 's>,
    rigs: Vec<Rig>,
    now: Timestamp,
    summary: ImportSummary,
}

impl Import<'_, '_> {
    fn line(&mut self, number: u64, line: Line) -> Result<()> {
        match line {
            Line::Issue(record) => self.bead(number, *record)?,
            Line::Memory { key, value } => {
                self.bulk.writer().put_setting(Scope::Memory, &key, Some(value.as_str()))?;
                self.summary.memories += 1;
            }
            Line::Tombstone(id) => {
                self.summary.skip(number, Some(id), "deleted where it comes from");
            }
            Line::Header => {}
        }
        Ok(())
    }

    fn bead(&mut self, line: u64, record: Record) -> Result<()> {
        let Record { mut bead, labels, comments, repairs, dependencies } = record;
        if carries_old_queue_state(&bead, &labels) {
            self.summary.old_queue_state += 1;
        }
        for reason in repairs {
            if self.summary.repaired.len() < DETAILS_MAX {
                let id = Some(bead.id.clone());
                self.summary.repaired.push(Skipped { line, id, reason });
            }
        }
        let Some(local) = self.bulk.writer().bead(&bead.id)? else {
            bead.rig = self.rig_of(&bead.id);
            self.bulk.insert(&bead, &labels, &comments, &dependencies)?;
            self.summary.created += 1;
            return Ok(());
        };
        if bead.updated_at < local.updated_at {
            let reason = format!(
                "older ({}) than the one in the store ({})",
                bead.updated_at, local.updated_at
            );
            self.summary.skip(line, Some(bead.id), reason);
            return Ok(());
        }
        bead.uid = local.uid;
        bead.rig.clone_from(&local.rig);
        bead.open_blockers = local.open_blockers;
        self.settle_times(&mut bead, &local);
        let changed = self.update(&local, &bead, &labels, &comments, dependencies)?;
        if changed {
            self.summary.updated += 1;
        } else {
            self.summary.unchanged += 1;
        }
        Ok(())
    }

    /// Gives a record that came without times those of the bead it describes, so that the same record
    /// changes nothing the second time. One that says something new is as new as the import.
    fn settle_times(&self, bead: &mut Bead, local: &Bead) {
        let now = self.now;
        if bead.created_at == now {
            bead.created_at = local.created_at;
        }
        if bead.closed_at == Some(now) {
            bead.closed_at = local.closed_at.or(bead.closed_at);
        }
        if bead.updated_at == now {
            bead.updated_at = local.updated_at;
            if bead != local {
                bead.updated_at = now;
            }
        }
    }

    /// Brings a bead that is there up to the record. A newer record replaces labels and edges; an
    /// equally old one adds its own.
    fn update(
        &mut self,
        local: &Bead,
        bead: &Bead,
        labels: &[String],
        comments: &[Comment],
        edges: Vec<Dependency>,
    ) -> Result<bool> {
        let newer = bead.updated_at > local.updated_at;
        let writer = self.bulk.writer();
        // The event about the bead tells the rest too; without one, the rest tells for itself.
        let mut changed = writer.save_bead(local, bead, EventKind::Imported)?;
        let announce = !changed;
        if newer {
            for label in writer.labels_in_order(bead)? {
                if !labels.contains(&label) {
                    changed |= writer.remove_label(bead, &label, false)?;
                }
            }
            let wanted: HashSet<&BeadId> = edges.iter().map(|edge| &edge.target).collect();
            for old in writer.edges_from(&bead.id)? {
                if !wanted.contains(&old.target) {
                    writer.remove_dependency(&old, false)?;
                    changed = true;
                }
            }
        }
        for label in labels {
            changed |= writer.add_label(bead, label, announce)?;
        }
        for comment in comments {
            changed |= writer.add_comment(bead, comment, announce)?;
        }
        for mut edge in edges {
            if edge.created_at == self.now
                && let Some(old) = self.bulk.writer().edge(&edge.issue, &edge.target)?
            {
                edge.created_at = old.created_at;
            }
            changed |= self.bulk.put_dependency(&edge, announce)? != DependencyChange::Same;
        }
        Ok(changed)
    }

    fn rig_of(&self, id: &BeadId) -> Option<RigSlug> {
        let fitting = self.rigs.iter().filter(|rig| id.has_prefix(rig.prefix.as_str()));
        fitting.max_by_key(|rig| rig.prefix.as_str().len()).map(|rig| rig.slug.clone())
    }
}

/// Takes out edges that close a circle. The store had none before, so each circle has an edge of a bead
/// that came with this file.
fn untangle(
    writer: &mut Writer<'_>,
    came: &HashMap<BeadId, TargetFacts>,
    summary: &mut ImportSummary,
) -> Result<()> {
    loop {
        let circles = Tangle::read(writer)?.circles();
        if circles.is_empty() {
            return Ok(());
        }
        for circle in circles {
            let next = circle.iter().cycle().skip(1);
            let pairs: Vec<(&BeadId, &BeadId)> = circle.iter().zip(next).collect();
            let ours = pairs.iter().rev().find(|(issue, _)| came.contains_key(issue));
            let Some((issue, target)) = ours.or(pairs.last()) else {
                continue;
            };
            if let Some(edge) = writer.edge(issue, target)? {
                writer.remove_dependency(&edge, false)?;
            }
            let path: Vec<&str> = circle.iter().map(BeadId::as_str).collect();
            let reason = format!(
                "its dependency on {target} would be a cycle ({} → {})",
                path.join(" → "),
                path[0]
            );
            summary.skip(0, Some((*issue).clone()), reason);
        }
    }
}

/// The file was fine a moment ago, so somebody is writing to it.
fn changed(source: &Source, line: u64, error: impl Display) -> OperationError {
    OperationError::rejected(format!(
        "{}:{line}: the file changed while it was read ({error}); nothing was imported",
        source.name()
    ))
}

/// The first queues kept their state in labels and in a block of the description.
fn carries_old_queue_state(bead: &Bead, labels: &[String]) -> bool {
    const LABELS: [&str; 4] = ["gt:queued", "gt:queue-dispatched", "gt:dispatch-failed", "queued"];
    labels.iter().any(|label| LABELS.contains(&label.as_str()))
        || bead.description.lines().any(|line| line == "---gt:queue:v1---")
}
