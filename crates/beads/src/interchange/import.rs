//! Reading beads, all of them or none.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use gt_core::decide::{TargetFacts, find_path};
use gt_core::{Bead, BeadChangeKind, BeadId, Comment, Dependency, Rig, RigSlug, RunId, Timestamp};
use gt_records::{IssueRecord, RecordLine, TombstoneRecord, parse_line_bytes};
use gt_store::{Bulk, DependencyChange, SettingScope, Writer, differing_fields};

use super::lines::{LineBytes, LineFile};
use super::rigs_and_settings::import_rigs_and_settings;
use super::survey::{LinePosition, Survey, survey};
use super::{ImportContents, ImportSummary, SourceKind, external};
use crate::adopt::carries_old_state;
use crate::beads::{CarriedRig, carried_rig};
use crate::deletion::delete_in;
use crate::dependencies::BlockingGraph;
use crate::tombstones::{keep_tombstone, tombstones};
use gt_town::{OperationError, Result, Town};

/// How to import.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImportOptions {
    /// Leave out lines that are wrong instead of refusing the file.
    pub skip_invalid: bool,
    /// Do everything, then undo it.
    pub dry_run: bool,
    /// Delete the beads that the file says were deleted, and leave out those that were deleted here; the later one of a
    /// change and a deletion counts. Otherwise the file brings beads and takes none away.
    pub follows_deletions: bool,
}

/// Takes everything that arrives into the town, in one transaction. The files of beads are checked as a
/// whole before the store is touched; `progress` is told how many bytes of `2 × arrival.bytes()` are
/// behind.
pub fn import(
    town: &Town,
    arrival: &ImportContents,
    options: ImportOptions,
    mut progress: impl FnMut(u64),
) -> Result<ImportSummary> {
    let now = town.now();
    let sources = arrival.sources();
    let deleted = if options.follows_deletions {
        let found = town.read(|reader| tombstones(reader, now))?;
        found.into_iter().map(|(id, (at, _))| (id, at)).collect()
    } else {
        HashMap::new()
    };
    let survey = survey(sources, options, now, &deleted, &mut progress)?;
    town.take_in_or_rehearse(options.dry_run, |writer| {
        let mut summary = arrival.announce();
        import_rigs_and_settings(writer, arrival, &mut summary)?;
        let rigs = writer.rigs()?;
        let there = writer.existing(survey.expected.keys())?;
        let live = writer.live_runs()?.into_iter();
        let running = live.map(|run| (run.id.bead.clone(), run.id)).collect();
        let mut import = Import {
            bulk: writer.bulk(&survey.expected)?,
            rigs,
            there,
            running,
            now,
            survey: &survey,
            postponed: Vec::new(),
            deleted: &deleted,
            tombstones: options.follows_deletions.then(Vec::new),
            summary,
        };
        let mut behind = arrival.bytes();
        for (file, source) in sources.iter().enumerate() {
            import.file(file, source, sources.len() > 1, |position| progress(behind + position))?;
            behind += source.bytes();
        }
        let Import { bulk, postponed, tombstones, mut summary, .. } = import;
        bulk.finish()?;
        for tombstone in tombstones.into_iter().flatten() {
            follow_deletion(town, writer, &tombstone, &mut summary)?;
        }
        if survey.any_blocking {
            let removed = remove_circles(writer, &survey.expected)?;
            put_acyclic_edges(writer, removed.into_iter().chain(postponed), &mut summary)?;
        }
        if !options.dry_run {
            // Last, so that an earlier refusal leaves no directory behind.
            let make = |rig: &RigSlug| gt_town::rigs::make_directory(town, rig.as_str());
            summary.rigs.iter().try_for_each(make)?;
        }
        Ok(summary)
    })
}

