//! The start of a session of a run: the program, its directory, environment and prompt.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gt_core::runtime::{ExitZero, Invocation, InvocationValues, Pasting, Runtime};
use gt_core::schedule::{Account, Context, Merge, Run, WorkerPlace};
use gt_core::{ExecutorKind, Message, Rig};
use gt_executors::calls::{SOCKETS, TOKEN_FILE, short_path};
use gt_executors::git::fence::{STORE_CREDENTIALS, present_here};
use gt_executors::runs::{Agent, Prompter, RunFiles};
use gt_executors::terminal::Launcher;

use super::prompt::prompt;
use crate::trees::{path_with_us, ports_of_polecat, put_behind_fence};
use crate::wrap::{WrappedCommand, wrap_of};
use gt_scheduling::run_transitions::ClaimedRun;
use gt_town::identity::WRAPPED;
use gt_town::settings::layers;
use gt_town::{OperationError, Result, Town};

/// The program that works on a run, and its prompt.
pub(super) struct LaunchSpec {
    pub(super) agent: Agent,
    /// The messages in its prompt.
    pub(super) told: Vec<Message>,
}

/// Builds the start of a session of a claimed run; the first session has the number 1.
pub(super) fn launch_spec(
    town: &Town,
    rig: &Rig,
    order: &ClaimedRun,
    runtime: &Runtime,
    account: Option<&Account>,
    program: &Path,
    session: u32,
) -> Result<LaunchSpec> {
    let ClaimedRun { run, bead, context, .. } = order;
    let files = RunFiles::of(&town.runs_directory(), &run.id.to_string());
    let briefing = || crate::briefing::briefing(town, &run.id);
    // The command of a rig gets only the task; an agent also gets its identity and the ways to finish.
    let (text, told) = match runtime.exit_zero {
        ExitZero::Done if session > 1 || context.parameters.ralph => {
            let opening = briefing()?.opening(session);
            let gap = if opening.is_empty() { "" } else { "\n\n" };
            (format!("{opening}{gap}{}", prompt(bead, run, context)), Vec::new())
        }
        ExitZero::Done => (prompt(bead, run, context), Vec::new()),
        ExitZero::DoneIfCommitted | ExitZero::Ask => {
            let briefing = briefing()?;
            (briefing.text_of_session(session), briefing.messages)
        }
    };
    let id = run.id.to_string();
    let prompt_file = files.prompt_path();
    let gt = program.to_string_lossy();
    // Programs do not begin a session under a name that they have used.
    let session_name = run.uid.session(session);
    let directory = if run.workplace.tree.is_empty() { &rig.path } else { &run.workplace.tree };
    let directory = town.root().join(directory);
    let account_dir = account.map(|account| account.config_dir.as_str());
    let values = InvocationValues {
        prompt: &text,
        prompt_file: &prompt_file.to_string_lossy(),
        bead: bead.id.as_str(),
        run: &id,
        title: bead.title.as_str(),
        session: &session_name,
        tree: &directory.to_string_lossy(),
        gt: &gt,
        account_dir: account_dir.filter(|directory| !directory.is_empty()),
    };
    let invocation = runtime.invocation(&values)?;
    if let Some(file) = &invocation.prompt_file {
        let failed = |source| OperationError::File {
            action: "write",
            path: PathBuf::from(&file.path),
            source,
        };
        gt_executors::private::write(Path::new(&file.path), &file.contents).map_err(failed)?;
    }
    let Invocation { argv, stdin, paste, environment: of_runtime, .. } = invocation;
    let prompter = paste.as_ref().map(|paste| prompter(town, run, runtime, paste, program));
    let prompter = prompter.transpose()?;
    let typed = paste.map(|paste| paste.text.into_bytes());
    let mut environment = environment_of(town, run, context, program)?;
    if let Some(name) = run.place.as_ref().and_then(WorkerPlace::polecat_name) {
        environment.extend(ports_of_polecat(town, rig, name)?);
    }
    environment.extend(of_runtime);
    environment.extend(account.into_iter().flat_map(|account| account.environment.clone()));
    for name in present_here(&STORE_CREDENTIALS) {
        if !environment.iter().any(|(present, _)| present == name) {
            environment.push((name.to_owned(), String::new()));
        }
    }
    put_behind_fence(town, rig, &run.id, runtime.name.as_str(), &mut environment)?;
    let on_terminal =
        runtime.is_interactive || (run.executor == ExecutorKind::Tmux && stdin.is_none());
    let terminal = on_terminal.then(|| Launcher::of(program));
    let agent = Agent {
        argv,
        directory,
        environment,
        prompt: stdin.or(typed).unwrap_or_default(),
        terminal,
        prompter,
    };
    Ok(LaunchSpec { agent, told })
}

