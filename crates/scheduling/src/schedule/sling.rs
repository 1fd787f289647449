//! One sling: everything is checked, and what passes is scheduled in one transaction.

use std::collections::HashMap;

use gt_core::decide::{ConvoyState, is_bookkeeping};
use gt_core::hosting::HostedRepository;
use gt_core::merging::{MergeRequest, integration_branch};
use gt_core::schedule::{Context, ContextOrigin, Merge, SlingParameters};
use gt_core::{Bead, BeadId, Json, Rig, RigSlug, Status};
use gt_store::{BeadRow, NewContext, Pause, Reader, Unscheduled, Writer};

use super::check::{self, ScheduleVerdict};
use super::expand::SlingTarget;
use super::feed::{feed_in, strays};
use super::lift_stop::lift_stop_of_run_in;
use super::rehearse::rehearse;
use super::request::{
    ConvoyChoice, SkipReason, SlingEntry, SlingOptions, SlingOutcome, SlingReport, SlingRequest,
};
use super::resolve_request::{ResolvedBead, ResolvedRequest, merging_of, resolve_request};
use crate::dispatch::{
    DEFAULT_FORMULA, DispatchInputs, Recipe, ReservedRun, SchedulingSnapshot, Start, Starter,
    start_in,
};
use crate::fleet;
use gt_beads::bead_facts::BeadFacts;
use gt_beads::containers::land_if_done;
use gt_beads::convoys::{ConvoyRules, ConvoyToMake, add_members, create_in, make, open_staged};
use gt_beads::merge_requests::cancel_request_in;
use gt_beads::review_rules::refuse_review_of_local;
use gt_beads::run_records::release_in;
use gt_town::hosts::is_shared;
use gt_town::{OperationError, Result, Town};

/// The rigs that a formula was tried in, with the recipe for a bead, or its fault there.
type TriedRecipes = HashMap<RigSlug, std::result::Result<(BeadId, Recipe), String>>;

/// Schedules what the request names. Nothing is started here; in direct mode the caller runs a cycle over the
/// contexts that were made.
pub fn sling(town: &Town, request: &SlingRequest) -> Result<SlingReport> {
    sling_to_start(town, request, None).map(|(report, _)| report)
}

/// The same. With a starter, a single bead that may start gets its run and its slot with the same commit; the caller starts
/// its worker.
pub fn sling_to_start(
    town: &Town,
    request: &SlingRequest,
    starter: Option<Starter<'_>>,
) -> Result<(SlingReport, Option<ReservedRun>)> {
    let host = request.flags.host.as_deref();
    let host = host.map(|host| asked_host(town, host)).transpose()?;
    let inputs = DispatchInputs::read(town)?;
    let (load, snapshot) = town.read(|reader| {
        Ok((
            resolve_request(town, reader, request)?,
            SchedulingSnapshot::read_for_daemon(reader, &inputs, town.now())?,
        ))
    })?;
    let parameters = SlingParameters { host, ..parameters(request, &load) };
    refuse_review_of_local(parameters.review, parameters.merge)?;
    // Before the transaction, because it reads files.
    let recipes = try_recipes(town, &snapshot, &load, &parameters, &request.flags);
    town.write_or_rehearse(request.rehearsal, |writer| {
        // The snapshot from before the transaction may be old by now.
        let snapshot = SchedulingSnapshot::read_for_daemon(writer, &inputs, town.now())?;
        let (parameters, recipes) = (&parameters, &recipes);
        let mut scheduling = Scheduling {
            town,
            request,
            inputs: &inputs,
            snapshot,
            parameters,
            recipes,
            starter,
            begun: None,
        };
        let report = scheduling.run(writer, load)?;
        Ok((report, scheduling.begun))
    })
}

/// How a convoy wants the work of its members merged, and from which branch on.
type MergingOfMember = (Option<Merge>, Option<String>);

