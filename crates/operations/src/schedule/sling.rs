//! One sling: everything is checked, and what passes is scheduled in one transaction.

use std::collections::{HashMap, HashSet};

use gt_core::decide::WaitReason;
use gt_core::schedule::{Origin, SlingParameters};
use gt_core::settings::Layers;
use gt_core::{Bead, BeadId, Rig, RigSlug, Status};
use gt_store::{NewContext, Pause, Reader, Writer};

use super::check::{self, Verdict};
use super::convoy;
use super::expand::{Meaning, Target, Words, meaning, words};
use super::request::{Entry, Fate, Flags, Skip, SlingReport, SlingRequest};
use crate::beads::BeadFacts;
use crate::dispatch::{Caller, DEFAULT_FORMULA, Overrides, Scene, cook};
use crate::settings::file_layers;
use crate::{OperationError, Result, Town};

/// A bead to be scheduled, or why it is not.
struct Item {
    name: String,
    bead: std::result::Result<Box<Bead>, OperationError>,
    /// It came out of an epic or a convoy, where what cannot go is left out.
    unfolded: bool,
    twice: bool,
}

/// What the words of a request came to.
struct Load {
    words: Words,
    items: Vec<Item>,
    container: Option<(&'static str, BeadId)>,
    title: Option<String>,
}

/// The rigs that a formula was tried in, and what is wrong with it there.
type Recipes = HashMap<RigSlug, std::result::Result<(), String>>;

/// Schedules what the request names. Nothing is started here; in direct mode the caller runs a cycle over the
/// contexts that were made.
pub fn sling(town: &Town, request: &SlingRequest) -> Result<SlingReport> {
    let files = file_layers(town)?;
    let (load, scene) = town.read(|reader| {
        let load = load(town, reader, request)?;
        let scene = look(town, reader, &files)?;
        Ok((load, scene))
    })?;
    let parameters = parameters(request, &load.words);
    // Before the transaction, because it reads files.
    let recipes = try_recipes(town, &scene, &load, &parameters, &request.flags);
    town.write_or_rehearse(request.rehearsal, |writer| {
        // What was read before the transaction may be old by now.
        let scene = look(town, writer, &files)?;
        Scheduling { town, request, scene, parameters: &parameters, recipes: &recipes }
            .run(writer, load)
    })
}

fn look(town: &Town, reader: &Reader<'_>, files: &Layers) -> Result<Scene> {
    town.scene(reader, files, &Overrides::default(), Caller::Daemon)
}

fn load(town: &Town, reader: &Reader<'_>, request: &SlingRequest) -> Result<Load> {
    let words = words(reader, request)?;
    let single = words.inputs.len() == 1;
    // Where a target may stand and none does, a name that no bead has was perhaps meant as one.
    let perhaps_target = request.arguments.last().filter(|_| !single && words.target.is_none());
    let mut items = Vec::new();
    let mut container = None;
    let mut title = None;
    for input in &words.inputs {
        let (kind, bead, parts) = match meaning(town, reader, input) {
            Err(error) if single && matches!(error, OperationError::Store(_)) => return Err(error),
            Err(error) => {
                let is_last = perhaps_target == Some(input);
                let error = match error {
                    OperationError::NoBead(name) if is_last => {
                        let known = reader.rigs()?.into_iter().map(|rig| rig.slug.to_string());
                        OperationError::rejected(format!(
                            "no issue and no rig found matching \"{name}\"; known rigs: {}",
                            known.collect::<Vec<_>>().join(", ")
                        ))
                    }
                    other => other,
                };
                items.push(Item {
                    name: input.clone(),
                    bead: Err(error),
                    unfolded: false,
                    twice: false,
                });
                continue;
            }
            Ok(Meaning::Bead(bead)) => {
                items.push(Item {
                    name: bead.id.to_string(),
                    bead: Ok(bead),
                    unfolded: false,
                    twice: false,
                });
                continue;
            }
            Ok(Meaning::Epic(bead, parts)) => ("epic", bead, parts),
            Ok(Meaning::Convoy(bead, parts)) => ("convoy", bead, parts),
        };
        refuse_misuse(kind, &bead, &words, &request.flags)?;
        container = Some((kind, bead.id.clone()));
        title = Some(bead.title.to_string());
        for row in reader.bead_rows(&parts)? {
            items.push(Item {
                name: row.bead.id.to_string(),
                bead: Ok(Box::new(row.bead)),
                unfolded: true,
                twice: false,
            });
        }
    }
    let mut seen = HashSet::new();
    for item in &mut items {
        item.twice = item.bead.as_ref().is_ok_and(|bead| !seen.insert(bead.id.clone()));
    }
    Ok(Load { words, items, container, title })
}

/// Epics and convoys go whole, each part to its own rig.
fn refuse_misuse(kind: &str, bead: &Bead, words: &Words, flags: &Flags) -> Result<()> {
    let wrong = flags.task_only();
    if !wrong.is_empty() {
        return Err(OperationError::rejected(format!(
            "{kind} mode does not support: {}",
            wrong.join(", ")
        )));
    }
    if let Some(target) = &words.target {
        return Err(OperationError::rejected(format!(
            "{} is a {kind}, whose parts go to their own rigs; leave {} out",
            bead.id, target.rig.slug
        )));
    }
    let staged =
        matches!(&bead.status, Status::Custom(_)) && bead.status.as_str().starts_with("staged");
    if kind == "convoy" && staged {
        return Err(OperationError::rejected(format!(
            "{} is staged; start it with gt convoy launch {}",
            bead.id, bead.id
        )));
    }
    Ok(())
}

fn parameters(request: &SlingRequest, words: &Words) -> SlingParameters {
    let flags = &request.flags;
    let formula = match (&words.formula, flags.hook_raw_bead) {
        (Some(formula), _) => Some(formula.clone()),
        (None, true) => None,
        (None, false) => Some(DEFAULT_FORMULA.to_owned()),
    };
    SlingParameters {
        formula,
        args: flags.args.clone(),
        vars: flags.vars.clone(),
        merge: flags.merge,
        convoy: None,
        base_branch: flags.base_branch.clone(),
        no_merge: flags.no_merge,
        review_only: flags.review_only,
        runtime: flags.runtime.clone(),
        hook_raw_bead: flags.hook_raw_bead,
        owned: flags.owned,
        ralph: flags.ralph,
        retries: flags.retries,
    }
}

/// Cooks what would be cooked at dispatch, so that what is wrong shows now. One bead of a rig speaks for the
/// others: only its name differs.
fn try_recipes(
    town: &Town,
    scene: &Scene,
    load: &Load,
    parameters: &SlingParameters,
    flags: &Flags,
) -> Recipes {
    let mut tried = Recipes::new();
    for item in &load.items {
        let Ok(bead) = &item.bead else { continue };
        let Ok(rig) = check::rig(scene, bead, load.words.target.as_ref(), flags) else { continue };
        if !tried.contains_key(&rig.slug) {
            let cooked = cook(town, rig, bead, parameters);
            let said = cooked.map(|_| ()).map_err(|error| error.to_string());
            tried.insert(rig.slug.clone(), said);
        }
    }
    tried
}

struct Scheduling<'a> {
    town: &'a Town,
    request: &'a SlingRequest,
    scene: Scene,
    parameters: &'a SlingParameters,
    recipes: &'a Recipes,
}

