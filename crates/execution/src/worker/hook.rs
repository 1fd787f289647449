//! The beads on the hooks of workers.

use gt_core::schedule::{Run, StepProgress};
use gt_core::{Bead, BeadId, MessageAddress};
use gt_store::Reader;

use gt_beads::lookup::resolve_in;
use gt_beads::messages::{MessageParty, put_before_in, unread_in};
use gt_beads::steps::progress_in;
use gt_town::{OperationError, Result, Town};

/// A bead and the run that has it.
#[derive(Debug, Clone)]
pub struct Hooked {
    /// The bead.
    pub bead: Bead,
    /// The live run that has it, if there is one.
    pub run: Option<Run>,
    /// How many steps of that run are done.
    pub progress: Option<StepProgress>,
    /// How many messages wait for its worker.
    pub unread: usize,
}

/// The bead of the caller, or the run that has the bead that `asked` means. Messages to the caller count as
/// delivered: the caller is told how many there are.
pub fn hook(town: &Town, role: Option<&str>, asked: Option<&str>) -> Result<Vec<Hooked>> {
    let (hooked, waiting) = town.read(|reader| {
        if let Some(asked) = asked {
            let bead = resolve_in(town, reader, asked)?;
            let run = reader.live_run(&bead)?;
            return Ok((vec![hooked_in(reader, &bead, run)?], Vec::new()));
        }
        let party = MessageParty::of(town, reader, role)?;
        let runs: Vec<Run> = match &party {
            MessageParty::Worker(run) => vec![run.as_ref().clone()],
            MessageParty::Standing(MessageAddress::Place(place)) => {
                let at_place = |run: &Run| run.place.as_ref() == Some(place);
                let at_place = reader.live_runs()?.into_iter().filter(at_place);
                let whole = at_place.map(|run| Ok(reader.run(&run.id)?.unwrap_or(run)));
                whole.collect::<Result<_>>()?
            }
            MessageParty::Standing(_) | MessageParty::Person => Vec::new(),
        };
        let hooked = runs.into_iter().map(|run| hooked_in(reader, &run.id.bead.clone(), Some(run)));
        Ok((hooked.collect::<Result<_>>()?, unread_in(reader, &party)?))
    })?;
    if waiting.iter().any(|message| message.delivered_at.is_none()) {
        town.write(|writer| put_before_in(writer, &waiting))?;
    }
    Ok(hooked)
}

fn hooked_in(reader: &Reader<'_>, bead: &BeadId, run: Option<Run>) -> Result<Hooked> {
    let bead =
        reader.bead(bead)?.ok_or_else(|| OperationError::NoBead(bead.as_str().to_owned()))?;
    let progress = match &run {
        Some(run) => progress_in(reader, run)?,
        None => None,
    };
    let unread = match &run {
        Some(run) => unread_in(reader, &MessageParty::Worker(Box::new(run.clone())))?.len(),
        None => 0,
    };
    Ok(Hooked { bead, run, progress, unread })
}