struct Import<'w, 's> {
    bulk: Bulk<'w, 's>,
    rigs: Vec<Rig>,
    /// The beads that were there before.
    there: HashSet<BeadId>,
    /// The beads that have a live run.
    running: HashMap<BeadId, RunId>,
    now: Timestamp,
    survey: &'w Survey,
    postponed: Vec<PostponedEdge>,
    /// The beads that were deleted here, and when, if that counts.
    deleted: &'w HashMap<BeadId, Timestamp>,
    /// The deletions of the file, if they are followed.
    tombstones: Option<Vec<TombstoneRecord>>,
    summary: ImportSummary,
}

/// An edge that is put in the end, unless it closes a circle.
struct PostponedEdge {
    edge: Dependency,
    file: Option<String>,
    line: u64,
    /// Whether the edge has to tell of itself.
    announce: bool,
    /// Whether its bead counts as unchanged so far.
    unchanged: bool,
}

/// Where a line stands.
#[derive(Clone, Copy)]
struct LineOrigin<'a> {
    /// The file, if reports have to name it.
    name: Option<&'a str>,
    place: LinePosition,
}

impl Import<'_, '_> {
    fn file(
        &mut self,
        file: usize,
        source: &LineFile,
        is_one_of_several: bool,
        mut progress: impl FnMut(u64),
    ) -> Result<()> {
        let (survey, now) = (self.survey, self.now);
        let name = is_one_of_several.then(|| source.name());
        for (place, why) in survey.invalid.range((file, 0)..(file + 1, 0)) {
            self.summary.skip(name, place.1, None, why.clone());
        }
        let parse = |number: u64, bytes: LineBytes<'_>| {
            if survey.invalid.contains_key(&(file, number)) {
                return Ok(None);
            }
            let bytes = bytes.map_err(|why| changed(source, number, why))?;
            let line = parse_line_bytes(bytes, now);
            line.map(Some).map_err(|error| changed(source, number, error))
        };
        source.for_each_parsed(parse, |number, position, line| {
            progress(position);
            self.line(LineOrigin { name, place: (file, number) }, line)
        })
    }

    fn line(&mut self, at: LineOrigin<'_>, line: RecordLine) -> Result<()> {
        match line {
            RecordLine::Issue(record) => self.bead(at, *record)?,
            RecordLine::Memory { key, value } => {
                self.bulk.writer().put_setting(SettingScope::Memory, &key, Some(value.as_str()))?;
                self.summary.memories += 1;
            }
            RecordLine::Tombstone(tombstone) => match &mut self.tombstones {
                Some(tombstones) if tombstone.deleted_at.is_some() => tombstones.push(tombstone),
                _ => {
                    let reason = "deleted where it comes from";
                    self.summary.skip(at.name, at.place.1, Some(tombstone.id), reason);
                }
            },
            RecordLine::Header => {}
        }
        Ok(())
    }

    fn bead(&mut self, at: LineOrigin<'_>, record: IssueRecord) -> Result<()> {
        let IssueRecord { mut bead, labels, comments, mut repairs, mut dependencies } = record;
        let (name, line) = (at.name, at.place.1);
        if self.survey.is_superseded(&bead.id, at.place) {
            let reason = "another line about it is newer, or comes later";
            self.summary.skip(name, line, Some(bead.id), reason);
            return Ok(());
        }
        if let Some(at) = self.deleted.get(&bead.id).filter(|at| **at >= bead.updated_at) {
            let reason = format!("deleted here at {at}, after it was changed there");
            self.summary.skip(name, line, Some(bead.id), reason);
            return Ok(());
        }
        if carries_old_state(&bead, &labels) {
            self.summary.old_queue_state += 1;
        }
        // Whole towns bring the projects that their edges name; a file alone comes as it is.
        if self.summary.kind == SourceKind::GasTown {
            let (survey, writer) = (self.survey, self.bulk.writer());
            repairs.extend(external::resolve(&mut dependencies, |id| {
                Ok(survey.expected.contains_key(id) || writer.bead_exists(id)?)
            })?);
        }
        for reason in repairs {
            self.summary.repair(name, line, &bead.id, reason);
        }
        let was_there = self.there.contains(&bead.id);
        let local = if was_there { self.bulk.writer().bead(&bead.id)? } else { None };
        let Some(local) = local else {
            bead.rig = match carried_rig(self.bulk.writer(), &bead)? {
                CarriedRig::Rig(rig) => Some(rig),
                CarriedRig::Town => None,
                CarriedRig::Unnamed => self.rig_of(&bead.id),
            };
            self.bulk.insert(&bead, &labels, &comments, &dependencies)?;
            self.summary.created += 1;
            return Ok(());
        };
        if bead.updated_at < local.updated_at {
            let reason = format!(
                "older ({}) than the one in the store ({})",
                bead.updated_at, local.updated_at
            );
            self.summary.skip(name, line, Some(bead.id), reason);
            return Ok(());
        }
        bead.uid = local.uid;
        bead.rig.clone_from(&local.rig);
        bead.open_blockers = local.open_blockers;
        if let Some(run) = self.running.get(&bead.id) {
            keep_running(&mut bead, &local, run, &mut self.summary);
        }
        self.fill_in_times(&mut bead, &local);
        if bead.updated_at == local.updated_at {
            let fields = differing_fields(&local, &bead);
            if !fields.is_empty() {
                self.summary.conflict(
                    name,
                    line,
                    &format!(
                        "{}: {} differ, and both changed last at {}; what is here stays",
                        bead.id,
                        fields.join(", "),
                        bead.updated_at
                    ),
                );
                bead.clone_from(&local);
            }
        }
        let changed = self.update(at, &local, &bead, &labels, &comments, dependencies)?;
        if changed {
            self.summary.updated += 1;
        } else {
            self.summary.unchanged += 1;
        }
        Ok(())
    }

    /// Gives a record that came without times those of the bead it describes, so that the same record
    /// changes nothing the second time. One that says something new is as new as the import.
    fn fill_in_times(&self, bead: &mut Bead, local: &Bead) {
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
        at: LineOrigin<'_>,
        local: &Bead,
        bead: &Bead,
        labels: &[String],
        comments: &[Comment],
        edges: Vec<Dependency>,
    ) -> Result<bool> {
        let newer = bead.updated_at > local.updated_at;
        let writer = self.bulk.writer();
        // The event about the bead tells the rest too; without one, the rest tells for itself.
        let mut changed = writer.save_bead(local, bead, BeadChangeKind::Imported)?;
        let announce = !changed;
        if newer {
            // Its age alone is nothing to tell, but the next record is compared with it.
            writer.touch_bead_at(&bead.id, bead.updated_at)?;
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
        let mut postponed: Vec<PostponedEdge> = Vec::new();
        for mut edge in edges {
            if edge.created_at == self.now
                && let Some(old) = self.bulk.writer().edge(&edge.issue, &edge.target)?
            {
                edge.created_at = old.created_at;
            }
            // It came before, most likely, and was left out then because it closes a circle.
            if !newer && self.could_close_a_circle(&edge)? {
                let (file, line) = (at.name.map(str::to_owned), at.place.1);
                postponed.push(PostponedEdge { edge, file, line, announce, unchanged: false });
                continue;
            }
            changed |= self.bulk.put_dependency(&edge, announce)? != DependencyChange::Same;
        }
        if let Some(first) = postponed.first_mut() {
            first.unchanged = !changed;
        }
        self.postponed.extend(postponed);
        Ok(changed)
    }

    /// Whether an edge blocks where none did before.
    fn could_close_a_circle(&mut self, edge: &Dependency) -> Result<bool> {
        if !edge.kind.can_block() {
            return Ok(false);
        }
        let there = self.bulk.writer().edge(&edge.issue, &edge.target)?;
        Ok(there.is_none_or(|there| !there.kind.can_block()))
    }

    fn rig_of(&self, id: &BeadId) -> Option<RigSlug> {
        let fitting = self.rigs.iter().filter(|rig| id.has_prefix(rig.prefix.as_str()));
        fitting.max_by_key(|rig| rig.prefix.as_str().len()).map(|rig| rig.slug.clone())
    }
}

