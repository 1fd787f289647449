//! Whether every rig could start work: its agent program, its session server, its origin and its formulas.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gt_core::command_wrap::CommandWrap;
use gt_core::decide::BudgetKind;
use gt_core::formula::validate;
use gt_core::runtime::{CUSTOM, Command, Runtime};
use gt_core::{ExecutorKind, Rig, RigState, words};
use gt_executors::{git, process};

use super::{CheckGrade, HealthCheck};
use gt_scheduling::{queue, runtimes};
use gt_town::formulas::FormulaCatalog;
use gt_town::rigs::MayFetch;
use gt_town::settings::{file_layers, layers_over};
use gt_town::{Result, Town, rigs};

/// The placeholder of the runtimes for our own program, which is always there.
const OWN_PROGRAM: &str = "{gt}";

/// Checks everything that a start in a rig needs from this machine and from the origin.
pub(super) fn examine(town: &Town) -> Result<Vec<HealthCheck>> {
    let rigs: Vec<Rig> = rigs::list(town)?.into_iter().map(|(rig, _)| rig).collect();
    let mut checks = agents(town, &rigs)?;
    checks.extend(tmux(&rigs));
    checks.extend(rigs.iter().filter(|rig| is_in_service(rig)).filter_map(origin));
    checks.extend(docked_with_work(town, &rigs)?);
    checks.extend(formulas(town, &rigs)?);
    checks.extend(
        rigs.iter().filter(|rig| is_in_service(rig)).filter_map(|rig| unchecked(town, rig)),
    );
    checks.extend(reviews(town, &rigs)?);
    checks.extend(blind_budgets(town, &rigs)?);
    checks.extend(wraps(town, &rigs)?);
    Ok(checks)
}

/// The checks that the files of a rig without any suggest: advice, and no problem.
fn unchecked(town: &Town, rig: &Rig) -> Option<HealthCheck> {
    if !rigs::checks(town, &rig.slug).ok()?.is_empty() {
        return None;
    }
    let suggestions = rigs::suggested_checks(town, rig, MayFetch::No).ok()?;
    let lines: Vec<String> =
        suggestions.iter().map(|check| check.add_command(rig.slug.as_str())).collect();
    let detail = format!("{} has none, so that its work lands unchecked", rig.slug);
    (!lines.is_empty())
        .then(|| HealthCheck::bad("checks", CheckGrade::Good, detail, lines.join("; ")))
}

/// The rigs whose program around all commands is not on this machine: nothing of them starts.
fn wraps(town: &Town, all: &[Rig]) -> Result<Vec<HealthCheck>> {
    let files = file_layers(town)?;
    let layers = town.read(|reader| layers_over(&files, reader))?;
    let mut checks = Vec::new();
    for rig in all.iter().filter(|rig| is_in_service(rig) && runs_here(rig)) {
        let wrap = CommandWrap::of_rig(&layers.rig_wrap(&rig.slug)?, &layers.worker_wrap()?)?;
        let program = wrap.as_ref().and_then(|wrap| wrap.words().first());
        // One with a place is known when a command runs.
        let Some(program) = program.filter(|program| !program.contains('{')) else { continue };
        if !process::is_installed(program) {
            let slug = &rig.slug;
            let detail = format!(
                "{slug}: there is no program {program}, which worker.wrap puts around each command"
            );
            let fix = format!("install {program}, or gt config set rig.{slug}.wrap none");
            checks.push(HealthCheck::bad("wrap", CheckGrade::Problem, detail, fix));
        }
    }
    Ok(checks)
}

/// The effect of the rule "no review by its author" where workers are processes of the same user: a fact, and no problem.
fn reviews(town: &Town, all: &[Rig]) -> Result<Option<HealthCheck>> {
    let files = file_layers(town)?;
    let layers = town.read(|reader| layers_over(&files, reader))?;
    let mut names = Vec::new();
    for rig in all.iter().filter(|rig| is_in_service(rig) && runs_here(rig)) {
        let is_required = layers.rig_review(&rig.slug)? == "required";
        if is_required || !layers.rig_protect(&rig.slug)?.is_empty() {
            names.push(rig.slug.as_str());
        }
    }
    let detail = format!(
        "{}: workers run as your user, so the rule that no author reviews its own work stops mistakes, not attackers",
        names.join(", ")
    );
    let fix = "if that is not enough, let its workers run on a host of another user (gt host add, gt config set rig.<rig>.host <host>)";
    Ok((!names.is_empty()).then(|| HealthCheck::bad("review", CheckGrade::Good, detail, fix)))
}

