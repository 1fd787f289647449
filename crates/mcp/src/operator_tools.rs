//! The tools of an operator: the town.

use gt_api::TranscriptEventDocument;
use gt_beads::beads::{self, Close, PlanOptions, create_all, ready};
use gt_beads::convoys::{self, ConvoyFilter};
use gt_beads::messages::{self, MessageToSend};
use gt_core::cost::CostGrouping;
use gt_core::merging::{MergeRequest, MergeRequestId, ReviewDecision};
use gt_core::schedule::RunId;
use gt_core::time::{format_duration, parse_duration};
use gt_core::{RigSlug, Timestamp};
use gt_daemon::views::{self, RunRowsRequest};
use gt_daemon::{daemon, inbox as town_inbox, slinging};
use gt_execution::merge_queue::{self, RequestReview};
use gt_execution::runs::{self, RunTranscript, Unslung};
use gt_records::parse_plan_lines;
use gt_scheduling::convoy_planning::{self, StageRequest, Staged};
use gt_scheduling::costs::costs;
use gt_scheduling::queue;
use gt_scheduling::schedule::{
    self, ConvoyChoice, SlingEntry, SlingOptions, SlingOutcome, SlingReport, SlingRequest,
};
use gt_town::tree_paths::lacks_branch;
use gt_town::{BeadFilter, Readiness, Town};

use crate::answers::{AnswerLines, ToolAnswer, ToolFailure, bead_line, counted};
use crate::arguments::ToolArguments;
use crate::caller::McpCaller;
use crate::catalog::{COST_GROUPINGS, DECISIONS, STATUS_VIEWS};
use crate::worker_tools::bead_text;

/// How many rows a list has unless said otherwise.
const ROWS_SHOWN: u64 = 20;
/// The most rows of a list.
const ROWS_MAX: u64 = 200;
/// How many lines of a log are shown unless said otherwise.
const LOG_LINES: u64 = 40;
/// How many lines of an output are read for each line of a log.
const OUTPUT_LINES_PER_LINE: usize = 4;
/// The longest text of an event in a log, in characters.
const EVENT_CHARS_MAX: usize = 300;

/// Calls a tool of the operator.
pub(crate) fn call(caller: &McpCaller, name: &str, mut arguments: ToolArguments) -> ToolAnswer {
    let arguments = &mut arguments;
    match name {
        "status" => status(caller, arguments),
        "find" => find(caller, arguments),
        "show" => show(caller, arguments),
        "why" => why(caller, arguments),
        "create" => create(caller, arguments),
        "plan" => plan(caller, arguments),
        "sling" => sling(caller, arguments),
        "launch" => launch(caller, arguments),
        "inbox" => inbox(caller, arguments),
        "decide" => decide(caller, arguments),
        "run_log" => run_log(caller, arguments),
        "pause" => pause(caller, arguments),
        other => Err(ToolFailure::new(format!("there is no tool {other}"))),
    }
}

/// Refuses a change to a client whose token only reads.
fn require_operate(caller: &McpCaller) -> Result<(), ToolFailure> {
    if caller.rights.operate {
        return Ok(());
    }
    Err(ToolFailure::new(
        "this token may only read: a change needs the scope operate (gt token create --scope operate)",
    ))
}

fn rig_of(town: &Town, name: Option<String>) -> Result<Option<RigSlug>, ToolFailure> {
    let Some(name) = name else { return Ok(None) };
    Ok(Some(town.read(|reader| gt_town::rig_names::require(reader, &name))?.slug))
}

fn status(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    let view = arguments.choice("view", STATUS_VIEWS)?.unwrap_or("town");
    let (rig, by) = (arguments.text("rig")?, arguments.choice("by", COST_GROUPINGS)?);
    let since = arguments.text("since")?;
    arguments.finish()?;
    let rig = rig_of(&caller.town, rig)?;
    match view {
        "runs" => running(&caller.town, rig),
        "convoys" => under_way(&caller.town),
        "merge_queue" => merging(&caller.town, rig.as_ref()),
        "cost" => cost(&caller.town, by.unwrap_or("day"), since.as_deref()),
        _ => town_status(&caller.town),
    }
}

