//! The prices of the tokens of models.

use super::TokenCounts;
use crate::Invalid;
use crate::schedule::Money;

/// When the built-in prices were looked up.
const AS_OF: &str = "2025-12-01";

/// Prices of one million tokens, in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Tokens that are read.
    pub input: Money,
    /// Tokens that are written, also those of thinking.
    pub output: Money,
    /// Tokens that are read from a cache.
    pub cache_read: Money,
    /// Tokens that are put into a cache.
    pub cache_write: Money,
}

impl Price {
    /// Prices in thousandths of a dollar.
    const fn of(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Self {
        Self {
            input: Money(input * 1_000),
            output: Money(output * 1_000),
            cache_read: Money(cache_read * 1_000),
            cache_write: Money(cache_write * 1_000),
        }
    }

    /// Reads `3/15`, or `3/15/0.3/3.75` with the prices of a cache: dollars for a million tokens. Without them, a cache costs as
    /// much as input.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let wrong = || {
            Invalid::new(format!(
                "{text:?} is no price; say what a million tokens cost, read and written (3/15), or also from and into a \
                 cache (3/15/0.3/3.75)"
            ))
        };
        let parts: Option<Vec<Money>> =
            text.split('/').map(|part| Money::parse(part.trim())).collect();
        match parts.as_deref() {
            Some([input, output]) => {
                Ok(Self { input: *input, output: *output, cache_read: *input, cache_write: *input })
            }
            Some([input, output, cache_read, cache_write]) => Ok(Self {
                input: *input,
                output: *output,
                cache_read: *cache_read,
                cache_write: *cache_write,
            }),
            _ => Err(wrong()),
        }
    }

    /// The cost of tokens.
    pub fn of_tokens(&self, tokens: &TokenCounts) -> Money {
        let TokenCounts { input, output, cache_read, cache_write, reasoning } = *tokens;
        let parts = [
            (input, self.input),
            (output, self.output),
            (reasoning, self.output),
            (cache_read, self.cache_read),
            (cache_write, self.cache_write),
        ];
        let sum: u128 =
            parts.iter().map(|(count, price)| u128::from(*count) * u128::from(price.0)).sum();
        Money(u64::try_from(sum / 1_000_000).unwrap_or(u64::MAX))
    }
}

/// The built-in prices, by the beginning of the name of a model.
const BUILT_IN: &[(&str, Price)] = &[
    ("claude-opus-4-5", Price::of(5_000, 25_000, 500, 6_250)),
    ("claude-opus-4-1", Price::of(15_000, 75_000, 1_500, 18_750)),
    ("claude-opus-4", Price::of(15_000, 75_000, 1_500, 18_750)),
    ("claude-sonnet-4-5", Price::of(3_000, 15_000, 300, 3_750)),
    ("claude-sonnet-4", Price::of(3_000, 15_000, 300, 3_750)),
    ("claude-3-7-sonnet", Price::of(3_000, 15_000, 300, 3_750)),
    ("claude-3-5-sonnet", Price::of(3_000, 15_000, 300, 3_750)),
    ("claude-haiku-4-5", Price::of(1_000, 5_000, 100, 1_250)),
    ("claude-3-5-haiku", Price::of(800, 4_000, 80, 1_000)),
    ("gpt-5", Price::of(1_250, 10_000, 125, 1_250)),
    ("gpt-5-codex", Price::of(1_250, 10_000, 125, 1_250)),
    ("gpt-5-mini", Price::of(250, 2_000, 25, 250)),
    ("gpt-5-nano", Price::of(50, 400, 5, 50)),
    ("gpt-5.1", Price::of(1_250, 10_000, 125, 1_250)),
    ("gpt-5.1-codex", Price::of(1_250, 10_000, 125, 1_250)),
    ("gpt-5.1-codex-mini", Price::of(250, 2_000, 25, 250)),
    ("gpt-4.1", Price::of(2_000, 8_000, 500, 2_000)),
    ("gpt-4.1-mini", Price::of(400, 1_600, 100, 400)),
    ("gpt-4.1-nano", Price::of(100, 400, 25, 100)),
    ("gpt-4o", Price::of(2_500, 10_000, 1_250, 2_500)),
    ("gpt-4o-mini", Price::of(150, 600, 75, 150)),
    ("o3", Price::of(2_000, 8_000, 500, 2_000)),
    ("o4-mini", Price::of(1_100, 4_400, 275, 1_100)),
    ("gemini-3-pro", Price::of(2_000, 12_000, 200, 2_000)),
    ("gemini-2.5-pro", Price::of(1_250, 10_000, 125, 1_250)),
    ("gemini-2.5-flash", Price::of(300, 2_500, 30, 300)),
    ("gemini-2.5-flash-lite", Price::of(100, 400, 10, 100)),
    ("deepseek-chat", Price::of(280, 420, 28, 280)),
    ("deepseek-reasoner", Price::of(280, 420, 28, 280)),
];

/// The prices of models: those that a person set, and the built-in ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceTable {
    /// The names of models with the prices that a person set.
    pub set: Vec<(String, Price)>,
}

