//! Reading beads, all of them or none.

use std::collections::{HashMap, HashSet};

use gt_core::{Bead, BeadId, Dependency, EventKind, Rig, RigSlug, Timestamp};
use gt_records::{Line, Record, parse_dependencies, parse_line};
use gt_store::{Scope, Writer};

use super::lines::Source;
use crate::dependencies::cycles_in;
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
            self.skipped_details.push(Skipped {
                line,
                id,
                reason: reason.into(),
            });
        }
    }
}

/// Reads the beads of `source` into the town in one transaction. The whole file is checked before the
/// store is touched; `progress` is told how many bytes of `3 × source.bytes()` are behind.
pub fn import(
    town: &Town,
    source: &Source,
    options: ImportOptions,
    mut progress: impl FnMut(u64),
) -> Result<ImportSummary> {
    let now = town.now();
    let mut invalid = HashMap::new();
    source.for_each_line(|number, position, text| {
        progress(position);
        match parse_line(text, now) {
            Ok(_) => Ok(()),
            Err(error) if options.skip_invalid => {
                invalid.insert(number, error.to_string());
                Ok(())
            }
            Err(error) => Err(OperationError::rejected(format!(
                "{}:{number}: {error} (nothing was imported; --skip-invalid leaves such lines out)",
                source.name()
            ))),
        }
    })?;
    let by = town.authorship();
    let written = town.store().write(&by, |writer| {
        let mut import = Import::new(writer, now, &invalid)?;
        import.beads(source, &mut progress)?;
        import.edges(source, &mut progress)?;
        import.untangle()?;
        if options.dry_run {
            return Err(Stop::DryRun(Box::new(import.summary)));
        }
        Ok(import.summary)
    });
    match written {
        Ok(summary) => Ok(summary),
        Err(Stop::DryRun(summary)) => Ok(*summary),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Why the transaction is not committed.
enum Stop {
    DryRun(Box<ImportSummary>),
    Failed(OperationError),
}

impl<E: Into<OperationError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// What the first pass did with a bead, which decides about its edges.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is new and has no edges yet.
    New,
    /// The record is newer: its edges replace those there are.
    Replaced,
    /// The record is as old: its edges join those there are.
    Joined,
}

struct Import<'w, 's> {
    writer: &'w mut Writer<'s>,
    now: Timestamp,
    invalid: &'w HashMap<u64, String>,
    rigs: Vec<Rig>,
    fates: HashMap<BeadId, Fate>,
    any_blocking: bool,
    summary: ImportSummary,
}

impl<'w, 's> Import<'w, 's> {
    fn new(
        writer: &'w mut Writer<'s>,
        now: Timestamp,
        invalid: &'w HashMap<u64, String>,
    ) -> Result<Self> {
        let rigs = writer.rigs()?;
        let fates = HashMap::new();
        let summary = ImportSummary::default();
        Ok(Self {
            writer,
            now,
            invalid,
            rigs,
            fates,
            any_blocking: false,
            summary,
        })
    }

    /// Everything but edges, so that every edge finds its target.
    fn beads(&mut self, source: &Source, progress: &mut impl FnMut(u64)) -> Result<()> {
        let mut lines: Vec<(u64, String)> = self
            .invalid
            .iter()
            .map(|(line, why)| (*line, why.clone()))
            .collect();
        lines.sort();
        for (line, why) in lines {
            self.summary.skip(line, None, why);
        }
        let (invalid, now) = (self.invalid, self.now);
        let parse = |number: u64, text: &str| {
            if invalid.contains_key(&number) {
                return Ok(None);
            }
            parse_line(text, now)
                .map(Some)
                .map_err(|error| changed(source, number, &error))
        };
        source.for_each_parsed(parse, |number, position, line| {
            progress(source.bytes() + position);
            match line {
                Line::Issue(record) => self.bead(number, *record),
                Line::Memory { key, value } => {
                    self.writer
                        .put_setting(Scope::Memory, &key, Some(value.as_str()))?;
                    self.summary.memories += 1;
                    Ok(())
                }
                Line::Tombstone(id) => {
                    self.summary
                        .skip(number, Some(id), "deleted where it comes from");
                    Ok(())
                }
                Line::Header => Ok(()),
            }
        })
    }

    fn bead(&mut self, line: u64, record: Record) -> Result<()> {
        let Record {
            mut bead,
            labels,
            comments,
            repairs,
            dependencies,
        } = record;
        if carries_old_queue_state(&bead, &labels) {
            self.summary.old_queue_state += 1;
        }
        self.any_blocking |= dependencies.iter().any(|edge| edge.kind.can_block());
        for reason in repairs {
            if self.summary.repaired.len() < DETAILS_MAX {
                let id = Some(bead.id.clone());
                self.summary.repaired.push(Skipped { line, id, reason });
            }
        }
        let Some(local) = self.writer.bead(&bead.id)? else {
            bead.rig = self.rig_of(&bead.id);
            self.writer.insert_bead(&bead, EventKind::Imported)?;
            for label in &labels {
                self.writer.add_label(&bead, label, false)?;
            }
            for comment in &comments {
                self.writer.add_comment(&bead, comment, false)?;
            }
            self.fates.insert(bead.id, Fate::New);
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
        let newer = bead.updated_at > local.updated_at;
        bead.uid = local.uid;
        bead.rig.clone_from(&local.rig);
        bead.open_blockers = local.open_blockers;
        let mut changed = bead != local;
        if changed {
            self.writer.save_bead(&local, &bead, EventKind::Imported)?;
        }
        if newer {
            for label in self.writer.labels_in_order(&bead)? {
                if !labels.contains(&label) {
                    changed |= self.writer.remove_label(&bead, &label, false)?;
                }
            }
        }
        for label in &labels {
            changed |= self.writer.add_label(&bead, label, false)?;
        }
        for comment in &comments {
            changed |= self.writer.add_comment(&bead, comment, false)?;
        }
        if changed {
            self.summary.updated += 1;
        } else {
            self.summary.unchanged += 1;
        }
        let fate = if newer { Fate::Replaced } else { Fate::Joined };
        self.fates.entry(bead.id).or_insert(fate);
        Ok(())
    }

    fn edges(&mut self, source: &Source, progress: &mut impl FnMut(u64)) -> Result<()> {
        let (invalid, now) = (self.invalid, self.now);
        let parse = |number: u64, text: &str| {
            if invalid.contains_key(&number) {
                return Ok(None);
            }
            parse_dependencies(text, now).map_err(|error| changed(source, number, &error))
        };
        source.for_each_parsed(parse, |_, position, (id, edges)| {
            progress(2 * source.bytes() + position);
            let Some(fate) = self.fates.get_mut(&id) else {
                return Ok(());
            };
            match std::mem::replace(fate, Fate::Joined) {
                Fate::New => self.writer.insert_dependencies_of_new(&id, &edges)?,
                Fate::Joined => self.join_edges(&edges)?,
                Fate::Replaced => {
                    let wanted: HashSet<&BeadId> = edges.iter().map(|edge| &edge.target).collect();
                    for old in self.writer.edges_from(&id)? {
                        if !wanted.contains(&old.target) {
                            self.writer.remove_dependency(&old, false)?;
                        }
                    }
                    self.join_edges(&edges)?;
                }
            }
            Ok(())
        })
    }

    fn join_edges(&mut self, edges: &[Dependency]) -> Result<()> {
        for edge in edges {
            self.writer.put_dependency(edge, false)?;
        }
        Ok(())
    }

    /// Takes out edges that close a circle. The store had none before, so each circle has an edge of
    /// a bead that came with this file.
    fn untangle(&mut self) -> Result<()> {
        if !self.any_blocking {
            return Ok(());
        }
        let mut edges = self.writer.all_blocking_edges()?;
        loop {
            let mut removed = HashSet::new();
            for circle in cycles_in(&edges) {
                let next = circle.iter().cycle().skip(1);
                let pairs: Vec<(&BeadId, &BeadId)> = circle.iter().zip(next).collect();
                let ours = pairs
                    .iter()
                    .rev()
                    .find(|(issue, _)| self.fates.contains_key(issue));
                let Some((issue, target)) = ours.or(pairs.last()) else {
                    continue;
                };
                let path: Vec<String> = circle.iter().map(ToString::to_string).collect();
                let reason = format!(
                    "its dependency on {target} would be a cycle ({} → {})",
                    path.join(" → "),
                    path[0]
                );
                if let Some(edge) = self.writer.edge(issue, target)? {
                    self.writer.remove_dependency(&edge, false)?;
                    self.summary.skip(0, Some((*issue).clone()), reason);
                }
                removed.insert(((*issue).clone(), (*target).clone()));
            }
            if removed.is_empty() {
                return Ok(());
            }
            edges.retain(|edge| !removed.contains(edge));
        }
    }

    fn rig_of(&self, id: &BeadId) -> Option<RigSlug> {
        let fitting = self
            .rigs
            .iter()
            .filter(|rig| id.has_prefix(rig.prefix.as_str()));
        fitting
            .max_by_key(|rig| rig.prefix.as_str().len())
            .map(|rig| rig.slug.clone())
    }
}

/// The file was fine a moment ago, so somebody is writing to it.
fn changed(source: &Source, line: u64, error: &gt_records::RecordError) -> OperationError {
    OperationError::rejected(format!(
        "{}:{line}: the file changed while it was read ({error}); nothing was imported",
        source.name()
    ))
}

/// The first queues kept their state in labels and in a block of the description.
fn carries_old_queue_state(bead: &Bead, labels: &[String]) -> bool {
    const LABELS: [&str; 4] = [
        "gt:queued",
        "gt:queue-dispatched",
        "gt:dispatch-failed",
        "queued",
    ];
    labels.iter().any(|label| LABELS.contains(&label.as_str()))
        || bead
            .description
            .lines()
            .any(|line| line == "---gt:queue:v1---")
}