fn town_status(town: &Town) -> ToolAnswer {
    let head = views::town_head(town, env!("CARGO_PKG_VERSION"))?;
    let mut lines = AnswerLines::default();
    let cap = head.cap.map_or_else(|| "no limit".to_owned(), |cap| cap.to_string());
    lines.push(format!(
        "{}: {} running (limit {cap}), {} scheduled, {} ready, {} blocked, rigs: {}",
        head.name,
        head.live,
        head.scheduled,
        head.ready,
        head.blocked,
        head.rigs.join(", ")
    ));
    if let Some(paused) = &head.paused {
        lines.push(format!("Paused by {}", paused.by));
    }
    if let Some(absence) = &head.daemon.absence {
        lines.push(format!("{}; {}", absence.text, absence.remedy));
    }
    for problem in &head.problems {
        lines.push(format!("Problem: {}", problem.text));
    }
    lines.push(format!(
        "Last 24 hours: {} tokens, {} dollars",
        head.spent_24h.tokens, head.spent_24h.cost
    ));
    Ok(match head.inbox {
        0 => lines.done(),
        count => {
            let rows = usize::try_from(count).unwrap_or(usize::MAX);
            lines.next(format!("inbox; {} a person", needs(rows)))
        }
    })
}

fn needs(count: usize) -> String {
    if count == 1 { "1 thing needs".to_owned() } else { format!("{count} things need") }
}

fn running(town: &Town, rig: Option<RigSlug>) -> ToolAnswer {
    let limit = usize::try_from(ROWS_MAX).unwrap_or(usize::MAX);
    let request = RunRowsRequest { live: Some(true), rig, limit, ..RunRowsRequest::default() };
    let page = views::run_rows(town, &request)?;
    let mut lines = AnswerLines::default();
    for row in &page.items {
        let step = row.step.as_ref().map(|step| format!(", {} of {} steps", step.done, step.total));
        let cost = row.cost.as_ref().map(|cost| format!(", {cost} dollars"));
        lines.push(format!(
            "{} [{}] by {}{}{}: {}",
            row.id,
            row.state,
            row.agent,
            step.unwrap_or_default(),
            cost.unwrap_or_default(),
            row.title
        ));
    }
    Ok(if lines.is_empty() { "Nothing runs".to_owned() } else { lines.done() })
}

fn under_way(town: &Town) -> ToolAnswer {
    let found = convoys::list(town, &ConvoyFilter::default())?;
    let mut lines = AnswerLines::default();
    for convoy in found.iter().map(views::convoy_document) {
        let failed =
            if convoy.failed > 0 { format!(", {} failed", convoy.failed) } else { String::new() };
        let paused = if convoy.paused { ", paused" } else { "" };
        lines.push(format!(
            "{} [{}] {} of {} done{failed}{paused}: {}",
            convoy.id, convoy.status, convoy.completed, convoy.total, convoy.title
        ));
    }
    Ok(if lines.is_empty() { "No convoy is under way".to_owned() } else { lines.done() })
}

fn merging(town: &Town, rig: Option<&RigSlug>) -> ToolAnswer {
    let (line, queues) = merge_queue::line(town)?;
    let mut lines = AnswerLines::default();
    for queue in queues.iter().filter(|queue| rig.is_none_or(|rig| *rig == queue.rig)) {
        if let Some((_, by)) = &queue.paused {
            lines.push(format!("The queue of {} to {} is paused by {by}", queue.rig, queue.target));
        }
        if let Some(red) = &queue.red {
            let (rig, target, check) = (&queue.rig, &queue.target, &red.check);
            lines.push(format!("{check} fails on {target} of {rig}: nothing lands there"));
        }
    }
    for entry in line.iter().filter(|entry| rig.is_none_or(|rig| *rig == entry.request.rig)) {
        let place = entry.position.map(|place| format!(" (place {place})")).unwrap_or_default();
        lines.push(format!("{}{place}: {}", entry.request.state_reason(), entry.title));
    }
    Ok(if lines.is_empty() { "The merge queue is empty".to_owned() } else { lines.done() })
}