/// Deletes a bead that was deleted in another clone, unless it was changed here since or work is under way on it.
fn follow_deletion(
    town: &Town,
    writer: &mut Writer<'_>,
    tombstone: &TombstoneRecord,
    summary: &mut ImportSummary,
) -> Result<()> {
    let id = &tombstone.id;
    let Some(bead) = writer.bead(id)? else {
        return keep_tombstone(writer, tombstone);
    };
    let kept = if tombstone.deleted_at.is_none_or(|at| bead.updated_at > at) {
        Some("it was changed here after it was deleted elsewhere")
    } else if writer.live_run(id)?.is_some()
        || writer.open_context(id)?.is_some()
        || writer.open_merge_request(id)?.is_some()
    {
        Some("it was deleted elsewhere, but work on it is under way here")
    } else {
        None
    };
    if let Some(reason) = kept {
        summary.skip(None, 0, Some(id.clone()), reason);
        return Ok(());
    }
    delete_in(town, writer, &[id.to_string()], false)?;
    summary.deleted += 1;
    keep_tombstone(writer, tombstone)
}

/// While a run works on a bead, its status and assignee belong to the run.
fn keep_running(bead: &mut Bead, local: &Bead, run: &RunId, summary: &mut ImportSummary) {
    let (status, assignee) = (&local.status, &local.assignee);
    if (status, assignee) != (&bead.status, &bead.assignee) {
        summary.keep_running(&bead.id, run, &bead.status, status);
    }
    bead.status = status.clone();
    bead.assignee.clone_from(assignee);
    bead.started_at = local.started_at;
    bead.closed_at = local.closed_at;
    bead.close_reason.clone_from(&local.close_reason);
    bead.outcome = local.outcome;
}

