//! `gt convoy stage` and `gt convoy launch`.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use gt_api::{
    FindingDocument, RawJson, StagedBeadDocument, StagedDocument, StagedTaskDocument,
    StagedWaveDocument, to_json,
};
use gt_core::decide::StagingFinding;
use gt_core::schedule::Merge;
use gt_core::{BeadId, Rig};
use gt_scheduling::convoy_planning::{self, MemberRow, StageRequest, Staged};
use gt_scheduling::schedule::SlingReport;
use gt_town::Town;
use gt_town::rigs::branch_name;
use gt_town::tree_paths::lacks_branch;
use indicatif::ProgressBar;

use super::super::sling;
use super::status::about;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, plural, progress_bar, status_colour};
use crate::values::texts;

/// Show what a set of beads would do, and what is wrong with it, before anything runs
///
/// Everything below an epic, a list of beads, or a convoy that is staged already. Nothing starts: it becomes a convoy that
/// waits to be launched. If something is wrong, nothing is written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy stage web-epic-1
  gt convoy stage web-1 web-2 web-3 --title \"Search\"
  gt convoy stage web-epic-1 --graph mermaid
  gt convoy stage web-epic-1 --launch")]
pub(super) struct StageArgs {
    /// An epic, beads, or a convoy that is staged
    #[arg(required = true, value_name = "EPIC|BEAD|CONVOY")]
    ids: Vec<String>,
    /// The name of the convoy
    #[arg(long)]
    title: Option<String>,
    /// You land it yourself, with gt convoy land
    #[arg(long)]
    owned: bool,
    /// How its work is merged: direct, mr, pr or local
    #[arg(long, value_parser = Merge::parse)]
    merge: Option<Merge>,
    /// The branch that its work begins from and lands on
    #[arg(long, value_name = "BRANCH", value_parser = branch_name)]
    base_branch: Option<String>,
    /// Let a person approve its work before it lands
    #[arg(long)]
    review: bool,
    /// Print only the dependencies, as a graph
    #[arg(long, value_enum)]
    graph: Option<Graph>,
    /// Launch it, if nothing is wrong with it
    #[arg(long)]
    launch: bool,
    /// With --launch: also if a rig is parked or docked, or the branch is missing
    #[arg(long, requires = "launch")]
    force: bool,
    /// With --launch: start any number at once without being asked
    #[arg(short, long, requires = "launch")]
    yes: bool,
}

/// A language for graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Graph {
    Dot,
    Mermaid,
}

/// Launch a convoy: open it, and schedule everything it tracks at once
///
/// Blocked beads start when their blockers are done. An epic or a list of beads is staged first. A rig that is
/// parked or docked, or a branch that is missing, refuses the launch unless it is forced; other warnings are printed, and
/// the launch goes on. A launch that is refused leaves a staged convoy as it is, and stages nothing itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy launch hq-cv-x7k2p
  gt convoy launch web-epic-1 --force       # although one of its rigs is docked")]