fn cost(town: &Town, by: &str, since: Option<&str>) -> ToolAnswer {
    let grouping = CostGrouping::parse(by)?;
    let from = match since {
        None => Timestamp::from_nanos(0),
        Some(text) => match parse_duration(text) {
            Ok(ago) => town.now().minus(ago),
            Err(_) => Timestamp::parse(text)?,
        },
    };
    let day = |at: Timestamp| at.to_string().chars().take("2026-01-01".len()).collect();
    let report = costs(town, grouping, from, Timestamp::from_nanos(i64::MAX), day)?;
    let document = views::cost_document(grouping, &report);
    let mut lines = AnswerLines::default();
    let rows = usize::try_from(ROWS_MAX).unwrap_or(usize::MAX);
    for line in document.lines.iter().take(rows) {
        let name = if line.name.is_empty() { "-" } else { &line.name };
        lines.push(format!(
            "{name}: {} dollars, {} tokens, {} runs",
            line.cost, line.tokens, line.runs
        ));
    }
    let all = &document.total;
    lines.push(format!("all: {} dollars, {} tokens, {} runs", all.cost, all.tokens, all.runs));
    Ok(lines.done())
}

fn find(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    let (text, rig) = (arguments.text("text")?, arguments.text("rig")?);
    let limit = arguments.number("limit", ROWS_MAX)?.unwrap_or(ROWS_SHOWN);
    let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
    arguments.finish()?;
    let town = &caller.town;
    let rig = rig_of(town, rig)?;
    let mut lines = AnswerLines::default();
    let Some(text) = text else {
        let filter = BeadFilter {
            ready: Some(Readiness { now: town.now(), include_deferred: false }),
            include_templates: true,
            limit: Some(limit),
            rig,
            ..BeadFilter::default()
        };
        let (rows, more) = ready(town, &filter, None)?;
        for row in &rows {
            lines.push(bead_line(&row.bead));
        }
        if lines.is_empty() {
            return Ok("Nothing is ready.\nNext: why says why a bead is not running".to_owned());
        }
        if more {
            lines.push("There are more; set limit");
        }
        return Ok(lines.next("sling starts them"));
    };
    for hit in views::search(town, &text, limit)? {
        if rig.as_ref().is_some_and(|rig| hit.rig.as_deref() != Some(rig.as_str())) {
            continue;
        }
        lines.push(format!("{} {} [{}] {}", hit.kind, hit.id, hit.state, hit.title));
    }
    Ok(if lines.is_empty() { "Nothing was found".to_owned() } else { lines.next("show <id>") })
}

fn show(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    let id = arguments.required_text("id")?;
    arguments.finish()?;
    let town = &caller.town;
    if RunId::parse(&id).is_ok() {
        return run_text(town, &id);
    }
    if MergeRequestId::parse(&id).is_ok() {
        return request_text(town, &id);
    }
    let bead = town.read(|reader| gt_beads::lookup::require(town, reader, &id))?;
    if bead.issue_type.is_convoy() {
        return convoy_text(town, bead.id.as_str());
    }
    bead_text(caller, bead.id.as_str())
}

fn run_text(town: &Town, id: &str) -> ToolAnswer {
    let row = views::run_row(town, id)?;
    let mut lines = AnswerLines::default();
    lines.push(format!(
        "{} [{}] by {} on {}: {}",
        row.id, row.state, row.agent, row.host, row.title
    ));
    for (name, text) in [("Reason", &row.reason), ("Branch", &row.branch)] {
        if !text.is_empty() {
            lines.push(format!("{name}: {text}"));
        }
    }
    let optional = [
        ("Step", row.step.as_ref().and_then(|step| step.title.clone())),
        ("Last tool", row.last_tool.clone()),
        ("Last words", row.last_words.clone()),
        ("Cost", row.cost.as_ref().map(|cost| format!("{cost} dollars"))),
    ];
    for (name, text) in optional {
        if let Some(text) = text {
            lines.push(format!("{name}: {text}"));
        }
    }
    Ok(lines.next("run_log shows what its agent did"))
}