/// Puts the program of the rig around an agent whose environment is complete.
pub(super) fn wrap_agent(town: &Town, rig: &Rig, run: &Run, agent: &mut Agent) -> Result<()> {
    let wrap = wrap_of(&layers(town)?, rig)?;
    if wrap.is_some() {
        agent.environment.push((WRAPPED.to_owned(), "1".to_owned()));
    }
    let run = run.id.to_string();
    let wrapped = WrappedCommand {
        rig,
        place: (town, agent.directory.as_path()),
        run: &run,
        environment: &agent.environment,
    };
    agent.argv = wrapped.argv(wrap.as_ref(), std::mem::take(&mut agent.argv))?;
    Ok(())
}

/// The command that types the prompt into the session of a run: this program, once more.
fn prompter(
    town: &Town,
    run: &Run,
    runtime: &Runtime,
    paste: &Pasting,
    program: &Path,
) -> Result<Prompter> {
    if run.executor != ExecutorKind::Tmux {
        return Err(OperationError::rejected(format!(
            "the prompt of the runtime {0} is pasted into its session, and {1} has none, because the rig {2} works as {3}; use \
             a rig that works in sessions (gt rig add … --executor tmux), or give the prompt otherwise (gt config agent set \
             {0} prompt argument)",
            runtime.name,
            run.id,
            run.rig,
            run.executor.as_str(),
        )));
    }
    let mut arguments: Vec<OsString> = vec!["-C".into(), town.root().into()];
    arguments.extend(["worker", "type"].map(OsString::from));
    arguments.extend(["--confirm", paste.confirm.as_str()].map(OsString::from));
    let ready = paste.ready.iter().flat_map(|ready| ["--ready", ready.as_str()]);
    arguments.extend(ready.map(OsString::from));
    Ok(Prompter { program: program.to_owned(), arguments })
}

/// The environment of a worker.
pub(super) fn environment_of(
    town: &Town,
    run: &Run,
    context: &Context,
    program: &Path,
) -> Result<Vec<(String, String)>> {
    let files = RunFiles::of(&town.runs_directory(), &run.id.to_string());
    // The daemon first: a supervisor has enough to do with its agent.
    let sockets = [town.calls_socket(), short_path(&files.socket_path())];
    let mut environment = vec![
        ("GT_TOWN_ROOT".to_owned(), town.root().display().to_string()),
        ("GT_RIG".to_owned(), run.rig.to_string()),
        ("GT_RUN".to_owned(), run.id.to_string()),
        (SOCKETS.to_owned(), sockets.map(|path| path.display().to_string()).join(":")),
        (TOKEN_FILE.to_owned(), files.token_path().display().to_string()),
        ("GT_ROLE".to_owned(), run.agent.clone()),
        ("BD_ACTOR".to_owned(), run.agent.clone()),
        // It takes precedence over BD_ACTOR, and the dispatching user may have it set.
        ("BEADS_ACTOR".to_owned(), run.agent.clone()),
        ("GIT_AUTHOR_NAME".to_owned(), run.agent.clone()),
    ];
    if !run.workplace.tree.is_empty() {
        let signature = gt_town::tree_paths::signature_of(run);
        environment.extend([
            ("GT_BRANCH".to_owned(), run.workplace.branch.clone()),
            ("GIT_AUTHOR_EMAIL".to_owned(), signature.email.clone()),
            ("GIT_COMMITTER_NAME".to_owned(), signature.name),
            ("GIT_COMMITTER_EMAIL".to_owned(), signature.email),
            ("PATH".to_owned(), path_with_us(town, program)?),
        ]);
    }
    if !run.workplace.session.is_empty() {
        environment.push(("GT_SESSION".to_owned(), run.workplace.session.clone()));
    }
    if let Some(name) = run.place.as_ref().and_then(WorkerPlace::polecat_name) {
        environment.push(("GT_POLECAT".to_owned(), name.to_owned()));
    }
    let parameters = &context.parameters;
    for (name, value) in [
        ("GT_AGENT", parameters.runtime.as_deref()),
        ("GT_MERGE", parameters.merge.map(Merge::as_str)),
        ("GT_BASE_BRANCH", parameters.base_branch.as_deref()),
        ("GT_MODE", parameters.ralph.then_some("ralph")),
        ("GT_NO_MERGE", parameters.no_merge.then_some("1")),
        ("GT_REVIEW_ONLY", parameters.review_only.then_some("1")),
    ] {
        environment.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }
    Ok(environment)
}
