//! From words to an expression.

use super::error::QueryError;
use super::expression::{Comparison, Expression, FieldCondition, Query, TextTest, TimeTest};
use super::field::{FIELDS, Field, Flag, METADATA, NumberField, TextField, TimeField, lookup};
use super::lexer::{QueryToken, Sign, TokenKind, tokens};
use crate::time::parse_duration;
use crate::{Invalid, IssueType, Outcome, Priority, Status, Timestamp, limits};

impl Query {
    /// Reads a query as a person writes it; relative times count from `now`.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, QueryError> {
        if text.len() > limits::QUERY_BYTES_MAX {
            let message = format!("a query has at most {} bytes", limits::QUERY_BYTES_MAX);
            return Err(QueryError::new("", 1, message));
        }
        let tokens = tokens(text)?;
        let mut parser = QueryParser { text, now, tokens, at: 0, depth: 0, conditions: 0 };
        let expression = parser.any()?;
        match parser.peek() {
            TokenKind::End => Ok(Self { expression, now }),
            TokenKind::Close => {
                Err(parser.unexpected("no parenthesis is open that this could close"))
            }
            _ => Err(parser.expected("AND, OR or the end")),
        }
    }
}

struct QueryParser<'t> {
    text: &'t str,
    now: Timestamp,
    tokens: Vec<QueryToken>,
    at: usize,
    depth: usize,
    conditions: usize,
}

/// A value and where it stands.
struct ParsedValue {
    column: usize,
    text: String,
    quoted: bool,
}

impl ParsedValue {
    /// Whether it means that there is nothing.
    fn is_none(&self) -> bool {
        self.text.is_empty() || (!self.quoted && self.text.eq_ignore_ascii_case("none"))
    }
}

