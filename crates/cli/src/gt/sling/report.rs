//! The output of `gt sling`, for people and for programs.

use std::collections::BTreeMap;

use gt_api::{SlingDocument, SlingEntryDocument, WaitReasonDocument};
use gt_core::decide::WaitReason;
use gt_scheduling::schedule::{SkipReason, SlingEntry, SlingOutcome, SlingReport};

use crate::error::CliError;
use crate::gt::scheduler::{reason_documents, reason_text};
use crate::output::{Printer, moment};

/// Whether anything is scheduled now that was not before, and not running.
pub(super) fn has_scheduled(report: &SlingReport) -> bool {
    report.entries.iter().any(|entry| matches!(entry.outcome, SlingOutcome::Scheduled(..)))
}

/// Whether anything waits for a cycle by hand.
pub(super) fn waits_at_the_gate(report: &SlingReport) -> bool {
    report.entries.iter().any(|entry| match &entry.outcome {
        SlingOutcome::Scheduled(_, reasons) => reasons.contains(&WaitReason::QueueGate),
        _ => false,
    })
}

/// The exit status of the command; refusals were printed already.
pub(in crate::gt) fn verdict(report: &SlingReport) -> Result<(), CliError> {
    let refused: Vec<String> = report.entries.iter().filter_map(failure).collect();
    if refused.is_empty() { Ok(()) } else { Err(CliError::AlreadyTold(refused.join("; "))) }
}

pub(super) fn print(
    printer: &Printer,
    report: &SlingReport,
    rehearsal: bool,
) -> Result<(), CliError> {
    if printer.json() {
        printer.object(&document(report, rehearsal))?;
    } else {
        text(printer, report, rehearsal)?;
    }
    for error in report.entries.iter().filter_map(failure) {
        printer.part_failed(&CliError::request(error));
    }
    Ok(())
}

/// The failure of a bead, with its name.
fn failure(entry: &SlingEntry) -> Option<String> {
    let name = &entry.name;
    match &entry.outcome {
        SlingOutcome::Refused(error) => {
            let said = error.to_string();
            Some(if said.contains(name) { said } else { format!("{name}: {said}") })
        }
        SlingOutcome::NotStarted(_, why) => {
            Some(format!("{name} did not start: {why}; gt why {name} says what follows"))
        }
        SlingOutcome::Scheduled(..)
        | SlingOutcome::Started(_)
        | SlingOutcome::Nothing(_)
        | SlingOutcome::Skipped(..) => None,
    }
}

fn text(printer: &Printer, report: &SlingReport, rehearsal: bool) -> Result<(), CliError> {
    let unfolded = report.container.is_some();
    let mut skipped: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in &report.entries {
        let name = &entry.name;
        match &entry.outcome {
            SlingOutcome::Scheduled(..) | SlingOutcome::Started(_) => {
                printer.done(good_line(entry, report, rehearsal))?;
                if let Some(consequence) = &entry.consequence {
                    printer.note(consequence);
                }
            }
            SlingOutcome::Nothing(_) if unfolded => {
                *skipped.entry("scheduled already").or_default() += 1;
            }
            SlingOutcome::Nothing(why) => printer.done(format!("{name}: {why}; nothing to do"))?,
            SlingOutcome::Skipped(skip, why) => {
                *skipped.entry(skip.as_str()).or_default() += 1;
                if matches!(skip, SkipReason::Other | SkipReason::Unknown) {
                    printer.note(format!("Skipped {name}: {why}"));
                }
            }
            // Said on standard error.
            SlingOutcome::Refused(_) | SlingOutcome::NotStarted(..) => {}
        }
    }
    if !skipped.is_empty() {
        let counted: Vec<String> =
            skipped.iter().map(|(what, count)| format!("{count} {what}")).collect();
        printer.done(format!("Skipped: {}", counted.join(", ")))?;
    }
    if let Some((kind, id)) = report.container.as_ref().filter(|_| report.entries.is_empty()) {
        printer.done(format!("The {kind} {id} has nothing in it; nothing to do"))?;
    }
    // The command that made or joined a convoy has printed it already.
    if let Some(convoy) = report.convoy.as_ref().filter(|_| report.made_by_itself) {
        printer.done(if rehearsal {
            "Would make a convoy for it".to_owned()
        } else {
            format!("Convoy: {convoy}")
        })?;
    }
    if let Some(pause) = report.paused.as_ref().filter(|_| has_scheduled(report)) {
        printer.note(format!(
            "Paused by {} since {}: nothing starts until gt scheduler resume",
            pause.by,
            moment(pause.at)
        ));
    }
    Ok(())
}

