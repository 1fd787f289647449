//! The numbers a loop goes through: `1..5`, `0..2^3-1`.

use super::problem::shown;
use crate::Invalid;

/// How deep parentheses may nest.
const DEPTH_MAX: usize = 32;

/// Reads `from..to`; both ends belong to it.
pub(super) fn parse(text: &str) -> Result<(i64, i64), Invalid> {
    let (from, to) = text
        .split_once("..")
        .ok_or_else(|| Invalid(format!("the range {} is not of the form 1..5", shown(text))))?;
    let (from, to) = (evaluate(from)?, evaluate(to)?);
    if to < from {
        return Err(Invalid(format!("the range {} ends before it begins", shown(text))));
    }
    Ok((from, to))
}

/// A whole number computed with + - * / ^ and parentheses.
fn evaluate(text: &str) -> Result<i64, Invalid> {
    let mut parser = RangeParser { text, rest: text, depth: 0 };
    let value = parser.sum()?;
    parser.skip_space();
    if parser.rest.is_empty() { Ok(value) } else { Err(parser.invalid()) }
}

struct RangeParser<'a> {
    text: &'a str,
    rest: &'a str,
    depth: usize,
}

impl RangeParser<'_> {
    fn invalid(&self) -> Invalid {
        Invalid(format!(
            "{} is not a number in a range; use whole numbers, + - * / ^ and parentheses",
            shown(self.text.trim())
        ))
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, operator: char) -> bool {
        self.skip_space();
        let rest = self.rest.strip_prefix(operator);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn sum(&mut self) -> Result<i64, Invalid> {
        let mut value = self.product()?;
        loop {
            let computed = if self.take('+') {
                value.checked_add(self.product()?)
            } else if self.take('-') {
                value.checked_sub(self.product()?)
            } else {
                return Ok(value);
            };
            value = computed.ok_or_else(|| self.invalid())?;
        }
    }

    fn product(&mut self) -> Result<i64, Invalid> {
        let mut value = self.power()?;
        loop {
            let computed = if self.take('*') {
                value.checked_mul(self.power()?)
            } else if self.take('/') {
                value.checked_div(self.power()?)
            } else {
                return Ok(value);
            };
            value = computed.ok_or_else(|| self.invalid())?;
        }
    }

    fn power(&mut self) -> Result<i64, Invalid> {
        let base = self.atom()?;
        if !self.take('^') {
            return Ok(base);
        }
        self.deeper(Self::power).and_then(|exponent| {
            let exponent = u32::try_from(exponent).map_err(|_| self.invalid())?;
            base.checked_pow(exponent).ok_or_else(|| self.invalid())
        })
    }

    fn atom(&mut self) -> Result<i64, Invalid> {
        if self.take('(') {
            let value = self.deeper(Self::sum)?;
            return if self.take(')') { Ok(value) } else { Err(self.invalid()) };
        }
        if self.take('-') {
            let value = self.deeper(Self::atom)?;
            return value.checked_neg().ok_or_else(|| self.invalid());
        }
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits.parse().map_err(|_| self.invalid())
    }

    fn deeper(&mut self, parse: fn(&mut Self) -> Result<i64, Invalid>) -> Result<i64, Invalid> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.invalid());
        }
        let value = parse(self);
        self.depth -= 1;
        value
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_ends_are_computed() {
        for (text, expected) in [
            ("1..5", (1, 5)),
            ("1..2^3-1", (1, 7)),
            ("-2 .. (1+2)*3", (-2, 9)),
            ("0..2^3^2", (0, 512)),
            ("7/2..4", (3, 4)),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn an_invalid_range_is_refused() {
        let deep = format!("1..{}1", "(".repeat(1000));
        for text in ["", "1", "1..", "..2", "5..1", "1..x", "1..2^99", "1..1/0", "1...3", &deep] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-0-9+*/^(). a]{0,40}") {
            let _ = parse(&text);
        }
    }
}