impl QueryParser<'_> {
    fn token(&self) -> &QueryToken {
        // The last token is the end, and nothing steps past it.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> &TokenKind {
        &self.token().kind
    }

    fn next(&mut self) -> QueryToken {
        let token = self.token().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn unexpected(&self, message: impl Into<String>) -> QueryError {
        QueryError::new(self.text, self.token().column, message)
    }

    fn expected(&self, what: &str) -> QueryError {
        self.unexpected(format!("expected {what}, found {}", self.peek().describe()))
    }

    /// Takes a keyword, in any case, if it comes next.
    fn keyword(&mut self, keyword: &str) -> bool {
        let found =
            matches!(self.peek(), TokenKind::Word(word) if word.eq_ignore_ascii_case(keyword));
        if found {
            self.next();
        }
        found
    }

    fn any(&mut self) -> Result<Expression, QueryError> {
        let mut parts = vec![self.all()?];
        while self.keyword("OR") {
            parts.push(self.all()?);
        }
        Ok(one_or(parts, Expression::Any))
    }

    fn all(&mut self) -> Result<Expression, QueryError> {
        let mut parts = vec![self.one()?];
        while self.keyword("AND") {
            parts.push(self.one()?);
        }
        Ok(one_or(parts, Expression::All))
    }

    fn one(&mut self) -> Result<Expression, QueryError> {
        self.depth += 1;
        if self.depth > limits::QUERY_DEPTH_MAX {
            return Err(self.unexpected("this is nested too deeply"));
        }
        let found = if self.keyword("NOT") {
            Expression::Not(Box::new(self.one()?))
        } else if *self.peek() == TokenKind::Open {
            self.next();
            let inner = self.any()?;
            if *self.peek() != TokenKind::Close {
                return Err(self.expected("AND, OR or )"));
            }
            self.next();
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(found)
    }

    /// `field`, `field = value` or `field = value, value`.
    fn comparison(&mut self) -> Result<Expression, QueryError> {
        let field = match self.peek() {
            TokenKind::Word(name) => match lookup(name) {
                Some(field) => field,
                None => return Err(self.unknown_field(name)),
            },
            _ => return Err(self.expected("a field, NOT or (")),
        };
        let name = self.next();
        let sign = match (self.peek(), &field) {
            (TokenKind::Sign(sign), _) => *sign,
            (_, Field::Flag(flag)) => return self.count(FieldCondition::Flag(*flag)),
            _ => {
                let what = format!("one of = != < <= > >= ~ after {}", name.kind.describe());
                return Err(self.expected(&what));
            }
        };
        let sign_at = self.next().column;
        self.check_sign(&field, sign, sign_at)?;
        let mut parts = vec![self.condition(&field, sign)?];
        while *self.peek() == TokenKind::Comma {
            if !matches!(sign, Sign::Equal | Sign::NotEqual) {
                let message =
                    format!("a list of values goes with = or !=, not with {}", sign.as_str());
                return Err(self.unexpected(message));
            }
            self.next();
            parts.push(self.condition(&field, sign)?);
        }
        let found = one_or(parts, Expression::Any);
        Ok(if sign == Sign::NotEqual { Expression::Not(Box::new(found)) } else { found })
    }

    fn unknown_field(&self, name: &str) -> QueryError {
        let names: Vec<&str> = FIELDS.iter().map(|field| field.names[0]).collect();
        let shown: String = name.chars().take(40).collect();
        self.unexpected(format!(
            "\"{}\" is not a field; known are {} and {METADATA}KEY",
            shown.escape_debug(),
            names.join(", ")
        ))
    }

    fn check_sign(&self, field: &Field, sign: Sign, column: usize) -> Result<(), QueryError> {
        let understood: &[Sign] = match field {
            Field::Text(_) => &[Sign::Equal, Sign::NotEqual, Sign::Contains],
            Field::Number(_) | Field::Time(_) => &[
                Sign::Equal,
                Sign::NotEqual,
                Sign::Less,
                Sign::AtMost,
                Sign::Greater,
                Sign::AtLeast,
            ],
            Field::Flag(_) => &[Sign::Equal, Sign::NotEqual],
        };
        if understood.contains(&sign) {
            return Ok(());
        }
        let signs: Vec<&str> = understood.iter().map(|sign| sign.as_str()).collect();
        let name = super::field::name_of(field);
        let message = format!("{name} understands {}, not {}", signs.join(" "), sign.as_str());
        Err(QueryError::new(self.text, column, message))
    }

    fn count(&mut self, condition: FieldCondition) -> Result<Expression, QueryError> {
        self.conditions += 1;
        if self.conditions > limits::QUERY_CONDITIONS_MAX {
            let message =
                format!("a query has at most {} conditions", limits::QUERY_CONDITIONS_MAX);
            return Err(self.unexpected(message));
        }
        Ok(Expression::Is(condition))
    }

    fn condition(&mut self, field: &Field, sign: Sign) -> Result<Expression, QueryError> {
        let column = self.token().column;
        let value = match self.peek().clone() {
            TokenKind::Word(text) => ParsedValue { column, text, quoted: false },
            TokenKind::Quoted(text) => ParsedValue { column, text, quoted: true },
            _ => return Err(self.expected(&format!("a value after {}", sign.as_str()))),
        };
        self.next();
        let condition = match field {
            Field::Text(field) => FieldCondition::Text {
                field: field.clone(),
                test: self.text_test(field, sign, value)?,
            },
            Field::Number(field) => FieldCondition::Number {
                field: *field,
                test: self.number_test(*field, sign, &value)?,
            },
            Field::Time(field) => {
                FieldCondition::Time { field: *field, test: self.time_test(*field, sign, &value)? }
            }
            Field::Flag(flag) => return self.flag(*flag, &value),
        };
        self.count(condition)
    }

    fn text_test(
        &self,
        field: &TextField,
        sign: Sign,
        value: ParsedValue,
    ) -> Result<TextTest, QueryError> {
        if sign == Sign::Contains {
            if value.text.is_empty() {
                return Err(self.wrong(&value, "expected some text to look for after ~"));
            }
            return Ok(TextTest::Contains(value.text));
        }
        if value.is_none() {
            return Ok(TextTest::Empty);
        }
        if field.is_prose() {
            return Ok(TextTest::Contains(value.text));
        }
        if !value.quoted && value.text.contains('*') {
            return Ok(TextTest::Like(value.text));
        }
        let checked = match field {
            TextField::Status => Status::parse(&value.text).map(|status| status.to_string()),
            TextField::Type => IssueType::parse(&value.text).map(|kind| kind.to_string()),
            TextField::Outcome => Outcome::parse(&value.text).map(|end| end.as_str().to_owned()),
            _ => Ok(value.text.clone()),
        };
        checked.map(TextTest::Is).map_err(|Invalid(why)| self.wrong(&value, why))
    }

    fn number_test(
        &self,
        field: NumberField,
        sign: Sign,
        value: &ParsedValue,
    ) -> Result<Option<(Comparison, i64)>, QueryError> {
        let number = match field {
            NumberField::Priority => Priority::parse(&value.text)
                .map(Priority::number)
                .map_err(|Invalid(why)| self.wrong(value, why))?,
            NumberField::Estimate if value.is_none() => {
                return self.nothing(sign, value).map(|()| None);
            }
            NumberField::Estimate => value
                .text
                .parse::<u32>()
                .map(i64::from)
                .map_err(|_| self.wrong(value, "expected a whole number of minutes, or none"))?,
        };
        Ok(Some((comparison(sign), number)))
    }

    fn time_test(
        &self,
        field: TimeField,
        sign: Sign,
        value: &ParsedValue,
    ) -> Result<TimeTest, QueryError> {
        if value.is_none() {
            if matches!(field, TimeField::Created | TimeField::Updated) {
                return Err(self.wrong(value, "every bead has this time; expected a time"));
            }
            return self.nothing(sign, value).map(|()| TimeTest::Empty);
        }
        let text = value.text.to_ascii_lowercase();
        let is_exact = matches!(sign, Sign::Equal | Sign::NotEqual);
        // The flags of other commands refuse a bare duration, so it can mean the past here without
        // meaning the future there.
        let ago = text.strip_prefix('-').unwrap_or(&text);
        if let Ok(duration) = parse_duration(ago) {
            if is_exact {
                return Err(self.never_exact(value));
            }
            return Ok(TimeTest::At(comparison(sign), self.now.minus(duration)));
        }
        if is_exact && (text == "now" || text.starts_with('+')) {
            return Err(self.never_exact(value));
        }
        let at = Timestamp::parse_relative(&text, self.now).map_err(|_| {
            let expected = "expected a time: 2026-05-31, \"2026-05-31T12:34:56Z\", today, 7d (that long ago) \
                            or +7d (from now)";
            self.wrong(value, expected)
        })?;
        let is_day =
            text.len() == "2026-05-31".len() || ["today", "tomorrow"].contains(&text.as_str());
        Ok(if is_exact && is_day { TimeTest::Day(at) } else { TimeTest::At(comparison(sign), at) })
    }

    fn never_exact(&self, value: &ParsedValue) -> QueryError {
        self.wrong(value, "nothing happens at exactly this moment; use < or >, or = with a date")
    }

    /// Nothing can be the value, but nothing is neither before nor after it.
    fn nothing(&self, sign: Sign, value: &ParsedValue) -> Result<(), QueryError> {
        match sign {
            Sign::Equal | Sign::NotEqual => Ok(()),
            _ => Err(self.wrong(value, "none goes with = or !=")),
        }
    }

    fn flag(&mut self, flag: Flag, value: &ParsedValue) -> Result<Expression, QueryError> {
        let is_set = match value.text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => true,
            "false" | "no" | "0" => false,
            _ => return Err(self.wrong(value, "expected true or false")),
        };
        let found = self.count(FieldCondition::Flag(flag))?;
        Ok(if is_set { found } else { Expression::Not(Box::new(found)) })
    }

    fn wrong(&self, value: &ParsedValue, message: impl Into<String>) -> QueryError {
        QueryError::new(self.text, value.column, message)
    }
}

/// `NotEqual` is the negation of `Equal`; the caller adds the negation.
fn comparison(sign: Sign) -> Comparison {
    match sign {
        Sign::Equal | Sign::NotEqual | Sign::Contains => Comparison::Equal,
        Sign::Less => Comparison::Less,
        Sign::AtMost => Comparison::AtMost,
        Sign::Greater => Comparison::Greater,
        Sign::AtLeast => Comparison::AtLeast,
    }
}

fn one_or(mut parts: Vec<Expression>, several: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            several(parts)
        }
    }
}