/// How the open convoys that people have made for these beads want their work merged, and from which branch on; the first
/// convoy by its id counts.
fn merging_of_members(
    reader: &Reader<'_>,
    beads: &[BeadId],
) -> Result<HashMap<BeadId, MergingOfMember>> {
    let mut convoys: HashMap<BeadId, Option<Bead>> = HashMap::new();
    let mut merging = HashMap::new();
    for (bead, convoy) in reader.convoys_of(beads)? {
        if !convoys.contains_key(&convoy) {
            let open = reader.bead(&convoy)?.filter(|convoy| {
                ConvoyState::of(convoy) == ConvoyState::Open && !is_bookkeeping(convoy)
            });
            convoys.insert(convoy.clone(), open);
        }
        if let Some(Some(convoy)) = convoys.get(&convoy)
            && !merging.contains_key(&bead)
        {
            merging.insert(bead, merging_of(convoy)?);
        }
    }
    Ok(merging)
}

/// The host that a person asked for, as runs name it.
fn asked_host(town: &Town, input: &str) -> Result<String> {
    if !is_shared(town) {
        return Err(OperationError::rejected(
            "this town has one host, because its store is a file on this machine; leave out --host",
        ));
    }
    let host = fleet::named(town, input)?.record.host;
    Ok(format!("{}/{}", host.name, host.id))
}

/// A convoy is launched whole or stays staged: a fault of one of its beads is a fault of the launch.
fn refuse_part(report: &mut SlingReport) -> Result<()> {
    let refused =
        report.entries.iter().position(|entry| matches!(entry.outcome, SlingOutcome::Refused(_)));
    match refused.map(|at| report.entries.swap_remove(at).outcome) {
        Some(SlingOutcome::Refused(error)) => Err(error),
        _ => Ok(()),
    }
}

/// The metadata of the convoy of beads that are slung together.
fn kept_with_convoy(flags: &SlingOptions) -> Vec<(String, Json)> {
    let auto = ("auto".to_owned(), Json::trusted("true".to_owned()));
    let rules = ConvoyRules {
        owned: flags.owned,
        merge: flags.merge,
        base_branch: flags.base_branch.as_deref(),
        review: flags.review,
        integration: None,
    };
    [auto].into_iter().chain(rules.metadata()).collect()
}

fn parameters(request: &SlingRequest, load: &ResolvedRequest) -> SlingParameters {
    let flags = &request.flags;
    let (merge, base_branch) = &load.merging;
    let formula = match (&load.words.formula, flags.hook_raw_bead) {
        (Some(formula), _) => Some(formula.clone()),
        (None, true) => None,
        (None, false) => Some(DEFAULT_FORMULA.to_owned()),
    };
    SlingParameters {
        formula,
        args: flags.args.clone(),
        vars: flags.vars.clone(),
        merge: flags.merge.or(*merge),
        convoy: None,
        base_branch: flags.base_branch.clone().or_else(|| base_branch.clone()),
        no_merge: flags.no_merge,
        review_only: flags.review_only,
        review: flags.review,
        runtime: flags.runtime.clone(),
        hook_raw_bead: flags.hook_raw_bead,
        owned: flags.owned,
        ralph: flags.ralph,
        retries: flags.retries,
        host: None,
    }
}

/// Cooks the recipes before dispatch, so that faults show now. One bead of a rig stands for the others: only its name
/// differs.
fn try_recipes(
    town: &Town,
    snapshot: &SchedulingSnapshot,
    load: &ResolvedRequest,
    parameters: &SlingParameters,
    flags: &SlingOptions,
) -> TriedRecipes {
    let mut tried = TriedRecipes::new();
    for item in &load.items {
        let Ok(bead) = &item.bead else { continue };
        let Ok(rig) = check::rig(snapshot, bead, load.words.target.as_ref(), flags) else {
            continue;
        };
        if !tried.contains_key(&rig.slug) {
            let place = load.words.target.as_ref().and_then(SlingTarget::place);
            let said = rehearse(town, &snapshot.settings, rig, place, bead, parameters);
            let said = said.map(|recipe| (bead.id.clone(), recipe));
            tried.insert(rig.slug.clone(), said.map_err(|error| error.to_string()));
        }
    }
    tried
}