fn request_text(town: &Town, id: &str) -> ToolAnswer {
    let story = merge_queue::story(town, id)?;
    let mut lines = AnswerLines::default();
    lines.push(format!("{}: {}", story.request.id, story.title));
    lines.push(story.request.state_reason());
    if !story.request.detail.is_empty() {
        lines.push(&story.request.detail);
    }
    for review in &story.reviews {
        lines.push(format!("{} by {}: {}", review.decision.as_str(), review.actor, review.body));
    }
    Ok(lines.next(story.next_step()))
}

fn convoy_text(town: &Town, id: &str) -> ToolAnswer {
    let status = views::convoy_status_document(&views::current_convoy(town, id)?);
    let convoy = &status.convoy;
    let mut lines = AnswerLines::default();
    lines.push(format!(
        "{} [{}] {} of {} done: {}",
        convoy.id, convoy.status, convoy.completed, convoy.total, convoy.title
    ));
    for bead in &status.tracked {
        let reasons: Vec<&str> = bead.reasons.iter().map(|reason| reason.text.as_str()).collect();
        let reasons =
            if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) };
        lines.push(format!("{} [{}] {}{reasons}", bead.id, bead.state, bead.title));
    }
    Ok(lines.done())
}

fn why(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    let bead = arguments.required_text("bead")?;
    arguments.finish()?;
    let town = &caller.town;
    let why = queue::why(town, &bead)?;
    let document = views::why_document(&why, views::absence_for(town, &why)?);
    let mut lines = AnswerLines::default();
    lines.push(format!(
        "{} [{}] {}: {}",
        document.id, document.status, document.title, document.state
    ));
    if let Some(absence) = &document.daemon_absence {
        lines.push(format!("{}; {}", absence.text, absence.remedy));
    }
    for reason in &document.reasons {
        lines.push(format!("Because: {}. {}", reason.text, reason.remedy));
    }
    for cause in &document.causes {
        lines.push(format!(
            "Root cause: {} [{}] {}. {}",
            cause.id, cause.status, cause.title, cause.remedy
        ));
    }
    if let Some(run) = &why.run {
        lines.push(format!("Its run: {} [{}]", run.id, run.state.as_str()));
    }
    Ok(lines.done())
}

fn create(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    require_operate(caller)?;
    let drafts = arguments.required_objects("beads")?;
    let rig = arguments.text("rig")?;
    let dry_run = arguments.flag("dry_run")?;
    arguments.finish()?;
    let text: Vec<String> = drafts.iter().map(ToString::to_string).collect();
    let plan = parse_plan_lines("beads", &text.join("\n"))?;
    let options = PlanOptions { rig, dry_run, ..PlanOptions::default() };
    let made = create_all(&caller.town, &plan, &options)?;
    let mut lines = AnswerLines::default();
    let verb = if dry_run { "Would create" } else { "Created" };
    for (planned, made) in plan.beads().iter().zip(&made.beads) {
        let key = planned.draft.key.as_ref().map(|key| format!("{key} = ")).unwrap_or_default();
        lines.push(format!("{verb} {key}{}", bead_line(&made.bead)));
    }
    for absent in made.dependencies.iter().filter(|added| !added.target_exists) {
        let (bead, target) = (&absent.issue, &absent.target);
        lines.push(format!(
            "{bead} depends on {target}, which does not exist here and holds nothing up"
        ));
    }
    Ok(if dry_run {
        lines.next("create without dry_run")
    } else {
        lines.next("plan, then launch or sling")
    })
}

fn plan(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    let inputs = arguments.required_texts("ids")?;
    arguments.finish()?;
    let town = &caller.town;
    let request = StageRequest { inputs, ..StageRequest::default() };
    let staged =
        convoy_planning::preview(town, &request, &|rig, branch| lacks_branch(town, rig, branch))?;
    let lines = staged_lines(&staged);
    Ok(if staged.plan.has_errors() {
        lines.next("put right what is wrong, and plan again")
    } else {
        lines.next("launch with the same ids")
    })
}

