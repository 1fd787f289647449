//! Runtimes: the built-in ones, those of the town, and which one works for a rig.

mod files;
mod scripted;
mod trial;

pub use files::RuntimeNumbers;
pub use files::{KnownRuntime, RuntimeOrigin, get, list, set, unset};
pub(crate) use files::{memory_of_preset, own_numbers};
pub use scripted::{ScriptContext, ScriptEnd, follow, script_of};
pub use trial::{RuntimeTest, TrialAnswer, examine, installed, missing_program, test};

use std::collections::BTreeMap;

use gt_core::runtime::{CUSTOM, LimitUntil, Runtime, TranscriptFormat, Zones, last_line};
use gt_core::{RigSlug, Timestamp};
use gt_transcripts::{ServiceWords, ToldLimit, last_words, service_words};
use jiff::tz::TimeZone;

use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::{Result, Town};

/// Refuses a name that no runtime of the town has.
pub fn check_name(town: &Town, name: &str) -> Result<()> {
    get(town, name).map(drop)
}

/// The runtime that works for a rig: the one that was asked for, else that of the rig, that of the town, the
/// command of the rig, and at last the default.
pub fn resolve(
    town: &Town,
    settings: &SchedulerSettings,
    rig: &RigSlug,
    asked: Option<&str>,
) -> Result<Runtime> {
    let command = settings.commands.get(rig).map(String::as_str);
    Ok(known_in(town, settings, rig, asked)?.for_rig(command))
}

/// The runtime that these settings choose for a rig, if there is one of that name and it can be used.
pub(crate) fn known_in(
    town: &Town,
    settings: &SchedulerSettings,
    rig: &RigSlug,
    asked: Option<&str>,
) -> Result<Runtime> {
    named(town, settings.runtime_in(rig, asked))
}

/// The runtime that a run names; one that names none has the command of its rig.
pub fn named(town: &Town, name: &str) -> Result<Runtime> {
    Ok(get(town, if name.is_empty() { CUSTOM } else { name })?.runtime)
}

/// The format of the output of a run with this runtime. One whose runtime cannot be read any more is plain text.
pub fn transcript_format(town: &Town, name: &str) -> TranscriptFormat {
    named(town, name).map_or(TranscriptFormat::Plain, |runtime| runtime.transcript)
}

/// The last words in an output, on one line: the last message or error, or the last line of plain text.
pub(crate) fn words_in(format: TranscriptFormat, output: &str) -> Option<String> {
    let words = last_words(format, output);
    if format == TranscriptFormat::Plain {
        return last_line(&words);
    }
    last_line(&words.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// How much memory runs with each runtime are expected to take, in megabytes, as far as that was learned. The own command
/// of a rig is called `<rig>/command`.
pub fn learned_memory(town: &Town) -> Result<BTreeMap<String, u32>> {
    let estimates = town.read(|reader| Ok(reader.estimates()?))?;
    Ok(estimates.into_iter().map(|estimate| (estimate.name, estimate.memory_mb)).collect())
}

/// The usage limit that the end of an output tells of, if it does, with the time zones of this machine. Of an output of
/// events, only what the service says counts, and an event that says until when comes first.
pub fn limit_in(runtime: &Runtime, output: &str, now: Timestamp) -> Option<LimitUntil> {
    let zones = Zones { local: TimeZone::system(), named: &|name| TimeZone::get(name).ok() };
    let ServiceWords { limit, text } = service_words(runtime.transcript, output);
    let in_words = || runtime.limit_in(&text, now, &zones);
    match limit {
        Some(ToldLimit { until: Some(until), window, text: said }) => {
            Some(LimitUntil::reported(Some(until), window, &said, now))
        }
        Some(ToldLimit { text: said, .. }) => {
            Some(in_words().unwrap_or_else(|| LimitUntil::reported(None, None, &said, now)))
        }
        None => in_words(),
    }
}

#[cfg(test)]
mod tests;
