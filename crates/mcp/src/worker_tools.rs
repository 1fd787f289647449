//! The tools of a worker: its own run alone.

use std::time::Duration;

use gt_beads::beads::{self, NewBead, show};
use gt_beads::messages::{self, Escalation, MessageToSend};
use gt_beads::{notes, steps};
use gt_core::bead::{Direction, NewDependency};
use gt_core::message::Severity;
use gt_core::schedule::{DoneStatus, RunId};
use gt_core::{DependencyType, IssueType, Message, MessageId, Priority};
use gt_daemon::finishing::finish_run;
use gt_execution::landing::{DoneRequest, DoneResult, WorkDelivery};
use gt_execution::trees::use_environment_of_supervisor;
use gt_execution::worker::{self, HandoffNote, PrimeOutput};

use crate::answers::{AnswerLines, ToolAnswer, ToolFailure, bead_line, counted, shortened};
use crate::arguments::ToolArguments;
use crate::caller::McpCaller;
use crate::catalog::{ENDINGS, MAIL_ACTIONS, SEVERITIES};

/// How long an answer is waited for unless said otherwise, in seconds. Clients give up on a tool after a minute.
const WAIT_SECONDS: u64 = 50;
/// The longest wait, in seconds.
const WAIT_SECONDS_MAX: u64 = 600;
/// How many comments of a bead are shown.
const COMMENTS_SHOWN: usize = 10;

/// The next part of a call.
#[derive(Debug)]
pub(crate) enum ToolStep {
    /// It is over.
    Answer(String),
    /// A person is asked, and the answer is waited for at most so long.
    AwaitAnswer(MessageId, Duration),
}

/// Calls a tool of the worker.
pub(crate) fn call(
    caller: &McpCaller,
    name: &str,
    mut arguments: ToolArguments,
) -> Result<ToolStep, ToolFailure> {
    let run = own_run(caller)?;
    if name == "ask" {
        return ask(caller, &mut arguments);
    }
    let answer = match name {
        "next" => next(caller, &arguments),
        "show" => show_bead(caller, &run, &mut arguments),
        "step_done" => step_done(caller, &mut arguments),
        "comment" => comment(caller, &run, &mut arguments),
        "create" => create(caller, &run, &mut arguments),
        "mail" => mail(caller, &mut arguments),
        "escalate" => escalate(caller, &mut arguments),
        "handoff" => handoff(caller, &mut arguments),
        "done" => done(caller, &run, &mut arguments),
        other => Err(ToolFailure::new(format!("there is no tool {other}"))),
    };
    answer.map(ToolStep::Answer)
}

fn own_run(caller: &McpCaller) -> Result<RunId, ToolFailure> {
    caller.town.acting_run().cloned().ok_or_else(|| {
        ToolFailure::new(
            "this is not the worker of a run: GT_RUN and GT_RUN_TOKEN_FILE are missing",
        )
    })
}

fn next(caller: &McpCaller, arguments: &ToolArguments) -> ToolAnswer {
    arguments.finish()?;
    let role = caller.address.as_deref();
    match worker::prime(&caller.town, role, None)? {
        PrimeOutput::Worker(briefing) => {
            let text = briefing.text();
            messages::mark_seen(&caller.town, role, &briefing.messages)?;
            Ok(shortened(text))
        }
        PrimeOutput::Other(_) => Err(ToolFailure::new(
            "there is nothing to do: this is not the worker of a run; end your session",
        )),
    }
}

fn show_bead(caller: &McpCaller, run: &RunId, arguments: &mut ToolArguments) -> ToolAnswer {
    let bead = arguments.text("bead")?.unwrap_or_else(|| run.bead.to_string());
    arguments.finish()?;
    bead_text(caller, &bead)
}

/// A bead with its texts, its dependencies and its last comments.
pub(crate) fn bead_text(caller: &McpCaller, bead: &str) -> ToolAnswer {
    let found = show(&caller.town, &[bead.to_owned()])?.into_iter().next();
    let details = found.ok_or_else(|| ToolFailure::new(format!("there is no bead {bead}")))??;
    let bead = &details.row.bead;
    let mut lines = AnswerLines::default();
    lines.push(bead_line(bead));
    for (name, text) in [
        ("Description", &bead.description),
        ("Design", &bead.design),
        ("Acceptance", &bead.acceptance_criteria),
        ("Notes", &bead.notes),
        ("Closed because", &bead.close_reason),
    ] {
        if !text.is_empty() {
            lines.push(format!("{name}: {text}"));
        }
    }
    if !details.row.labels.is_empty() {
        lines.push(format!("Labels: {}", details.row.labels.join(", ")));
    }
    for (edge, target) in &details.dependencies {
        let target = target.as_ref().map_or_else(|| edge.target.to_string(), bead_line);
        lines.push(format!("{}: {target}", edge.kind));
    }
    for (edge, dependent) in &details.dependents {
        lines.push(format!("{} of: {}", edge.kind, bead_line(dependent)));
    }
    let older = details.comments.len().saturating_sub(COMMENTS_SHOWN);
    if older > 0 {
        lines.push(format!("({} before these)", counted(older, "comment")));
    }
    for comment in details.comments.iter().skip(older) {
        lines.push(format!("Comment by {}: {}", comment.author, comment.text));
    }
    Ok(lines.done())
}

