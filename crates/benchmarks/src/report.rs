//! The table.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use gt_core::Clock;
use gt_town::SystemClock;

use crate::BenchmarkResult;

const BEGIN: &str = "<!-- written by scripts/bench: begin -->\n";
const END: &str = "<!-- written by scripts/bench: end -->\n";

/// One line of the table.
pub(crate) struct ReportRow {
    /// The name of the measurement.
    pub(crate) name: String,
    /// Our result.
    pub(crate) ours: String,
    /// The result of the baseline.
    pub(crate) baseline: String,
    /// Ours against the baseline.
    pub(crate) ratio: String,
    /// The target of the ratio.
    pub(crate) target: String,
    /// Whether it is; nothing if there is no target.
    pub(crate) met: Option<bool>,
}

impl ReportRow {
    /// Times compared; the target is the largest ratio that is good enough, if there is one.
    pub(crate) fn times(
        name: impl Into<String>,
        ours: Duration,
        baseline: Duration,
        most: Option<f64>,
    ) -> Self {
        let ratio = crate::measure::ratio(ours, baseline);
        Self {
            name: name.into(),
            ours: milliseconds(ours),
            baseline: milliseconds(baseline),
            ratio: format!("{ratio:.3}"),
            target: most.map_or("–".to_owned(), |most| format!("≤ {most}")),
            met: most.map(|most| ratio <= most),
        }
    }

    /// Times compared; the target is the longest time that is good enough; the baseline sets none.
    pub(crate) fn within(
        name: impl Into<String>,
        ours: Duration,
        baseline: Duration,
        most: Duration,
    ) -> Self {
        let (target, met) = (format!("≤ {}", milliseconds(most)), Some(ours <= most));
        Self { target, met, ..Self::times(name, ours, baseline, None) }
    }

    /// Speeds compared; the target is the least share of the baseline's that is good enough.
    pub(crate) fn speeds(
        name: impl Into<String>,
        items: u32,
        ours: Duration,
        baseline: Duration,
        least: Option<f64>,
    ) -> Self {
        let ratio = crate::measure::ratio(baseline, ours);
        let speed = |time: Duration| format!("{:.0}/s", f64::from(items) / time.as_secs_f64());
        Self {
            name: name.into(),
            ours: speed(ours),
            baseline: speed(baseline),
            ratio: format!("{ratio:.3}"),
            target: least.map_or("–".to_owned(), |least| format!("≥ {least}")),
            met: least.map(|least| ratio >= least),
        }
    }
}

/// A time as people read it.
pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

/// The whole table, with the machine it is from.
pub(crate) fn render(rows: &[ReportRow], quick: bool) -> String {
    let mut text = format!("Measured on {}.", machine());
    if quick {
        text.push_str(" Quick: small stores, few rounds, no targets worth the name.");
    }
    text.push_str("\n\n| benchmark | ours | baseline | ratio | target | met |\n");
    text.push_str("|---|--:|--:|--:|--:|---|\n");
    for row in rows {
        let met = match row.met {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        let ReportRow { name, ours, baseline, ratio, target, .. } = row;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {name} | {ours} | {baseline} | {ratio} | {target} | {met} |");
    }
    text
}

/// Puts the table between the markers of `file`. Rows of benchmarks that were not run stay: each row is
/// compared with a baseline of its own run, not with other rows.
pub(crate) fn rewrite(file: &Path, table: &str) -> BenchmarkResult<()> {
    let text = fs::read_to_string(file)?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (old, after) = rest.split_once(END)?;
        Some((before, old, after))
    });
    let (before, old, after) = parts.ok_or_else(|| {
        format!("{} lacks the markers {} {}", file.display(), BEGIN.trim_end(), END.trim_end())
    })?;
    let measured: Vec<&str> = table.lines().filter_map(benchmark_of).collect();
    let kept =
        old.lines().filter(|line| benchmark_of(line).is_some_and(|b| !measured.contains(&b)));
    let kept: String = kept.flat_map(|line| [line, "\n"]).collect();
    fs::write(file, format!("{before}{BEGIN}{table}{kept}{END}{after}"))?;
    Ok(())
}

/// The name of the benchmark that a row of the table is of.
fn benchmark_of(line: &str) -> Option<&str> {
    let name = line.strip_prefix("| ")?.split_once(": ")?.0;
    name.bytes().all(|byte| byte.is_ascii_lowercase()).then_some(name)
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |name: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    let system = format!("{} {}", field("NAME="), field("VERSION_ID="));
    let now = SystemClock.now().to_string();
    let date = now.split('T').next().unwrap_or_default();
    format!("{cores} cores, {}, {date}", system.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn a_target_is_met_or_not() {
        let slower = |most| ReportRow::times("x", 3 * MILLISECOND, MILLISECOND, most).met;
        assert_eq!(slower(Some(3.0)), Some(true));
        assert_eq!(slower(Some(2.9)), Some(false));
        assert_eq!(slower(None), None);
        let row = ReportRow::speeds("x", 100, 2 * MILLISECOND, MILLISECOND, Some(0.5));
        assert_eq!((row.ours.as_str(), row.met), ("50000/s", Some(true)));
    }

    #[test]
    fn only_text_between_the_markers_is_rewritten() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("page.md");
        let old = "old\n| a: x | 1 |\n| b: x | 1 |\n| a: y | 1 |\n";
        fs::write(&file, format!("before\n{BEGIN}{old}{END}after\n")).unwrap();
        rewrite(&file, "new\n| a: x | 2 |\n").unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let new = "new\n| a: x | 2 |\n| b: x | 1 |\n";
        assert_eq!(text, format!("before\n{BEGIN}{new}{END}after\n"));
        fs::write(&file, "no markers\n").unwrap();
        assert!(rewrite(&file, "new\n").is_err());
    }
}