/// The beads as the transaction finds them. They are read again if anything has happened since the first look; all of
/// them at once, because the whole town waits meanwhile.
struct CurrentBeads {
    rows: HashMap<BeadId, BeadRow>,
    open: HashMap<BeadId, Context>,
}

impl CurrentBeads {
    fn read(reader: &Reader<'_>, load: &mut ResolvedRequest) -> Result<Self> {
        let beads = load.items.iter().filter(|item| !item.twice);
        let ids: Vec<BeadId> =
            beads.filter_map(|item| Some(item.bead.as_ref().ok()?.id.clone())).collect();
        // Nothing changes a bead without an event.
        let is_fresh = reader.last_event_number()? == load.as_of;
        let mut rows = if is_fresh { std::mem::take(&mut load.rows) } else { HashMap::new() };
        let unknown: Vec<BeadId> =
            ids.iter().filter(|id| !rows.contains_key(id)).cloned().collect();
        let read = reader.bead_rows(&unknown)?.into_iter();
        rows.extend(read.map(|row| (row.bead.id.clone(), row)));
        Ok(Self { rows, open: reader.open_contexts_of(&ids)? })
    }

    fn take(&mut self, id: &BeadId) -> Result<(BeadRow, Option<Context>)> {
        let row = self.rows.remove(id).ok_or_else(|| OperationError::NoBead(id.to_string()))?;
        Ok((row, self.open.remove(id)))
    }
}

/// A bead that passed every check.
struct CheckedBead {
    /// The entry of the report that is about it.
    entry: usize,
    row: BeadRow,
    rig: Box<Rig>,
}

struct Scheduling<'a> {
    town: &'a Town,
    request: &'a SlingRequest,
    inputs: &'a DispatchInputs,
    snapshot: SchedulingSnapshot,
    parameters: &'a SlingParameters,
    recipes: &'a TriedRecipes,
    /// The starter of a single bead that starts at once, if there is one.
    starter: Option<Starter<'a>>,
    /// The started run.
    begun: Option<ReservedRun>,
}

