//! Commands that this process carries out for workers, and the streams and the directory of a command.
//!
//! A command of this process has its standard streams and its working directory. A command of a worker that calls us has
//! those of its caller, and runs on a thread of its own: [`ServedCall`] is the state of that thread.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use gt_execution::merge_queue::{ProcessOwner, owner_of_caller};
use gt_execution::runs::{
    CallRequest, CallRunner, CallStreams, CallerFile, CallerFiles, CallerOutput, OutputStream,
    WholeFile, admit_call,
};
use gt_town::{Environment, Town};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::CliError;
use crate::output::{self, Printer};

/// How long a command of a worker waits for a store that is away, and how long apart it tries again.
const STORE_WAIT_MAX: Duration = Duration::from_mins(10);
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A command that this thread carries out for a worker.
pub(crate) struct ServedCall {
    /// The open town of the process that carries it out.
    pub(crate) town: Town,
    directory: RefCell<Option<PathBuf>>,
    input: RefCell<Box<dyn Read + Send>>,
    output: CallerOutput,
    files: CallerFiles,
    /// Whether the command may be carried out twice, as far as its arguments were read.
    is_repeatable: Cell<bool>,
    /// Why the command is to be tried again.
    withheld: RefCell<Option<CliError>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<ServedCall>>> = const { RefCell::new(None) };
}

/// The call that this thread carries out; nothing for a command of this process.
pub(crate) fn current() -> Option<Rc<ServedCall>> {
    CURRENT.with_borrow(Clone::clone)
}

/// The directory in which the command runs.
pub(crate) fn directory() -> io::Result<PathBuf> {
    match current() {
        Some(call) => call.directory.borrow().clone().ok_or_else(|| io::ErrorKind::NotFound.into()),
        None => std::env::current_dir(),
    }
}

/// Changes the directory of the command, so that relative paths begin there.
pub(crate) fn enter(directory: &Path) -> io::Result<()> {
    match current() {
        Some(call) => {
            call.directory.replace(Some(directory.to_owned()));
            Ok(())
        }
        None => std::env::set_current_dir(directory),
    }
}

/// The files of the worker that called, which its own process opens; nothing for a command of this process.
pub(crate) fn caller_files() -> Option<CallerFiles> {
    current().map(|call| call.files.clone())
}

/// The contents of a file that a command was given.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    match current() {
        Some(call) => match &*call.directory.borrow() {
            Some(directory) => call.files.read(&directory.join(path)),
            None => call.files.read(path),
        },
        None => std::fs::read(path),
    }
}

/// A file that a command was given to write. It is written whole or not at all.
pub(crate) enum GivenFile {
    /// By this process.
    Own(WholeFile),
    /// By the process of the worker that called.
    OfCaller(CallerFile),
}

impl GivenFile {
    /// Begins to write it.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        match caller_files() {
            Some(files) => Ok(Self::OfCaller(files.create(path))),
            None => WholeFile::create(path).map(Self::Own),
        }
    }

    /// Puts the new contents in the place of the old ones.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Own(file) => file.finish(),
            Self::OfCaller(file) => file.finish(),
        }
    }
}

impl Write for GivenFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Own(file) => file.write(bytes),
            Self::OfCaller(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Own(file) => file.flush(),
            Self::OfCaller(file) => file.flush(),
        }
    }
}

/// The standard input of the command.
pub(crate) fn stdin() -> Box<dyn Read> {
    match current() {
        Some(call) => Box::new(ServedInput(call)),
        None => Box::new(io::stdin()),
    }
}

/// Whether a person can type into the standard input of the command.
pub(crate) fn stdin_is_terminal() -> bool {
    current().is_none() && io::stdin().is_terminal()
}

/// Whether a person sees the standard output of the command.
pub(crate) fn stdout_is_terminal() -> bool {
    current().is_none() && io::stdout().is_terminal()
}

/// The standard output of the command.
pub(crate) fn stdout() -> Box<dyn Write> {
    match current() {
        Some(call) => Box::new(ServedOutput(call.output.clone(), OutputStream::Out)),
        None => Box::new(io::stdout()),
    }
}

/// The standard error of the command.
pub(crate) fn stderr() -> Box<dyn Write> {
    match current() {
        Some(call) => Box::new(ServedOutput(call.output.clone(), OutputStream::Error)),
        None => Box::new(anstream::stderr()),
    }
}

