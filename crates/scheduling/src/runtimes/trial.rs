//! Whether the program of a runtime is there, can log in, and answers.

use std::path::Path;
use std::time::Duration;

use gt_core::Uid;
use gt_core::runtime::{
    Command, InvocationValues, LimitUntil, LoginState, Runtime, RuntimeName, TranscriptFormat,
    last_line,
};
use gt_core::schedule::Account;
use gt_core::secret_mask::SecretMask;
use gt_executors::process::{self, ProcessError};
use gt_executors::trial::{ErrorStream, Trial, TrialResult};

use super::{KnownRuntime, get, limit_in, list, words_in};
use gt_town::{OperationError, Result, Town};

/// How long a program may take to tell its version.
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// How long a program may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_mins(3);

/// How much of an answer is kept, in bytes.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;

/// The question to a program: nothing that takes thought.
const QUESTION: &str =
    "This is a test of the connection. Answer with the one word ready. Do not use tools.\n";

/// The findings about a runtime.
#[derive(Debug, Clone)]
pub struct RuntimeTest {
    /// Its name.
    pub name: RuntimeName,
    /// Its program; empty if it has none of its own.
    pub program: String,
    /// The version that the program reports; nothing if it reports none.
    pub version: Option<String>,
    /// Whether it has a login or key.
    pub login: LoginState,
    /// The places where a login was looked for.
    pub login_places: Vec<String>,
    /// The variable that it needs to start as root, if we are root and it is not set.
    pub root_variable: Option<String>,
    /// Its answer, if it was asked.
    pub answer: Option<TrialAnswer>,
}

impl RuntimeTest {
    /// Problems that may keep the program from working, each with its remedy.
    pub fn warnings(&self) -> Vec<String> {
        let Self { name, program, .. } = self;
        let mut warnings = Vec::new();
        if self.login == LoginState::Missing {
            let places = self.login_places.join(", ");
            let example = self.login_places.iter().find(|place| !place.starts_with('~'));
            let account = example.map(|variable| {
                format!(", or give it a key: gt config account add <name> --env {variable}=<key>")
            });
            warnings.push(format!(
                "no login or key of {name} was found (looked for {places}); log in with {program}{}",
                account.unwrap_or_default()
            ));
        }
        if let Some(variable) = &self.root_variable {
            warnings.push(format!(
                "{program} does not start as root; use another user, or in a container \
                 gt config agent set {name} environment.{variable} 1"
            ));
        }
        warnings
    }
}

/// The result of asking.
#[derive(Debug, Clone)]
pub enum TrialAnswer {
    /// It answered; its last words.
    Said(String),
    /// It may not answer before this.
    Limited(LimitUntil),
}

/// Looks for the program of a runtime, which costs nothing, and with `live` really asks it something. `gt` is this
/// program.
pub fn test(town: &Town, name: &str, live: bool, gt: &Path) -> Result<RuntimeTest> {
    let runtime = get(town, name)?.runtime;
    if runtime.command == Command::OfRig && live {
        return Err(OperationError::rejected(format!(
            "the runtime {name} starts the command of a rig, so it is tried by slinging a bead there"
        )));
    }
    examine(town, &runtime, live, gt)
}

/// The same for a runtime that is known.
pub fn examine(town: &Town, runtime: &Runtime, live: bool, gt: &Path) -> Result<RuntimeTest> {
    if runtime.command == Command::OfRig {
        return Ok(RuntimeTest {
            name: runtime.name.clone(),
            program: String::new(),
            version: None,
            login: LoginState::Unknown,
            login_places: Vec::new(),
            root_variable: None,
            answer: None,
        });
    }
    let directory = town.root().join(format!(".gt/trial-{}", std::process::id()));
    let file = |action, source| OperationError::File { action, path: directory.clone(), source };
    gt_executors::private::create_dir_all(&directory).map_err(|source| file("make", source))?;
    let tested = try_out(runtime, town, live, gt, &directory);
    // We made it for this test, so there is no work in it.
    std::fs::remove_dir_all(&directory).map_err(|source| file("remove", source))?;
    tested
}

/// Whether runs of a runtime have this variable: from us, from the runtime or from an account.
fn is_set(runtime: &Runtime, accounts: &[Account], name: &str) -> bool {
    let of_accounts = accounts.iter().flat_map(|account| &account.environment);
    let mut given = runtime.environment.iter().chain(of_accounts);
    process::has_variable(name) || given.any(|(own, _)| own == name)
}

/// Whether the program of a runtime has a login or a key, as far as that can be seen without starting it.
fn login_of(runtime: &Runtime, accounts: &[Account]) -> LoginState {
    let login = runtime.login.find(|name| is_set(runtime, accounts, name), process::is_in_home);
    // Only the program knows the contents of the directory of an account.
    match accounts.iter().find(|account| !account.config_dir.is_empty()) {
        Some(account) if login == LoginState::Missing => {
            LoginState::Found(format!("the account {}", account.handle))
        }
        _ => login,
    }
}

/// The program of a runtime, if it is not on this machine.
pub fn missing_program(town: &Town, name: &str) -> Result<Option<String>> {
    let runtime = get(town, name)?.runtime;
    let is_agent = runtime.command != Command::OfRig && runtime.program != "{gt}";
    Ok((is_agent && !process::is_installed(&runtime.program)).then_some(runtime.program))
}

/// The agents that most people have come first where nothing else tells agents apart.
const WIDESPREAD: [&str; 2] = ["claude", "codex"];

