//! Numbers for monitoring a town, read from its store, in the text format of Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gt_core::cost::Spent;
use gt_core::decide::{Budget, BudgetScope, HostMode};
use gt_core::schedule::RunState;
use gt_core::{RigSlug, Timestamp};
use gt_scheduling::queue;
use gt_town::{Result, Town, TownNumbers};

use crate::metrics::begin;

/// For how long the numbers are kept: they read every run, and anyone may ask as often as they like.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// How many names a label may have. The rest share [`OTHER`], so that a town with very many rigs or hosts does not fill the
/// memory of a monitor.
const NAMES_MAX: usize = 50;
/// The name for all names beyond [`NAMES_MAX`].
const OTHER: &str = "other";

/// The numbers of a moment.
#[derive(Debug, Clone)]
pub(crate) struct TownSample {
    now: Timestamp,
    numbers: TownNumbers,
    spent: Spent,
    is_paused: bool,
    budgets: Vec<Budget>,
    /// The machine of each host, and how many seconds ago it was seen.
    hosts: Vec<(String, i64)>,
    /// How long a short read of the store took.
    store_read: Duration,
}

impl TownSample {
    /// Reads the numbers of now.
    pub(crate) fn take(town: &Town) -> Result<Self> {
        let began = Instant::now();
        let fleet = town.read(|reader| Ok(reader.fleet()?))?;
        let store_read = began.elapsed();
        let ever = Timestamp::from_nanos(i64::MIN);
        let (numbers, spent) =
            town.read(|reader| Ok((reader.town_numbers()?, reader.spent_from(ever)?)))?;
        let status = queue::status(town)?;
        Ok(Self {
            now: town.now(),
            numbers,
            spent,
            is_paused: status.paused.is_some(),
            budgets: status.budgets,
            hosts: fleet
                .into_iter()
                // It need not renew, and no alert shall tell of it.
                .filter(|host| host.mode != HostMode::Removed)
                .map(|host| {
                    let ago = i64::try_from(host.age.as_secs()).unwrap_or(i64::MAX);
                    (host.host.name, ago)
                })
                .collect(),
            store_read,
        })
    }
}

/// The last sample.
#[derive(Debug, Default)]
pub(crate) struct KeptSample(Mutex<Option<(Instant, TownSample)>>);

impl KeptSample {
    /// The last sample if it is young enough, else a new one. Of several callers at once, one reads.
    pub(crate) fn get(&self, town: &Town) -> Result<TownSample> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, sample)) = &*kept
            && at.elapsed() < KEPT_FOR
        {
            return Ok(sample.clone());
        }
        let sample = TownSample::take(town)?;
        *kept = Some((Instant::now(), sample.clone()));
        Ok(sample)
    }
}

/// The names that get a series of their own.
struct LabelNames(BTreeSet<String>);

impl LabelNames {
    /// The names with the largest weights.
    fn among<'n>(weights: impl Iterator<Item = (&'n str, i64)>) -> Self {
        let mut totals: BTreeMap<&str, i64> = BTreeMap::new();
        for (name, weight) in weights {
            *totals.entry(name).or_default() += weight;
        }
        let mut names: Vec<(&str, i64)> = totals.into_iter().collect();
        names.sort_by_key(|(name, weight)| (std::cmp::Reverse(*weight), *name));
        Self(names.into_iter().take(NAMES_MAX).map(|(name, _)| name.to_owned()).collect())
    }

    fn of<'n>(&self, name: &'n str) -> &'n str {
        if self.0.contains(name) { name } else { OTHER }
    }
}

/// The series of one metric; those with the same labels are one.
#[derive(Default)]
struct Series(BTreeMap<String, f64>);

impl Series {
    fn add(&mut self, labels: &[(&str, &str)], value: f64) {
        *self.0.entry(written(labels)).or_default() += value;
    }

    fn put_greatest(&mut self, labels: &[(&str, &str)], value: f64) {
        let known = self.0.entry(written(labels)).or_insert(value);
        *known = known.max(value);
    }

    fn put_least(&mut self, labels: &[(&str, &str)], value: f64) {
        let known = self.0.entry(written(labels)).or_insert(value);
        *known = known.min(value);
    }

    fn render(&self, out: &mut String, name: &str) {
        for (labels, value) in &self.0 {
            let _ = writeln!(out, "{name}{labels} {value}");
        }
    }
}

