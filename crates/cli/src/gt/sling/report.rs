//! What a sling says about itself.

use std::collections::BTreeMap;

use gt_core::decide::WaitReason;
use gt_operations::schedule::{Entry, Fate, Skip, SlingReport};
use gt_records::ObjectWriter;

use crate::error::CliError;
use crate::gt::scheduler::{reason_text, write_reasons};
use crate::output::{Printer, moment};

/// Whether anything is scheduled now that was not before, and not running.
pub(super) fn has_scheduled(report: &SlingReport) -> bool {
    report.entries.iter().any(|entry| matches!(entry.fate, Fate::Scheduled(..)))
}

/// Whether anything waits for a cycle by hand.
pub(super) fn waits_at_the_gate(report: &SlingReport) -> bool {
    report.entries.iter().any(|entry| match &entry.fate {
        Fate::Scheduled(_, reasons) => reasons.contains(&WaitReason::QueueGate),
        _ => false,
    })
}

/// Whether the command did what it was asked; what was refused has been told.
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
        printer.object(&json(report, rehearsal))?;
    } else {
        text(printer, report, rehearsal)?;
    }
    for error in report.entries.iter().filter_map(failure) {
        printer.part_failed(&CliError::request(error));
    }
    Ok(())
}

/// What went wrong with a bead, with its name.
fn failure(entry: &Entry) -> Option<String> {
    let name = &entry.name;
    match &entry.fate {
        Fate::Refused(error) => {
            let said = error.to_string();
            Some(if said.contains(name) { said } else { format!("{name}: {said}") })
        }
        Fate::NotStarted(_, why) => {
            Some(format!("{name} did not start: {why}; gt why {name} says what follows"))
        }
        Fate::Scheduled(..) | Fate::Started(_) | Fate::Nothing(_) | Fate::Skipped(..) => None,
    }
}

fn text(printer: &Printer, report: &SlingReport, rehearsal: bool) -> Result<(), CliError> {
    let unfolded = report.container.is_some();
    let mut skipped: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in &report.entries {
        let name = &entry.name;
        match &entry.fate {
            Fate::Scheduled(..) | Fate::Started(_) => {
                printer.done(good_line(entry, report, rehearsal))?;
                if let Some(consequence) = &entry.consequence {
                    printer.note(consequence);
                }
            }
            Fate::Nothing(_) if unfolded => {
                *skipped.entry("scheduled already").or_default() += 1;
            }
            Fate::Nothing(why) => printer.done(format!("{name}: {why}; nothing to do"))?,
            Fate::Skipped(skip, why) => {
                *skipped.entry(skip.as_str()).or_default() += 1;
                if matches!(skip, Skip::Other | Skip::Unknown) {
                    printer.note(format!("Skipped {name}: {why}"));
                }
            }
            // Said on standard error.
            Fate::Refused(_) | Fate::NotStarted(..) => {}
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
    // Of one that was made or joined on purpose everything was said.
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

/// What is said of a bead that goes, or will.
fn good_line(entry: &Entry, report: &SlingReport, rehearsal: bool) -> String {
    let name = &entry.name;
    let rig = entry.rig.as_deref().unwrap_or("?");
    match &entry.fate {
        Fate::Started(run) => format!("✓ Started {name} ({run})"),
        Fate::Scheduled(context, reasons) => {
            let waiting = reason_text(reasons);
            let waiting = waiting.map(|why| format!(", waiting: {why}")).unwrap_or_default();
            let starts = !report.deferred && report.paused.is_none() && waiting.is_empty();
            match (rehearsal, starts) {
                (true, true) => format!("Would start {name} → {rig}"),
                (true, false) => format!("Would schedule {name} → {rig}{waiting}"),
                (false, _) => format!("✓ Scheduled {name} → {rig} ({context}){waiting}"),
            }
        }
        Fate::NotStarted(..) | Fate::Nothing(_) | Fate::Skipped(..) | Fate::Refused(_) => {
            name.clone()
        }
    }
}

fn json(report: &SlingReport, rehearsal: bool) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("mode", if report.deferred { "deferred" } else { "direct" });
    object.flag("dry_run", rehearsal);
    object.flag("paused", report.paused.is_some());
    if let Some((kind, id)) = &report.container {
        object.text(kind, id.as_str());
    }
    if let Some(convoy) = report.convoy.as_ref().filter(|_| !rehearsal) {
        object.text("convoy", convoy.as_str());
    }
    object.array("entries", |array| {
        for entry in &report.entries {
            array.object(|object| write_entry(object, entry, rehearsal));
        }
    });
    object.finish();
    out
}

fn write_entry(object: &mut ObjectWriter<'_>, entry: &Entry, rehearsal: bool) {
    object.text("id", &entry.name);
    object.text_unless_empty("title", &entry.title);
    if let Some(rig) = &entry.rig {
        object.text("target_rig", rig);
    }
    if let Some(consequence) = &entry.consequence {
        object.text("consequence", consequence);
    }
    let mut said = |status: &str, code: &str, text: &str| {
        object.text("status", status);
        object.array("reasons", |array| {
            array.object(|object| {
                object.text("code", code);
                object.text("text", text);
            });
        });
    };
    match &entry.fate {
        Fate::Scheduled(context, reasons) => {
            object.text("status", "scheduled");
            if !rehearsal {
                object.text("context", context.as_str());
            }
            write_reasons(object, reasons);
        }
        Fate::Started(run) => {
            object.text("status", "started");
            object.text("run", &run.to_string());
            write_reasons(object, &[]);
        }
        Fate::NotStarted(context, why) => {
            said("failed", "start-failed", why);
            object.text("context", context.as_str());
        }
        Fate::Nothing(why) => said("noop", "already", why),
        Fate::Skipped(skip, why) => said("skipped", skip.code(), why),
        Fate::Refused(error) => said("refused", "refused", &error.to_string()),
    }
}