fn staged_lines(staged: &Staged) -> AnswerLines {
    let mut lines = AnswerLines::default();
    let bead = |at: &usize| {
        let row = staged.beads.get(*at);
        row.map(|row| format!("{} [{}] {}", row.id, row.status, row.title)).unwrap_or_default()
    };
    for (number, wave) in staged.plan.waves.iter().enumerate() {
        lines.push(format!("Wave {}: {}", number + 1, counted(wave.len(), "bead")));
        for at in wave {
            lines.push(format!("  {}", bead(at)));
        }
    }
    for (at, gates) in &staged.plan.gated {
        let gates: Vec<&str> = gates.iter().map(gt_core::BeadId::as_str).collect();
        lines.push(format!("Behind {}: {}", gates.join(", "), bead(at)));
    }
    for finding in &staged.plan.findings {
        let kind = if finding.category.is_error() { "Error" } else { "Warning" };
        let fix = finding.suggested_fix.as_ref().map(|fix| format!("; {fix}")).unwrap_or_default();
        lines.push(format!("{kind}: {}: {}{fix}", finding.category, finding.message));
    }
    if let Some(estimate) = &staged.estimate {
        lines.push(format!("About {}", format_duration(estimate.remaining)));
    }
    if lines.is_empty() {
        lines.push("There is nothing to do in it");
    }
    lines
}

/// Schedules what a request names, and starts what may start if this process starts work.
fn carry_out(caller: &McpCaller, request: &SlingRequest) -> Result<SlingReport, ToolFailure> {
    Ok(match &caller.program {
        Some(program) => slinging::sling(&caller.town, request, program)?,
        None => schedule::sling(&caller.town, request)?,
    })
}

fn sling(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    require_operate(caller)?;
    let mut words = arguments.required_texts("beads")?;
    words.extend(arguments.text("target")?);
    let flags = SlingOptions {
        args: arguments.text("instructions")?,
        review: arguments.flag("review")?,
        ..SlingOptions::default()
    };
    let rehearsal = arguments.flag("dry_run")?;
    arguments.finish()?;
    let request = SlingRequest { arguments: words, flags, rehearsal, ..SlingRequest::default() };
    let report = carry_out(caller, &request)?;
    slung(caller, &report, AnswerLines::default(), rehearsal)
}

fn launch(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    require_operate(caller)?;
    let (inputs, title) = (arguments.required_texts("ids")?, arguments.text("title")?);
    let force = arguments.flag("force")?;
    arguments.finish()?;
    let town = &caller.town;
    let request = StageRequest { inputs, title, ..StageRequest::default() };
    let staged =
        convoy_planning::stage(town, &request, &|rig, branch| lacks_branch(town, rig, branch))?;
    let Some(convoy) = &staged.convoy else {
        return Err(ToolFailure::new(format!(
            "nothing was launched\n{}",
            staged_lines(&staged).done()
        )));
    };
    if staged.plan.to_override().next().is_some() && !force {
        return Err(ToolFailure::new(format!(
            "{convoy} stays staged\n{}",
            staged_lines(&staged).next("put it right, or launch with force")
        )));
    }
    let request = SlingRequest {
        arguments: vec![convoy.to_string()],
        travel: ConvoyChoice::Launched,
        ..SlingRequest::default()
    };
    let report = carry_out(caller, &request)?;
    let mut lines = AnswerLines::default();
    lines.push(format!("Launched {convoy}: {}", counted(staged.plan.waves.len(), "wave")));
    slung(caller, &report, lines, false)
}

/// The answer about beads that were slung; a refusal of one of them makes it a failure.
fn slung(
    caller: &McpCaller,
    report: &SlingReport,
    mut lines: AnswerLines,
    rehearsal: bool,
) -> ToolAnswer {
    let mut is_refused = false;
    let mut is_waiting = false;
    for entry in &report.entries {
        is_refused |=
            matches!(entry.outcome, SlingOutcome::Refused(_) | SlingOutcome::NotStarted(..));
        is_waiting |= matches!(entry.outcome, SlingOutcome::Scheduled(..));
        lines.push(entry_line(entry, rehearsal));
    }
    if let Some(pause) = &report.paused {
        lines.push(format!("Starts are paused by {}; pause with resume ends it", pause.by));
    } else if is_waiting
        && !rehearsal
        && let Some(warning) = daemon::absence_warning(&caller.town)
    {
        lines.push(warning);
    }
    if lines.is_empty() {
        lines.push("There was nothing to sling");
    }
    if is_refused { Err(ToolFailure::new(lines.done())) } else { Ok(lines.done()) }
}

