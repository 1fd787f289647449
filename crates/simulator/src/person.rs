//! The commands of people, at the worst moments.

use gt_beads::beads::{self, BeadChanges, Close, NewBead};
use gt_beads::{dependencies, messages};
use gt_core::schedule::{Account, RunState};
use gt_core::{
    BeadId, DependencyType, ExecutorKind, Outcome, Prefix, Priority, Rig, RigSlug, RigState, Status,
};
use gt_execution::runs;
use gt_scheduling::queue;
use gt_scheduling::recovery::{self, Redispatch, Redispatched};
use gt_scheduling::schedule::{
    SlingOptions, SlingOutcome, SlingRequest, beads_to_retry, retry, retry_found, sling,
};
use gt_store::Authorship;
use gt_town::scheduler_settings::Overrides;
use gt_town::{OperationError, Town, rigs, settings};

use crate::cycle::ProcessView;
use crate::merging::TARGET;
use crate::planted::Planted;
use crate::simulation::{CycleOverrides, Simulation};
use crate::violation::Invariant;
use crate::worker::letter;
use crate::world::ProcessId;

/// The accounts there are.
const ACCOUNT: &str = "acme";

/// The commands of a person.
#[derive(Debug, Clone, Copy)]
enum PersonCommand {
    Sling,
    Queue,
    Clear,
    ClearAll,
    Pause,
    Resume,
    Retry,
    RetryAll,
    Cancel,
    Close,
    Reopen,
    Depend,
    Undepend,
    Park,
    Unpark,
    TownCap,
    QueueCap,
    RigCap,
    Gate,
    Prioritise,
    Defer,
    Undefer,
    Claim,
    Release,
    Restart,
    Redispatch,
    StaleHooks,
    ResumeMeans,
    Write,
    ReadMail,
    Convoy,
    Dock,
    Undock,
    Merge,
    Host,
}

impl Simulation {
    /// Furnishes the town: rigs, beads, edges between them, settings.
    pub(crate) fn prepare_town(&self) -> Result<(), OperationError> {
        let town = self.town_without_seam("founder");
        for name in &self.rigs {
            let new = rigs::NewRig {
                name,
                repository: None,
                prefix: Some(name),
                branch: None,
                executor: ExecutorKind::Process,
            };
            let is_needed = self.planted.is_some_and(Planted::needs_origins);
            if self.choose(0, 2) == 0 || is_needed {
                self.add_rig_with_trees(&town, name)?;
                self.add_origin(&town, name)?;
            } else {
                rigs::add(&town, &new)?;
            }
            settings::set(
                &town,
                &format!("rig.{name}.command"),
                "/bin/true {bead}",
                gt_scheduling::runtimes::check_name,
            )?;
        }
        for id in &self.beads {
            let priority = Priority::new(self.choose(0, 4))?;
            let id = Some(id.to_string());
            let title = "work".to_owned();
            beads::create(&town, &NewBead { id, title, priority, ..NewBead::default() }, false)?;
        }
        for (at, issue) in self.beads.iter().enumerate().skip(1) {
            if self.choose(0, 2) == 0 {
                let target = &self.beads[at - 1];
                dependencies::add(
                    &town,
                    issue.as_str(),
                    target.as_str(),
                    &DependencyType::Blocks,
                    false,
                )?;
            }
        }
        self.add_epic(&town)?;
        let set = |name: &str, value: &str| {
            settings::set(&town, name, value, gt_scheduling::runtimes::check_name).map(|_| ())
        };
        // Workers of the pool are threads, whose order no seed decides.
        set("scheduler.spawn_parallelism", "1")?;
        if self.choose(0, 9) < 6 {
            set("scheduler.max_polecats", &self.choose(1, 4).to_string())?;
        }
        if self.choose(0, 3) == 0 {
            set("scheduler.spawn_delay", "2s")?;
        }
        if self.choose(0, 3) == 0 {
            set("scheduler.order", "fifo")?;
        }
        if self.choose(0, 3) == 0 {
            set("recovery.cooldown", "40m")?;
        }
        self.set_budgets(&town)?;
        if self.has_fleet() {
            self.add_hosts(&town)?;
        }
        if self.choose(0, 2) == 0 {
            let account = Account {
                handle: ACCOUNT.to_owned(),
                config_dir: String::new(),
                environment: Vec::new(),
                max_runs: 1,
                is_default: false,
                created_at: town.now(),
            };
            let by = Authorship { actor: "founder".to_owned(), at: town.now(), worker: None };
            self.store.write(&by, |writer| writer.put_account(&account))?;
        }
        Ok(())
    }