fn step_done(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    let (names, force) = (arguments.required_texts("steps")?, arguments.flag("force")?);
    arguments.finish()?;
    let done = steps::finish_steps(&caller.town, None, &names, force)?;
    let mut lines = AnswerLines::default();
    for (name, title) in &done.newly_done {
        lines.push(format!("Done: {name}: {title}"));
    }
    for name in &done.already {
        lines.push(format!("{name} was done before"));
    }
    lines.push(format!("{} of {}", done.progress, done.run));
    let next = match &done.next {
        Some((name, title)) if done.fresh_session_due => {
            format!("a fresh session goes on with {name}: {title}")
        }
        Some((name, title)) => format!("{name}: {title}"),
        None => "call done".to_owned(),
    };
    if done.fresh_session_due {
        worker::begin_fresh_session(&caller.town, &done.run)?;
    }
    Ok(lines.next(next))
}

fn comment(caller: &McpCaller, run: &RunId, arguments: &mut ToolArguments) -> ToolAnswer {
    let text = arguments.required_text("text")?;
    let bead = arguments.text("bead")?.unwrap_or_else(|| run.bead.to_string());
    arguments.finish()?;
    let made = notes::comment(&caller.town, &bead, &text, None)?;
    Ok(format!("Commented on {}", made.bead))
}

fn create(caller: &McpCaller, run: &RunId, arguments: &mut ToolArguments) -> ToolAnswer {
    let title = arguments.required_text("title")?;
    let description = arguments.text("description")?.unwrap_or_default();
    let issue_type = arguments.text("type")?;
    let issue_type = issue_type.as_deref().map(IssueType::parse).transpose()?;
    let priority = arguments.number("priority", 4)?;
    let priority = match priority.and_then(|number| i64::try_from(number).ok()) {
        Some(number) => Priority::new(number)?,
        None => Priority::default(),
    };
    let is_separate = arguments.flag("separate")?;
    arguments.finish()?;
    let origin = NewDependency {
        kind: DependencyType::trusted("discovered-from"),
        direction: Direction::DependsOn,
        other: run.bead.to_string(),
        metadata: String::new(),
    };
    let new = NewBead {
        title,
        description,
        issue_type,
        check_type: true,
        priority,
        parent: (!is_separate).then(|| run.bead.to_string()),
        links: if is_separate { vec![origin] } else { Vec::new() },
        ..NewBead::default()
    };
    let made = beads::create(&caller.town, &new, false)?;
    let mut lines = AnswerLines::default();
    lines.push(format!("Created {}", bead_line(&made.bead)));
    Ok(lines.next("go on with your own bead; a person decides when this one starts"))
}

fn severity(arguments: &mut ToolArguments) -> Result<Severity, ToolFailure> {
    let severity = arguments.choice("severity", SEVERITIES)?.unwrap_or("medium");
    Ok(Severity::parse(severity)?)
}

fn ask(caller: &McpCaller, arguments: &mut ToolArguments) -> Result<ToolStep, ToolFailure> {
    let (question, earlier) = (arguments.text("question")?, arguments.text("message")?);
    let severity = severity(arguments)?;
    let seconds = arguments.number("wait_seconds", WAIT_SECONDS_MAX)?.unwrap_or(WAIT_SECONDS);
    arguments.finish()?;
    let message = match (question, earlier) {
        (Some(words), None) => send_question(caller, words, severity)?.id,
        (None, Some(earlier)) => own_question(caller, &earlier)?,
        _ => {
            return Err(ToolFailure::new(
                "say either question, or the message of an earlier question",
            ));
        }
    };
    Ok(ToolStep::AwaitAnswer(message, Duration::from_secs(seconds)))
}

fn send_question(
    caller: &McpCaller,
    words: String,
    severity: Severity,
) -> Result<Message, ToolFailure> {
    let escalation = Escalation { bead: None, words, severity };
    Ok(messages::escalate(&caller.town, caller.address.as_deref(), &escalation)?)
}

/// A message that this worker sent: the answers to others are none of its business.
fn own_question(caller: &McpCaller, id: &str) -> Result<MessageId, ToolFailure> {
    let message = messages::show(&caller.town, id)?;
    let run = own_run(caller)?;
    if message.bead.as_ref() == Some(&run.bead) {
        return Ok(message.id);
    }
    Err(ToolFailure::new(format!("{} is no question of {run}", message.id)))
}

