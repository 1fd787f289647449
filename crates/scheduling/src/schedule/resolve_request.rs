//! The words of a sling, a launch or a new convoy, resolved to beads with the facts about them.

use std::collections::{HashMap, HashSet};

use gt_core::schedule::Merge;
use gt_core::similar_names::{closest, differs_by_one_edit};
use gt_core::{Bead, BeadId, ExecutorKind};
use gt_store::{BeadRow, Reader};

use super::expand::{ExpandedBead, SlingWords, meaning, named, unfold, words};
use super::request::{ConvoyChoice, SlingRequest};
use gt_beads::convoys::{NewConvoy, require};
use gt_town::{OperationError, Result, Town};

/// How many beads a message suggests for a mistyped id.
const SUGGESTIONS_MAX: usize = 3;

/// A bead to be scheduled, or why it is not.
pub(super) struct ResolvedBead {
    pub(super) name: String,
    pub(super) bead: std::result::Result<Box<Bead>, OperationError>,
    /// It came out of an epic or a convoy, where what cannot go is left out.
    pub(super) unfolded: bool,
    pub(super) twice: bool,
}

/// The resolved words of a request.
pub(super) struct ResolvedRequest {
    pub(super) words: SlingWords,
    pub(super) items: Vec<ResolvedBead>,
    pub(super) container: Option<(&'static str, BeadId)>,
    pub(super) title: Option<String>,
    /// How the convoy that is slung wants its work merged, and from which branch on.
    pub(super) merging: (Option<Merge>, Option<String>),
    /// The beads as they were after this event.
    pub(super) rows: HashMap<BeadId, BeadRow>,
    pub(super) as_of: u64,
}

/// Finds out what the words of a request mean.
pub(super) fn resolve_request(
    town: &Town,
    reader: &Reader<'_>,
    request: &SlingRequest,
) -> Result<ResolvedRequest> {
    let words = match request.travel {
        // A convoy names its beads and nothing else; there may be none yet.
        ConvoyChoice::In(_) | ConvoyChoice::With(_) => SlingWords::of_beads(&request.arguments),
        ConvoyChoice::ByItself | ConvoyChoice::Launched => words(reader, request)?,
    };
    let joins = matches!(request.travel, ConvoyChoice::In(_) | ConvoyChoice::With(_));
    // Where a target may stand and none does, a name that no bead has was perhaps meant as one.
    let may_be_target = words.inputs.len() > 1 && !joins && words.target.is_none();
    let perhaps_target = request.arguments.last().filter(|_| may_be_target);
    let mut unknown: Vec<(String, OperationError)> = Vec::new();
    let mut items = Vec::new();
    let mut container = None;
    let mut title = None;
    let mut merging = match &request.travel {
        ConvoyChoice::In(new) => {
            // An integration branch is named after the convoy, which does not exist yet.
            (new.merge, new.base_branch.clone().filter(|_| !new.integration))
        }
        ConvoyChoice::With(convoy) => merging_of(&require(town, reader, convoy)?)?,
        ConvoyChoice::ByItself | ConvoyChoice::Launched => (None, None),
    };
    let mut rows = named(reader, &words.inputs)?;
    for input in &words.inputs {
        let named = BeadId::parse(input).ok().and_then(|id| rows.get(&id));
        let meant = match named {
            Some(row) => unfold(reader, row.bead.clone()),
            None if perhaps_target == Some(input) && is_nearly_rig(reader, input)? => {
                Err(OperationError::NoBead(input.clone()))
            }
            None => meaning(town, reader, input),
        };
        let (kind, bead, parts) = match meant {
            Err(error @ OperationError::Store(_)) => return Err(error),
            Err(error) => {
                unknown.push((input.clone(), error));
                continue;
            }
            Ok(ExpandedBead::Bead(bead))
                if matches!(
                    request.travel,
                    ConvoyChoice::In(NewConvoy { from_epic: true, .. })
                ) =>
            {
                return Err(OperationError::rejected(format!(
                    "{} is a {}, and no epic; leave --from-epic out",
                    bead.id, bead.issue_type
                )));
            }
            Ok(ExpandedBead::Bead(bead)) => {
                items.push(ResolvedBead {
                    name: bead.id.to_string(),
                    bead: Ok(bead),
                    // A convoy may track beads that are not scheduled.
                    unfolded: joins,
                    twice: false,
                });
                continue;
            }
            Ok(ExpandedBead::Epic(bead, parts)) => ("epic", bead, parts),
            Ok(ExpandedBead::Convoy(bead, parts)) => ("convoy", bead, parts),
        };
        refuse_misuse(kind, &bead, &words, request)?;
        if joins && parts.is_empty() {
            return Err(no_parts(&bead));
        }
        container = Some((kind, bead.id.clone()));
        if bead.issue_type.is_convoy() {
            merging = merging_of(&bead)?;
        }
        title = Some(bead.title.to_string());
        for row in reader.bead_rows(&parts)? {
            if joins && is_frame(reader, &row.bead)? {
                continue;
            }
            items.push(ResolvedBead {
                name: row.bead.id.to_string(),
                bead: Ok(Box::new(row.bead.clone())),
                unfolded: true,
                twice: false,
            });
            rows.insert(row.bead.id.clone(), row);
        }
    }
    if !request.skip_unknown || items.is_empty() {
        refuse_unknown(reader, &mut unknown, perhaps_target)?;
    }
    items.extend(unknown.into_iter().map(|(name, error)| ResolvedBead {
        name,
        bead: Err(error),
        unfolded: false,
        twice: false,
    }));
    let mut seen = HashSet::new();
    for item in &mut items {
        item.twice = item.bead.as_ref().is_ok_and(|bead| !seen.insert(bead.id.clone()));
    }
    let as_of = reader.last_event_number()?;
    Ok(ResolvedRequest { words, items, container, title, merging, rows, as_of })
}

/// Refuses the request for all of its names that stand for nothing, before anything happens. Each is told with the
/// known name that it may have meant.
fn refuse_unknown(
    reader: &Reader<'_>,
    unknown: &mut Vec<(String, OperationError)>,
    perhaps_target: Option<&String>,
) -> Result<()> {
    if unknown.len() == 1 && !matches!(unknown[0].1, OperationError::NoBead(_)) {
        return unknown.pop().map_or(Ok(()), |(_, error)| Err(error));
    }
    let mut told = Vec::new();
    for (input, error) in unknown.iter() {
        let is_last = perhaps_target == Some(input);
        told.push(match error {
            OperationError::NoBead(name) => no_bead(reader, name, is_last)?,
            other => format!("{input}: {other}"),
        });
    }
    if told.is_empty() { Ok(()) } else { Err(OperationError::rejected(told.join("; "))) }
}

/// Whether a word looks like the name of a rig. Such a word in the place of a target is a mistyped rig, even if it is
/// also a part of some bead's id.
fn is_nearly_rig(reader: &Reader<'_>, word: &str) -> Result<bool> {
    let rigs: Vec<String> = reader.rigs()?.into_iter().map(|rig| rig.slug.to_string()).collect();
    Ok(closest(word, rigs.iter().map(String::as_str)).is_some())
}

/// The message for a name that no bead has, and perhaps no target.
fn no_bead(reader: &Reader<'_>, name: &str, may_be_target: bool) -> Result<String> {
    let near = differs_by_one_edit(name).into_iter().filter_map(|near| BeadId::parse(&near).ok());
    let near: Vec<BeadId> = near.collect();
    let mut meant: Vec<String> =
        reader.existing(&near)?.into_iter().map(|id| id.to_string()).collect();
    meant.sort_unstable();
    meant.truncate(SUGGESTIONS_MAX);
    let rigs: Vec<String> = reader.rigs()?.into_iter().map(|rig| rig.slug.to_string()).collect();
    if may_be_target {
        meant.extend(closest(name, rigs.iter().map(String::as_str)).map(str::to_owned));
    }
    let hint = match meant.as_slice() {
        [] => String::new(),
        meant => format!("; did you mean {}?", meant.join(" or ")),
    };
    Ok(if may_be_target {
        let rigs = rigs.join(", ");
        format!("no issue and no rig found matching \"{name}\"{hint}; known rigs: {rigs}")
    } else {
        format!("no issue found matching \"{name}\"{hint}")
    })
}

/// How a convoy wants its work merged, and from which branch on.
pub(super) fn merging_of(convoy: &Bead) -> Result<(Option<Merge>, Option<String>)> {
    let Some(kept) = &convoy.metadata else { return Ok((None, None)) };
    let merge = kept.string_field("merge").map(|merge| Merge::parse(&merge)).transpose()?;
    Ok((merge, kept.string_field("base_branch")))
}

/// Epics and convoys go whole, each part to its own rig.
fn refuse_misuse(
    kind: &str,
    bead: &Bead,
    words: &SlingWords,
    request: &SlingRequest,
) -> Result<()> {
    let wrong = request.flags.task_only();
    if !wrong.is_empty() {
        return Err(OperationError::rejected(format!(
            "{kind} mode does not support: {}",
            wrong.join(", ")
        )));
    }
    if let Some(target) = &words.target {
        let article = if kind.starts_with('e') { "an" } else { "a" };
        return Err(OperationError::rejected(format!(
            "{} is {article} {kind}, whose parts go to their own rigs; leave {} out",
            bead.id, target
        )));
    }
    match (&request.travel, kind) {
        (ConvoyChoice::In(_) | ConvoyChoice::With(_), "convoy") => {
            return Err(OperationError::rejected(format!(
                "{} is a convoy, and convoys do not travel in others; name its beads",
                bead.id
            )));
        }
        (ConvoyChoice::In(NewConvoy { from_epic: false, .. }) | ConvoyChoice::With(_), "epic") => {
            return Err(OperationError::rejected(format!(
                "{} is an epic; name its parts, or make a convoy of all of them with gt convoy create <name> \
                 --from-epic {}",
                bead.id, bead.id
            )));
        }
        _ => {}
    }
    if kind == "convoy"
        && bead.status.is_staged()
        && !matches!(request.travel, ConvoyChoice::Launched)
    {
        return Err(OperationError::rejected(format!(
            "{} is staged; start it with gt convoy launch {}",
            bead.id, bead.id
        )));
    }
    Ok(())
}

/// The error about an epic without work to do.
pub(crate) fn no_parts(epic: &Bead) -> OperationError {
    OperationError::rejected(format!(
        "the epic {} has no parts; add some with bd create --parent {}",
        epic.id, epic.id
    ))
}

/// Whether a part of an epic only holds others together. It is over when they are, and no convoy waits for it.
fn is_frame(reader: &Reader<'_>, bead: &Bead) -> Result<bool> {
    let rig = match &bead.rig {
        Some(slug) => reader.rig(slug.as_str())?,
        None => None,
    };
    let executor = rig.map_or(ExecutorKind::Process, |rig| rig.executor);
    Ok(!bead.issue_type.is_slingable(executor))
}