fn entry_line(entry: &SlingEntry, rehearsal: bool) -> String {
    let said = match &entry.outcome {
        SlingOutcome::Started(run) => format!("started as {run}"),
        SlingOutcome::Scheduled(_, reasons) => {
            let verb = if rehearsal { "would be scheduled" } else { "scheduled" };
            let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
            if reasons.is_empty() {
                verb.to_owned()
            } else {
                format!("{verb}, waits: {}", reasons.join("; "))
            }
        }
        SlingOutcome::NotStarted(_, why) => format!("did not start: {why}"),
        SlingOutcome::Nothing(why) => format!("{why}; nothing to do"),
        SlingOutcome::Skipped(skip, why) if why.is_empty() => format!("skipped: {}", skip.as_str()),
        SlingOutcome::Skipped(_, why) => format!("skipped: {why}"),
        SlingOutcome::Refused(error) => format!("refused: {error}"),
    };
    format!("{}: {said}", entry.name)
}

fn inbox(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    let rig = arguments.text("rig")?;
    arguments.finish()?;
    let town = &caller.town;
    let rig = rig_of(town, rig)?;
    let mut items = town_inbox::inbox(town)?;
    items.retain(|item| rig.is_none() || item.rig == rig);
    let mut lines = AnswerLines::default();
    for item in &items {
        let words = item.context.message.as_ref().map(|message| format!(" \"{}\"", message.body));
        lines.push(format!(
            "{} {}: {}{}; {}",
            item.kind.as_str(),
            item.object,
            item.what,
            words.unwrap_or_default(),
            item.remedy
        ));
    }
    Ok(if lines.is_empty() { "Nothing needs a person".to_owned() } else { lines.next("decide") })
}

fn decide(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    let action = arguments.choice("action", DECISIONS)?;
    let action = action.ok_or_else(|| ToolFailure::new("action is missing"))?;
    let (id, text) = (arguments.required_text("id")?, arguments.text("text")?);
    arguments.finish()?;
    let town = &caller.town;
    if matches!(action, "approve" | "reject") {
        return review(caller, action, &id, &text.unwrap_or_default());
    }
    require_operate(caller)?;
    let said = |text: Option<String>| text.ok_or_else(|| ToolFailure::new("text is missing"));
    match action {
        "answer" => {
            let letter = MessageToSend { subject: None, body: said(text)?, nudge: false };
            let sent = messages::reply(town, None, &id, &letter)?;
            Ok(format!("Answered {id} with {} to {}", sent.id, sent.to))
        }
        "retry" => {
            for answer in schedule::retry(town, std::slice::from_ref(&id), true)? {
                answer?;
            }
            Ok(format!("{id} is tried again"))
        }
        "close" => {
            let how = Close { reasons: vec![said(text)?], ..Close::default() };
            for closed in beads::close(town, std::slice::from_ref(&id), &how)? {
                runs::end_processes_of(town, closed?.cancelled.as_ref());
            }
            Ok(format!("Closed {id}"))
        }
        "cancel" => match runs::unsling(town, &id)? {
            Unslung::Cancelled(_) | Unslung::Cleared(..) | Unslung::GivenUp(_) => {
                Ok(format!("{id} is neither scheduled nor running now"))
            }
            Unslung::Nothing(bead) => {
                Err(ToolFailure::new(format!("{bead} is neither scheduled nor running")))
            }
        },
        "retry_merge" => standing(town, &merge_queue::retry(town, &id)?),
        _ => standing(town, &merge_queue::cancel_request(town, &id)?),
    }
}

