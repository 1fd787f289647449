//! Follows a script as an agent would: for tests and demonstrations.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use gt_core::runtime::script::{Instruction, Script, limit_message, script_in};
use gt_executors::{process, terminal};

use gt_town::{Environment, OperationError, Result, Town};

/// How often a script that waits looks again.
const SCRIPT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptEnd {
    /// Everything was done.
    Well,
    /// With this exit status.
    Badly(u8),
}

/// Where a script is followed.
pub struct ScriptContext<'a> {
    /// Where relative paths begin.
    pub directory: PathBuf,
    /// The value of `{bead}`.
    pub bead: String,
    /// The value of `{run}`.
    pub run: String,
    /// Whether the bead had no run before.
    pub is_first: bool,
    /// Prints a line, at once.
    pub say: &'a dyn Fn(&str) -> Result<()>,
    /// How this program is started again, to follow the same script from another place on: that place is the last
    /// argument.
    pub again: (PathBuf, Vec<String>),
}

impl std::fmt::Debug for ScriptContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// The script in the description of the bead whose worker this is.
pub fn script_of(town: &Town, environment: &Environment) -> Result<String> {
    let Some(run) = environment.acting_run() else {
        return Err(OperationError::rejected(
            "there is no script: name a file with --script or GT_SCRIPT, or run as the worker of a bead",
        ));
    };
    let bead = town.read(|reader| Ok(reader.bead(&run.bead)?))?;
    let bead = bead.ok_or_else(|| OperationError::NoBead(run.bead.to_string()))?;
    script_in(&bead.description).map(str::to_owned).ok_or_else(|| {
        OperationError::rejected(format!(
            "{} has no script; write one into its description, between a line with ```gt-script and one with ```",
            bead.id
        ))
    })
}

/// Does what a script says, without the first `skipped` instructions, to its end or until something fails.
pub fn follow(script: &Script, skipped: u64, stage: &ScriptContext<'_>) -> Result<ScriptEnd> {
    let mut actor = ScriptInterpreter { stage, done: 0, skipped };
    Ok(match actor.all(script.instructions())? {
        ControlFlow::Continue(()) => ScriptEnd::Well,
        ControlFlow::Break(code) => ScriptEnd::Badly(code),
    })
}

/// The interpreter of a script; breaks off with an exit status.
struct ScriptInterpreter<'a> {
    stage: &'a ScriptContext<'a>,
    /// How many instructions have been reached, each round of a repetition counted.
    done: u64,
    skipped: u64,
}