/// The rigs whose agents tell nothing while they work, if a limit of tokens or money is set: a fact, and no problem.
fn blind_budgets(town: &Town, all: &[Rig]) -> Result<Option<HealthCheck>> {
    let settings = town.scheduler_settings()?;
    let is_counted = |kind| kind != BudgetKind::RunsPerHour;
    let is_set = settings.account_cost_per_day > 0
        || settings.has_work_budgets()
        || settings.budgets.iter().any(|budget| is_counted(budget.kind))
        || all.iter().any(|rig| settings.run_limits_in(&rig.slug).limit_usage());
    let mut names = Vec::new();
    for rig in all.iter().filter(|rig| is_set && is_in_service(rig) && settings.knows_how(rig)) {
        let is_told = runs_here(rig)
            && runtimes::resolve(town, &settings, &rig.slug, None)
                .is_ok_and(|runtime| runtime.tells_live_usage());
        if !is_told && rig.executor.takes_slot() {
            let runtime = settings.runtime_in(&rig.slug, None);
            let runtime = if runtime.is_empty() { "its own command" } else { runtime };
            names.push(format!("{} ({runtime})", rig.slug));
        }
    }
    let detail = format!(
        "{}: the usage is known when a run has ended, so its limits are what its start reserves, and budget.run_time",
        names.join(", ")
    );
    let fix = "gt config set budget.run_time <time>; a runtime with [telemetry] tells its usage while it works";
    Ok((!names.is_empty()).then(|| HealthCheck::bad("budgets", CheckGrade::Good, detail, fix)))
}

fn is_in_service(rig: &Rig) -> bool {
    rig.state != RigState::Docked
}

fn runs_here(rig: &Rig) -> bool {
    matches!(rig.executor, ExecutorKind::Tmux | ExecutorKind::Process)
}

/// The agent program of every rig, each program once.
fn agents(town: &Town, all: &[Rig]) -> Result<Vec<HealthCheck>> {
    let settings = town.scheduler_settings()?;
    let mut programs: BTreeMap<String, (Runtime, Vec<&Rig>)> = BTreeMap::new();
    let mut checks = Vec::new();
    for rig in all.iter().filter(|rig| is_in_service(rig) && runs_here(rig)) {
        if !settings.knows_how(rig) {
            continue;
        }
        match runtimes::resolve(town, &settings, &rig.slug, None) {
            Ok(runtime) => {
                if let Some(program) = program_of(&runtime) {
                    let (_, rigs) = programs.entry(program).or_insert((runtime, Vec::new()));
                    rigs.push(rig);
                }
            }
            Err(error) => {
                let detail = format!("{}: {error}", rig.slug);
                let fix = "gt config agent list shows the runtimes";
                checks.push(HealthCheck::bad("agent", CheckGrade::Problem, detail, fix));
            }
        }
    }
    // The default of a town counts before any rig uses it.
    if let Some(Ok(known)) = settings.runtime.as_deref().map(|name| runtimes::get(town, name))
        && let Some(program) = program_of(&known.runtime)
    {
        programs.entry(program).or_insert((known.runtime, Vec::new()));
    }
    for (program, (runtime, rigs)) in programs {
        // The setting that decides for a rig: another one would change nothing.
        let setting = |rig: &&Rig| match settings.runtime_in(&rig.slug, None) {
            "" => format!("rig.{}.command '<program> {{bead}}'", rig.slug),
            _ if settings.runtimes.contains_key(&rig.slug) => {
                format!("rig.{}.runtime <name>", rig.slug)
            }
            _ => "worker.runtime <name>".to_owned(),
        };
        let mut choices: BTreeSet<String> = rigs.iter().map(setting).collect();
        if rigs.is_empty() {
            choices.insert("worker.runtime <name>".to_owned());
        }
        let choices: Vec<String> =
            choices.iter().map(|choice| format!("gt config set {choice}")).collect();
        let rigs: Vec<&str> = rigs.iter().map(|rig| rig.slug.as_str()).collect();
        let rigs = if rigs.is_empty() { "the town".to_owned() } else { rigs.join(", ") };
        checks.push(if process::is_installed(&program) {
            installed(town, &runtime, &program, &rigs)
        } else {
            let detail =
                format!("the program {program} is not installed here, and {rigs} needs it");
            let fix = format!(
                "install it, or choose another agent (gt config agent list): {}",
                choices.join(", ")
            );
            HealthCheck::bad("agent", CheckGrade::Problem, detail, fix)
        });
    }
    Ok(checks)
}

