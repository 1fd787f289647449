//! The actions of people on convoys and epics, and of the daemon that looks after them.

use std::time::Duration;

use gt_beads::beads::{self, NewBead};
use gt_beads::convoys::{self, ConvoyClose, NewConvoy};
use gt_beads::dependencies;
use gt_core::decide::ConvoyState;
use gt_core::{BeadId, DependencyType, IssueType};
use gt_daemon::attend_convoys;
use gt_scheduling::convoy_planning::{FeedLimits, StageRequest};
use gt_scheduling::schedule::{ConvoyChoice, SlingOptions, SlingRequest};
use gt_town::{OperationError, Town};

use crate::landing::convoys_in;
use crate::planted::Planted;
use crate::simulation::Simulation;
use crate::world::ProcessId;

/// The requests of a person about convoys.
#[derive(Debug, Clone, Copy)]
enum ConvoyCommand {
    Create,
    /// With a branch of its own.
    CreateWithBranch,
    CreateFromEpic,
    SlingEpic,
    Add,
    Remove,
    Stage,
    StageEpic,
    StageAgain,
    Launch,
    Pause,
    Resume,
    Cap,
    Retry,
    Close,
    Land,
    Check,
    /// As other tools do it, which know beads and edges and nothing else.
    Make,
    Track,
    Untrack,
}

impl Simulation {
    /// Makes an epic of some of the beads, in some towns.
    pub(crate) fn add_epic(&self, town: &Town) -> Result<(), OperationError> {
        if self.choose(0, 1) == 0 {
            return Ok(());
        }
        let issue_type = Some(IssueType::trusted("epic".to_owned()));
        let (id, title) = (Some(self.epic.to_string()), "all of it".to_owned());
        beads::create(town, &NewBead { id, title, issue_type, ..NewBead::default() }, false)?;
        for part in self.beads.iter().take(3) {
            let kind = DependencyType::ParentChild;
            dependencies::add(town, part.as_str(), self.epic.as_str(), &kind, false)?;
        }
        Ok(())
    }

    /// One command of a person about convoys.
    pub(crate) fn convoy(&self, id: ProcessId, town: &Town) -> String {
        let mut wishes = vec![
            (8, ConvoyCommand::Create),
            (1, ConvoyCommand::CreateFromEpic),
            (1, ConvoyCommand::SlingEpic),
            (4, ConvoyCommand::Add),
            (2, ConvoyCommand::Remove),
            (3, ConvoyCommand::Stage),
            (1, ConvoyCommand::StageEpic),
            (1, ConvoyCommand::StageAgain),
            (4, ConvoyCommand::Launch),
            (2, ConvoyCommand::Pause),
            (3, ConvoyCommand::Resume),
            (3, ConvoyCommand::Cap),
            (2, ConvoyCommand::Retry),
            (1, ConvoyCommand::Close),
            (2, ConvoyCommand::Land),
            (1, ConvoyCommand::Check),
            (2, ConvoyCommand::Make),
            (4, ConvoyCommand::Track),
            (2, ConvoyCommand::Untrack),
        ];
        if self.has_hosting() {
            wishes.insert(1, (4, ConvoyCommand::CreateWithBranch));
        }
        let Some(wish) = self.state().random.weighted(wishes) else { return String::new() };
        let said = self.fulfil_for_convoys(id, town, wish);
        format!("{wish:?}: {said}")
    }