impl Scheduling<'_> {
    fn run(&mut self, writer: &mut Writer<'_>, mut load: ResolvedRequest) -> Result<SlingReport> {
        let flags = &self.request.flags;
        if let Some(account) = &flags.account {
            self.require_account(account)?;
        }
        let mut report = SlingReport {
            container: load.container.clone(),
            deferred: self.snapshot.settings.is_deferred() || self.request.queue,
            paused: self.snapshot.control.paused.clone().map(|(by, at)| Pause { by, at }),
            ..SlingReport::default()
        };
        if !self.prepare_convoy(writer, &load, &mut report)? {
            return Ok(report);
        }
        let mut found = CurrentBeads::read(writer, &mut load)?;
        let target = load.words.target.as_ref();
        let mut going = Vec::new();
        for item in load.items {
            let ResolvedBead { name, bead, unfolded, twice } = item;
            let bead = match bead {
                Ok(bead) => bead,
                // Without leave to skip it, an unknown name has ended the request before.
                Err(error) => {
                    let outcome = SlingOutcome::Skipped(SkipReason::Unknown, error.to_string());
                    report.entries.push(SlingEntry {
                        name,
                        bead: None,
                        title: String::new(),
                        rig: None,
                        outcome,
                        consequence: None,
                    });
                    continue;
                }
            };
            let mut entry = SlingEntry {
                name,
                bead: Some(bead.id.clone()),
                title: bead.title.to_string(),
                rig: None,
                outcome: SlingOutcome::Nothing("named twice".to_owned()),
                consequence: None,
            };
            if !twice {
                match found.take(&bead.id).and_then(|(row, open)| {
                    let merging = match open {
                        Some(_) => None,
                        None => writer.open_merge_request(&row.bead.id)?,
                    };
                    let verdict =
                        self.verdict(&row.bead, open.as_ref(), merging.as_ref(), target)?;
                    entry.consequence = merging.as_ref().map(check::left_out);
                    Ok((verdict, row))
                }) {
                    Ok((ScheduleVerdict::Go(rig), row)) => {
                        entry.rig = Some(rig.slug.to_string());
                        going.push(CheckedBead { entry: report.entries.len(), row, rig });
                    }
                    Ok((ScheduleVerdict::Nothing(why), _)) => {
                        entry.outcome = SlingOutcome::Nothing(why);
                    }
                    Err(error @ OperationError::Store(_)) => return Err(error),
                    // The other beads of the epic or convoy are scheduled all the same.
                    Err(error) if unfolded && !is_formula_fault(&error) => {
                        entry.outcome = SlingOutcome::Skipped(self.skip(&bead), error.to_string());
                    }
                    Err(error) => entry.outcome = SlingOutcome::Refused(error),
                }
            }
            report.entries.push(entry);
        }
        if self.request.travel.is_whole() {
            refuse_part(&mut report)?;
        }
        self.schedule(writer, &mut report, going, target, load.title.as_deref())?;
        match (&self.request.travel, &report.convoy) {
            (ConvoyChoice::In(_), Some(convoy)) => land_if_done(writer, convoy)?,
            // The convoy is under way, and so is everything it tracks.
            (ConvoyChoice::With(_), Some(convoy)) => {
                let others = strays(writer, &self.snapshot, Unscheduled::In(convoy))?;
                let fed = feed_in(writer, &self.snapshot, &others)?;
                report.contexts.extend(fed.scheduled.iter().map(|context| context.number));
                land_if_done(writer, convoy)?;
            }
            _ => {}
        }
        Ok(report)
    }

    /// Does what comes before anything is scheduled: the convoy is opened, made or joined. `false` if nothing of it starts.
    fn prepare_convoy(
        &self,
        writer: &mut Writer<'_>,
        load: &ResolvedRequest,
        report: &mut SlingReport,
    ) -> Result<bool> {
        let items = load.items.iter().filter(|item| !item.twice);
        let beads: Vec<BeadId> =
            items.filter_map(|item| Some(item.bead.as_ref().ok()?.id.clone())).collect();
        if let ConvoyChoice::In(_) | ConvoyChoice::With(_) = &self.request.travel {
            // A bead may have been deleted since it was read before the transaction.
            let there = writer.existing(&beads)?;
            if let Some(gone) = beads.iter().find(|bead| !there.contains(bead)) {
                return Err(OperationError::NoBead(gone.to_string()));
            }
        }
        match &self.request.travel {
            ConvoyChoice::ByItself => Ok(true),
            ConvoyChoice::Launched => {
                if let Some((_, convoy)) = &load.container {
                    open_staged(writer, convoy)?;
                }
                Ok(true)
            }
            ConvoyChoice::In(new) => {
                let made = create_in(self.town, writer, new, load.title.as_deref(), &beads)?;
                report.convoy = Some(made);
                Ok(true)
            }
            ConvoyChoice::With(convoy) => {
                let joined = add_members(self.town, writer, convoy, &beads)?;
                report.convoy = Some(joined.convoy);
                report.added = joined.added;
                Ok(joined.is_under_way)
            }
        }
    }

    fn verdict(
        &self,
        bead: &Bead,
        open: Option<&Context>,
        merging: Option<&MergeRequest>,
        target: Option<&SlingTarget>,
    ) -> Result<ScheduleVerdict> {
        let flags = &self.request.flags;
        let rig = check::rig(&self.snapshot, bead, target, flags)?;
        let verdict = check::check_bead(&self.snapshot, bead, rig, target, (open, merging), flags)?;
        if matches!(verdict, ScheduleVerdict::Go(_))
            && let Some(Err(why)) = self.recipes.get(&rig.slug)
        {
            return Err(OperationError::Recipe(why.clone()));
        }
        if matches!(verdict, ScheduleVerdict::Go(_))
            && self.parameters.merge == Some(Merge::Pr)
            && let Err(why) = HostedRepository::of_origin(&rig.repo)
        {
            return Err(OperationError::rejected(format!(
                "the work of {} cannot land by a pull request: {why}; say --merge mr, which lands through the merge queue",
                bead.id
            )));
        }
        Ok(verdict)
    }

    /// The reason why a part of something larger is skipped.
    fn skip(&self, bead: &Bead) -> SkipReason {
        let rig = bead.rig.as_ref().and_then(|slug| self.snapshot.rig(slug));
        match &bead.status {
            Status::Closed => SkipReason::Closed,
            _ if self.snapshot.run_of(&bead.id).is_some() => SkipReason::Running,
            Status::Hooked | Status::InProgress => SkipReason::Assigned,
            _ if !bead.assignee.is_empty() => SkipReason::Assigned,
            _ if rig.is_some_and(|rig| !bead.issue_type.is_slingable(rig.executor)) => {
                SkipReason::Type
            }
            _ => SkipReason::Other,
        }
    }

    fn require_account(&self, handle: &str) -> Result<()> {
        if self.snapshot.accounts.iter().any(|account| account.handle == handle) {
            return Ok(());
        }
        let known: Vec<&str> =
            self.snapshot.accounts.iter().map(|account| account.handle.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(OperationError::rejected(format!(
            "account \"{handle}\" not found; known accounts: {known}; add one with \
             gt config account add {handle}"
        )))
    }

    /// Writes contexts and the convoy for everything that passed.
    fn schedule(
        &mut self,
        writer: &mut Writer<'_>,
        report: &mut SlingReport,
        mut going: Vec<CheckedBead>,
        target: Option<&SlingTarget>,
        title: Option<&str>,
    ) -> Result<()> {
        let flags = &self.request.flags;
        let ids: Vec<BeadId> = going.iter().map(|going| going.row.bead.id.clone()).collect();
        let mut convoys = writer.open_convoys_of(&ids)?;
        let merging =
            if convoys.is_empty() { HashMap::new() } else { merging_of_members(writer, &ids)? };
        let untracked = going.iter().map(|going| &going.row.bead);
        let untracked: Vec<&Bead> =
            untracked.filter(|bead| !convoys.contains_key(&bead.id)).collect();
        let in_convoy = matches!(report.container, Some(("convoy", _))) || report.convoy.is_some();
        if let Some(convoy) = &report.convoy {
            convoys.extend(ids.iter().map(|bead| (bead.clone(), convoy.clone())));
        }
        if !flags.no_convoy && !in_convoy && !untracked.is_empty() {
            let title = match (title, untracked.as_slice()) {
                (Some(title), _) => title.to_owned(),
                (None, [bead]) => format!("Work: {}", bead.title.as_str()),
                (None, several) => format!("Batch: {} beads", several.len()),
            };
            let ids: Vec<BeadId> = untracked.iter().map(|bead| bead.id.clone()).collect();
            let new = ConvoyToMake {
                title: &title,
                metadata: kept_with_convoy(flags),
                beads: &ids,
                status: Status::Open,
            };
            let made = make(self.town, writer, &new)?;
            convoys.extend(ids.into_iter().map(|bead| (bead, made.clone())));
            (report.convoy, report.made_by_itself) = (Some(made), true);
        }
        let gated = self.request.queue && !self.snapshot.settings.is_deferred();
        let place = target.and_then(SlingTarget::place);
        let origin = if self.request.queue { ContextOrigin::Queue } else { ContextOrigin::Sling };
        let base_branch = match (&self.request.travel, &report.convoy) {
            (ConvoyChoice::In(new), Some(convoy)) if new.integration => {
                Some(integration_branch(convoy))
            }
            _ => self.parameters.base_branch.clone(),
        };
        let new = going.iter().map(|CheckedBead { row, rig, .. }| {
            let convoy = convoys.get(&row.bead.id).cloned();
            let (merge, of_convoy) = merging.get(&row.bead.id).cloned().unwrap_or_default();
            let merge = self.parameters.merge.or(merge);
            let base_branch = base_branch.clone().or(of_convoy);
            NewContext {
                place: place.cloned(),
                account: flags.account.clone(),
                gated,
                forced: flags.force,
                parameters: SlingParameters {
                    convoy,
                    merge,
                    base_branch,
                    ..self.parameters.clone()
                },
                ..NewContext::plain(
                    row.bead.id.clone(),
                    rig.slug.clone(),
                    row.bead.priority,
                    origin,
                )
            }
        });
        let new = new.collect();
        for id in &ids {
            // Only `--force` comes here: the work is done again, without the earlier one.
            if cancel_request_in(writer, id, "its bead was slung again")?.is_some() {
                release_in(writer, id)?;
            }
        }
        // Only a person lifts what the end of a run has stopped.
        for CheckedBead { row, .. } in going.iter_mut().filter(|_| self.town.acting_run().is_none())
        {
            if lift_stop_of_run_in(writer, &row.bead)?
                && let Some(lifted) = writer.bead(&row.bead.id)?
            {
                row.bead = lifted;
            }
        }
        let made = writer.insert_contexts(new)?;
        report.contexts = made.iter().map(|context| context.number).collect();
        if self.snapshot.settings.has_work_budgets() {
            // It has the budgets of scheduled beads and of their convoys only.
            let now = self.town.now();
            self.snapshot = SchedulingSnapshot::read_for_daemon(writer, self.inputs, now)?;
        }
        let mut made: Vec<(Context, CheckedBead)> = made.into_iter().zip(going).collect();
        // In the order in which a cycle would look at them: a context that starts takes a slot from the others.
        let order = self.snapshot.order();
        made.sort_by(|(a, _), (b, _)| {
            order.compare(
                &SchedulingSnapshot::place_in_line(a),
                &SchedulingSnapshot::place_in_line(b),
                self.snapshot.now,
            )
        });
        let is_single = made.len() == 1 && !report.deferred;
        let starter = self.starter.filter(|_| is_single && !self.request.rehearsal);
        for (context, CheckedBead { entry, row, .. }) in made {
            let facts = BeadFacts::of_row(writer, &row)?;
            let mut reasons = self.snapshot.reasons(&context, &row.bead, &facts);
            if reasons.is_empty() {
                reasons = self.snapshot.admission(&context);
                if reasons.is_empty() && !self.begin(writer, &context, &row.bead, starter)? {
                    self.snapshot.count_as_started(&context);
                }
            }
            report.entries[entry].outcome = SlingOutcome::Scheduled(context.id, reasons);
        }
        Ok(())
    }
}

impl Scheduling<'_> {
    /// Gives a context its run and its slot, if it starts at once. A context that cannot begin here is looked at again
    /// by the dispatcher.
    fn begin(
        &mut self,
        writer: &mut Writer<'_>,
        context: &Context,
        bead: &Bead,
        starter: Option<Starter<'_>>,
    ) -> Result<bool> {
        let cooked = self.recipes.get(&context.rig).and_then(|cooked| cooked.as_ref().ok());
        let cooked = cooked.filter(|(of, _)| *of == bead.id);
        let (Some(starter), Some((_, recipe))) = (starter, cooked) else { return Ok(false) };
        let (number, recipe) = (context.number, Ok(recipe.clone()));
        let Start::Begun(run) = start_in(writer, &mut self.snapshot, number, &recipe, starter)?
        else {
            return Ok(false);
        };
        writer.note_dispatch(1)?;
        let title = bead.title.to_string();
        self.begun = Some(ReservedRun { context: context.clone(), title, recipe, run: *run });
        Ok(true)
    }
}

fn is_formula_fault(error: &OperationError) -> bool {
    matches!(error, OperationError::Recipe(_))
}