fn review(caller: &McpCaller, action: &str, id: &str, words: &str) -> ToolAnswer {
    if !caller.rights.review {
        return Err(ToolFailure::new(
            "this token may not review: that needs the scope review (gt token create --scope review)",
        ));
    }
    let decision = if action == "approve" {
        ReviewDecision::Approved
    } else if words.is_empty() {
        return Err(ToolFailure::new("text is missing: say what is to be changed"));
    } else {
        ReviewDecision::Rejected
    };
    let process = caller.process.as_ref();
    let review = RequestReview { decision, file: "", line: None, body: words, process };
    let town = &caller.town;
    let mut request = merge_queue::review(town, id, &review)?;
    if let Some(program) = caller.program.as_ref().filter(|_| action == "approve") {
        request = daemon::land_without_daemon(town, program, request)?;
    }
    standing(town, &request)
}

/// Where a request stands after a decision, and what moves it on.
fn standing(town: &Town, request: &MergeRequest) -> ToolAnswer {
    let story = merge_queue::story(town, &request.id.to_string())?;
    let request = &story.request;
    let mut lines = AnswerLines::default();
    lines.push(request.state_reason());
    let absence = daemon::absence_for_request(town, request)?;
    let next = absence.map_or_else(|| story.next_step(), |absence| absence.to_string());
    Ok(if next.is_empty() { lines.done() } else { lines.next(next) })
}

fn run_log(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    let run = arguments.required_text("run")?;
    let count = arguments.number("lines", ROWS_MAX)?.unwrap_or(LOG_LINES);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    arguments.finish()?;
    let town = &caller.town;
    let run = gt_beads::run_records::resolve(town, &run)?;
    let mut transcript = RunTranscript::of(town, &run)?;
    transcript.skip_to_last(count.saturating_mul(OUTPUT_LINES_PER_LINE))?;
    let mut events = Vec::new();
    while let Some(read) = transcript.read()? {
        events.extend(read);
    }
    events.extend(transcript.finish());
    let shown: Vec<String> = events
        .iter()
        .map(TranscriptEventDocument::from)
        .filter(|event| !matches!(event.kind, "usage" | "window" | "session"))
        .map(|event| event_line(&event))
        .collect();
    let mut lines = AnswerLines::default();
    lines.push(format!("{} [{}] by {}", run.id, run.state.as_str(), run.agent));
    for line in shown.iter().skip(shown.len().saturating_sub(count)) {
        lines.push(line);
    }
    Ok(lines.done())
}

fn event_line(event: &TranscriptEventDocument) -> String {
    let parts = [event.tool.as_deref(), event.about.as_deref(), event.text.as_deref()];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let short: String = text.chars().take(EVENT_CHARS_MAX).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{}: {}{more}", event.kind, short.replace('\n', " "))
}

fn pause(caller: &McpCaller, arguments: &mut ToolArguments) -> ToolAnswer {
    require_operate(caller)?;
    let resume = arguments.flag("resume")?;
    let (convoy, rig) = (arguments.text("convoy")?, arguments.text("merge_queue")?);
    arguments.finish()?;
    let town = &caller.town;
    let state = if resume { "resumed" } else { "paused" };
    match (convoy, rig) {
        (Some(_), Some(_)) => Err(ToolFailure::new("name a convoy or a merge queue, not both")),
        (Some(convoy), None) => {
            let (convoy, _) = if resume {
                convoys::resume(town, &convoy)?
            } else {
                convoys::pause(town, &convoy)?
            };
            Ok(format!("{} is {state}", convoy.bead.id))
        }
        (None, Some(rig)) => {
            let rig = town.read(|reader| gt_town::rig_names::require(reader, &rig))?;
            merge_queue::pause(town, &rig.slug, &rig.default_branch, !resume)?;
            Ok(format!("The merge queue of {} to {} is {state}", rig.slug, rig.default_branch))
        }
        (None, None) if resume => {
            queue::resume(town)?;
            Ok("Work starts again".to_owned())
        }
        (None, None) => {
            let (pause, _) = queue::pause(town)?;
            Ok(format!("Starts are paused by {}; running work goes on", pause.by))
        }
    }
}