/// Takes out edges until there is no circle, and gives them. The store had none before, so each circle
/// has an edge of a bead that came with this import.
fn remove_circles(
    writer: &mut Writer<'_>,
    came: &HashMap<BeadId, TargetFacts>,
) -> Result<Vec<PostponedEdge>> {
    let mut removed = Vec::new();
    loop {
        let circles = BlockingGraph::read(writer)?.circles();
        if circles.is_empty() {
            return Ok(removed);
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
                let (file, line) = (None, 0);
                removed.push(PostponedEdge { edge, file, line, announce: false, unchanged: false });
            }
        }
    }
}

/// Puts each of these edges unless it closes a circle with those that are there. One that was taken out
/// may fit again because another was taken out after it; what does not fit now never will, so the same
/// import once more has nothing to add.
fn put_acyclic_edges(
    writer: &mut Writer<'_>,
    edges: impl Iterator<Item = PostponedEdge>,
    summary: &mut ImportSummary,
) -> Result<()> {
    for PostponedEdge { edge, file, line, announce, unchanged } in edges {
        let path = find_path(&edge.target, &edge.issue, |id| writer.blocking_targets(id))?;
        match path {
            None => {
                let change = writer.put_dependency(&edge, announce)?;
                if unchanged && change != DependencyChange::Same {
                    summary.unchanged -= 1;
                    summary.updated += 1;
                }
            }
            Some(path) => {
                let inputs: Vec<&str> =
                    path.last().into_iter().chain(&path).map(BeadId::as_str).collect();
                let reason = format!(
                    "its dependency on {} would be a cycle ({})",
                    edge.target,
                    inputs.join(" → ")
                );
                summary.skip(file.as_deref(), line, Some(edge.issue), reason);
            }
        }
    }
    Ok(())
}

/// The file was fine a moment ago, so another process is writing to it.
fn changed(source: &LineFile, line: u64, error: impl Display) -> OperationError {
    OperationError::rejected(format!(
        "{}:{line}: the file changed while it was read ({error}); nothing was imported",
        source.name()
    ))
}
