//! The windows of subscriptions: what services tell of them, and the end of starts before all of one is used.

use gt_core::cost::SeenWindow;
use gt_core::decide;
use gt_core::schedule::{ParkSubject, Run};
use gt_town::settings::{file_layers, layers_over};
use gt_town::{Result, Town};

/// Keeps what the service of a run told of its windows. If so much of one is used as `accounts.park_percent` says, nothing
/// more starts on the account of the run (or with its runtime, if it has no account) until the window begins anew. The runs
/// that are under way go on.
pub fn note_windows(town: &Town, run: &Run, windows: &[SeenWindow]) -> Result<()> {
    if windows.is_empty() {
        return Ok(());
    }
    let files = file_layers(town)?;
    town.write(|writer| {
        let Some(means) = ParkSubject::of_run(run).into_iter().next() else { return Ok(()) };
        for seen in windows {
            writer.keep_usage_window(&means, seen)?;
        }
        let percent = layers_over(&files, writer)?.accounts_park_percent()?;
        let percent = u32::try_from(percent).unwrap_or(0);
        let now = writer.now();
        let full = windows.iter().filter_map(|seen| {
            let until = seen.window.closed_until(percent, now)?;
            Some((until, seen))
        });
        let Some((until, seen)) = full.max_by_key(|(until, _)| *until) else { return Ok(()) };
        let known = writer.parks_of(run)?.into_iter().find(|park| park.means == means);
        let is_closed = known
            .and_then(|park| park.closed)
            .is_some_and(|closed| closed.since <= now && now < closed.until);
        if is_closed {
            return Ok(());
        }
        let park = decide::limited(means, until, &seen.window.to_string(), false, now);
        Ok(writer.park(&park, run, false)?)
    })
}

/// The windows of all accounts and runtimes that have not begun anew since they were told of.
pub fn current_windows(town: &Town) -> Result<Vec<(ParkSubject, SeenWindow)>> {
    let now = town.now();
    let mut windows = town.read(|reader| Ok(reader.usage_windows()?))?;
    windows.retain(|(_, seen)| !seen.is_over(now));
    Ok(windows)
}
