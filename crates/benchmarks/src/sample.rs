//! Beads that look like those of a busy town, the same every time.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use gt_core::Timestamp;

use crate::BenchmarkResult;

/// 2026-01-01, when the oldest bead was made.
const BEGIN_NANOS: i64 = 1_767_225_600_000_000_000;
const MINUTE_NANOS: i64 = 60_000_000_000;
const DEPENDENCIES_PER_BEAD: usize = 3;

const WORDS: [&str; 40] = [
    "refactor",
    "the",
    "parser",
    "so",
    "that",
    "every",
    "worker",
    "reports",
    "its",
    "state",
    "before",
    "a",
    "restart",
    "because",
    "tests",
    "fail",
    "on",
    "slow",
    "machines",
    "when",
    "two",
    "processes",
    "write",
    "at",
    "once",
    "and",
    "neighbour",
    "notices",
    "until",
    "morning",
    "add",
    "retry",
    "with",
    "backoff",
    "to",
    "queue",
    "naïve",
    "façade",
    "index",
    "example",
];
const LABELS: [&str; 12] = [
    "backend",
    "frontend",
    "urgent",
    "tech-debt",
    "docs",
    "infra",
    "security",
    "performance",
    "customer",
    "flaky",
    "good-first",
    "blocked-upstream",
];
const PEOPLE: [&str; 8] = [
    "ada",
    "grace",
    "linus",
    "barbara",
    "gastown/polecats/nux",
    "gastown/polecats/slit",
    "mayor",
    "witness",
];

/// The random parts of a sample, the same for the same seed.
pub(crate) struct SampleRandom(fastrand::Rng);

impl SampleRandom {
    /// A sequence of its own for every seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// The next number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0.u64(..)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound.max(1))
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.pick(&WORDS)).collect();
        words.join(" ")
    }

    /// `hq-` and so many digits of base 36.
    pub(crate) fn id(&mut self, digits: usize) -> String {
        let mut id = "hq-".to_owned();
        for _ in 0..digits {
            id.push(char::from(b"0123456789abcdefghijklmnopqrstuvwxyz"[self.below(36)]));
        }
        id
    }
}

/// A town's beads. Work goes from low ranks to high ones: the lowest 60% are closed, and a bead
/// depends on lower ranks only, so there are no circles. Ranks have nothing to do with the order in
/// the file, so half of all targets come later in it.
pub(crate) struct Sample {
    ids: Vec<String>,
    ranks: Vec<usize>,
    epics: Vec<bool>,
    edges: Vec<Vec<(usize, &'static str)>>,
    random: SampleRandom,
}

impl Sample {
    /// So many beads.
    pub(crate) fn new(beads: u32) -> Self {
        let count = beads as usize;
        let mut random = SampleRandom::new(beads.into());
        let mut taken = HashSet::new();
        let mut ids = Vec::with_capacity(count);
        while ids.len() < count {
            let id = random.id(6);
            if taken.insert(id.clone()) {
                ids.push(id);
            }
        }
        let mut by_rank: Vec<usize> = (0..count).collect();
        for index in (1..count).rev() {
            by_rank.swap(index, random.below(index + 1));
        }
        let mut ranks = vec![0; count];
        for (rank, bead) in by_rank.iter().enumerate() {
            ranks[*bead] = rank;
        }
        let epics: Vec<bool> = (0..count).map(|_| random.percent(3)).collect();
        let mut sample = Self { ids, ranks, epics, edges: vec![Vec::new(); count], random };
        sample.connect(&by_rank);
        sample
    }

    fn connect(&mut self, by_rank: &[usize]) {
        let epics_by_rank: Vec<usize> =
            by_rank.iter().copied().filter(|bead| self.epics[*bead]).collect();
        let wanted = by_rank.len() * DEPENDENCIES_PER_BEAD;
        let mut made = 0;
        while made < wanted {
            let bead = self.random.below(by_rank.len());
            let rank = self.ranks[bead];
            if rank == 0 {
                continue;
            }
            let kind = match self.random.below(100) {
                0..15 => "parent-child",
                15..25 => "related",
                25..28 => "discovered-from",
                _ => "blocks",
            };
            let target = if kind == "parent-child" {
                let older = epics_by_rank.partition_point(|epic| self.ranks[*epic] < rank);
                let has_parent = self.edges[bead].iter().any(|edge| edge.1 == kind);
                if older == 0 || has_parent {
                    continue;
                }
                // The newest epics have the most children.
                let (a, b) = (self.random.below(older), self.random.below(older));
                epics_by_rank[a.max(b)]
            } else if self.random.percent(70) {
                by_rank[rank - 1 - self.random.below(rank.min(500))]
            } else {
                by_rank[self.random.below(rank)]
            };
            if self.edges[bead].iter().all(|edge| edge.0 != target) {
                self.edges[bead].push((target, kind));
                made += 1;
            }
        }
    }