    fn fulfil_for_convoys(&self, id: ProcessId, town: &Town, wish: ConvoyCommand) -> String {
        use ConvoyState::{Closed, Landed, Open, Staged};
        let convoy = |states: &[ConvoyState]| self.some_convoy(states).to_string();
        let shown = |(convoy, changed): (convoys::Convoy, bool)| {
            format!("{} {changed}, paused {:?}, cap {}", convoy.bead.id, convoy.paused, convoy.cap)
        };
        let answer = match wish {
            ConvoyCommand::Create => {
                let beads = self.some_beads(4);
                return self.travel(id, town, beads, ConvoyChoice::In(self.new_convoy(false)));
            }
            ConvoyCommand::CreateWithBranch => {
                let beads = self.some_beads(3);
                let new = NewConvoy { owned: false, integration: true, ..self.new_convoy(false) };
                return self.travel(id, town, beads, ConvoyChoice::In(new));
            }
            ConvoyCommand::CreateFromEpic => {
                let epic = vec![self.epic.to_string()];
                return self.travel(id, town, epic, ConvoyChoice::In(self.new_convoy(true)));
            }
            ConvoyCommand::SlingEpic => {
                let epic = vec![self.epic.to_string()];
                return self.travel(id, town, epic, ConvoyChoice::ByItself);
            }
            ConvoyCommand::Add => {
                let convoy = convoy(&[Open, Staged, Landed, Closed]);
                return self.travel(id, town, self.some_beads(2), ConvoyChoice::With(convoy));
            }
            ConvoyCommand::Launch => {
                let convoy = vec![convoy(&[Staged])];
                return self.travel(id, town, convoy, ConvoyChoice::Launched);
            }
            ConvoyCommand::Stage => self.stage(town, self.some_beads(4)),
            ConvoyCommand::StageEpic => self.stage(town, vec![self.epic.to_string()]),
            ConvoyCommand::StageAgain => self.stage(town, vec![convoy(&[Staged])]),
            ConvoyCommand::Remove => {
                convoys::remove(town, &convoy(&[Open, Staged]), &self.some_beads(2))
                    .map(|done| format!("{} without {:?}", done.convoy.bead.id, done.removed))
            }
            ConvoyCommand::Pause => convoys::pause(town, &convoy(&[Open])).map(shown),
            ConvoyCommand::Resume => convoys::resume(town, &convoy(&[Open])).map(shown),
            ConvoyCommand::Cap => {
                let cap = u32::try_from(self.choose(0, 2)).unwrap_or(0);
                convoys::cap(town, &convoy(&[Open]), cap).map(shown)
            }
            ConvoyCommand::Retry => {
                let failed = gt_scheduling::convoy_planning::failed_members(town, &convoy(&[Open]));
                failed.and_then(|(convoy, failed)| {
                    let retried = gt_scheduling::schedule::retry_found(town, &failed, false)?;
                    Ok(format!("{} {}", convoy.bead.id, self.retried(retried)))
                })
            }
            ConvoyCommand::Close => {
                let how = ConvoyClose { force: true, notify: true, ..ConvoyClose::default() };
                convoys::close(town, &convoy(&[Open, Staged]), &how).map(shown)
            }
            ConvoyCommand::Land => {
                let force = self.choose(0, 3) == 0;
                convoys::land(town, &convoy(&[Open]), force, false)
                    .map(|convoy| format!("{} {:?}", convoy.bead.id, convoy.state()))
            }
            ConvoyCommand::Check => {
                convoys::check(town, None, false).map(|landed| format!("{} landed", landed.len()))
            }
            ConvoyCommand::Make => {
                let issue_type = Some(IssueType::trusted("convoy".to_owned()));
                let title = "convoy of others".to_owned();
                beads::create(town, &NewBead { title, issue_type, ..NewBead::default() }, false)
                    .map(|made| made.bead.id.to_string())
            }
            ConvoyCommand::Track => {
                let (convoy, bead) = (convoy(&[Open, Staged]), self.some_bead());
                let kind = DependencyType::Tracks;
                dependencies::add(town, &convoy, bead.as_str(), &kind, false)
                    .map(|added| format!("{added:?}"))
            }
            ConvoyCommand::Untrack => {
                let (convoy, bead) = (convoy(&[Open, Staged]), self.some_bead());
                dependencies::remove(town, &convoy, bead.as_str(), None)
                    .map(|removed| format!("{removed:?}"))
            }
        };
        self.sound(&format!("{wish:?}"), answer).unwrap_or_else(|refused| refused)
    }

    fn new_convoy(&self, from_epic: bool) -> NewConvoy {
        let owned = self.choose(0, 3) == 0;
        let title = Some("convoy".to_owned());
        NewConvoy { title, from_epic, owned, notify: vec![None], ..NewConvoy::default() }
    }