impl Scheduling<'_> {
    fn run(&self, writer: &mut Writer<'_>, load: Load) -> Result<SlingReport> {
        let flags = &self.request.flags;
        if let Some(account) = &flags.account {
            self.require_account(account)?;
        }
        let mut report = SlingReport {
            container: load.container.clone(),
            deferred: self.scene.settings.is_deferred() || self.request.queue,
            paused: self.scene.control.paused.clone().map(|(by, at)| Pause { by, at }),
            ..SlingReport::default()
        };
        let target = load.words.target.as_ref();
        let mut going = Vec::new();
        for item in load.items {
            let Item { name, bead, unfolded, twice } = item;
            let bead = match bead {
                Ok(bead) => bead,
                Err(error) => {
                    let fate = Fate::Refused(error);
                    report.entries.push(Entry {
                        name,
                        bead: None,
                        title: String::new(),
                        rig: None,
                        fate,
                    });
                    continue;
                }
            };
            let mut entry = Entry {
                name,
                bead: Some(bead.id.clone()),
                title: bead.title.to_string(),
                rig: None,
                fate: Fate::Nothing("named twice".to_owned()),
            };
            if !twice {
                match self.verdict(writer, &bead, target) {
                    Ok(Verdict::Go(rig)) => {
                        entry.rig = Some(rig.slug.to_string());
                        going.push((report.entries.len(), bead, rig));
                    }
                    Ok(Verdict::Nothing(why)) => entry.fate = Fate::Nothing(why),
                    Err(error @ OperationError::Store(_)) => return Err(error),
                    // Of an epic or a convoy the rest goes.
                    Err(error) if unfolded && !is_formula_fault(&error) => {
                        entry.fate = Fate::Skipped(self.skip(&bead), error.to_string());
                    }
                    Err(error) => entry.fate = Fate::Refused(error),
                }
            }
            report.entries.push(entry);
        }
        self.schedule(writer, &mut report, going, target, load.title.as_deref())?;
        Ok(report)
    }

    fn verdict(
        &self,
        writer: &Writer<'_>,
        bead: &Bead,
        target: Option<&Target>,
    ) -> Result<Verdict> {
        let flags = &self.request.flags;
        // What was read before the transaction may be old by now.
        let bead =
            writer.bead(&bead.id)?.ok_or_else(|| OperationError::NoBead(bead.id.to_string()))?;
        let rig = check::rig(&self.scene, &bead, target, flags)?;
        let open = writer.open_context(&bead.id)?;
        let verdict = check::standing(&self.scene, &bead, rig, target, open.as_ref(), flags)?;
        if matches!(verdict, Verdict::Go(_))
            && let Some(Err(why)) = self.recipes.get(&rig.slug)
        {
            return Err(OperationError::Recipe(why.clone()));
        }
        Ok(verdict)
    }

    /// What kept a part of something larger.
    fn skip(&self, bead: &Bead) -> Skip {
        let rig = bead.rig.as_ref().and_then(|slug| self.scene.rig(slug));
        match &bead.status {
            Status::Closed => Skip::Closed,
            _ if self.scene.run_of(&bead.id).is_some() => Skip::Running,
            Status::Hooked | Status::InProgress => Skip::Assigned,
            _ if !bead.assignee.is_empty() => Skip::Assigned,
            _ if rig.is_some_and(|rig| !bead.issue_type.is_slingable(rig.executor)) => Skip::Type,
            _ => Skip::Other,
        }
    }

    fn require_account(&self, handle: &str) -> Result<()> {
        if self.scene.accounts.iter().any(|account| account.handle == handle) {
            return Ok(());
        }
        let known: Vec<&str> =
            self.scene.accounts.iter().map(|account| account.handle.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(OperationError::rejected(format!(
            "account \"{handle}\" not found; known accounts: {known}; add one with \
             gt config account add {handle}"
        )))
    }

    /// Writes contexts and the convoy for everything that passed.
    fn schedule(
        &self,
        writer: &mut Writer<'_>,
        report: &mut SlingReport,
        going: Vec<(usize, Box<Bead>, Box<Rig>)>,
        target: Option<&Target>,
        title: Option<&str>,
    ) -> Result<()> {
        let flags = &self.request.flags;
        let mut convoys: HashMap<BeadId, BeadId> = HashMap::new();
        let mut untracked = Vec::new();
        for (_, bead, _) in &going {
            match convoy::tracking(writer, &bead.id)? {
                Some(convoy) => {
                    convoys.insert(bead.id.clone(), convoy.id);
                }
                None => untracked.push(bead.id.clone()),
            }
        }
        let in_convoy = matches!(report.container, Some(("convoy", _)));
        if !flags.no_convoy && !in_convoy && !untracked.is_empty() {
            let first = going.iter().find(|(_, bead, _)| bead.id == untracked[0]);
            let title = match (title, untracked.len(), first) {
                (Some(title), _, _) => title.to_owned(),
                (None, 1, Some((_, bead, _))) => format!("Work: {}", bead.title.as_str()),
                (None, count, _) => format!("Batch: {count} beads"),
            };
            let made = convoy::make(self.town, writer, &title, &untracked, flags)?;
            convoys.extend(untracked.into_iter().map(|bead| (bead, made.clone())));
            report.convoy = Some(made);
        }
        let gated = self.request.queue && !self.scene.settings.is_deferred();
        let place = target.and_then(|target| target.place.clone());
        let new = going.iter().map(|(_, bead, rig)| {
            let convoy = convoys.get(&bead.id).cloned();
            NewContext {
                bead: bead.id.clone(),
                rig: rig.slug.clone(),
                place: place.clone(),
                account: flags.account.clone(),
                gated,
                forced: flags.force,
                priority: bead.priority,
                origin: if self.request.queue { Origin::Queue } else { Origin::Sling },
                parameters: SlingParameters { convoy, ..self.parameters.clone() },
                enqueued_at: None,
                next_attempt_at: None,
                failures: 0,
                attempts: 0,
            }
        });
        let made = writer.insert_contexts(new.collect())?;
        for (context, (at, bead, _)) in made.into_iter().zip(going) {
            let facts = BeadFacts::of_bead(writer, &bead)?;
            let mut reasons = self.scene.reasons(&context, &bead, &facts);
            if !self.deferred() {
                // The same command runs a cycle next, by hand.
                reasons.retain(|reason| !matches!(reason, WaitReason::QueueGate));
            }
            report.contexts.push(context.number);
            report.entries[at].fate = Fate::Scheduled(context.id, reasons);
        }
        Ok(())
    }

    fn deferred(&self) -> bool {
        self.request.queue || self.scene.settings.is_deferred()
    }
}

fn is_formula_fault(error: &OperationError) -> bool {
    matches!(error, OperationError::Recipe(_))
}
