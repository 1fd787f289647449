//! The town of the demonstration, from nothing to everything scheduled.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gt_core::bead::Link;
use gt_core::{BeadId, DependencyType, IssueType, RigSlug};
use gt_executors::git::{Signature, make_sample};

use super::play::{ACCOUNT, CAP, EPIC, Mishap, PARTS, Part, RIGS};
use crate::accounts::{self, NewAccount};
use crate::beads::{NewBead, create};
use crate::convoys::{self, StageRequest};
use crate::rigs::{self, NewRig, usual_executor};
use crate::schedule::{Flags, SlingRequest, Travel, sling};
use crate::{
    Actor, Environment, OperationError, Result, StoreOptions, SystemClock, Town, install, settings,
};

/// Where origins and town are, below the directory of the demonstration.
const ORIGINS: &str = "origins";
const TOWN: &str = "town";

/// The branch that work lands on.
pub(super) const BRANCH: &str = "main";

/// Makes origins and a town below `directory`, writes down the work, and schedules nothing yet.
pub(super) fn set_up(directory: &Path, environment: &Environment) -> Result<Town> {
    // Written down in the town, so that a database which the caller's environment names is left alone.
    let file = directory.join(TOWN).join(".gt").join("gt.db");
    let environment = environment.clone().with_database(&format!("sqlite:{}", file.display()));
    let actor = Actor { name: "demo".to_owned(), owner: String::new() };
    let made = install(&directory.join(TOWN), &environment, &actor, &SystemClock)?;
    let clock = Arc::new(SystemClock);
    let options = StoreOptions::default();
    let town = Town::open(&made.root, &made.root, &environment, actor, clock, options)?;
    settings::set(&town, "scheduler.max_polecats", &CAP.to_string())?;
    settings::set(&town, "worker.runtime", "scripted")?;
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
                host: None,
            },
        )?;
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

/// Where the repository of a rig came from, and its work goes to.
pub(super) fn origin(directory: &Path, rig: &str) -> PathBuf {
    directory.join(ORIGINS).join(format!("{rig}.git"))
}

fn bead(part: &Part) -> NewBead {
    let within = Link { kind: DependencyType::ParentChild, ..Link::blocked_by(EPIC.0) };
    NewBead {
        id: Some(part.id.to_owned()),
        title: part.title.to_owned(),
        description: part.description(),
        links: part.needs.iter().map(|need| Link::blocked_by(*need)).chain([within]).collect(),
        ..NewBead::default()
    }
}

/// How the work is planned.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The convoy that all of it travels in.
    pub convoy: BeadId,
    /// How many beads can be done side by side, one wave after the other.
    pub waves: Vec<usize>,
}

/// Stages everything as one convoy and launches it, as `gt convoy stage` and `launch` would. Whoever looks after the town
/// starts it.
pub(super) fn launch_all(town: &Town) -> Result<Plan> {
    let inputs = vec![EPIC.0.to_owned()];
    let staged = convoys::stage(town, &StageRequest { inputs, ..StageRequest::default() })?;
    let convoy = staged.convoy.ok_or_else(|| OperationError::rejected("nothing was staged"))?;
    let waves = staged.plan.waves.iter().map(Vec::len).collect();
    // Who works for an account of its own is slung by itself; the launch finds it scheduled.
    let limited = PARTS.iter().filter(|part| part.mishap == Mishap::Limit);
    sling(
        town,
        &SlingRequest {
            arguments: limited.map(|part| part.id.to_owned()).collect(),
            flags: Flags { account: Some(ACCOUNT.to_owned()), no_convoy: true, ..Flags::default() },
            ..SlingRequest::default()
        },
    )?;
    let (arguments, travel) = (vec![convoy.to_string()], Travel::Launched);
    sling(town, &SlingRequest { arguments, travel, ..SlingRequest::default() })?;
    Ok(Plan { convoy, waves })
}
