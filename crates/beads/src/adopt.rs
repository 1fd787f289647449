//! Turns the queue entries that older versions left with beads into contexts.

use std::collections::HashSet;

use gt_core::decide::{AdoptionFacts, OldState, Successor, adopt as decide};
use gt_core::queue_block::{FoundBlock, parse};
use gt_core::schedule::{CloseReason, Context, ContextId, ContextOrigin, labels};
use gt_core::{Bead, BeadChangeKind, BeadId, DependencyType, RigSlug, Status, Timestamp};
use gt_records::parse_context;
use gt_store::{NewContext, Writer};

use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::{Result, Town, settings};

/// The result of an adoption, in the order in which it was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Adoption {
    /// Beads that wait to be dispatched now.
    pub adopted: Vec<AdoptedBead>,
    /// Beads whose context was closed at once.
    pub quarantined: Vec<QuarantinedBead>,
    /// Beads that only lost what an older queue had left with them.
    pub cleaned: Vec<CleanedBead>,
}

/// A bead that waits to be dispatched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedBead {
    /// The bead.
    pub bead: BeadId,
    /// Its context.
    pub context: ContextId,
    /// Where it goes.
    pub rig: RigSlug,
    /// It waits for a cycle by hand or for the queue to be enabled.
    pub gated: bool,
    /// How many starts have failed.
    pub failures: u32,
}

/// A bead that is not dispatched as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedBead {
    /// The bead; where it is not clear which one was meant, the bead that was its context elsewhere.
    pub bead: BeadId,
    /// The context that says so, where there is a bead to have one.
    pub context: Option<ContextId>,
    /// How it was closed.
    pub reason: CloseReason,
    /// Why; empty where the reason says it all.
    pub why: String,
}

/// A bead that lost what an older queue had left with it, and nothing more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanedBead {
    /// The bead.
    pub bead: BeadId,
    /// Why nothing else had to be done.
    pub why: String,
}

/// Turns the queue entries that older versions left with beads into contexts, in the order in which they were queued:
/// all of them or none. Blocks and labels go; the events keep their text. A rehearsal says the same and changes
/// nothing.
pub fn adopt(town: &Town, rehearsal: bool) -> Result<Adoption> {
    let files = settings::file_layers(town)?;
    town.write_or_rehearse(rehearsal, |writer| {
        let settings = SchedulerSettings::of(&settings::layers_over(&files, writer)?)?;
        let is_direct = !settings.is_deferred();
        let mut adoption = Adoption::default();
        let mut candidates = Vec::new();
        let names = KnownNames::read(writer)?;
        for id in writer.contexts_of_old_queues()? {
            candidates.extend(from_context(writer, &names, &id, &mut adoption)?);
        }
        for id in writer.marked_by_old_queues()? {
            candidates.extend(from_marks(writer, &names, &id)?);
        }
        // Those that can wait come first: of two for one bead, the one that is still wanted counts.
        candidates.sort_by(|a, b| a.rank().cmp(&b.rank()));
        take_over(writer, candidates, is_direct, &mut adoption)?;
        Ok(adoption)
    })
}

/// Whether an older queue left something with a bead that has these stored labels.
pub(crate) fn carries_old_state(bead: &Bead, stored_labels: &[String]) -> bool {
    OldState::of(stored_labels, &parse(&bead.description)).is_some()
        || is_old_context(bead, stored_labels)
}

/// Whether this bead was a context elsewhere and is still open.
fn is_old_context(bead: &Bead, stored_labels: &[String]) -> bool {
    bead.status != Status::Closed
        && (bead.ephemeral || bead.issue_type.as_str() == gt_core::IssueType::SLING_CONTEXT)
        && stored_labels.iter().any(|label| label == labels::SLING_CONTEXT)
}

/// The names that an old entry may refer to.
struct KnownNames {
    rigs: Vec<RigSlug>,
    accounts: Vec<String>,
}

impl KnownNames {
    fn read(writer: &Writer<'_>) -> Result<Self> {
        Ok(Self {
            rigs: writer.rigs()?.into_iter().map(|rig| rig.slug).collect(),
            accounts: writer.accounts()?.into_iter().map(|account| account.handle).collect(),
        })
    }

