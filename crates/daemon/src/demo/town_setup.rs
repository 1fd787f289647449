//! The town of the demonstration, from nothing to everything scheduled.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gt_core::bead::NewDependency;
use gt_core::checks::CheckDefinition;
use gt_core::{BeadId, DependencyType, IssueType, RigSlug};
use gt_executors::git::{Signature, make_sample};

use super::tasks::{ACCOUNT, CAP, CHECK, DemoBead, DemoFailure, EPIC, PARTS, RIGS};
use gt_beads::beads::{NewBead, create};
use gt_scheduling::Consequences;
use gt_scheduling::accounts::{self, NewAccount};
use gt_scheduling::convoy_planning::StageRequest;
use gt_scheduling::schedule::{ConvoyChoice, SlingOptions, SlingRequest, sling};
use gt_town::rigs::{self, NewRig, usual_executor};
use gt_town::{
    Actor, Environment, OperationError, Result, StoreOptions, SystemClock, Town, install, settings,
};

/// Where origins and town are, below the directory of the demonstration.
const ORIGINS: &str = "origins";
const TOWN: &str = "town";

/// The branch that work lands on.
pub(super) const BRANCH: &str = "main";

/// Makes origins and a town below `directory`, and creates the beads without scheduling them.
pub(super) fn set_up(directory: &Path, environment: &Environment) -> Result<Town> {
    // The town records its store, so that a database in the caller's environment is not used.
    let file = directory.join(TOWN).join(".gt").join("gt.db");
    let environment = environment.clone().with_database(&format!("sqlite:{}", file.display()));
    let actor = Actor { name: "demo".to_owned(), owner: String::new() };
    let made = install(&directory.join(TOWN), &environment, &actor, &SystemClock)?;
    let clock = Arc::new(SystemClock);
    let options = StoreOptions::default();
    let town = Town::open(
        &made.root,
        &made.root,
        &environment,
        actor,
        clock,
        options,
        Arc::new(Consequences),
    )?;
    settings::set(
        &town,
        "scheduler.max_polecats",
        &CAP.to_string(),
        gt_scheduling::runtimes::check_name,
    )?;
    settings::set(&town, "worker.runtime", "scripted", gt_scheduling::runtimes::check_name)?;
    for rig in &RIGS {
        let slug = RigSlug::parse(rig.name)?;
        let origin = origin(directory, rig.name);
        let signature = Signature { name: "Demo".to_owned(), email: "demo@localhost".to_owned() };
        make_sample(&origin, BRANCH, &signature, rig.files)
            .map_err(|source| OperationError::Git { rig: slug, source })?;
        let repository = origin.display().to_string();
        rigs::add(
            &town,
            &NewRig {
                name: rig.name,
                repository: Some(&repository),
                prefix: Some(rig.name),
                branch: Some(BRANCH),
                executor: usual_executor(true),
            },
        )?;
        let check = CheckDefinition::new(CHECK.0, CHECK.1, Duration::from_mins(1), 0, Vec::new())?;
        rigs::add_check(&town, rig.name, &check)?;
    }
    let account = NewAccount { handle: ACCOUNT.to_owned(), ..NewAccount::default() };
    accounts::add(&town, &account)?;
    let (id, title) = (Some(EPIC.0.to_owned()), EPIC.1.to_owned());
    let issue_type = Some(IssueType::trusted("epic".to_owned()));
    create(&town, &NewBead { title, issue_type, id, ..NewBead::default() }, false)?;
    for part in &PARTS {
        create(&town, &bead(part), false)?;
    }
    Ok(town)
}

/// The origin of a rig.
pub(super) fn origin(directory: &Path, rig: &str) -> PathBuf {
    directory.join(ORIGINS).join(format!("{rig}.git"))
}

fn bead(part: &DemoBead) -> NewBead {
    let within =
        NewDependency { kind: DependencyType::ParentChild, ..NewDependency::blocked_by(EPIC.0) };
    NewBead {
        id: Some(part.id.to_owned()),
        title: part.title.to_owned(),
        description: part.description(),
        links: part
            .needs
            .iter()
            .map(|need| NewDependency::blocked_by(*need))
            .chain([within])
            .collect(),
        ..NewBead::default()
    }
}

/// The plan of the work.
#[derive(Debug, Clone)]
pub struct DemoPlan {
    /// The convoy of all the work.
    pub convoy: BeadId,
    /// How many beads each wave has; those of one wave can be done in parallel.
    pub waves: Vec<usize>,
}

/// Stages everything as one convoy and launches it, as `gt convoy stage` and `launch` would. The daemon starts it.
pub(super) fn launch_all(town: &Town) -> Result<DemoPlan> {
    let inputs = vec![EPIC.0.to_owned()];
    let staged = gt_scheduling::convoy_planning::stage(
        town,
        &StageRequest { inputs, ..StageRequest::default() },
        &|_, _| false,
    )?;
    let convoy = staged.convoy.ok_or_else(|| OperationError::rejected("nothing was staged"))?;
    let waves = staged.plan.waves.iter().map(Vec::len).collect();
    // A part with an account of its own, or with a review, is slung by itself; the launch finds it scheduled.
    let account = Some(ACCOUNT.to_owned());
    let limited = SlingOptions { account, no_convoy: true, ..SlingOptions::default() };
    let reviewed = SlingOptions { review: true, no_convoy: true, ..SlingOptions::default() };
    for (mishap, flags) in [(DemoFailure::Limit, limited), (DemoFailure::Review, reviewed)] {
        let parts = PARTS.iter().filter(|part| part.mishap == mishap);
        let arguments = parts.map(|part| part.id.to_owned()).collect();
        sling(town, &SlingRequest { arguments, flags, ..SlingRequest::default() })?;
    }
    let (arguments, travel) = (vec![convoy.to_string()], ConvoyChoice::Launched);
    sling(town, &SlingRequest { arguments, travel, ..SlingRequest::default() })?;
    Ok(DemoPlan { convoy, waves })
}