    /// Adds a rig with a repository, so that its runs are given polecats. Of the trees only the
    /// owners are simulated; the commits are those of a simulated origin.
    fn add_rig_with_trees(&self, town: &Town, name: &str) -> Result<(), OperationError> {
        let by = Authorship { actor: "founder".to_owned(), at: town.now(), worker: None };
        let (slug, prefix) = (RigSlug::parse(name)?, Prefix::parse(name)?);
        let plain = Rig::new(slug, name, prefix, name, town.now());
        let executor = ExecutorKind::Process;
        let (repo, default_branch) = ("/nowhere".to_owned(), TARGET.to_owned());
        let rig = Rig { repo, default_branch, executor, ..plain };
        Ok(self.store.write(&by, |writer| writer.insert_rig(&rig))?)
    }

    /// A person reads a message that asks for a person.
    fn read_mail(&self, town: &Town) -> Result<String, OperationError> {
        let asking = town.read(|reader| messages::needs_you_in(reader, None))?;
        let Some(message) = self.state().random.pick(&asking).cloned() else {
            return Ok("no message asks for a person".to_owned());
        };
        messages::mark_seen(town, None, std::slice::from_ref(&message))?;
        Ok(format!("{} is read", message.id))
    }

    /// A number from `low` to `high`.
    pub(crate) fn choose(&self, low: i64, high: i64) -> i64 {
        let width = u64::try_from(high - low).unwrap_or(0);
        let chosen = self.state().random.between(0, width);
        low + i64::try_from(chosen).unwrap_or(0)
    }

    pub(crate) fn some_bead(&self) -> BeadId {
        let at = self.choose(0, i64::try_from(self.beads.len()).unwrap_or(1) - 1);
        self.beads[usize::try_from(at).unwrap_or(0)].clone()
    }