    fn successor(&self, writer: &Writer<'_>, bead: &Bead, old: &OldState) -> Result<Successor> {
        let home = writer.rig_of_id(&bead.id)?;
        let facts = AdoptionFacts {
            home: home.as_ref(),
            is_closed: bead.status == Status::Closed,
            rigs: &self.rigs,
            accounts: &self.accounts,
        };
        Ok(decide(old, facts))
    }
}

/// A bead to be worked on, and the context that it gets.
struct AdoptionCandidate {
    work: Bead,
    successor: Successor,
    /// Where it was written: in the bead itself, or in another one that goes with it.
    source: AdoptionSource,
}

enum AdoptionSource {
    /// Labels, and perhaps a block; this is the description without it.
    Marks { remaining: Option<String> },
    /// The bead that was the context.
    Context(Box<Bead>),
}

impl AdoptionCandidate {
    fn rank(&self) -> (bool, Timestamp, &BeadId) {
        let at = self.successor.enqueued_at.unwrap_or(self.work.created_at);
        (self.successor.closed.is_some(), at, &self.work.id)
    }
}

/// The queue entry in the labels and the description of a bead.
fn from_marks(
    writer: &Writer<'_>,
    names: &KnownNames,
    id: &BeadId,
) -> Result<Option<AdoptionCandidate>> {
    let Some(work) = writer.bead(id)? else { return Ok(None) };
    let found = parse(&work.description);
    let Some(old) = OldState::of(&writer.labels_in_order(&work)?, &found) else {
        return Ok(None);
    };
    let successor = names.successor(writer, &work, &old)?;
    let remaining = match found {
        FoundBlock::Nothing => None,
        FoundBlock::Block(block) => Some(block.remaining),
        FoundBlock::Damaged { remaining, .. } => Some(remaining),
    };
    Ok(Some(AdoptionCandidate { work, successor, source: AdoptionSource::Marks { remaining } }))
}

/// The queue entry in a bead that was a context elsewhere. A bead that leads to no other is closed here and now.
fn from_context(
    writer: &mut Writer<'_>,
    names: &KnownNames,
    id: &BeadId,
    adoption: &mut Adoption,
) -> Result<Option<AdoptionCandidate>> {
    let Some(context) = writer.bead(id)? else { return Ok(None) };
    let (named, old) = match parse_context(&context.description) {
        Ok(record) => (Some(record.work_bead), OldState::Queued(Box::new(record.fields))),
        Err(error) => {
            let tracks =
                writer.edges_from(id)?.into_iter().find(|edge| edge.kind == DependencyType::Tracks);
            let why = format!("its description is no sling context: {error}");
            (tracks.map(|edge| edge.target), OldState::Damaged(why))
        }
    };
    let work = match &named {
        Some(named) => writer.bead(named)?,
        None => None,
    };
    if let Some(work) = work {
        let successor = names.successor(writer, &work, &old)?;
        let source = AdoptionSource::Context(Box::new(context));
        return Ok(Some(AdoptionCandidate { work, successor, source }));
    }
    let (reason, why) = match (old, named) {
        (OldState::Damaged(why), _) => (CloseReason::InvalidContext, why),
        (_, Some(named)) => (CloseReason::StaleWorkBead, format!("{named} is not there")),
        (_, None) => (CloseReason::InvalidContext, "it names no bead".to_owned()),
    };
    close_old_context(writer, &context, reason.as_str(), &why)?;
    adoption.quarantined.push(QuarantinedBead { bead: id.clone(), context: None, reason, why });
    Ok(None)
}

/// Gives each bead its context, unless it needs none, and removes what the older queue left.
fn take_over(
    writer: &mut Writer<'_>,
    candidates: Vec<AdoptionCandidate>,
    is_direct: bool,
    adoption: &mut Adoption,
) -> Result<()> {
    let mut seen = HashSet::new();
    let mut decided = Vec::with_capacity(candidates.len());
    let mut new = Vec::new();
    for candidate in candidates {
        let again = !seen.insert(candidate.work.id.clone());
        let why_not = why_not(writer, &candidate.work, &candidate.successor, again)?;
        if why_not.is_none() {
            new.push(new_context(&candidate, is_direct));
        }
        decided.push((candidate, why_not));
    }
    let mut contexts = writer.insert_contexts(new)?.into_iter();
    for (AdoptionCandidate { work, successor, source }, why_not) in decided {
        let bead = work.id.clone();
        let (reason, why) = if let Some(why) = why_not {
            adoption.cleaned.push(CleanedBead { bead, why: why.clone() });
            (CloseReason::Cleared.as_str().to_owned(), why)
        } else {
            let context = contexts
                .next()
                .ok_or_else(|| gt_store::StoreError::Corrupt(format!("{bead} got no context")))?;
            close_adopted_context(writer, context, successor, adoption)?
        };
        match source {
            AdoptionSource::Marks { remaining } => clean(writer, &work, remaining)?,
            AdoptionSource::Context(context) => close_old_context(writer, &context, &reason, &why)?,
        }
    }
    Ok(())
}

