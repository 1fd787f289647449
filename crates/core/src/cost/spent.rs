//! The sum of what runs have used.

use std::fmt;

use crate::schedule::Money;

/// The tokens and the money that runs have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// All tokens.
    pub tokens: u64,
    /// The cost as far as it is known.
    pub cost: Money,
    /// The tokens whose cost is unknown.
    pub unpriced: u64,
}

impl Spent {
    /// Whether nothing was reported.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Whether nothing is known of the cost.
    fn has_no_cost(&self) -> bool {
        self.cost.0 == 0 && self.unpriced > 0
    }

    /// The tokens, if any were reported.
    pub fn known_tokens(&self) -> Option<u64> {
        (self.tokens > 0).then_some(self.tokens)
    }

    /// The cost, if anything is known of it.
    pub fn known_cost(&self) -> Option<Money> {
        (!self.is_nothing() && !self.has_no_cost()).then_some(self.cost)
    }

    /// The cost for people, with a `+` if it is not all; empty if nothing is known of it.
    pub fn dollars(&self) -> String {
        if self.has_no_cost() {
            return String::new();
        }
        let more = if self.unpriced > 0 { "+" } else { "" };
        format!("{}{more}", self.cost.dollars())
    }
}

/// `$1.25 for 12000 tokens`.
impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.has_no_cost(), self.tokens) {
            (true, tokens) => write!(f, "{tokens} tokens"),
            (false, 0) => f.write_str(&self.dollars()),
            (false, tokens) => write!(f, "{} for {tokens} tokens", self.dollars()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_says_what_is_known() {
        for (tokens, cost, unpriced, words, dollars) in [
            (1_200, 1_250_000, 0, "$1.25 for 1200 tokens", "$1.25"),
            (1_200, 1_250_000, 200, "$1.25+ for 1200 tokens", "$1.25+"),
            (1_200, 0, 1_200, "1200 tokens", ""),
            (0, 250_000, 0, "$0.25", "$0.25"),
            (0, 0, 0, "$0.00", "$0.00"),
        ] {
            let spent = Spent { tokens, cost: Money(cost), unpriced };
            assert_eq!((spent.to_string().as_str(), spent.dollars().as_str()), (words, dollars));
            assert_eq!(spent.is_nothing(), tokens == 0 && cost == 0);
        }
    }
}