    /// Writes them, one per line.
    pub(crate) fn write(mut self, path: &Path) -> BenchmarkResult<()> {
        let mut file = BufWriter::new(File::create(path)?);
        for bead in 0..self.ids.len() {
            let line = self.line(bead)?;
            writeln!(file, "{line}")?;
        }
        file.flush()?;
        Ok(())
    }

    fn line(&mut self, bead: usize) -> BenchmarkResult<String> {
        let count = self.ids.len();
        let (id, rank) = (self.ids[bead].clone(), self.ranks[bead]);
        let closed = rank * 100 < count * 60;
        let random = &mut self.random;
        // Microseconds make every instant different, as they are in life.
        let made = BEGIN_NANOS
            + i64::try_from(rank)? * 4 * MINUTE_NANOS
            + i64::try_from(random.below(1_000_000))? * 1_000;
        let changed = made + i64::try_from(random.below(20_000))? * MINUTE_NANOS;
        let instant = |nanos| Timestamp::from_nanos(nanos);
        let status = match random.below(100) {
            _ if closed => "closed",
            0..5 => "in_progress",
            5..7 => "deferred",
            _ => "open",
        };
        let kind = if self.epics[bead] {
            "epic"
        } else {
            random.pick(&["task", "task", "task", "bug", "feature", "chore"])
        };
        let title_words = 4 + random.below(8);
        let text_words = 10 + random.below(70);
        let mut line = format!(
            r#"{{"_type":"issue","id":"{id}","title":"{}","description":"{}","status":"{status}","priority":{},"issue_type":"{kind}","created_at":"{}","created_by":"{}","updated_at":"{}""#,
            random.words(title_words),
            random.words(text_words),
            [0, 1, 1, 2, 2, 2, 2, 3, 3, 4][random.below(10)],
            instant(made),
            random.pick(&PEOPLE),
            instant(changed),
        );
        if status == "in_progress" || random.percent(30) {
            write!(line, r#","assignee":"{}""#, random.pick(&PEOPLE))?;
        }
        if closed {
            let reason = random.words(5);
            write!(line, r#","closed_at":"{}","close_reason":"{reason}""#, instant(changed))?;
        }
        if random.percent(20) {
            let words = 10 + random.below(40);
            write!(line, r#","notes":"{}""#, random.words(words))?;
        }
        if random.percent(5) {
            let metadata = random.below(1000);
            write!(line, r#","metadata":{{"branch":"work/{id}","attempt":{metadata}}}"#)?;
        }
        if random.percent(50) {
            let first = random.below(LABELS.len());
            let labels: Vec<String> = (0..=random.below(3))
                .map(|next| format!(r#""{}""#, LABELS[(first + next) % LABELS.len()]))
                .collect();
            write!(line, r#","labels":[{}]"#, labels.join(","))?;
        }
        let edges: Vec<String> = self.edges[bead]
            .iter()
            .map(|(target, kind)| {
                format!(
                    r#"{{"issue_id":"{id}","depends_on_id":"{}","type":"{kind}","created_at":"{}","created_by":"{}","metadata":"{{}}"}}"#,
                    self.ids[*target],
                    instant(made),
                    random.pick(&PEOPLE),
                )
            })
            .collect();
        if !edges.is_empty() {
            write!(line, r#","dependencies":[{}]"#, edges.join(","))?;
        }
        if random.percent(10) {
            let comments: Vec<String> = (0..=random.below(3))
                .map(|_| {
                    let (a, b) = (random.number(), random.number());
                    let words = 5 + random.below(30);
                    format!(
                        r#"{{"id":"{:08x}-{:04x}-7{:03x}-a{:03x}-{:012x}","issue_id":"{id}","author":"{}","text":"{}","created_at":"{}"}}"#,
                        a >> 32,
                        (a >> 16) & 0xffff,
                        a & 0xfff,
                        b >> 52,
                        b & 0xffff_ffff_ffff,
                        random.pick(&PEOPLE),
                        random.words(words),
                        instant(changed),
                    )
                })
                .collect();
            write!(line, r#","comments":[{}]"#, comments.join(","))?;
        }
        line.push('}');
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bead_depends_on_three_others_of_lower_rank() {
        let sample = Sample::new(500);
        let edges: Vec<(usize, usize)> = (0..500)
            .flat_map(|bead| sample.edges[bead].iter().map(move |edge| (bead, edge.0)))
            .collect();
        assert_eq!(edges.len(), 1_500);
        assert!(edges.iter().all(|(bead, target)| sample.ranks[*target] < sample.ranks[*bead]));
        assert!(edges.iter().any(|(bead, target)| target < bead));
        assert!(edges.iter().any(|(bead, target)| target > bead));
    }

    #[test]
    fn the_file_is_the_same_every_time() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name| {
            let path = directory.path().join(name);
            Sample::new(100).write(&path).unwrap();
            std::fs::read_to_string(path).unwrap()
        };
        let text = write("one");
        assert_eq!(text, write("two"));
        assert_eq!(text.lines().count(), 100);
        assert_eq!(text.matches(r#""status":"closed""#).count(), 60);
        assert_eq!(text.matches(r#""depends_on_id":"#).count(), 300);
    }
}