impl ScriptInterpreter<'_> {
    fn all(&mut self, instructions: &[Instruction]) -> Result<ControlFlow<u8>> {
        for instruction in instructions {
            let (rounds, body) = match instruction {
                Instruction::Repeat { rounds, body } => (*rounds, body),
                Instruction::First(body) => (u32::from(self.stage.is_first), body),
                instruction => {
                    self.done += 1;
                    if self.done > self.skipped
                        && let ControlFlow::Break(code) = self.one(instruction)?
                    {
                        return Ok(ControlFlow::Break(code));
                    }
                    continue;
                }
            };
            for _ in 0..rounds {
                if let ControlFlow::Break(code) = self.all(body)? {
                    return Ok(ControlFlow::Break(code));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn one(&self, instruction: &Instruction) -> Result<ControlFlow<u8>> {
        let say = self.stage.say;
        match instruction {
            Instruction::Say(text) => say(&self.filled(text))?,
            Instruction::Work(time) => sleep(*time),
            Instruction::Edit { path, text } => {
                self.write(path, text, OpenOptions::new().write(true).create(true).truncate(true))?;
            }
            Instruction::Append { path, text } => {
                self.write(path, text, OpenOptions::new().append(true).create(true))?;
            }
            Instruction::Touch(path) => {
                self.open(path, OpenOptions::new().append(true).create(true))?;
            }
            Instruction::Commit(message) => return self.commit(&self.filled(message)),
            Instruction::Done(None) => return self.run(&["gt", "done"]),
            Instruction::Done(Some(status)) => {
                return self.run(&["gt", "done", "--status", status]);
            }
            Instruction::HandOff(note) => {
                let note = note.as_ref().map(|note| self.filled(note));
                let words: Vec<&str> =
                    note.iter().flat_map(|note| ["--message", note.as_str()]).collect();
                let handed_over = self.run(&[&["gt", "handoff"], words.as_slice()].concat())?;
                if handed_over.is_break() {
                    return Ok(handed_over);
                }
                // An action now would be cut off in the middle.
                return self.one(&Instruction::Hang);
            }
            Instruction::Read(path) => {
                let typed = terminal::read_typed().map_err(|source| OperationError::File {
                    action: "read",
                    path: "/dev/tty".into(),
                    source,
                })?;
                self.write_as_it_is(path, &typed, OpenOptions::new().append(true).create(true))?;
            }
            Instruction::Step(id) => return self.run(&["gt", "step", "done", id]),
            Instruction::Run(argv) => {
                let argv: Vec<String> = argv.iter().map(|word| self.filled(word)).collect();
                return self.run(&argv.iter().map(String::as_str).collect::<Vec<_>>());
            }
            Instruction::Fail(code) => return Ok(ControlFlow::Break(*code)),
            Instruction::Hang => loop {
                self.wait()?;
            },
            Instruction::Crash => process::kill_this_process(),
            Instruction::IgnoreTerm => {
                let (program, arguments) = &self.stage.again;
                let place = self.done.to_string();
                let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                arguments.push(&place);
                return Err(process::exec_ignoring_term(program, &arguments).into());
            }
            Instruction::Limit(wait) => say(&limit_message(*wait))?,
            Instruction::Flood(megabytes) => {
                // A megabyte at a time, in lines of a kilobyte.
                let lines = vec!["x".repeat(1023); 1024].join("\n");
                for _ in 0..*megabytes {
                    say(&lines)?;
                }
            }
            Instruction::WaitFor(path) => {
                let path = self.path(path);
                while !path.exists() {
                    self.wait()?;
                }
            }
            // The caller walks through the instructions, and goes into these.
            Instruction::Repeat { .. } | Instruction::First(_) => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn filled(&self, text: &str) -> String {
        text.replace("{bead}", &self.stage.bead).replace("{run}", &self.stage.run)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.stage.directory.join(self.filled(path))
    }

    fn open(&self, path: &str, options: &OpenOptions) -> Result<File> {
        let path = self.path(path);
        let opened = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| options.open(&path));
        opened.map_err(|source| OperationError::File { action: "write", path, source })
    }

    fn write(&self, path: &str, text: &str, options: &OpenOptions) -> Result<()> {
        self.write_as_it_is(path, &self.filled(text), options)
    }

    fn write_as_it_is(&self, path: &str, text: &str, options: &OpenOptions) -> Result<()> {
        let mut file = self.open(path, options)?;
        let written = file.write_all(format!("{text}\n").as_bytes());
        let failed =
            |source| OperationError::File { action: "write", path: self.path(path), source };
        written.map_err(failed)
    }

    /// Commits as the author that the environment names, else as itself.
    fn commit(&self, message: &str) -> Result<ControlFlow<u8>> {
        if let ControlFlow::Break(code) = self.run(&["git", "add", "--all"])? {
            return Ok(ControlFlow::Break(code));
        }
        let name = ["-c", "user.name=scripted", "-c", "user.email=scripted@localhost"];
        let commit = ["commit", "--quiet", "--allow-empty", "--message", message];
        self.run(&[&["git"] as &[&str], &name, &commit].concat())
    }

    fn run(&self, argv: &[&str]) -> Result<ControlFlow<u8>> {
        let code = process::run_along(argv, &self.stage.directory)?;
        if code == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        (self.stage.say)(&format!("{} ended with exit status {code}", argv.join(" ")))?;
        Ok(ControlFlow::Break(code))
    }

    /// Waits a little, and not beyond the end of the place it is in.
    fn wait(&self) -> Result<()> {
        sleep(SCRIPT_POLL_INTERVAL);
        let directory: &Path = &self.stage.directory;
        if directory.exists() {
            return Ok(());
        }
        Err(OperationError::rejected(format!("{} is gone", directory.display())))
    }
}
