//! Molecules: formulas that became beads, whose steps are done one after the other.

use gt_core::formula::{Cooked, Role};
use gt_core::{Bead, BeadId, DependencyType, IssueType, Json, Outcome, Status};
use gt_store::{BeadFilter, BeadOrder, BeadRow, Reader, StatusFilter, Writer};

use crate::beads::{BeadChanges, Close, NewBead, close_in, create_in, update_in};
use crate::deletion::{Deletion, delete_in};
use crate::dependencies::put_in;
use crate::gates::gate_fields;
use crate::lookup::{edge, require};
use gt_town::{OperationError, Result, Town};

/// How a formula becomes beads.
#[derive(Debug, Clone, Default)]
pub struct PourOptions {
    /// Machinery that may be purged.
    pub ephemeral: bool,
    /// Only the root; its description names the steps.
    pub root_only: bool,
    /// The assignee of the root.
    pub assignee: String,
    /// The bead that the root is a part of.
    pub parent: Option<String>,
}

/// A molecule that a formula became.
#[derive(Debug, Clone)]
pub struct PouredMolecule {
    /// The bead at its root.
    pub root: Bead,
    /// The names in the formula, and the beads.
    pub ids: Vec<(String, BeadId)>,
}

/// Makes the beads of a cooked formula with all their dependencies, or nothing at all.
pub fn pour(town: &Town, cooked: &Cooked, options: &PourOptions) -> Result<PouredMolecule> {
    town.write(|writer| pour_in(town, writer, cooked, options))
}

fn pour_in(
    town: &Town,
    writer: &mut Writer<'_>,
    cooked: &Cooked,
    options: &PourOptions,
) -> Result<PouredMolecule> {
    let common = NewBead { ephemeral: options.ephemeral, ..NewBead::default() };
    let root = NewBead {
        title: cooked.root.title.to_string(),
        description: cooked.root.description.clone(),
        issue_type: Some(IssueType::trusted("molecule".to_owned())),
        assignee: options.assignee.clone(),
        parent: options.parent.clone(),
        carried: vec![("source_formula".to_owned(), Json::string(&cooked.formula.name))],
        ..common.clone()
    };
    let root = create_in(town, writer, &root)?.bead;
    let mut ids = vec![(cooked.root.id.clone(), root.id.clone())];
    if options.root_only {
        return Ok(PouredMolecule { root, ids });
    }
    let mut made: Vec<BeadId> = Vec::with_capacity(cooked.steps.len());
    for step in &cooked.steps {
        let parent = step.parent.and_then(|at| made.get(at)).unwrap_or(&root.id);
        let mut carried = Vec::new();
        if let Role::Gate(gate) = &step.role {
            let length = gt_core::time::parse_duration(&gate.timeout).ok();
            carried = gate_fields(&gate.kind, &gate.id, length);
        }
        let new = NewBead {
            title: step.title.to_string(),
            description: step.description.clone(),
            notes: step.notes.clone(),
            acceptance_criteria: step.acceptance.clone(),
            issue_type: Some(step.issue_type.clone()),
            priority: step.priority.unwrap_or_default(),
            labels: step.labels.clone(),
            metadata: step.metadata.clone(),
            assignee: step.assignee.clone(),
            parent: Some(parent.to_string()),
            no_inherit_labels: true,
            carried,
            ..common.clone()
        };
        let id = create_in(town, writer, &new)?.bead.id;
        ids.push((step.id.clone(), id.clone()));
        made.push(id);
    }
    for planned in cooked.edges() {
        let (Some(issue), Some(target)) =
            (made.get(planned.step), planned.target.and_then(|at| made.get(at)))
        else {
            continue;
        };
        if planned.kind != DependencyType::ParentChild {
            let mut link = edge(writer, issue, target, planned.kind.clone());
            link.metadata.clone_from(&planned.metadata);
            crate::dependencies::add_edge(writer, &link, false)?;
        }
    }
    Ok(PouredMolecule { root, ids })
}

/// How a step of a molecule stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoleculeStepState {
    /// It is closed.
    Done,
    /// It is in progress.
    Current,
    /// It can be worked on.
    Ready,
    /// It waits for another step, or was put off.
    Blocked,
}

impl MoleculeStepState {
    fn of(bead: &Bead) -> Self {
        match bead.status {
            Status::Closed => Self::Done,
            Status::InProgress | Status::Hooked => Self::Current,
            Status::Open if bead.open_blockers == 0 => Self::Ready,
            _ => Self::Blocked,
        }
    }

    /// The word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Current => "current",
            Self::Ready => "ready",
            Self::Blocked => "blocked",
        }
    }
}

/// A molecule and its steps.
#[derive(Debug, Clone)]
pub struct MoleculeProgress {
    /// The bead at its root.
    pub root: Bead,
    /// Its steps, in the order of their ids.
    pub steps: Vec<(BeadRow, MoleculeStepState)>,
}

impl MoleculeProgress {
    /// How many steps are done.
    pub fn completed(&self) -> u64 {
        self.in_state(MoleculeStepState::Done).count() as u64
    }

