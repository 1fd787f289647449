//! The commands of a worker: how it has them carried out, and where its supervisor carries them out.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gt_core::schedule::RunId;
use gt_core::work::RunToken;
use gt_executors::calls::{
    CALL_PROTOCOL, CallRequest, CallRunner, CallServer, Calling, TOKEN_FILE, short_path,
};
use gt_executors::private;
use gt_executors::runs::RunFiles;

use gt_town::{Environment, OperationError, Result, Town};

/// How long a supervisor waits at its end for the commands that it still carries out: a landing may be under way.
const LAST_COMMANDS_WAIT_MAX: Duration = Duration::from_secs(30);

/// The answer to a worker whose token is that of no run any more.
const VOID: &str = "the token of this worker is void, because its run is over: nothing that it does counts any more; stop \
                    working: leave everything as it is, and end your session";

/// The answer to a worker that shows no token at all.
const MISSING: &str = "GT_RUN_TOKEN_FILE is not set, so it is not known which run asks; call gt with the environment that \
                       the worker was started with";

/// If a worker calls `gt` or `bd`, has the command carried out by the process that has the store, and gives its exit status;
/// nothing if it is to be carried out here. A command that `is_repeatable` outlives the death of that process. `on_wait` is called
/// when that has to wait.
pub fn call_from_worker(
    environment: &Environment,
    program: &str,
    arguments: &[OsString],
    directory: Option<&Path>,
    is_repeatable: bool,
    on_wait: &mut dyn FnMut(),
) -> Option<Result<u8>> {
    let sockets = environment.sockets();
    if sockets.is_empty() {
        return None;
    }
    let request = match request_of(environment, program, arguments, directory) {
        Ok(request) => request,
        Err(error) => return Some(Err(error)),
    };
    let calling = Calling { sockets: &sockets, patience: Calling::WAIT_MAX, is_repeatable };
    let called = calling.call(&request, on_wait);
    Some(called.map_err(|error| OperationError::rejected(error.to_string())))
}

fn request_of(
    environment: &Environment,
    program: &str,
    arguments: &[OsString],
    directory: Option<&Path>,
) -> Result<CallRequest> {
    let text = |word: &OsString| {
        let shown = || format!("the argument {} is not UTF-8 text", word.to_string_lossy());
        word.clone().into_string().map_err(|_| OperationError::rejected(shown()))
    };
    let token = environment.path(TOKEN_FILE).map(|path| {
        let read = std::fs::read_to_string(&path);
        read.map(|token| token.trim_end().to_owned()).map_err(|error| {
            if error.kind() == ErrorKind::NotFound {
                return OperationError::rejected(VOID);
            }
            OperationError::File {
                action: "read the token of this worker from",
                path,
                source: error,
            }
        })
    });
    Ok(CallRequest {
        protocol: CALL_PROTOCOL,
        program: program.to_owned(),
        arguments: arguments.iter().map(text).collect::<Result<_>>()?,
        directory: directory.and_then(Path::to_str).map(str::to_owned),
        token: token.transpose()?,
        variables: environment.of_caller(),
    })
}

/// The arguments of `gt` and the environment with which this process carries out the call of a worker. Refused without the
/// token of a run. Whether the command is for workers is decided when it is parsed.
pub fn admit_call(
    town: &Town,
    environment: &Environment,
    request: &CallRequest,
) -> Result<(Vec<String>, Environment)> {
    if request.token.is_none() {
        return Err(OperationError::rejected(MISSING));
    }
    let token = request.token.as_deref().and_then(RunToken::parse);
    let run = match &token {
        Some(token) => run_of(town, token)?,
        None => None,
    };
    let Some((run, token)) = run.zip(token) else {
        return Err(OperationError::rejected(VOID));
    };
    let bd = (request.program == "bd").then(|| "bd".to_owned());
    let arguments = bd.into_iter().chain(request.arguments.iter().cloned()).collect();
    Ok((arguments, environment.for_call(town.root(), &run, &token, &request.variables)))
}

/// The run whose worker calls. Its token is void when the file with it is gone.
fn run_of(town: &Town, token: &RunToken) -> Result<Option<RunId>> {
    let run = town.read(|reader| Ok(reader.run_of_token(&token.hash())?))?;
    let is_void = |run: &RunId| {
        let files = RunFiles::of(&town.runs_directory(), &run.to_string());
        !files.token_path().exists()
    };
    Ok(run.filter(|run| !is_void(run)))
}

/// The means of a supervisor for the commands of its worker: the file with its token, and a socket that it serves until this is
/// dropped.
pub(super) struct WorkerCalls<'a> {
    files: &'a RunFiles,
    _server: CallServer,
}

impl<'a> WorkerCalls<'a> {
    /// Begins to serve the worker of a run, which proves itself by this token.
    pub(super) fn open(
        files: &'a RunFiles,
        token: &RunToken,
        runner: Arc<dyn CallRunner>,
    ) -> Result<Self> {
        let socket = short_path(&files.socket_path());
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| OperationError::File { action, path, source }
        };
        let file = files.token_path();
        private::replace(&file, format!("{}\n", token.reveal())).map_err(failed("write", &file))?;
        let server = CallServer::open(&socket, runner).map_err(failed("listen at", &socket))?;
        Ok(Self { files, _server: server.with_last_calls_wait(LAST_COMMANDS_WAIT_MAX) })
    }
}

impl Drop for WorkerCalls<'_> {
    fn drop(&mut self) {
        void_token(self.files);
    }
}

/// Takes its token from the worker of a run that is over.
pub(super) fn void_token(files: &RunFiles) {
    // If it stays, the store refuses what its worker wants to change.
    let _ = std::fs::remove_file(files.token_path());
}