fn written(labels: &[(&str, &str)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let label = |(name, value): &(&str, &str)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    let labels: Vec<String> = labels.iter().map(label).collect();
    format!("{{{}}}", labels.join(","))
}

/// The machine of a host as runs name it.
fn machine(host: &str) -> &str {
    host.rsplit_once('/').map_or(host, |(machine, _)| machine)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of Prometheus are floating")]
fn float(number: i64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "numbers of Prometheus are floating")]
fn left_ratio(budget: &Budget) -> f64 {
    let left = budget.set.limit.saturating_sub(budget.used.saturating_add(budget.held));
    if budget.set.limit == 0 { 0.0 } else { left as f64 / budget.set.limit as f64 }
}

impl TownSample {
    /// All of it, as text.
    pub(crate) fn render(&self, out: &mut String) {
        let TownNumbers { queue, runs, landings, checks } = &self.numbers;
        let of_runs = runs.iter().map(|run| (run.rig.as_str(), run.runs));
        let of_queue = queue.iter().map(|queue| (queue.rig.as_str(), queue.open));
        let rigs = LabelNames::among(of_runs.chain(of_queue));
        let of_runs = runs.iter().map(|run| (machine(&run.host), run.runs));
        let of_hosts = self.hosts.iter().map(|(name, _)| (name.as_str(), i64::MAX / 1024));
        let hosts = LabelNames::among(of_runs.chain(of_hosts));

        let (mut length, mut age) = (Series::default(), Series::default());
        for line in queue {
            let labels = [("rig", rigs.of(&line.rig))];
            length.add(&labels, float(line.open));
            let waited = self.now.as_nanos().saturating_sub(line.oldest.as_nanos()).max(0);
            age.put_greatest(&labels, float(waited / 1_000_000) / 1000.0);
        }
        gauge(
            out,
            "gt_queue_length",
            "Open contexts: work that is scheduled and has not started.",
            &length,
        );
        gauge(out, "gt_queue_oldest_age_seconds", "The age of the oldest open context.", &age);

        let [mut live, mut started, mut ended] = [(); 3].map(|()| Series::default());
        for line in runs {
            let (rig, host) = (rigs.of(&line.rig), hosts.of(machine(&line.host)));
            let count = float(line.runs);
            started.add(&[("rig", rig), ("host", host)], count);
            let is_live = RunState::parse(&line.state).is_ok_and(RunState::is_live);
            let (series, last) =
                if is_live { (&mut live, "state") } else { (&mut ended, "outcome") };
            series.add(&[("rig", rig), ("host", host), (last, &line.state)], count);
        }
        gauge(out, "gt_runs", "Live runs.", &live);
        counter(out, "gt_runs_started_total", "Runs that were started.", &started);
        counter(out, "gt_runs_ended_total", "Runs that have ended.", &ended);

        let mut landed = Series::default();
        for (rig, count) in landings {
            landed.add(&[("rig", rigs.of(rig))], float(*count));
        }
        counter(out, "gt_landings_total", "Merge requests that have landed.", &landed);

        let (mut count, mut sum) = (Series::default(), Series::default());
        for line in checks {
            let labels = [("rig", rigs.of(&line.rig)), ("result", line.result.as_str())];
            count.add(&labels, float(line.runs));
            sum.add(&labels, float(line.total_ms) / 1000.0);
        }
        begin(out, "gt_check_duration_seconds", "summary", "How long checks took.");
        sum.render(out, "gt_check_duration_seconds_sum");
        count.render(out, "gt_check_duration_seconds_count");

        let mut renewal = Series::default();
        for (name, ago) in &self.hosts {
            renewal.put_least(&[("host", hosts.of(name))], float((*ago).max(0)));
        }
        let help = "Seconds since a host renewed its row, by the clock of the store.";
        gauge(out, "gt_host_renewal_age_seconds", help, &renewal);

        let mut left = Series::default();
        for budget in &self.budgets {
            let setting = budget.set.kind.setting();
            let labels = match &budget.set.scope {
                BudgetScope::All => [("rig", ""), ("setting", setting)],
                BudgetScope::Rig(rig) => {
                    [("rig", rigs.of(RigSlug::as_str(rig))), ("setting", setting)]
                }
                // There may be as many as accounts, beads and convoys.
                BudgetScope::Account(_) | BudgetScope::Bead(_) | BudgetScope::Convoy(_) => continue,
            };
            left.put_least(&labels, left_ratio(budget));
        }
        gauge(
            out,
            "gt_budget_left_ratio",
            "The part of a budget that is left, from 0 to 1.",
            &left,
        );

        let single = |value| {
            let mut series = Series::default();
            series.add(&[], value);
            series
        };
        let paused = if self.is_paused { 1.0 } else { 0.0 };
        gauge(out, "gt_scheduler_paused", "Whether the scheduler is paused.", &single(paused));
        let help = "How long a short read of the store took.";
        gauge(out, "gt_store_read_seconds", help, &single(self.store_read.as_secs_f64()));

        let Spent { tokens, cost, .. } = &self.spent;
        let name = "gt_run_tokens_total";
        begin(out, name, "counter", "Tokens that runs have used.");
        let _ = writeln!(out, "{name} {tokens}");
        let name = "gt_run_cost_dollars_total";
        begin(out, name, "counter", "What runs have cost, as far as it is known.");
        let _ = writeln!(out, "{name} {cost}");
    }
}

fn gauge(out: &mut String, name: &str, help: &str, series: &Series) {
    begin(out, name, "gauge", help);
    series.render(out, name);
}

fn counter(out: &mut String, name: &str, help: &str, series: &Series) {
    begin(out, name, "counter", help);
    series.render(out, name);
}

#[cfg(test)]
mod tests {
    use gt_core::decide::{BudgetKind, BudgetLimit};
    use gt_core::schedule::Money;
    use gt_town::{CheckNumbers, QueueNumbers, RunNumbers};

    use super::*;

    fn runs(rig: &str, host: &str, state: &str, runs: i64) -> RunNumbers {
        let [rig, host, state] = [rig, host, state].map(str::to_owned);
        RunNumbers { rig, host, state, runs }
    }

    pub(crate) fn sample() -> TownSample {
        let second = 1_000_000_000;
        let now = Timestamp::from_nanos(100 * second);
        let numbers = TownNumbers {
            queue: vec![QueueNumbers {
                rig: "web".to_owned(),
                open: 3,
                oldest: Timestamp::from_nanos(40 * second),
            }],
            runs: vec![
                runs("web", "one/a1", "running", 2),
                runs("web", "one/b2", "running", 1),
                runs("web", "two/c3", "done", 5),
            ],
            landings: vec![("web".to_owned(), 4)],
            checks: vec![CheckNumbers {
                rig: "web".to_owned(),
                result: "passed".to_owned(),
                runs: 2,
                total_ms: 2500,
            }],
        };
        let set = BudgetLimit { kind: BudgetKind::RunsPerHour, scope: BudgetScope::All, limit: 10 };
        TownSample {
            now,
            numbers,
            spent: Spent { tokens: 1200, cost: Money(1_250_000), unpriced: 0 },
            is_paused: true,
            budgets: vec![Budget::new(set, &[(now, 1), (now, 1)], 0, now)],
            hosts: vec![("one".to_owned(), 7), ("one".to_owned(), 3)],
            store_read: Duration::from_millis(2),
        }
    }

    #[test]
    fn numbers_of_a_town_have_labels_for_rig_and_host() {
        let mut text = String::new();
        sample().render(&mut text);
        for line in [
            "gt_queue_length{rig=\"web\"} 3",
            "gt_queue_oldest_age_seconds{rig=\"web\"} 60",
            "gt_runs{rig=\"web\",host=\"one\",state=\"running\"} 3",
            "gt_runs_started_total{rig=\"web\",host=\"two\"} 5",
            "gt_runs_ended_total{rig=\"web\",host=\"two\",outcome=\"done\"} 5",
            "gt_landings_total{rig=\"web\"} 4",
            "gt_check_duration_seconds_sum{rig=\"web\",result=\"passed\"} 2.5",
            "gt_check_duration_seconds_count{rig=\"web\",result=\"passed\"} 2",
            "gt_host_renewal_age_seconds{host=\"one\"} 3",
            "gt_budget_left_ratio{rig=\"\",setting=\"budget.runs_per_hour\"} 0.8",
            "gt_scheduler_paused 1",
            "gt_store_read_seconds 0.002",
            "gt_run_tokens_total 1200",
            "gt_run_cost_dollars_total 1.25",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn names_beyond_the_limit_share_one_series() {
        let numbers = TownNumbers {
            runs: (0..NAMES_MAX + 20).map(|n| runs(&format!("rig{n}"), "h/1", "done", 1)).collect(),
            ..TownNumbers::default()
        };
        let mut text = String::new();
        TownSample { numbers, ..sample() }.render(&mut text);
        let started = || text.lines().filter(|line| line.starts_with("gt_runs_started_total{"));
        assert_eq!(started().count(), NAMES_MAX + 1);
        assert!(
            started().any(|line| line.contains("rig=\"other\"") && line.ends_with(" 20")),
            "{text}"
        );
    }

    #[test]
    fn every_metric_of_the_dashboard_and_the_alerts_exists() {
        let mut text = crate::metrics::Metrics::default().render(7);
        sample().render(&mut text);
        let answered: BTreeSet<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split(['{', ' ']).next())
            .collect();
        let declared: BTreeSet<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
            .collect();
        for file in [
            include_str!("../../../packaging/monitoring/grafana.json"),
            include_str!("../../../packaging/monitoring/alerts.yml"),
        ] {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let named: BTreeSet<&str> =
                file.split(|c| !is_name(c)).filter(|word| word.starts_with("gt_")).collect();
            assert!(named.len() > 3, "the file names metrics");
            for name in named {
                let is_histogram_part = ["_bucket", "_sum", "_count"]
                    .iter()
                    .any(|end| name.strip_suffix(end).is_some_and(|name| declared.contains(name)));
                let exists =
                    answered.contains(name) || declared.contains(name) || is_histogram_part;
                assert!(exists, "{name} is not among the metrics");
            }
        }
    }
}