    /// The first step in this state.
    pub fn first(&self, state: MoleculeStepState) -> Option<&BeadRow> {
        self.in_state(state).next()
    }

    /// The steps in this state.
    pub fn in_state(&self, state: MoleculeStepState) -> impl Iterator<Item = &BeadRow> {
        self.steps.iter().filter(move |(_, is)| *is == state).map(|(row, _)| row)
    }
}

/// The molecule (or epic) with this root.
pub fn molecule(town: &Town, input: &str) -> Result<MoleculeProgress> {
    town.read(|reader| {
        let root = require(town, reader, input)?;
        progress_of(reader, root)
    })
}

fn progress_of(reader: &Reader<'_>, root: Bead) -> Result<MoleculeProgress> {
    let mut ids = descendants(reader, &root.id)?;
    ids.sort_by(BeadId::natural_order);
    let rows = reader.bead_rows(&ids)?;
    let steps = rows.into_iter().map(|row| {
        let state = MoleculeStepState::of(&row.bead);
        (row, state)
    });
    Ok(MoleculeProgress { root, steps: steps.collect() })
}

fn descendants(reader: &Reader<'_>, root: &BeadId) -> Result<Vec<BeadId>> {
    let mut found: Vec<BeadId> = Vec::new();
    let mut waiting = vec![root.clone()];
    while let Some(id) = waiting.pop() {
        for edge in reader.edges_to(&id)? {
            if edge.kind == DependencyType::ParentChild && !found.contains(&edge.issue) {
                waiting.push(edge.issue.clone());
                found.push(edge.issue);
            }
        }
    }
    Ok(found)
}

/// Every molecule that is not closed; with an assignee, only those with a step of theirs in progress.
pub fn molecules(town: &Town, worked_on_by: Option<&str>) -> Result<Vec<MoleculeProgress>> {
    let open = BeadFilter {
        types: vec![IssueType::trusted("molecule".to_owned())],
        status: StatusFilter::Current,
        order: BeadOrder::Created,
        ..BeadFilter::everything()
    };
    town.read(|reader| {
        let mut found = Vec::new();
        for row in reader.bead_rows(&reader.find(&open)?)? {
            let progress = progress_of(reader, row.bead)?;
            let is_worked_on = worked_on_by.is_none_or(|name| {
                let mut current = progress.in_state(MoleculeStepState::Current);
                current.any(|step| step.bead.assignee == name) || progress.root.assignee == name
            });
            if is_worked_on {
                found.push(progress);
            }
        }
        Ok(found)
    })
}

/// The step of a molecule that follows one that was closed.
#[derive(Debug, Clone)]
pub struct MoleculeAdvance {
    /// The root of the molecule; none for a bead that is a part of nothing.
    pub molecule: Option<BeadId>,
    /// The next step.
    pub next: Option<Bead>,
    /// Whether the actor has it now.
    pub claimed: bool,
    /// Whether no step is left.
    pub is_complete: bool,
}

/// Finds the step after a closed one, and takes it if asked to.
pub fn continue_molecule(town: &Town, closed: &BeadId, claim: bool) -> Result<MoleculeAdvance> {
    town.write(|writer| {
        let Some(root) = root_of(writer, closed)? else {
            let (molecule, next) = (None, None);
            return Ok(MoleculeAdvance { molecule, next, claimed: false, is_complete: false });
        };
        let progress = progress_of(writer, root)?;
        let next = progress.first(MoleculeStepState::Ready).map(|row| row.bead.clone());
        let next = match next {
            Some(step) if claim => {
                let changes = BeadChanges { claim: true, ..BeadChanges::default() };
                let id = update_in(town, writer, step.id.as_str(), &changes)?;
                writer.bead(&id)?
            }
            next => next,
        };
        Ok(MoleculeAdvance {
            claimed: claim && next.is_some(),
            is_complete: progress.completed() == progress.steps.len() as u64,
            molecule: Some(progress.root.id),
            next,
        })
    })
}

/// The topmost bead that this one is a part of.
fn root_of(reader: &Reader<'_>, id: &BeadId) -> Result<Option<Bead>> {
    let mut root = None;
    let mut at = id.clone();
    let mut seen = vec![at.clone()];
    while let Some(parent) = reader.parents(&at)?.into_iter().next() {
        if seen.contains(&parent) {
            break;
        }
        root = reader.bead(&parent)?;
        seen.push(parent.clone());
        at = parent;
    }
    Ok(root)
}

/// How two molecules are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BondKind {
    /// The second begins when the first is done.
    Sequential,
    /// Both go on at once.
    Parallel,
    /// The second begins when the first is over, however it ended.
    Conditional,
}

impl BondKind {
    fn edge(self) -> DependencyType {
        match self {
            Self::Sequential => DependencyType::Blocks,
            Self::Parallel => DependencyType::trusted("relates-to"),
            Self::Conditional => DependencyType::ConditionalBlocks,
        }
    }
}