fn new_context(candidate: &AdoptionCandidate, is_direct: bool) -> NewContext {
    let AdoptionCandidate { work, successor, .. } = candidate;
    NewContext {
        account: successor.account.clone(),
        gated: is_direct && successor.closed.is_none(),
        parameters: successor.parameters.clone(),
        enqueued_at: successor.enqueued_at,
        failures: successor.failures,
        ..NewContext::plain(
            work.id.clone(),
            successor.rig.clone(),
            work.priority,
            ContextOrigin::Adopted,
        )
    }
}

/// Closes a context if that is what became of it, and tells. Gives the reason and the words with which
/// the bead is closed that was the context elsewhere.
fn close_adopted_context(
    writer: &mut Writer<'_>,
    context: Context,
    successor: Successor,
    adoption: &mut Adoption,
) -> Result<(String, String)> {
    if let Some((reason, why)) = successor.closed {
        writer.close_context(&context, reason, &why)?;
        let (bead, id) = (context.bead, Some(context.id));
        adoption.quarantined.push(QuarantinedBead { bead, context: id, reason, why: why.clone() });
        return Ok((reason.as_str().to_owned(), why));
    }
    if !successor.last_failure.is_empty() {
        writer.postpone_context(&context, successor.failures, &successor.last_failure, None)?;
    }
    let reason = format!("adopted as {}", context.id);
    let Context { bead, id, rig, gated, failures, .. } = context;
    adoption.adopted.push(AdoptedBead { bead, context: id, rig, gated, failures });
    Ok((reason, String::new()))
}

/// Why a bead gets no context, if it does not.
fn why_not(
    writer: &Writer<'_>,
    work: &Bead,
    successor: &Successor,
    again: bool,
) -> Result<Option<String>> {
    let latest = writer.latest_context(&work.id)?;
    if again || latest.as_ref().is_some_and(|latest| latest.closed.is_none()) {
        return Ok(Some("it is scheduled already".to_owned()));
    }
    if let Some(run) = writer.live_run(&work.id)? {
        return Ok(Some(format!("{} works on it", run.id)));
    }
    // An ending of long ago must not hide what has happened here since.
    let is_past = successor.closed.is_some() && latest.is_some();
    Ok(is_past.then(|| "it has been scheduled here since".to_owned()))
}

/// Takes the block and the labels of the older queue from a bead.
fn clean(writer: &mut Writer<'_>, work: &Bead, remaining: Option<String>) -> Result<()> {
    for label in labels::DERIVED.into_iter().filter(|label| *label != labels::SLING_CONTEXT) {
        writer.remove_label(work, label, true)?;
    }
    let description = remaining.unwrap_or_else(|| work.description.clone());
    let updated_at = writer.now().of_change_after(work.updated_at);
    let new = Bead { description, updated_at, ..work.clone() };
    if !writer.save_bead(work, &new, BeadChangeKind::Updated)? {
        writer.touch_bead(&work.id)?;
    }
    Ok(())
}

/// Closes the bead that was a context elsewhere; its description stays.
fn close_old_context(
    writer: &mut Writer<'_>,
    context: &Bead,
    reason: &str,
    why: &str,
) -> Result<()> {
    let mut new = context.clone();
    new.status = Status::Closed;
    new.closed_at = Some(writer.now());
    new.updated_at = writer.now().of_change_after(context.updated_at);
    reason.clone_into(&mut new.close_reason);
    if !why.is_empty() {
        if !new.notes.is_empty() {
            new.notes.push('\n');
        }
        new.notes.push_str(why);
    }
    writer.save_bead(context, &new, BeadChangeKind::Closed)?;
    Ok(())
}
