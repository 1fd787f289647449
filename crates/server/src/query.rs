//! The query of a request.

use std::collections::BTreeMap;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::problem::{PendingProblem, RequestProblem};

/// How many items a page of a view has if nothing is said, and at most.
const PAGE_ITEMS_DEFAULT: usize = 100;
const PAGE_ITEMS_MAX: usize = 500;

/// The parameters of a request. Each is taken once; a parameter that is left over was not understood.
#[derive(Debug, Default)]
pub(crate) struct QueryParameters {
    values: BTreeMap<String, Vec<String>>,
}

impl QueryParameters {
    /// Takes a parameter that may be there once.
    pub(crate) fn take(&mut self, name: &str) -> Result<Option<String>, Box<RequestProblem>> {
        let mut values = self.values.remove(name).unwrap_or_default();
        if values.len() > 1 {
            return Err(RequestProblem::malformed_field(
                name,
                "this is given more than once; give it once",
            ));
        }
        Ok(values.pop())
    }

    /// Takes a number.
    pub(crate) fn take_number(&mut self, name: &str) -> Result<Option<u64>, Box<RequestProblem>> {
        let wrong = |text: &str| {
            RequestProblem::malformed_field(name, format!("\"{text}\" is no whole number"))
        };
        self.take(name)?.map(|text| text.parse().map_err(|_| wrong(&text))).transpose()
    }

    /// Takes the largest number of items of a page: 100 unless said otherwise, at most 500.
    pub(crate) fn take_limit(&mut self) -> Result<usize, Box<RequestProblem>> {
        match self.take_number("limit")? {
            None => Ok(PAGE_ITEMS_DEFAULT),
            Some(limit) => usize::try_from(limit)
                .ok()
                .filter(|limit| (1..=PAGE_ITEMS_MAX).contains(limit))
                .ok_or_else(|| {
                    let detail = format!("{limit} is not between 1 and {PAGE_ITEMS_MAX}");
                    RequestProblem::malformed_field("limit", detail)
                }),
        }
    }

    /// Refuses parameters that were not taken. `known` lists the valid ones.
    pub(crate) fn finish(self, known: &[&str]) -> Result<(), Box<RequestProblem>> {
        match self.values.into_keys().next() {
            None => Ok(()),
            Some(name) => {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(RequestProblem::malformed_field(
                    &name,
                    format!("there is no such parameter here; possible are: {known}"),
                ))
            }
        }
    }
}

impl<S: Sync> FromRequestParts<S> for QueryParameters {
    type Rejection = PendingProblem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, PendingProblem> {
        let mut query = Self::default();
        let text = parts.uri.query().unwrap_or_default();
        for pair in text.split('&') {
            for (name, value) in form_urlencoded::parse(pair.as_bytes()) {
                if !is_text(pair, &name) || !is_text(pair, &value) {
                    return Err(RequestProblem::malformed_field(&name, "this is not UTF-8").into());
                }
                query.values.entry(name.into_owned()).or_default().push(value.into_owned());
            }
        }
        Ok(query)
    }
}

/// Whether `read` is what was written in `pair`: what is no text is read as replacement characters, and looking for those
/// would find nothing, or something else.
fn is_text(pair: &str, read: &str) -> bool {
    const REPLACEMENT: &str = "%EF%BF%BD";
    !read.contains('\u{FFFD}')
        || pair.contains('\u{FFFD}')
        || pair.to_ascii_uppercase().contains(REPLACEMENT)
}