/// The answer to a question, if it has come. It counts as read afterwards.
pub(crate) fn answer_to(
    caller: &McpCaller,
    question: MessageId,
) -> Result<Option<String>, ToolFailure> {
    let role = caller.address.as_deref();
    let Some(answer) = messages::answer_to(&caller.town, role, question)? else { return Ok(None) };
    let text = message_text(&answer);
    messages::mark_seen(&caller.town, role, &[answer])?;
    Ok(Some(shortened(text)))
}

/// The answer to a call whose question was not answered in time.
pub(crate) fn unanswered(question: MessageId) -> String {
    format!(
        "{question} is not answered yet.\nNext: go on with other work and call ask with message {question}, or call done \
         with status escalated if nothing can be done without the answer"
    )
}

fn message_text(message: &Message) -> String {
    let subject = match message.subject.as_str() {
        "" => String::new(),
        subject => format!(" \"{subject}\""),
    };
    format!("{} from {}{subject}: {}", message.id, message.from, message.body)
}

fn mail(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    let action = arguments.choice("action", MAIL_ACTIONS)?;
    let action = action.ok_or_else(|| ToolFailure::new("action is missing"))?;
    let (town, role) = (&caller.town, caller.address.as_deref());
    if action == "inbox" {
        arguments.finish()?;
        let inbox = messages::inbox(town, role, None, None)?;
        if inbox.messages.is_empty() {
            return Ok("Nothing is unread".to_owned());
        }
        let mut lines = AnswerLines::default();
        for message in &inbox.messages {
            lines.push(message_text(message));
        }
        messages::mark_seen(town, role, &inbox.messages)?;
        return Ok(lines.done());
    }
    let body = arguments.text("text")?.unwrap_or_default();
    let letter = MessageToSend { subject: arguments.text("subject")?, body, nudge: false };
    let sent = if action == "send" {
        let to = arguments.required_text("to")?;
        arguments.finish()?;
        messages::send(town, role, &to, &letter)?
    } else {
        let answered = arguments.required_text("message")?;
        arguments.finish()?;
        messages::reply(town, role, &answered, &letter)?
    };
    Ok(format!("Sent {} to {}", sent.id, sent.to))
}

fn escalate(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    let (words, severity) = (arguments.required_text("text")?, severity(arguments)?);
    arguments.finish()?;
    let asked = send_question(caller, words, severity)?;
    let mut lines = AnswerLines::default();
    lines.push(format!("Asked for a person as {} ({})", asked.id, severity.as_str()));
    Ok(lines.next(format!("go on; ask with message {} waits for the answer", asked.id)))
}

fn handoff(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    let note = HandoffNote { subject: None, body: arguments.required_text("note")? };
    arguments.finish()?;
    let handed_off = worker::hand_off(&caller.town, caller.address.as_deref(), None, &note)?;
    let run = handed_off.run;
    let mut lines = AnswerLines::default();
    lines.push(match handed_off.over_limit {
        Some(limit) => format!("{run} ends here: it is over its limit of {}", limit.as_str()),
        None => format!("A fresh session goes on with {run}"),
    });
    Ok(lines.next("end your session"))
}

fn done(caller: &McpCaller, run: &RunId, arguments: &mut ToolArguments) -> ToolAnswer {
    let message = arguments.text("message")?;
    let status = arguments.choice("status", ENDINGS)?.unwrap_or("completed");
    let no_changes = arguments.flag("no_changes")?;
    arguments.finish()?;
    let request = DoneRequest {
        run,
        said: DoneStatus::parse(status)?,
        message: message.as_deref(),
        no_changes,
    };
    use_environment_of_supervisor(&caller.town, run);
    let done = finish_run(&caller.town, &request, caller.program.as_deref())?;
    let mut lines = AnswerLines::default();
    lines.push(format!("{} is over ({status}): {}", done.run, delivery(&done)));
    Ok(lines.next("end your session"))
}

fn delivery(done: &DoneResult) -> String {
    match &done.delivery {
        WorkDelivery::Nothing => "nothing had changed".to_owned(),
        WorkDelivery::Landed { branch, commit } => format!("landed on {branch} as {commit}"),
        WorkDelivery::Kept { branch, pushed: true } => format!("pushed as {branch}"),
        WorkDelivery::Kept { branch, pushed: false } => format!("kept on {branch}"),
        WorkDelivery::Merging(request) => request.state_reason(),
        WorkDelivery::Saved { why, branch, .. } => {
            format!("the tree is saved as it is, because {why}; commits are on {branch}")
        }
        WorkDelivery::Left { tree, why } => format!("the work stays in {tree}: {why}"),
    }
}