/// The runtimes whose programs are on this machine, with whether they have a login or key: those that are ready first.
pub fn installed(town: &Town) -> Result<Vec<(RuntimeName, LoginState)>> {
    let accounts = town.read(|reader| Ok(reader.accounts()?))?;
    let mut found = Vec::new();
    for (_, known) in list(town)? {
        let Ok(KnownRuntime { runtime, .. }) = known else { continue };
        let is_agent = runtime.command != Command::OfRig && runtime.program != "{gt}";
        if is_agent && process::is_installed(&runtime.program) {
            let login = login_of(&runtime, &accounts);
            found.push((runtime.name, login));
        }
    }
    found.sort_by_key(|(name, login)| {
        (*login == LoginState::Missing, !WIDESPREAD.contains(&name.as_str()))
    });
    Ok(found)
}

fn try_out(
    runtime: &Runtime,
    town: &Town,
    live: bool,
    gt: &Path,
    directory: &Path,
) -> Result<RuntimeTest> {
    let gt = gt.to_string_lossy();
    let program = if runtime.program == "{gt}" { gt.to_string() } else { runtime.program.clone() };
    let trial = |argv: &[String], environment: &[(String, String)], input: &[u8], limit, errors| {
        Trial {
            errors,
            without: &[],
            argv,
            directory,
            environment,
            input,
            limit,
            output_bytes_max: OUTPUT_BYTES_MAX,
        }
        .run()
        .map_err(|error| not_there(&runtime.name, &program, error))
    };
    let argv = [program.clone(), runtime.version_flag.clone()];
    let version = if runtime.version_flag.is_empty() {
        None
    } else {
        // Some programs print warnings before they say their version.
        let tried = trial(&argv, &runtime.environment, b"", VERSION_LIMIT, ErrorStream::Apart)?;
        if !tried.status.is_some_and(|status| status.success()) {
            let what = format!("{program} {}", runtime.version_flag);
            let why = describe_failure(&what, TranscriptFormat::Plain, &tried, VERSION_LIMIT);
            return Err(OperationError::rejected(why));
        }
        let first = |text: &str| {
            text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
        };
        first(&tried.output).or_else(|| first(&tried.errors))
    };
    let accounts = town.read(|reader| Ok(reader.accounts()?))?;
    let login = login_of(runtime, &accounts);
    let needs = Some(&runtime.root_variable).filter(|name| !name.is_empty() && process::is_root());
    let tested = RuntimeTest {
        name: runtime.name.clone(),
        program: program.clone(),
        version,
        login,
        login_places: runtime.login.names(),
        root_variable: needs.filter(|name| !is_set(runtime, &accounts, name)).cloned(),
        answer: None,
    };
    if !live {
        return Ok(tested);
    }
    if runtime.is_interactive {
        return Err(OperationError::rejected(format!(
            "the runtime {} needs a terminal, so it cannot be asked from here; try {program} by hand",
            runtime.name
        )));
    }
    let prompt_file = directory.join("prompt.md").to_string_lossy().into_owned();
    let session = Uid::fresh().session(1);
    // As a run that names no account.
    let account = accounts.iter().find(|account| account.is_default);
    let account_dir = account.map(|account| account.config_dir.as_str());
    let mut invocation = runtime.invocation(&InvocationValues {
        prompt: QUESTION,
        prompt_file: &prompt_file,
        bead: "test",
        run: "test#1",
        title: "Test",
        session: &session,
        tree: &directory.to_string_lossy(),
        gt: &gt,
        account_dir: account_dir.filter(|directory| !directory.is_empty()),
    })?;
    let of_account = account.into_iter().flat_map(|account| account.environment.clone());
    invocation.environment.extend(of_account);
    if let Some(file) = &invocation.prompt_file {
        gt_executors::private::write(Path::new(&file.path), &file.contents).map_err(|source| {
            OperationError::File { action: "write", path: (&file.path).into(), source }
        })?;
    }
    let input = invocation.stdin.unwrap_or_default();
    let (argv, environment) = (&invocation.argv, &invocation.environment);
    let mut tried = trial(argv, environment, &input, ANSWER_LIMIT, ErrorStream::Joined)?;
    tried.output = SecretMask::of_accounts(&accounts).mask(&tried.output).into_owned();
    let is_well = tried.status.is_some_and(|status| status.success());
    let last = words_in(runtime.transcript, &tried.output);
    let answer = match (is_well, last) {
        (true, Some(last)) => TrialAnswer::Said(last),
        (is_well, _) => match limit_in(runtime, &tried.output, town.now()) {
            Some(limit) => TrialAnswer::Limited(limit),
            None if is_well => {
                return Err(OperationError::rejected(format!(
                    "{program} ended well and said nothing"
                )));
            }
            None => {
                let format = runtime.transcript;
                let why = describe_failure(&program, format, &tried, ANSWER_LIMIT);
                return Err(OperationError::rejected(why));
            }
        },
    };
    Ok(RuntimeTest { answer: Some(answer), ..tested })
}

fn not_there(name: &RuntimeName, program: &str, error: ProcessError) -> OperationError {
    match &error {
        ProcessError::Start { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            OperationError::rejected(format!(
                "the runtime {name} needs {program}, which is not on the path; install it, or say where it \
                 is with gt config agent set {name} command <command>"
            ))
        }
        _ => error.into(),
    }
}

fn describe_failure(
    what: &str,
    format: TranscriptFormat,
    tried: &TrialResult,
    limit: Duration,
) -> String {
    let said = words_in(format, &tried.output).or_else(|| last_line(&tried.errors));
    let said = said.map(|last| format!(": {last}")).unwrap_or_default();
    match tried.status {
        Some(status) => format!("{what} failed ({status}){said}"),
        None => format!("{what} did not end within {} seconds{said}", limit.as_secs()),
    }
}