    fn some_rig(&self) -> &'static str {
        self.state().random.pick(&self.rigs).copied().unwrap_or("web")
    }

    /// One command of a person.
    pub(crate) fn person(&self) {
        let mut wishes = vec![
            (14, PersonCommand::Sling),
            (5, PersonCommand::Queue),
            (2, PersonCommand::Clear),
            (1, PersonCommand::ClearAll),
            (1, PersonCommand::Pause),
            (3, PersonCommand::Resume),
            (3, PersonCommand::Retry),
            (1, PersonCommand::RetryAll),
            (4, PersonCommand::Cancel),
            (3, PersonCommand::Close),
            (3, PersonCommand::Reopen),
            (2, PersonCommand::Depend),
            (2, PersonCommand::Undepend),
            (1, PersonCommand::Park),
            (2, PersonCommand::Unpark),
            (2, PersonCommand::TownCap),
            (1, PersonCommand::QueueCap),
            (1, PersonCommand::RigCap),
            (1, PersonCommand::Gate),
            (2, PersonCommand::Prioritise),
            (1, PersonCommand::Defer),
            (1, PersonCommand::Undefer),
            (1, PersonCommand::Claim),
            (2, PersonCommand::Release),
            (3, PersonCommand::Restart),
            (3, PersonCommand::Redispatch),
            (1, PersonCommand::StaleHooks),
            (1, PersonCommand::ResumeMeans),
            (1, PersonCommand::Write),
            (1, PersonCommand::ReadMail),
            (24, PersonCommand::Convoy),
            (1, PersonCommand::Dock),
            (2, PersonCommand::Undock),
            (8, PersonCommand::Merge),
        ];
        if self.is_fleet() {
            wishes.push((6, PersonCommand::Host));
        }
        let Some(wish) = self.state().random.weighted(wishes) else { return };
        self.as_process(&format!("command {wish:?}"), |id| {
            let town = self.town(id, "person");
            let said = self.fulfil(id, &town, wish);
            self.tell(format!("{id} {wish:?}: {said}"));
        });
    }

    fn fulfil(&self, id: ProcessId, town: &Town, wish: PersonCommand) -> String {
        let bead = self.some_bead();
        let name = [bead.to_string()];
        let answer = match wish {
            PersonCommand::Sling => return self.sling(id, town, false),
            PersonCommand::Queue => return self.sling(id, town, true),
            PersonCommand::Convoy => return self.convoy(id, town),
            PersonCommand::Merge => return self.decide_merge(id, town),
            PersonCommand::Restart => self.restart(id, town),
            PersonCommand::Host => self.command_host(town),
            PersonCommand::Redispatch => self.redispatch(town, &bead),
            PersonCommand::StaleHooks => {
                let max_age = std::time::Duration::from_mins(self.state().random.between(0, 30));
                gt_execution::stale_hooks::stale_hooks(town, max_age, false)
                    .map(|found| format!("{found:?}"))
            }
            PersonCommand::ResumeMeans => {
                let parks = self.read(|reader| reader.parks());
                let park = self.state().random.pick(&parks).cloned();
                match park {
                    Some(park) => gt_scheduling::dispatch::resume(town, &park.means)
                        .map(|changed| format!("{} {changed}", park.means)),
                    None => Ok("nothing is parked".to_owned()),
                }
            }
            PersonCommand::Write => {
                messages::send(town, None, bead.as_str(), &letter("how is it going?")).map(|sent| {
                    self.state().sent.insert(sent.id);
                    sent.id.to_string()
                })
            }
            PersonCommand::ReadMail => self.read_mail(town),
            PersonCommand::Clear => queue::clear(town, &name).map(|cleared| format!("{cleared:?}")),
            PersonCommand::ClearAll => {
                queue::clear(town, &[]).map(|cleared| format!("{cleared:?}"))
            }
            PersonCommand::Pause => queue::pause(town).map(|_| "paused".to_owned()),
            PersonCommand::Resume => queue::resume(town).map(|_| "resumed".to_owned()),
            PersonCommand::Retry => retry(town, &name, false).map(|retried| self.retried(retried)),
            PersonCommand::RetryAll => {
                let found = beads_to_retry(town, false);
                let retried = found.and_then(|found| retry_found(town, &found, false));
                retried.map(|retried| self.retried(retried))
            }
            PersonCommand::Cancel => {
                // Noted first: after the last run of a bead its open request is given up, and the command may die then.
                if self.read(|reader| reader.open_merge_request(&bead)).is_some() {
                    self.state().reopened.insert(bead.clone());
                }
                let world = ProcessView::of(self, id);
                let cancelled = runs::cancel_with_processes(town, &world, bead.as_str());
                cancelled.map(|cancelled| {
                    // A run that was lost before may have a request that is given up now.
                    let is_new = !cancelled.already && cancelled.request.is_none();
                    if cancelled.state == RunState::Lost && is_new {
                        let found = format!("{} was cancelled, and is lost", cancelled.run);
                        self.violated(Invariant::Kept, found);
                    }
                    format!("{cancelled:?}")
                })
            }
            PersonCommand::Depend => {
                let target = self.some_bead();
                let kind = DependencyType::Blocks;
                dependencies::add(town, bead.as_str(), target.as_str(), &kind, false)
                    .map(|added| format!("{added:?}"))
            }
            PersonCommand::Undepend => {
                let target = self.some_bead();
                dependencies::remove(town, bead.as_str(), target.as_str(), None)
                    .map(|removed| format!("{removed:?}"))
            }
            PersonCommand::Park => self.move_rig(town, &[RigState::Active], RigState::Parked),
            PersonCommand::Unpark => self.move_rig(town, &[RigState::Parked], RigState::Active),
            PersonCommand::Dock => {
                self.move_rig(town, &[RigState::Active, RigState::Parked], RigState::Docked)
            }
            PersonCommand::Undock => self.move_rig(town, &[RigState::Docked], RigState::Active),
            PersonCommand::TownCap => self.set(town, "scheduler.max_polecats", -1, 4),
            PersonCommand::QueueCap => self.set(town, "queue.max_polecats", 0, 3),
            PersonCommand::RigCap => {
                self.set(town, &format!("rig.{}.max_polecats", self.some_rig()), 0, 2)
            }
            PersonCommand::Gate => {
                let open = self.choose(0, 1) == 1;
                settings::set(
                    town,
                    "queue.enabled",
                    &open.to_string(),
                    gt_scheduling::runtimes::check_name,
                )
                .map(|_| format!("the gate is open: {open}"))
            }
            PersonCommand::Prioritise => {
                let priority = Priority::new(self.choose(0, 4)).ok();
                update(town, &bead, &BeadChanges { priority, ..BeadChanges::default() })
            }
            PersonCommand::Close
            | PersonCommand::Reopen
            | PersonCommand::Defer
            | PersonCommand::Undefer
            | PersonCommand::Claim
            | PersonCommand::Release => {
                let changed = self.change_status(town, wish, &bead);
                self.seam(id);
                // An insistent command has cancelled the run in the store, and now ends its
                // processes.
                self.end_cancelled(id, &bead);
                changed
            }
        };
        self.sound(&format!("{wish:?} {bead}"), answer).unwrap_or_else(|refused| refused)
    }

    fn redispatch(&self, town: &Town, bead: &BeadId) -> Result<String, OperationError> {
        let cooldown = self.fault(2).then_some(std::time::Duration::ZERO);
        let wish = Redispatch { bead: bead.to_string(), cooldown, ..Redispatch::default() };
        let done = recovery::redispatch(town, &wish)?;
        if let Redispatched::Scheduled(_, context) = &done {
            self.state().acknowledged.insert(context.number);
        }
        Ok(format!("{done:?}"))
    }

    fn move_rig(
        &self,
        town: &Town,
        from: &[RigState],
        to: RigState,
    ) -> Result<String, OperationError> {
        let (rig, changed) = rigs::set_state(town, self.some_rig(), from, to)?;
        Ok(format!("{} {:?} {changed}", rig.slug, rig.state))
    }

    fn set(&self, town: &Town, name: &str, low: i64, high: i64) -> Result<String, OperationError> {
        let value = self.choose(low, high).to_string();
        settings::set(town, name, &value, gt_scheduling::runtimes::check_name)?;
        Ok(format!("{name} = {value}"))
    }

    /// Ends a run by force, and schedules its bead again before its agent can have ended.
    fn restart(&self, id: ProcessId, town: &Town) -> Result<String, OperationError> {
        let live: Vec<BeadId> = self.state().world.agents().map(|run| run.bead.clone()).collect();
        let Some(bead) = self.state().random.pick(&live).cloned() else {
            return Ok("nothing runs".to_owned());
        };
        let name = [bead.to_string()];
        self.state().reopened.insert(bead.clone());
        let how = Close { force: true, ..Close::default() };
        for closed in beads::close(town, &name, &how)? {
            closed?;
        }
        for opened in beads::reopen(town, &name, None)? {
            opened?;
        }
        let flags =
            SlingOptions { hook_raw_bead: true, no_convoy: true, ..SlingOptions::default() };
        let arguments = vec![bead.to_string()];
        let report = sling(town, &SlingRequest { arguments, flags, ..SlingRequest::default() })?;
        self.state().acknowledged.extend(&report.contexts);
        self.cycle();
        self.end_cancelled(id, &bead);
        Ok(format!("{bead} is restarted"))
    }

    /// The commands that the status table decides.
    fn change_status(
        &self,
        town: &Town,
        wish: PersonCommand,
        bead: &BeadId,
    ) -> Result<String, OperationError> {
        let name = [bead.to_string()];
        let all = |answers: Vec<Result<String, OperationError>>| answers.into_iter().collect();
        match wish {
            PersonCommand::Close => {
                let outcome = (self.choose(0, 4) == 0).then_some(Outcome::Failed);
                let force = self.choose(0, 2) == 0;
                let how = Close { outcome, force, ..Close::default() };
                let closed = beads::close(town, &name, &how)?;
                let shown = closed.into_iter().map(|closed| {
                    closed.map(|closed| format!("{} closed, {:?}", bead, closed.unblocked))
                });
                all(shown.collect())
            }
            PersonCommand::Reopen => {
                // Noted first: the command may die after it has written, and before it says so.
                self.state().reopened.insert(bead.clone());
                if self.planted == Some(Planted::ReopenedNotScheduled) {
                    return Ok(self.reopen_alone(bead));
                }
                let opened = beads::reopen(town, &name, None)?;
                all(opened
                    .into_iter()
                    .map(|opened| opened.map(|(_, changed)| format!("{bead} open, {changed}")))
                    .collect())
            }
            PersonCommand::Defer => {
                let minutes = self.choose(0, 30);
                let until = (minutes > 0).then(|| {
                    let minutes = u64::try_from(minutes).unwrap_or(1);
                    self.clock.peek().plus(std::time::Duration::from_mins(minutes))
                });
                let put_off = beads::defer(town, &name, until, None)?;
                all(put_off.into_iter().map(|done| done.map(|done| format!("{done:?}"))).collect())
            }
            PersonCommand::Undefer => {
                let back = beads::undefer(town, &name)?;
                all(back.into_iter().map(|done| done.map(|done| format!("{done:?}"))).collect())
            }
            PersonCommand::Claim => {
                update(town, bead, &BeadChanges { claim: true, ..BeadChanges::default() })
            }
            _ => {
                self.state().reopened.insert(bead.clone());
                let (status, assignee) = (Some(Status::Open), Some(String::new()));
                update(town, bead, &BeadChanges { status, assignee, ..BeadChanges::default() })
            }
        }
    }

    pub(crate) fn retried(
        &self,
        retried: Vec<Result<gt_scheduling::schedule::Retried, OperationError>>,
    ) -> String {
        let shown = retried.into_iter().map(|retried| match self.sound("retry", retried) {
            Ok(retried) => {
                let number = retried.context.map(|context| context.number);
                self.state().acknowledged.extend(number);
                format!("{} again as {number:?}", retried.bead)
            }
            Err(refused) => refused,
        });
        shown.collect::<Vec<_>>().join("; ")
    }

    /// Slings something; in direct mode the same process starts it.
    fn sling(&self, id: ProcessId, town: &Town, queue: bool) -> String {
        let (count, force, raw, retries, place, account, no_convoy) = {
            let random = &mut self.state().random;
            (
                random.between(1, 3),
                random.one_in(6),
                !random.one_in(8),
                random.below(2),
                random.one_in(8),
                random.one_in(4),
                random.one_in(2),
            )
        };
        let mut arguments: Vec<String> = (0..count).map(|_| self.some_bead().to_string()).collect();
        if place {
            let (rig, crew) = (self.some_rig(), self.choose(0, 2) == 0);
            // A cycle that is wrong on purpose knows only workers.
            let crew = crew && !self.planted.is_some_and(Planted::replaces_cycles);
            arguments.push(if crew { format!("{rig}/crew/joe") } else { format!("{rig}/nux") });
        }
        let host = if self.is_fleet() && self.fault(8) { self.some_host_name() } else { None };
        let flags = SlingOptions {
            host,
            hook_raw_bead: raw,
            no_convoy,
            force,
            retries: u32::try_from(retries).unwrap_or(0),
            account: account.then(|| ACCOUNT.to_owned()),
            ..SlingOptions::default()
        };
        self.sling_as(
            id,
            town,
            &SlingRequest { arguments, flags, queue, ..SlingRequest::default() },
        )
    }

    /// Slings this; in direct mode the same process starts it.
    pub(crate) fn sling_as(&self, id: ProcessId, town: &Town, request: &SlingRequest) -> String {
        let SlingRequest { arguments, flags, queue, travel, .. } = request;
        let words = format!("{arguments:?} queue={queue} force={} {travel:?}", flags.force);
        let report = match self.sound("sling", sling(town, request)) {
            Ok(report) => report,
            Err(refused) => return format!("{words}: {refused}"),
        };
        self.observe();
        let mut said = Vec::new();
        for entry in &report.entries {
            if let SlingOutcome::Refused(OperationError::Store(error)) = &entry.outcome
                && !error.may_pass()
            {
                self.violated(Invariant::Soundness, format!("sling {}: {error:?}", entry.name));
            }
            said.push(format!("{}: {:?}", entry.name, entry.outcome));
        }
        self.state().acknowledged.extend(&report.contexts);
        if !report.deferred && !report.contexts.is_empty() {
            let overrides = Overrides { spawn_parallelism: Some(1), ..Overrides::default() };
            let liberties = CycleOverrides { cap: None, by_hand: true };
            self.dispatch(id, liberties, overrides, Some(report.contexts.clone()));
        }
        format!("{words}: {}", said.join("; "))
    }
}

fn update(town: &Town, bead: &BeadId, changes: &BeadChanges) -> Result<String, OperationError> {
    let done = beads::update(town, &[bead.to_string()], changes)?;
    done.into_iter().map(|done| done.map(|id| format!("{id} updated"))).collect()
}