impl PriceTable {
    /// Reads `gpt-5=1.25/10, home-made=0/0`; empty for the built-in prices alone.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut set: Vec<(String, Price)> = Vec::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let parts = entry.split_once('=').map(|(model, price)| (model.trim(), price));
            let Some((model, price)) = parts.filter(|(model, _)| !model.is_empty()) else {
                return Err(Invalid::new(format!(
                    "{entry:?} is not the price of a model; write it like gpt-5=1.25/10"
                )));
            };
            if set.iter().any(|(known, _)| known.eq_ignore_ascii_case(model)) {
                return Err(Invalid::new(format!("{model} has two prices")));
            }
            set.push((model.to_owned(), Price::parse(price)?));
        }
        Ok(Self { set })
    }

    /// When the built-in prices were looked up.
    pub fn as_of() -> &'static str {
        AS_OF
    }

    /// The price of a model.
    pub fn price(&self, model: &str) -> Option<Price> {
        let name = model.to_ascii_lowercase();
        let set = self.set.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name));
        if let Some((_, price)) = set {
            return Some(*price);
        }
        // Services that pass requests on put the vendor in front: `anthropic/claude-…`, `us.anthropic.claude-…`.
        let name = name.rsplit('/').next().unwrap_or_default();
        let name = name.rsplit_once("anthropic.").map_or(name, |(_, name)| name);
        let known = BUILT_IN.iter().find(|(known, _)| is_version_of(name, known));
        known.map(|(_, price)| *price)
    }

    /// The cost of tokens of a model, if its price is known.
    pub fn cost(&self, model: &str, tokens: &TokenCounts) -> Option<Money> {
        Some(self.price(model)?.of_tokens(tokens))
    }
}

impl std::fmt::Display for Price {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}/{}", self.input, self.output, self.cache_read, self.cache_write)
    }
}

impl std::fmt::Display for PriceTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let entries: Vec<String> =
            self.set.iter().map(|(model, price)| format!("{model}={price}")).collect();
        f.write_str(&entries.join(","))
    }
}

/// Whether a name is that of a model, or of one of its dated versions: `gpt-5-2025-08-07`, `claude-opus-4-1@20250805`. Another
/// word behind it is another model.
fn is_version_of(name: &str, model: &str) -> bool {
    let Some(rest) = name.strip_prefix(model) else { return false };
    let is_date = |text: &str| {
        text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    match rest.chars().next() {
        None | Some('@' | ':' | '[') => true,
        Some('-') => {
            let version = rest.split(['@', ':', '[']).next().unwrap_or(rest);
            let version = &version[1..];
            is_date(version)
                || version == "latest"
                || version.starts_with("preview")
                // The form of Bedrock: `claude-opus-4-1-20250805-v1:0`.
                || version.rsplit_once("-v").is_some_and(|(date, _)| is_date(date))
        }
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn input_price(model: &str) -> Option<u64> {
        PriceTable::default().price(model).map(|price| price.input.0 / 1_000)
    }

    #[test]
    fn versions_of_a_model_have_its_price_and_other_models_do_not() {
        for (model, price) in [
            ("claude-opus-4-5-20251101", Some(5_000)),
            ("claude-opus-4-20250514", Some(15_000)),
            ("claude-opus-4-7", None),
            ("Claude-Sonnet-4-5", Some(3_000)),
            ("claude-sonnet-4-5[1m]", Some(3_000)),
            ("anthropic/claude-sonnet-4", Some(3_000)),
            ("us.anthropic.claude-opus-4-1-20250805-v1:0", Some(15_000)),
            ("claude-3-5-haiku@20241022", Some(800)),
            ("gpt-5-2025-08-07", Some(1_250)),
            ("gpt-5-mini", Some(250)),
            ("gpt-5-turbo", None),
            ("gpt-50", None),
            ("gemini-3-pro-preview-11-2025", Some(2_000)),
            ("openai/gpt-5.1-codex", Some(1_250)),
            ("fake-model", None),
            ("", None),
        ] {
            assert_eq!(input_price(model), price, "{model}");
        }
    }

    #[test]
    fn a_price_that_was_set_comes_first() {
        let price = Price::parse("0.5/2").unwrap();
        let table = PriceTable { set: vec![("GPT-5".to_owned(), price)] };
        assert_eq!(table.price("gpt-5"), Some(price));
        assert_eq!(table.price("gpt-5-mini"), PriceTable::default().price("gpt-5-mini"));
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        let tokens = TokenCounts {
            input: 1_000_000,
            output: 100_000,
            cache_read: 2_000_000,
            cache_write: 1_000_000,
            reasoning: 100_000,
        };
        let price = Price::parse("3/15/0.3/3.75").unwrap();
        assert_eq!(price.of_tokens(&tokens).to_string(), "10.35");
    }

    #[test]
    fn a_list_of_prices_reads_back() {
        let table = PriceTable::parse("gpt-5=1.25/10, home-made = 0/0").unwrap();
        assert_eq!(PriceTable::parse(&table.to_string()), Ok(table));
        assert_eq!(PriceTable::parse(""), Ok(PriceTable::default()));
        for text in ["gpt-5", "=1/2", "a=1/2,A=1/2", "a=1"] {
            assert!(PriceTable::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nonsense_is_no_price() {
        for text in ["", "3", "3/x", "3/15/1", "-1/2", "1/2/3/4/5"] {
            assert!(Price::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_model_and_no_count_makes_it_panic(model in ".{0,40}", count in any::<u64>()) {
            let tokens = TokenCounts { input: count, output: count, ..TokenCounts::default() };
            let _ = PriceTable::default().cost(&model, &tokens);
            let price = Price::parse("3/15").unwrap();
            let _ = price.of_tokens(&tokens);
        }
    }
}
