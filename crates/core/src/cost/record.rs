//! The report of one source about one model in one session of a run.

use crate::Invalid;
use crate::schedule::Money;

/// More tokens than any session uses: a larger number is a mistake of the agent, and is not counted.
const TOKENS_MAX: u64 = 100_000_000_000;

/// Tokens by their kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// Tokens that were read and in no cache, and those whose kind is not told.
    pub input: u64,
    /// Tokens that were written, without those of thinking if they are told apart.
    pub output: u64,
    /// Tokens that were read from a cache.
    pub cache_read: u64,
    /// Tokens that were put into a cache.
    pub cache_write: u64,
    /// Tokens of thinking, if they are told apart.
    pub reasoning: u64,
}

impl TokenCounts {
    /// The sum of all kinds.
    pub fn total(&self) -> u64 {
        self.kinds().iter().fold(0, |sum: u64, kind| sum.saturating_add(*kind))
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// The larger of two, kind by kind: two readings of one counter.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.with(other, u64::max)
    }

    /// Whether a session can have used so many.
    pub fn is_plausible(&self) -> bool {
        self.total() <= TOKENS_MAX
    }

    fn kinds(&self) -> [u64; 5] {
        [self.input, self.output, self.cache_read, self.cache_write, self.reasoning]
    }

    fn with(self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        Self {
            input: join(self.input, other.input),
            output: join(self.output, other.output),
            cache_read: join(self.cache_read, other.cache_read),
            cache_write: join(self.cache_write, other.cache_write),
            reasoning: join(self.reasoning, other.reasoning),
        }
    }
}

/// Where numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageSource {
    /// The output of the agent.
    Output,
    /// The telemetry that the agent sends.
    Telemetry,
}

impl UsageSource {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Telemetry => "telemetry",
        }
    }

    /// Reads a name.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match text {
            "output" => Ok(Self::Output),
            "telemetry" => Ok(Self::Telemetry),
            _ => Err(Invalid::new(format!("{text:?} is no source of usage"))),
        }
    }
}

/// Everything that one source has said so far about one model in one session of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRecord {
    /// The session, from 1.
    pub session: u32,
    /// The model; empty if the source does not name it.
    pub model: String,
    /// The source.
    pub source: UsageSource,
    /// The tokens.
    pub tokens: TokenCounts,
    /// The cost that the agent reports.
    pub reported: Option<Money>,
    /// The cost by the table of prices when this was written, if the agent reports none and the model is known.
    pub priced: Option<Money>,
}

impl UsageRecord {
    /// Whether two are about the same counters.
    pub fn is_same_counter(&self, other: &Self) -> bool {
        (self.session, &self.model, self.source) == (other.session, &other.model, other.source)
    }
}
