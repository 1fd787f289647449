//! Licence expressions of packages: `MIT OR Apache-2.0`, `(MIT OR Zlib) AND Unicode-3.0`, and the
//! `MIT/Apache-2.0` of old manifests.

/// Whether we may use a package with this licence: of alternatives one must be allowed, of a
/// conjunction all. An expression that cannot be read is an error, and so never allowed.
pub fn is_allowed(expression: &str, allowed: &[&str]) -> Result<bool, String> {
    let tokens = tokens(expression);
    let mut parser = Parser { tokens: &tokens, allowed };
    let verdict = parser.alternatives()?;
    match parser.tokens.first() {
        None => Ok(verdict),
        Some(token) => Err(format!("unexpected `{token}`")),
    }
}

/// Words and punctuation; the old `/` comes out as the `OR` it means.
fn tokens(expression: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    for word in expression.split_whitespace() {
        for piece in word.split_inclusive(['(', ')', '/']) {
            let bare = piece.trim_end_matches(['(', ')', '/']);
            if !bare.is_empty() {
                tokens.push(bare);
            }
            match &piece[bare.len()..] {
                "" => {}
                "/" => tokens.push("OR"),
                parenthesis => tokens.push(parenthesis),
            }
        }
    }
    tokens
}

struct Parser<'a> {
    tokens: &'a [&'a str],
    allowed: &'a [&'a str],
}

impl<'a> Parser<'a> {
    /// `a OR b OR …`, which binds weakest.
    fn alternatives(&mut self) -> Result<bool, String> {
        let mut verdict = self.conjunction()?;
        while self.accept("OR") {
            // Read even when the verdict is clear: the rest has to be valid too.
            verdict |= self.conjunction()?;
        }
        Ok(verdict)
    }

    /// `a AND b AND …`
    fn conjunction(&mut self) -> Result<bool, String> {
        let mut verdict = self.operand()?;
        while self.accept("AND") {
            verdict &= self.operand()?;
        }
        Ok(verdict)
    }

    /// A licence, perhaps with an exception, or an expression in parentheses.
    fn operand(&mut self) -> Result<bool, String> {
        if self.accept("(") {
            let verdict = self.alternatives()?;
            return if self.accept(")") { Ok(verdict) } else { Err("missing `)`".to_owned()) };
        }
        let licence = self.name()?;
        if self.accept("WITH") {
            let exception = self.name()?;
            let whole = format!("{licence} WITH {exception}");
            return Ok(self.allowed.contains(&whole.as_str()));
        }
        Ok(self.allowed.contains(&licence))
    }

    fn name(&mut self) -> Result<&'a str, String> {
        match self.tokens {
            [] => Err("it ends too early".to_owned()),
            [token @ ("(" | ")" | "AND" | "OR" | "WITH"), ..] => {
                Err(format!("`{token}` where a name should be"))
            }
            [name, rest @ ..] => {
                self.tokens = rest;
                Ok(name)
            }
        }
    }

    fn accept(&mut self, wanted: &str) -> bool {
        match self.tokens {
            [token, rest @ ..] if *token == wanted => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &[&str] = &["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Zlib"];

    #[track_caller]
    fn check(expression: &str, expected: bool) {
        assert_eq!(is_allowed(expression, ALLOWED), Ok(expected), "{expression}");
    }

    #[track_caller]
    fn check_unreadable(expression: &str) {
        assert!(is_allowed(expression, ALLOWED).is_err(), "{expression}");
    }

    #[test]
    fn a_single_licence_is_looked_up() {
        check("MIT", true);
        check(" MIT ", true);
        check("GPL-3.0-only", false);
        check("MIT-0", false);
        check("mit", false);
    }

    #[test]
    fn one_alternative_is_enough() {
        check("MIT OR GPL-3.0-only", true);
        check("GPL-3.0-only OR MIT", true);
        check("MIT OR Apache-2.0 OR LGPL-2.1-or-later", true);
        check("GPL-2.0-only OR GPL-3.0-only", false);
    }

    #[test]
    fn a_conjunction_needs_all() {
        check("MIT AND Zlib", true);
        check("MIT AND MPL-2.0", false);
        check("MPL-2.0 AND MIT", false);
    }

    #[test]
    fn and_binds_stronger_than_or() {
        check("MIT OR Zlib AND MPL-2.0", true);
        check("MPL-2.0 AND MIT OR Zlib", true);
        check("MPL-2.0 AND Zlib OR GPL-3.0-only", false);
    }

    #[test]
    fn parentheses_group() {
        check("(MIT OR Zlib) AND MPL-2.0", false);
        check("(MIT OR MPL-2.0) AND Zlib", true);
        check("((MIT))", true);
        check("MPL-2.0 OR (MIT AND (GPL-3.0-only OR Zlib))", true);
    }

    #[test]
    fn the_old_slash_is_an_or() {
        check("MIT/Apache-2.0", true);
        check("MPL-2.0 / MIT", true);
        check("MPL-2.0/GPL-3.0-only", false);
        check("(MIT/MPL-2.0) AND Zlib", true);
    }

    #[test]
    fn an_exception_belongs_to_its_licence() {
        check("Apache-2.0 WITH LLVM-exception", true);
        check("Apache-2.0 WITH LLVM-exception OR GPL-3.0-only", true);
        check("MIT WITH LLVM-exception", false);
        check("GPL-2.0-only WITH Classpath-exception-2.0", false);
    }

    #[test]
    fn an_unreadable_expression_is_an_error() {
        for expression in [
            "",
            " ",
            "OR",
            "MIT OR",
            "AND MIT",
            "MIT Zlib",
            "(MIT",
            "MIT)",
            "()",
            "MIT WITH",
            "WITH LLVM-exception",
            "MIT AND OR Zlib",
            "MIT//Zlib",
            "/",
            "MIT OR )",
        ] {
            check_unreadable(expression);
        }
    }

    #[test]
    fn a_clear_verdict_does_not_hide_nonsense_behind_it() {
        check_unreadable("MIT OR (Zlib");
        check_unreadable("MPL-2.0 AND )");
    }
}