/// Joins a bead that exists to a molecule.
pub fn bond(town: &Town, first: &str, second: &str, kind: BondKind) -> Result<(BeadId, BeadId)> {
    town.write(|writer| {
        let first = require(town, writer, first)?.id;
        let second = require(town, writer, second)?.id;
        put_in(writer, second.clone(), first.clone(), &kind.edge(), true)?;
        Ok((first, second))
    })
}

/// Makes a cooked formula a part of a molecule.
pub fn bond_formula(
    town: &Town,
    first: &str,
    cooked: &Cooked,
    options: &PourOptions,
) -> Result<(BeadId, PouredMolecule)> {
    town.write(|writer| {
        let first = require(town, writer, first)?;
        let ephemeral = options.ephemeral || first.ephemeral;
        let parent = Some(first.id.to_string());
        let options = PourOptions { ephemeral, parent, ..options.clone() };
        Ok((first.id, pour_in(town, writer, cooked, &options)?))
    })
}

/// A molecule whose steps were replaced by a summary.
#[derive(Debug, Clone)]
pub struct SquashedMolecule {
    /// The bead at its root.
    pub root: BeadId,
    /// The closed bead with the summary.
    pub digest: BeadId,
    /// The molecule, which was deleted.
    pub deleted: Deletion,
}

/// Replaces a molecule by one closed bead with a summary of its steps.
pub fn squash(town: &Town, input: &str, summary: Option<&str>) -> Result<SquashedMolecule> {
    town.write(|writer| {
        let root = require(town, writer, input)?;
        let progress = progress_of(writer, root)?;
        let description = summary.map_or_else(|| digest(&progress), str::to_owned);
        let title = format!("Digest: {}", progress.root.title).chars().take(200).collect();
        let new = NewBead { title, description, ..NewBead::default() };
        let digest = create_in(town, writer, &new)?.bead.id;
        let reason = format!("Squashed from {}", progress.root.id);
        let how =
            Close { reasons: vec![reason], outcome: Some(Outcome::Success), ..Close::default() };
        close_in(writer, &digest, &how, 0, town.acting_run())?;
        let deleted = burn_in(town, writer, &progress)?;
        Ok(SquashedMolecule { root: progress.root.id, digest, deleted })
    })
}

fn digest(progress: &MoleculeProgress) -> String {
    let line = |(row, state): &(BeadRow, MoleculeStepState)| {
        let reason = &row.bead.close_reason;
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        format!("- {} ({}){reason}", row.bead.title, state.as_str())
    };
    progress.steps.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Deletes molecules with all their steps: each of them, or none.
pub fn burn(town: &Town, inputs: &[String]) -> Result<Deletion> {
    town.write(|writer| {
        let found = inputs.iter().map(|input| require(town, writer, input));
        let roots = found.collect::<Result<Vec<_>>>()?;
        let mut burned = Deletion::default();
        for root in roots {
            // A step of an earlier one, or one that is named twice.
            if burned.beads.iter().all(|bead| bead.id != root.id) {
                let progress = progress_of(writer, root)?;
                let deletion = burn_in(town, writer, &progress)?;
                burned.beads.extend(deletion.beads);
                burned.runs.extend(deletion.runs);
            }
        }
        Ok(burned)
    })
}

fn burn_in(town: &Town, writer: &mut Writer<'_>, progress: &MoleculeProgress) -> Result<Deletion> {
    let root = &progress.root;
    if !root.issue_type.is_molecule() && !root.ephemeral && progress.steps.is_empty() {
        let (id, kind) = (&root.id, &root.issue_type);
        return Err(OperationError::rejected(format!(
            "{id} is a {kind}, not a molecule; bd delete {id} --force deletes it"
        )));
    }
    if let Some(running) = progress.first(MoleculeStepState::Current)
        && !root.ephemeral
    {
        let step = &running.bead.id;
        return Err(OperationError::rejected(format!(
            "{step} is in progress; close it first, or delete the beads with bd delete --force"
        )));
    }
    let ids: Vec<String> = std::iter::once(root.id.to_string())
        .chain(progress.steps.iter().map(|(row, _)| row.bead.id.to_string()))
        .collect();
    delete_in(town, writer, &ids, false)
}

/// Steps that can be worked on because a gate before them was closed, with that gate and their molecule.
pub fn freed_by_gates(town: &Town) -> Result<Vec<(BeadRow, BeadId, Option<BeadId>)>> {
    let gates = BeadFilter {
        types: vec![IssueType::trusted("gate".to_owned())],
        status: StatusFilter::OneOf(vec![Status::Closed]),
        ..BeadFilter::everything()
    };
    town.read(|reader| {
        let mut found = Vec::new();
        for gate in reader.find(&gates)? {
            for edge in reader.edges_to(&gate)? {
                let rows = reader.bead_rows(std::slice::from_ref(&edge.issue))?;
                let Some(row) = rows.into_iter().next() else { continue };
                if edge.kind.can_block()
                    && MoleculeStepState::of(&row.bead) == MoleculeStepState::Ready
                {
                    let root = root_of(reader, &row.bead.id)?.map(|root| root.id);
                    found.push((row, gate.clone(), root));
                }
            }
        }
        Ok(found)
    })
}