/// The line for a bead that was started or scheduled, or would be.
fn good_line(entry: &SlingEntry, report: &SlingReport, rehearsal: bool) -> String {
    let name = &entry.name;
    let rig = entry.rig.as_deref().unwrap_or("?");
    match &entry.outcome {
        SlingOutcome::Started(run) => format!("✓ Started {name} ({run})"),
        SlingOutcome::Scheduled(context, reasons) => {
            let waiting = reason_text(reasons);
            let waiting = waiting.map(|why| format!(", waiting: {why}")).unwrap_or_default();
            let starts = !report.deferred && report.paused.is_none() && waiting.is_empty();
            match (rehearsal, starts) {
                (true, true) => format!("Would start {name} → {rig}"),
                (true, false) => format!("Would schedule {name} → {rig}{waiting}"),
                (false, _) => format!("✓ Scheduled {name} → {rig} ({context}){waiting}"),
            }
        }
        SlingOutcome::NotStarted(..)
        | SlingOutcome::Nothing(_)
        | SlingOutcome::Skipped(..)
        | SlingOutcome::Refused(_) => name.clone(),
    }
}

fn document(report: &SlingReport, rehearsal: bool) -> SlingDocument {
    let container = report.container.iter().map(|(kind, id)| ((*kind).to_owned(), id.to_string()));
    let convoy = report.convoy.as_ref().filter(|_| !rehearsal);
    SlingDocument {
        mode: if report.deferred { "deferred" } else { "direct" }.to_owned(),
        dry_run: rehearsal,
        paused: report.paused.is_some(),
        container: container.collect(),
        convoy: convoy.map(ToString::to_string),
        entries: report.entries.iter().map(|entry| entry_document(entry, rehearsal)).collect(),
    }
}

fn entry_document(entry: &SlingEntry, rehearsal: bool) -> SlingEntryDocument {
    let told = |status: &str, reasons: Vec<WaitReasonDocument>| SlingEntryDocument {
        id: entry.name.clone(),
        title: entry.title.clone(),
        target_rig: entry.rig.clone(),
        consequence: entry.consequence.clone(),
        status: status.to_owned(),
        context: None,
        run: None,
        reasons,
    };
    let said = |status: &str, code: &str, text: String| {
        told(status, vec![WaitReasonDocument { code: code.to_owned(), text, until: None }])
    };
    match &entry.outcome {
        SlingOutcome::Scheduled(context, reasons) => SlingEntryDocument {
            context: (!rehearsal).then(|| context.to_string()),
            ..told("scheduled", reason_documents(reasons))
        },
        SlingOutcome::Started(run) => {
            SlingEntryDocument { run: Some(run.to_string()), ..told("started", Vec::new()) }
        }
        SlingOutcome::NotStarted(context, why) => SlingEntryDocument {
            context: Some(context.to_string()),
            ..said("failed", "start-failed", why.clone())
        },
        SlingOutcome::Nothing(why) => said("noop", "already", why.clone()),
        SlingOutcome::Skipped(skip, why) => said("skipped", skip.code(), why.clone()),
        SlingOutcome::Refused(error) => said("refused", "refused", error.to_string()),
    }
}
