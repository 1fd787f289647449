//! Reports of agents while they work: how much of the windows of a subscription is used, and, in the session files of Codex,
//! the usage of a session that prints its total only at the end of a turn.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gt_core::cost::{SeenWindow, UsageRecord};
use gt_core::schedule::Run;
use gt_transcripts::{CodexSession, LINE_BYTES_MAX, TranscriptEvent, TranscriptKind};

use super::transcript::{RunTranscript, has_plain_output};
use super::usage::{output_record, session_begun};
use gt_scheduling::run_transitions::open_output;
use gt_town::{Environment, Town};

/// How much of a session file is read at once. The rest follows with the next look.
const READ_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Session files lie in directories for year, month and day. A session that began before midnight is in the day before.
const DIRECTORIES_PER_LEVEL_MAX: usize = 2;
/// The most characters of the name of a session.
const NAME_CHARACTERS_MAX: usize = 64;

/// Reads what the agents of a run tell.
pub(super) struct SessionReports<'a> {
    town: &'a Town,
    run: &'a Run,
    state: Mutex<ReportState>,
}

#[derive(Default)]
struct ReportState {
    /// Where Codex keeps its files.
    codex_home: Option<PathBuf>,
    transcript: Option<RunTranscript>,
    /// The number of the session that the output is in.
    session: u32,
    files: Vec<SessionFile>,
    /// The windows as they were told last.
    windows: Vec<SeenWindow>,
}

impl<'a> SessionReports<'a> {
    /// Of a run whose agents have not begun.
    pub(super) fn of(town: &'a Town, run: &'a Run) -> Self {
        let state = ReportState { session: 1, ..ReportState::default() };
        Self { town, run, state: Mutex::new(state) }
    }

    /// Notes where an agent with this environment keeps its files.
    pub(super) fn begin_session(&self, environment: &[(String, String)]) {
        let inherited = Environment::from_process();
        let value = |name: &str| {
            let own = environment.iter().rev().find(|(own, _)| own == name);
            own.map(|(_, value)| value.as_str()).or_else(|| inherited.get(name)).map(PathBuf::from)
        };
        let home = value("CODEX_HOME").or_else(|| Some(value("HOME")?.join(".codex")));
        self.state.lock().unwrap_or_else(PoisonError::into_inner).codex_home = home;
    }

    /// Reads on. Returns everything that session files say about the usage so far, and the windows as they were told last.
    pub(super) fn look(&self) -> (Vec<UsageRecord>, Vec<SeenWindow>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.transcript.is_none() && !has_plain_output(self.town, self.run) {
            state.transcript = RunTranscript::of(self.town, self.run).ok();
        }
        // An output that cannot be read now is read with the next look.
        while let Some(Ok(Some(events))) = state.transcript.as_mut().map(RunTranscript::read) {
            for event in events {
                state.note(event, self.town);
            }
        }
        let home = state.codex_home.clone();
        for file in &mut state.files {
            file.read(home.as_deref());
        }
        let told: Vec<SeenWindow> =
            state.files.iter().flat_map(|file| file.content.windows().to_vec()).collect();
        for seen in told {
            state.see(seen);
        }
        (state.files.iter().filter_map(SessionFile::record).collect(), state.windows.clone())
    }
}

impl ReportState {
    fn note(&mut self, event: TranscriptEvent, town: &Town) {
        match event.kind {
            TranscriptKind::Text(text) => {
                self.session = session_begun(&text).unwrap_or(self.session);
            }
            TranscriptKind::Session(name) if is_plain(&name) => {
                self.files.push(SessionFile::of(self.session, name));
            }
            TranscriptKind::Window(window) => {
                let seen_at = event.at.unwrap_or_else(|| town.now());
                self.see(SeenWindow { window, seen_at });
            }
            _ => {}
        }
    }

    fn see(&mut self, seen: SeenWindow) {
        let known = self.windows.iter().position(|known| known.window.name == seen.window.name);
        match known {
            Some(place) if self.windows[place].seen_at > seen.seen_at => {}
            Some(place) => self.windows[place] = seen,
            None => self.windows.push(seen),
        }
    }
}

/// Whether a name can be a part of the name of a file.
fn is_plain(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !name.is_empty() && name.len() <= NAME_CHARACTERS_MAX && name.chars().all(is_part)
}

/// The file of one session of Codex.
struct SessionFile {
    session: u32,
    /// The name that the session has in the output.
    name: String,
    path: Option<PathBuf>,
    /// How much of it was read.
    offset: u64,
    /// The beginning of a line whose end is not written yet.
    line: Vec<u8>,
    content: CodexSession,
}

impl SessionFile {
    fn of(session: u32, name: String) -> Self {
        let content = CodexSession::default();
        Self { session, name, path: None, offset: 0, line: Vec::new(), content }
    }

    /// Reads what was written since. A file that is not there, or cannot be read, tells nothing.
    fn read(&mut self, home: Option<&Path>) {
        if self.path.is_none() {
            let ending = format!("-{}.jsonl", self.name);
            self.path = home.and_then(|home| find_file(&home.join("sessions"), &ending, 3));
        }
        let Some(path) = &self.path else { return };
        let Ok(mut file) = open_output(path) else { return };
        let mut bytes = Vec::new();
        if file.seek(SeekFrom::Start(self.offset)).is_err() {
            return;
        }
        // Bytes that were read before a failure count.
        let _ = file.take(READ_BYTES_MAX).read_to_end(&mut bytes);
        self.offset = self.offset.saturating_add(bytes.len() as u64);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.split_last() {
                Some((b'\n', rest)) => {
                    self.line.extend_from_slice(rest);
                    self.content.read_line(&self.line);
                    self.line.clear();
                }
                // A line that is too long is cut, and then it is no JSON.
                _ if self.line.len() + piece.len() > LINE_BYTES_MAX => self.line.clear(),
                _ => self.line.extend_from_slice(piece),
            }
        }
    }

    fn record(&self) -> Option<UsageRecord> {
        // The file is another record of the same output. It names the model, and the output does not.
        Some(output_record(self.session, &self.content.usage()?))
    }
}

/// Finds a file whose name ends like this, so many levels below a directory. Of the directories of a level only the last
/// ones by name are looked at.
fn find_file(directory: &Path, ending: &str, levels: usize) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?;
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    if levels == 0 {
        let name = names.into_iter().find(|name| name.ends_with(ending))?;
        return Some(directory.join(name));
    }
    names.sort_unstable();
    let last = names.iter().rev().take(DIRECTORIES_PER_LEVEL_MAX);
    last.map(|name| directory.join(name)).find_map(|below| find_file(&below, ending, levels - 1))
}