/// The streams of the caller, for a command that uses them on other threads; nothing for a command of this process.
pub(crate) fn take_streams() -> Option<(Box<dyn Read + Send>, Box<dyn Write + Send>)> {
    let call = current()?;
    let input = call.input.replace(Box::new(io::empty()));
    Some((input, Box::new(ServedOutput(call.output.clone(), OutputStream::Out))))
}

/// The run or check that the process of the command comes from. A call's token says whose it is: the process that carries it
/// out has the locks of other runs open.
pub(crate) fn process_owner(town: &Town) -> Option<ProcessOwner> {
    if current().is_some() { None } else { owner_of_caller(town) }
}

/// Ends a command that waits for something else than its output, if the worker that called it has gone.
pub(crate) fn check_caller() -> Result<(), CliError> {
    let is_gone = current().is_some_and(|call| call.output.0.wait_for_end(Duration::ZERO));
    if is_gone { Err(CliError::ClosedPipe) } else { Ok(()) }
}

/// Waits this long, or until the reader of the output has gone; says whether it has.
pub(crate) fn wait_for_reader_end(time: Duration) -> io::Result<bool> {
    if let Some(call) = current() {
        return Ok(call.output.0.wait_for_end(time));
    }
    let stdout = io::stdout();
    // No event is polled for, so only an error or a closed reader ends the wait early.
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let time = Timespec::try_from(time).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut watched, Some(&time)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Notes that the command of a worker may be carried out twice.
pub(crate) fn allow_repeat() {
    if let Some(call) = current() {
        call.is_repeatable.set(true);
    }
}

/// Keeps the error of a worker's command that is tried again because the store was away; gives back any other.
pub(crate) fn withhold(error: CliError) -> Option<CliError> {
    match current() {
        Some(call) if call.is_repeatable.get() && error.is_store_away() => {
            call.withheld.replace(Some(error));
            None
        }
        _ => Some(error),
    }
}

struct ServedInput(Rc<ServedCall>);

impl Read for ServedInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.input.borrow_mut().read(buffer)
    }
}

/// Bytes for one of the streams of a caller, without colours: its terminal is not known.
struct ServedOutput(CallerOutput, OutputStream);

impl Write for ServedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let plain = anstream::adapter::strip_bytes(bytes).into_vec();
        self.0.0.write(self.1, &plain)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Carries out the commands of workers in this process.
pub(crate) struct CommandService {
    town: Town,
    environment: Environment,
}

impl CommandService {
    /// Carries them out in this town, which stays open.
    pub(crate) fn new(town: &Town, environment: &Environment) -> Self {
        Self { town: town.clone(), environment: environment.clone() }
    }
}

impl CommandService {
    /// Carries out the command of the current call once.
    fn carry_out(&self, request: &CallRequest) -> u8 {
        match admit_call(&self.town, &self.environment, request) {
            Ok((arguments, environment)) => {
                let words = std::iter::once("gt".to_owned()).chain(arguments).map(OsString::from);
                crate::run_command(&words.collect::<Vec<_>>(), environment)
            }
            Err(error) => {
                // Nothing was begun, so every command may be tried again.
                allow_repeat();
                if let Some(error) = withhold(error.into()) {
                    self.fail(request, &error);
                }
                crate::FAILURE
            }
        }
    }

    fn fail(&self, request: &CallRequest, error: &CliError) {
        let json = request.arguments.iter().any(|argument| argument == "--json");
        Printer::new(json, false, &self.environment).failure(error);
    }
}

impl CallRunner for CommandService {
    fn run(&self, request: CallRequest, streams: CallStreams) -> u8 {
        let CallStreams { input, output, files } = streams;
        let call = Rc::new(ServedCall {
            town: self.town.clone(),
            directory: RefCell::new(request.directory.clone().map(PathBuf::from)),
            input: RefCell::new(input),
            output,
            files,
            is_repeatable: Cell::new(false),
            withheld: RefCell::new(None),
        });
        CURRENT.set(Some(Rc::clone(&call)));
        let began = Instant::now();
        let mut is_told = false;
        let status = loop {
            call.is_repeatable.set(false);
            let status = self.carry_out(&request);
            let Some(error) = call.withheld.take() else { break status };
            if !std::mem::replace(&mut is_told, true) {
                output::tell(&format!("waiting for the store: {}", error.chain()));
            }
            if began.elapsed() >= STORE_WAIT_MAX || call.output.0.wait_for_end(STORE_RETRY_INTERVAL)
            {
                self.fail(&request, &error);
                break crate::FAILURE;
            }
        };
        CURRENT.set(None);
        status
    }
}
