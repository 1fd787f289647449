//! Programs and web services that receive notices.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_core::hexadecimal::percent_encoded;
use gt_core::schedule::Notice;
use gt_core::{WebAddress, limits};
use gt_executors::background::{LimitedProgram, ProgramEnd};
use gt_executors::web::{Method, RequestBody, WebAnswer, WebRequest, signature};

use super::deliver::SEND_TIME_MAX;
use super::{NoticeTarget, Notifier, SendFailure};
use gt_town::town::DIRECTORY;
use gt_town::{Town, with_causes};

/// How long a web service may take; shorter than a program, which may start another one.
const WEBHOOK_TIME_MAX: Duration = Duration::from_secs(10);
/// How much of the message is in the program's environment, in characters; all of it is in its input.
const MESSAGE_CHARACTERS_MAX: usize = 1_000;

/// The real programs and web services.
#[derive(Debug, Clone)]
pub struct NoticeSender {
    /// The town's directory, if it has one.
    root: Option<PathBuf>,
}

impl NoticeSender {
    /// The receivers that the settings of a town name.
    pub fn of(town: &Town) -> Self {
        Self { root: town.has_directory().then(|| town.root().to_owned()) }
    }
}

impl Notifier for NoticeSender {
    fn send(&self, target: &NoticeTarget, notice: &Notice) -> Result<(), SendFailure> {
        match target {
            NoticeTarget::Command(words) => run(self.root.as_deref(), words, notice),
            NoticeTarget::Webhook { address, secret } => post(address, secret, notice),
        }
    }
}

fn run(root: Option<&Path>, words: &[String], notice: &Notice) -> Result<(), SendFailure> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(SendFailure::Unreachable("notify.command is not set".to_owned()));
    };
    let field = |name: &str| {
        let text = notice.payload.string_field(name).unwrap_or_default();
        text.replace('\0', " ").chars().take(MESSAGE_CHARACTERS_MAX).collect::<String>()
    };
    let fields = [
        ("GT_NOTICE_KEY", notice.key.clone()),
        ("GT_NOTICE_KIND", field("kind")),
        ("GT_NOTICE_MESSAGE", field("message")),
        ("GT_BEAD", field("bead")),
        ("GT_RIG", field("rig")),
        ("GT_RUN", field("run")),
    ];
    let place = root.map(|root| ("GT_TOWN_ROOT", root.display().to_string()));
    let environment: Vec<(&str, &str)> =
        fields.iter().chain(&place).map(|(name, value)| (*name, value.as_str())).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let input = format!("{}\n", notice.payload);
    // A town without a directory has the command run in the temporary directory.
    let elsewhere = std::env::temp_dir();
    let scratch = root.map_or_else(|| elsewhere.clone(), |root| root.join(DIRECTORY));
    let ended = LimitedProgram {
        program: Path::new(program),
        arguments: &arguments,
        directory: root.unwrap_or(&elsewhere),
        environment: &environment,
        input: input.as_bytes(),
        scratch: &scratch,
        limit: SEND_TIME_MAX,
        words_bytes_max: limits::HOOK_WORDS_BYTES_MAX,
    }
    .run();
    match ended {
        Ok(ProgramEnd::Well) => Ok(()),
        Ok(ProgramEnd::Badly { status, words }) if words.is_empty() => {
            Err(SendFailure::Refused(format!("{program}: {status}")))
        }
        Ok(ProgramEnd::Badly { status, words }) => {
            Err(SendFailure::Refused(format!("{program}: {status}: {words}")))
        }
        Ok(ProgramEnd::TooLate) => Err(SendFailure::Unreachable(format!(
            "{program}: ended because it took longer than {}",
            gt_core::time::format_duration(SEND_TIME_MAX)
        ))),
        Err(error) => Err(SendFailure::Unreachable(with_causes(&error))),
    }
}

fn post(address: &WebAddress, secret: &str, notice: &Notice) -> Result<(), SendFailure> {
    let body = notice.payload.as_str().as_bytes();
    let signed = format!("sha256={}", signature(secret, body));
    let key = header_value(&notice.key);
    let mut headers = vec![("Idempotency-Key", key.as_str())];
    if !secret.is_empty() {
        headers.push(("X-GT-Signature", signed.as_str()));
    }
    let asked = WebRequest {
        method: Method::Post,
        address,
        headers: &headers,
        content: Some(RequestBody { kind: "application/json", body }),
        limit: WEBHOOK_TIME_MAX,
        interrupt: None,
    };
    let answer = asked.tell().map_err(|error| SendFailure::Unreachable(with_causes(&error)))?;
    judge(address, &answer)
}

/// The meaning of an answer: these few are about the notice, all others about the service.
fn judge(address: &WebAddress, answer: &WebAnswer) -> Result<(), SendFailure> {
    let said = match (answer.words.as_str(), &answer.location) {
        (_, Some(location)) if (300..400).contains(&answer.status) => format!(
            " and points to {location}; redirects are not followed, so set notify.webhook to where it \
             leads"
        ),
        ("", _) => String::new(),
        (words, _) => format!(": {words}"),
    };
    let why = || format!("{} answered {}{said}", address.origin(), answer.status);
    match answer.status {
        200..300 => Ok(()),
        400 | 409 | 413 | 415 | 422 => Err(SendFailure::Refused(why())),
        _ => Err(SendFailure::Unreachable(why())),
    }
}

/// A key as the value of a header, the same for the same key.
fn header_value(key: &str) -> String {
    percent_encoded(key, |byte| byte.is_ascii_graphic())
}