/// Whether an installed agent tells its version and can log in. The command of a rig is only started for work.
fn installed(town: &Town, runtime: &Runtime, program: &str, rigs: &str) -> HealthCheck {
    if runtime.name.as_str() == CUSTOM {
        return HealthCheck::good("agent", format!("{program} ({rigs})"));
    }
    let fix = format!("gt config agent test {} shows it again", runtime.name);
    match runtimes::examine(town, runtime, false, Path::new(OWN_PROGRAM)) {
        Ok(tested) => {
            let version = tested.version.as_deref().unwrap_or("it tells no version");
            let warnings = tested.warnings();
            if warnings.is_empty() {
                HealthCheck::good("agent", format!("{program} ({rigs}): {version}"))
            } else {
                HealthCheck::bad("agent", CheckGrade::Warning, warnings.join("; "), fix)
            }
        }
        Err(error) => HealthCheck::bad("agent", CheckGrade::Problem, error.to_string(), fix),
    }
}

/// The program that a runtime starts; none if it is ours or only known when a run starts.
fn program_of(runtime: &Runtime) -> Option<String> {
    let named = match &runtime.command {
        Command::Own(template) if runtime.program.is_empty() => {
            words::split(template).ok()?.into_iter().next()?.text
        }
        _ => runtime.program.clone(),
    };
    (!named.is_empty() && named != OWN_PROGRAM && !named.contains('{')).then_some(named)
}

fn tmux(all: &[Rig]) -> Option<HealthCheck> {
    let rig = all.iter().find(|rig| is_in_service(rig) && rig.executor == ExecutorKind::Tmux)?;
    Some(if let Some(version) = process::version_of("tmux", "-V") {
        HealthCheck::good("tmux", version)
    } else {
        let detail = format!("not found, and the rig {} works in tmux", rig.slug);
        HealthCheck::bad("tmux", CheckGrade::Problem, detail, "install tmux")
    })
}

/// Whether the origin of a rig answers, and has the branch that work begins from and lands on. A missing path is reported by the check of the rig itself.
fn origin(rig: &Rig) -> Option<HealthCheck> {
    let is_gone = rig.repo.starts_with('/') && !std::path::Path::new(&rig.repo).exists();
    if rig.repo.is_empty() || is_gone {
        return None;
    }
    let branch = &rig.default_branch;
    Some(match git::ask_origin(&rig.repo) {
        Ok(known) if !branch.is_empty() && !known.contains(branch) => {
            let rig = &rig.slug;
            let detail = format!("{rig}: the origin has no branch {branch}, so no run can start");
            let fix = format!(
                "gt rig set {rig} branch <branch>, or git push origin HEAD:refs/heads/{branch} in a clone"
            );
            HealthCheck::bad("origin", CheckGrade::Problem, detail, fix)
        }
        Ok(_) => HealthCheck::good("origin", format!("{} answers", rig.slug)),
        Err(error) => {
            let detail = format!("{}: {error}", rig.slug);
            let fix = "check the address, the network and the login for it";
            HealthCheck::bad("origin", CheckGrade::Problem, detail, fix)
        }
    })
}

fn docked_with_work(town: &Town, all: &[Rig]) -> Result<Vec<HealthCheck>> {
    let status = queue::status(town)?;
    let scheduled = |rig: &&Rig| status.rigs.get(rig.slug.as_str()).is_some_and(|of| of.queued > 0);
    let docked = all.iter().filter(|rig| !is_in_service(rig)).filter(scheduled);
    Ok(docked
        .map(|rig| {
            let queued = status.rigs.get(rig.slug.as_str()).map_or(0, |of| of.queued);
            let detail =
                format!("{} is docked, and {queued} scheduled beads of it cannot start", rig.slug);
            HealthCheck::bad(
                "docked",
                CheckGrade::Problem,
                detail,
                format!("gt rig undock {}", rig.slug),
            )
        })
        .collect())
}

/// Every formula file of the town and of its rigs.
fn formulas(town: &Town, all: &[Rig]) -> Result<Vec<HealthCheck>> {
    let mut broken: BTreeMap<String, String> = BTreeMap::new();
    let mut count = 0;
    let shelves = all.iter().map(|rig| FormulaCatalog::of_rig(town, rig));
    for shelf in std::iter::once(FormulaCatalog::of_town(town)).chain(shelves) {
        for listed in shelf.list()? {
            count += 1;
            let problem = match &listed.formula {
                Err(error) => Some(error.to_string()),
                Ok(loaded) => match shelf.resolved(loaded) {
                    Err(error) => Some(error.to_string()),
                    Ok(resolved) => validate(&resolved).first().map(ToString::to_string),
                },
            };
            if let Some(problem) = problem {
                broken.insert(listed.location, problem);
            }
        }
    }
    if broken.is_empty() {
        return Ok(vec![HealthCheck::good("formulas", format!("{count} found, all can be used"))]);
    }
    let fix = "correct the file, or remove it";
    let bad = |(path, why): (String, String)| {
        let detail = if why.contains(&path) { why } else { format!("{path}: {why}") };
        HealthCheck::bad("formulas", CheckGrade::Problem, detail, fix)
    };
    Ok(broken.into_iter().map(bad).collect())
}