    fn some_beads(&self, most: i64) -> Vec<String> {
        (0..self.choose(1, most)).map(|_| self.some_bead().to_string()).collect()
    }

    /// A convoy that stands like this, or now and then any; one that is not there if there is none.
    fn some_convoy(&self, states: &[ConvoyState]) -> BeadId {
        let any = self.choose(0, 7) == 0;
        let convoys = self.read(convoys_in).into_iter().map(|convoy| convoy.bead);
        let fits = |bead: &gt_core::Bead| any || states.contains(&ConvoyState::of(bead));
        let ids: Vec<BeadId> = convoys.filter(fits).map(|bead| bead.id).collect();
        let chosen = self.state().random.pick(&ids).cloned();
        chosen.unwrap_or_else(|| BeadId::trusted("hq-cv-none0".to_owned()))
    }

    fn travel(
        &self,
        id: ProcessId,
        town: &Town,
        arguments: Vec<String>,
        travel: ConvoyChoice,
    ) -> String {
        let hook_raw_bead = self.choose(0, 3) > 0;
        let flags = SlingOptions { hook_raw_bead, ..SlingOptions::default() };
        let queue = self.choose(0, 5) == 0;
        let request = SlingRequest { arguments, flags, travel, queue, ..SlingRequest::default() };
        self.sling_as(id, town, &request)
    }

    fn stage(&self, town: &Town, inputs: Vec<String>) -> Result<String, OperationError> {
        let owned = self.choose(0, 4) == 0;
        let staged = gt_scheduling::convoy_planning::stage(
            town,
            &StageRequest { inputs, owned, ..StageRequest::default() },
            &|_, _| false,
        )?;
        Ok(format!("{:?} {}, again: {}", staged.convoy, staged.status, staged.restaged))
    }

    /// Looks after all convoys, as a daemon does now and then.
    pub(crate) fn scan_convoys(&self) {
        self.as_process("look at all convoys", |id| {
            let town = self.town(id, "daemon");
            match self.planted {
                Some(Planted::LandsAgain) => self.land_all_that_are_done(),
                Some(Planted::StagedIsFed) => self.feed_staged_convoys(),
                Some(Planted::ConvoyLandsEarly) => self.land_before_last_request(),
                _ => {}
            }
            let done = self.reached("look after convoys", attend_convoys(&town));
            let Some(done) = done else { return };
            let beads: Vec<_> = done.scheduled.iter().map(|context| &context.bead).collect();
            if !beads.is_empty() || !done.landed.is_empty() {
                self.tell(format!("{id} schedules {beads:?} and lands {:?}", done.landed));
            }
        });
    }

    /// The deacon feeds convoys.
    pub(crate) fn feed_convoys(&self) {
        self.as_process("feed what is stranded", |id| {
            let town = self.town(id, "deacon");
            let (most, minutes) = (self.choose(0, 3), self.choose(0, 10));
            let how = FeedLimits {
                max_feeds: u32::try_from(most).unwrap_or(0),
                cooldown: Duration::from_mins(u64::try_from(minutes).unwrap_or(0)),
            };
            let details = gt_scheduling::convoy_planning::feed(&town, &how);
            let Some(details) = self.reached("feed", details) else { return };
            let contexts = details.iter().flat_map(|detail| detail.contexts.clone());
            self.state().acknowledged.extend(contexts);
            let shown = details.iter().map(|detail| (detail.action, detail.convoy.as_str()));
            let shown: Vec<_> = shown.collect();
            if !shown.is_empty() {
                self.tell(format!("{id} feeds {shown:?}"));
            }
        });
    }

    /// Resumes every paused convoy.
    pub(crate) fn resume_convoys(&self) {
        let town = self.town_without_seam("caretaker");
        for convoy in self.read(convoys_in).iter().filter(|convoy| convoy.is_paused()) {
            if !convoy.is_over() {
                self.certain("resume", convoys::resume(&town, convoy.bead.id.as_str()));
            }
        }
    }
}