pub(super) struct LaunchArgs {
    /// A convoy that is staged, an epic, or beads
    #[arg(required = true, value_name = "CONVOY|EPIC|BEAD")]
    ids: Vec<String>,
    /// Also if a rig is parked or docked, or the branch is missing
    #[arg(short, long)]
    force: bool,
    /// Start any number at once without being asked
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn stage(context: &CommandContext<'_>, args: &StageArgs) -> Result<(), CliError> {
    sling::refuse_workers(&context.environment)?;
    let town = context.town()?;
    let request = StageRequest {
        inputs: args.ids.clone(),
        title: args.title.clone(),
        owned: args.owned,
        merge: args.merge,
        base_branch: args.base_branch.clone(),
        review: args.review,
    };
    let staged = look(&town, &request)?;
    if let Some(graph) = args.graph {
        context.printer.text(&drawn(&staged, graph))?;
        return verdict(&staged);
    }
    if !args.launch {
        show(context.printer, &staged, None)?;
        return verdict(&staged);
    }
    begin(context, &town, &staged, LaunchAnswers { force: args.force, yes: args.yes })
}

pub(super) fn launch(context: &CommandContext<'_>, args: &LaunchArgs) -> Result<(), CliError> {
    sling::refuse_workers(&context.environment)?;
    let town = context.town()?;
    let request = StageRequest { inputs: args.ids.clone(), ..StageRequest::default() };
    let answers = LaunchAnswers { force: args.force, yes: args.yes };
    if !args.force {
        // A launch that is refused does not leave a convoy that it has staged itself.
        let lacks_branch = |rig: &Rig, branch: &str| lacks_branch(&town, rig, branch);
        let seen = convoy_planning::preview(&town, &request, &lacks_branch)?;
        if let Some(told) = told_to_override(&seen).filter(|_| !seen.restaged) {
            let ids = args.ids.join(" ");
            return Err(CliError::request(format!(
                "nothing was staged or launched: {told}; launch it all the same with gt convoy launch {ids} --force"
            )));
        }
    }
    begin(context, &town, &look(&town, &request)?, answers)
}

/// Fewer beads than this are staged too quickly for a progress bar to be of use.
const PROGRESS_BAR_MIN_BEADS: usize = 5_000;

/// Stages a set, and shows how far it is if that takes a while.
fn look(town: &Town, request: &StageRequest) -> Result<Staged, CliError> {
    let mut bar: Option<ProgressBar> = None;
    let staged = convoy_planning::stage_telling(
        town,
        request,
        &|rig, branch| lacks_branch(town, rig, branch),
        &mut |done, total| {
            if total >= PROGRESS_BAR_MIN_BEADS {
                // Writing the convoy takes about as long as reading the beads.
                bar.get_or_insert_with(|| progress_bar("staging", 2 * total as u64))
                    .set_position(done as u64);
            }
        },
    );
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(staged?)
}

/// The answers to what a launch would ask.
#[derive(Debug, Clone, Copy)]
struct LaunchAnswers {
    /// Also if a rig is parked or docked, or the branch is missing.
    force: bool,
    /// Any number of agents at once.
    yes: bool,
}

/// Launches a staged convoy, unless a check fails.
fn begin(
    context: &CommandContext<'_>,
    town: &Town,
    staged: &Staged,
    LaunchAnswers { force, yes }: LaunchAnswers,
) -> Result<(), CliError> {
    let Some(convoy) = staged.convoy.as_ref() else {
        show(context.printer, staged, None)?;
        return verdict(staged);
    };
    if let Some(told) = told_to_override(staged).filter(|_| !force) {
        return Err(CliError::request(format!(
            "{convoy} stays staged: {told}; launch it all the same with gt convoy launch {convoy} --force"
        )));
    }
    let request = sling::launch_request(convoy.as_str());
    if !yes && !sling::are_starts_wanted(context, town, &request)? {
        context.printer.done(sling::NOTHING_STARTED)?;
        context.printer.note(format!("{convoy} stays staged: gt convoy launch {convoy}"));
        return Ok(());
    }
    let slung = sling::carry_out(town, &request).inspect_err(|_| {
        // A convoy that was staged before is known.
        if !staged.restaged {
            context.printer.note(format!("{convoy} stays staged: gt convoy launch {convoy}"));
        }
    })?;
    if context.printer.json() {
        show(context.printer, staged, Some(&slung))?;
        return sling::verdict(&slung);
    }
    context.printer.done(format!("✓ Launched {convoy}: {}", waves(staged)))?;
    for finding in &staged.plan.findings {
        let forced = if finding.category.needs_force() { "overridden by --force: " } else { "" };
        context.printer.done(format!("! {forced}{}", said_of(finding)))?;
    }
    sling::print_scheduled_by_convoy(context, town, &slung)
}

/// The findings that a launch has to override, and how to put them right; none if there are none.
fn told_to_override(staged: &Staged) -> Option<String> {
    let overridden: Vec<&StagingFinding> = staged.plan.to_override().collect();
    let mut told: Vec<String> = overridden.iter().map(|finding| said_of(finding)).collect();
    let fixes = overridden.iter().filter_map(|finding| finding.suggested_fix.as_deref());
    told.extend(fixes.map(|fix| format!("fix: {fix}")));
    (!told.is_empty()).then(|| told.join("; "))
}

/// A finding in one line.
fn said_of(finding: &StagingFinding) -> String {
    format!("{}: {}", finding.category, finding.message)
}

/// Fails the command if nothing was staged.
fn verdict(staged: &Staged) -> Result<(), CliError> {
    match staged.convoy {
        Some(_) => Ok(()),
        None => Err(CliError::request("nothing was staged: put right what is named above")),
    }
}

/// How many waves there are, in words.
fn waves(staged: &Staged) -> String {
    let waves = &staged.plan.waves;
    let beads = waves.iter().map(Vec::len).sum::<usize>() as u64;
    let gated = match staged.plan.gated.len() as u64 {
        0 => String::new(),
        gated => format!(", and {} behind something else", plural(gated, "bead")),
    };
    format!("{} in {}{gated}", plural(beads, "bead"), plural(waves.len() as u64, "wave"))
}

fn show(
    printer: &Printer,
    staged: &Staged,
    launched: Option<&SlingReport>,
) -> Result<(), CliError> {
    if printer.json() {
        return printer.object(&document(staged, launched));
    }
    print_tree(printer, staged)?;
    for (number, wave) in staged.plan.waves.iter().enumerate().take(WAVES_SHOWN) {
        printer.line("")?;
        let beads = plural(wave.len() as u64, "bead");
        printer.heading(&format!("Wave {}", number + 1), &format!("  {beads}"))?;
        print_beads(printer, wave.iter().map(|at| (&staged.beads[*at], waited_for(staged, *at))))?;
    }
    if let more @ 1.. = staged.plan.waves.len().saturating_sub(WAVES_SHOWN) {
        printer.line(format!("and {} more", plural(more as u64, "wave")))?;
    }
    if !staged.plan.gated.is_empty() {
        printer.line("")?;
        printer.heading("Behind something else", "")?;
        let gated = staged.plan.gated.iter();
        print_beads(printer, gated.map(|(at, gates)| (&staged.beads[*at], names(gates))))?;
    }
    if !staged.plan.findings.is_empty() {
        printer.line("")?;
    }
    for finding in &staged.plan.findings {
        let sign = if finding.category.is_error() { "✗" } else { "!" };
        printer.line(format!("{sign} {}", said_of(finding)))?;
        if let Some(fix) = &finding.suggested_fix {
            printer.line(format!("  → {fix}"))?;
        }
    }
    let Some(convoy) = &staged.convoy else { return Ok(()) };
    printer.line("")?;
    if staged.restaged {
        for (what, beads) in [("Now also", &staged.added), ("No more", &staged.removed)] {
            if !beads.is_empty() {
                printer.line(format!("{what}: {}", names(beads)))?;
            }
        }
    }
    let again = if staged.restaged { " again" } else { "" };
    if let Some(estimate) = &staged.estimate {
        printer.line(format!("Estimated: {}", about(estimate)))?;
    }
    printer.done(format!("✓ Staged {convoy}{again} ({}): {}", staged.status, waves(staged)))?;
    let force = if staged.plan.to_override().next().is_none() { "" } else { " --force" };
    printer.note(format!("Next: gt convoy launch {convoy}{force}"));
    Ok(())
}

fn names(beads: &[BeadId]) -> String {
    beads.iter().map(BeadId::as_str).collect::<Vec<_>>().join(", ")
}

/// The beads for which a bead of a wave waits.
fn waited_for(staged: &Staged, at: usize) -> String {
    let ids = staged.waits_for[at].iter().map(|at| staged.beads[*at].id.clone());
    names(&ids.collect::<Vec<_>>())
}

/// Beads that are nested deeper are indented no further.
const INDENT_MAX_DEPTH: usize = 12;
/// Limits for people: beads of the tree, waves, and beads of each wave. JSON has all of them.
const TREE_SHOWN: usize = 200;
const WAVES_SHOWN: usize = 30;
const WAVE_SHOWN: usize = 60;

fn print_tree(printer: &Printer, staged: &Staged) -> Result<(), CliError> {
    let mut table = Table::new();
    for (at, depth) in staged.outline.iter().take(TREE_SHOWN) {
        let bead = &staged.beads[*at];
        table.row(vec![
            Cell::bold(format!("{}{}", "  ".repeat((*depth).min(INDENT_MAX_DEPTH)), bead.id)),
            Cell::coloured(bead.status.as_str(), status_colour(&bead.status)),
            Cell::new(bead.issue_type.as_str()),
            Cell::new(bead.rig.as_ref().map_or("", |rig| rig.as_str())),
            Cell::new(bead.title.as_str()),
        ]);
    }
    printer.table(table)?;
    tell_more(printer, staged.outline.len().saturating_sub(TREE_SHOWN))
}

/// Prints how many more there are than were shown.
fn tell_more(printer: &Printer, more: usize) -> Result<(), CliError> {
    match more as u64 {
        0 => Ok(()),
        more => printer.line(format!("  and {} more (--json has all)", plural(more, "bead"))),
    }
}

fn print_beads<'b>(
    printer: &Printer,
    mut beads: impl Iterator<Item = (&'b MemberRow, String)>,
) -> Result<(), CliError> {
    let mut table = Table::new();
    for (bead, after) in beads.by_ref().take(WAVE_SHOWN) {
        let after = if after.is_empty() { after } else { format!("after {after}") };
        table.row(vec![
            Cell::bold(format!("  {}", bead.id)),
            Cell::new(bead.rig.as_ref().map_or("", |rig| rig.as_str())),
            Cell::new(bead.title.as_str()),
            Cell::new(after),
        ]);
    }
    printer.table(table)?;
    tell_more(printer, beads.count())
}

/// The dependencies of the beads, in a language for graphs.
fn drawn(staged: &Staged, graph: Graph) -> String {
    let title = |bead: &MemberRow| bead.title.as_str().replace(['"', '\\', '\n'], "'");
    let mut text = match graph {
        Graph::Dot => "digraph convoy {\n  rankdir=LR;\n".to_owned(),
        Graph::Mermaid => "graph LR\n".to_owned(),
    };
    for (at, bead) in staged.beads.iter().enumerate() {
        let label = format!("{}: {}", bead.id, title(bead));
        // Writing into a string cannot fail.
        let _ = match graph {
            Graph::Dot => writeln!(text, "  n{at} [label=\"{label}\"];"),
            Graph::Mermaid => writeln!(text, "  n{at}[\"{label}\"]"),
        };
    }
    for (at, targets) in staged.waits_for.iter().enumerate() {
        for target in targets {
            let _ = match graph {
                Graph::Dot => writeln!(text, "  n{target} -> n{at};"),
                Graph::Mermaid => writeln!(text, "  n{target} --> n{at}"),
            };
        }
    }
    if graph == Graph::Dot {
        text.push_str("}\n");
    }
    text
}

fn document(staged: &Staged, launched: Option<&SlingReport>) -> StagedDocument {
    let plan = &staged.plan;
    let findings = |wanted: bool| {
        let found = plan.findings.iter();
        found.filter(|one| one.category.is_error() == wanted).map(finding_document).collect()
    };
    let waves = plan.waves.iter().enumerate().map(|(at, wave)| StagedWaveDocument {
        number: at as u64 + 1,
        tasks: wave.iter().map(|at| task_document(staged, *at, None)).collect(),
    });
    let gated = plan.gated.iter();
    StagedDocument {
        status: staged.status.to_owned(),
        convoy_id: staged.convoy.as_ref().map(ToString::to_string).unwrap_or_default(),
        restaged: staged.restaged,
        errors: findings(true),
        warnings: findings(false),
        waves: waves.collect(),
        gated: gated.map(|(at, gates)| task_document(staged, *at, Some(gates))).collect(),
        estimate_seconds: staged.estimate.as_ref().map(|estimate| estimate.remaining.as_secs()),
        added: staged.restaged.then(|| texts(&staged.added)),
        removed: staged.restaged.then(|| texts(&staged.removed)),
        tree: RawJson::record(tree_json(staged)),
        launched: launched.map(|_| true),
        overridden: launched
            .map(|_| texts(plan.to_override().map(|finding| finding.category.as_str()))),
        scheduled: launched.map(|slung| slung.contexts.len() as u64),
    }
}

fn finding_document(finding: &StagingFinding) -> FindingDocument {
    FindingDocument {
        category: finding.category.as_str().to_owned(),
        bead_ids: texts(&finding.beads),
        message: finding.message.clone(),
        suggested_fix: finding.suggested_fix.clone().filter(|fix| !fix.is_empty()),
    }
}

fn task_document(staged: &Staged, at: usize, gates: Option<&Vec<BeadId>>) -> StagedTaskDocument {
    let bead = &staged.beads[at];
    StagedTaskDocument {
        id: bead.id.to_string(),
        title: bead.title.to_string(),
        r#type: bead.issue_type.to_string(),
        rig: bead.rig.as_ref().map(ToString::to_string),
        blocked_by: texts(staged.waits_for[at].iter().map(|at| &staged.beads[*at].id)),
        gated_by: gates.map(texts),
    }
}

/// The beads under what they are a part of. Not by recursion: there is no limit to how deep they stand.
fn tree_json(staged: &Staged) -> String {
    let mut out = "[".to_owned();
    for (number, (at, depth)) in staged.outline.iter().enumerate() {
        let bead = bead_json(&staged.beads[*at]);
        let next = staged.outline.get(number + 1).map(|(_, depth)| *depth);
        if next.is_some_and(|next| next > *depth) {
            out.push_str(bead.trim_end_matches('}'));
            out.push_str(",\"children\":[");
            continue;
        }
        out.push_str(&bead);
        for _ in next.unwrap_or(0)..*depth {
            out.push_str("]}");
        }
        if next.is_some() {
            out.push(',');
        }
    }
    out.push(']');
    out
}

fn bead_json(bead: &MemberRow) -> String {
    to_json(&StagedBeadDocument {
        id: bead.id.to_string(),
        title: bead.title.to_string(),
        rig: bead.rig.as_ref().map(ToString::to_string),
        r#type: bead.issue_type.to_string(),
        status: bead.status.to_string(),
    })
}
