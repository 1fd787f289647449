//! The body of a request.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::BytesMut;
use futures_util::StreamExt as _;
use gt_api::FieldError;
use gt_core::Json;
use gt_core::message::MessageBody;

use crate::auth::RequestCaller;
use crate::config::ServerLimits;
use crate::problem::{PendingProblem, RequestProblem};
use crate::service::SharedService;

/// A request to change something.
pub(crate) struct ChangeRequest {
    pub(crate) service: SharedService,
    pub(crate) caller: RequestCaller,
    /// JSON, not looked at any further.
    pub(crate) body: Json,
}

impl FromRequest<SharedService> for ChangeRequest {
    type Rejection = PendingProblem;

    async fn from_request(
        request: Request,
        service: &SharedService,
    ) -> Result<Self, PendingProblem> {
        let Some(caller) = request.extensions().get::<RequestCaller>().cloned() else {
            return Err(RequestProblem::broken("the caller of a request is not known").into());
        };
        check_type(request.headers())?;
        let limits = service.limits;
        let announced = request.headers().get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > limits.body_bytes as u64) {
            return Err(too_large(&limits).into());
        }
        let reading = tokio::time::timeout(limits.body, read(request.into_body(), &limits));
        let text = reading.await.map_err(|_| too_slow(&limits))??;
        let body =
            Json::parse(&text).map_err(|wrong| RequestProblem::malformed(wrong.to_string()))?;
        Ok(Self { service: SharedService::clone(service), caller, body })
    }
}

/// Only JSON is read, so that a page of others cannot make a browser send something that we would take for it.
fn check_type(headers: &HeaderMap) -> Result<(), Box<RequestProblem>> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok());
    let essence = given.map(|given| given.split(';').next().unwrap_or_default().trim());
    let is_json = essence.is_some_and(|essence| {
        essence.eq_ignore_ascii_case("application/json")
            || essence.to_ascii_lowercase().ends_with("+json")
    });
    if is_json {
        return Ok(());
    }
    Err(RequestProblem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "not-json",
        "the body must be JSON and say so with Content-Type: application/json",
    ))
}

async fn read(body: Body, limits: &ServerLimits) -> Result<String, Box<RequestProblem>> {
    let mut stream = body.into_data_stream();
    let mut bytes = BytesMut::new();
    while let Some(part) = stream.next().await {
        let part =
            part.map_err(|_| RequestProblem::malformed("the body ended too early").closing())?;
        if bytes.len() + part.len() > limits.body_bytes {
            return Err(too_large(limits));
        }
        bytes.extend_from_slice(&part);
    }
    String::from_utf8(bytes.into()).map_err(|_| RequestProblem::malformed("the body is not UTF-8"))
}

fn too_large(limits: &ServerLimits) -> Box<RequestProblem> {
    RequestProblem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too-large",
        format!(
            "the body is larger than {} bytes; send less, in several requests",
            limits.body_bytes
        ),
    )
    .closing()
}

fn too_slow(limits: &ServerLimits) -> Box<RequestProblem> {
    RequestProblem::new(
        StatusCode::REQUEST_TIMEOUT,
        "too-slow",
        format!("the body did not arrive within {} s", limits.body.as_secs()),
    )
    .closing()
}

/// The fields of an object. Each is taken once; a field that is left over is unknown. All faults are collected, so
/// that a client hears all of them at once.
#[derive(Debug)]
pub(crate) struct BodyFields {
    given: Vec<(String, Json)>,
    known: Vec<&'static str>,
    /// Where the object stands in the body, before the name of each field.
    place: String,
    wrong: Vec<FieldError>,
}

impl BodyFields {
    /// The fields of this object, which stands at `place` in the body.
    pub(crate) fn of(json: &Json, place: &str) -> Result<Self, Box<RequestProblem>> {
        let fields = json.fields();
        let given = fields.ok_or_else(|| {
            let field = if place.is_empty() { "body" } else { place.trim_end_matches('.') };
            RequestProblem::invalid_field(field, "this must be a JSON object")
        })?;
        Ok(Self { given, known: Vec::new(), place: place.to_owned(), wrong: Vec::new() })
    }

    /// Says what is wrong with a field.
    pub(crate) fn wrong(&mut self, name: &str, detail: impl Into<String>) {
        let field = format!("{}{name}", self.place);
        self.wrong.push(FieldError { field, detail: detail.into() });
    }

    fn raw(&mut self, name: &'static str) -> Option<Json> {
        self.known.push(name);
        let at = self.given.iter().position(|(given, _)| given == name)?;
        Some(self.given.swap_remove(at).1)
    }

    /// A value of any kind, unless it is missing or `null`.
    pub(crate) fn any(&mut self, name: &'static str) -> Option<Json> {
        self.raw(name).filter(|json| json.as_str() != "null")
    }

    /// A field that can also be emptied: nothing if it is missing, and nothing in it if it is `null`.
    #[expect(clippy::option_option, reason = "missing, null and a value are three things")]
    pub(crate) fn clearable(&mut self, name: &'static str) -> Option<Option<Json>> {
        self.raw(name).map(|json| Some(json).filter(|json| json.as_str() != "null"))
    }

    /// Text, unless it is missing or `null`.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        let json = self.any(name)?;
        self.text_in(name, &json)
    }

    /// The text that this is, or it is wrong.
    pub(crate) fn text_in(&mut self, name: &'static str, json: &Json) -> Option<String> {
        let text = json.to_text();
        if text.is_none() {
            self.wrong(name, "this must be text");
        }
        text
    }

    /// Text that must be there.
    pub(crate) fn required(&mut self, name: &'static str) -> String {
        let before = self.wrong.len();
        let text = self.text(name);
        if text.is_none() && self.wrong.len() == before {
            self.wrong(name, "this is required");
        }
        text.unwrap_or_default()
    }

    /// Words that must be there and must not be blank.
    pub(crate) fn required_words(&mut self, name: &'static str) -> String {
        let before = self.wrong.len();
        let words = self.required(name);
        if self.wrong.len() == before && words.trim().is_empty() {
            self.wrong(name, "this must not be blank");
        }
        if let Err(wrong) = MessageBody::parse(&words) {
            self.wrong(name, wrong.to_string());
        }
        words
    }

    /// A whole number, unless it is missing or `null`.
    pub(crate) fn integer(&mut self, name: &'static str) -> Option<i64> {
        let json = self.any(name)?;
        let number = whole(json.as_str());
        if number.is_none() {
            self.wrong(name, "this must be a whole number");
        }
        number
    }

    /// A yes or no; no if it is missing or `null`.
    pub(crate) fn flag(&mut self, name: &'static str) -> bool {
        let Some(json) = self.any(name) else { return false };
        if !matches!(json.as_str(), "true" | "false") {
            self.wrong(name, "this must be true or false");
        }
        json.as_str() == "true"
    }

    /// A list of texts; none if it is missing or `null`.
    pub(crate) fn texts(&mut self, name: &'static str) -> Vec<String> {
        let Some(json) = self.any(name) else { return Vec::new() };
        let texts = json.elements().and_then(|list| list.iter().map(Json::to_text).collect());
        texts.unwrap_or_else(|| {
            self.wrong(name, "this must be a list of texts");
            Vec::new()
        })
    }

    /// Reads a text further, or says what is wrong with it.
    pub(crate) fn read<T, E: std::fmt::Display>(
        &mut self,
        name: &'static str,
        read: Result<T, E>,
    ) -> Option<T> {
        read.map_err(|wrong| self.wrong(name, wrong.to_string())).ok()
    }

    /// Everything that is wrong, unknown fields included.
    pub(crate) fn finish(mut self) -> Vec<FieldError> {
        let known = self.known.join(", ");
        let unknown: Vec<String> =
            std::mem::take(&mut self.given).into_iter().map(|(name, _)| name).collect();
        for name in unknown {
            self.wrong(&name, format!("there is no such field here; possible are: {known}"));
        }
        self.wrong
    }

    /// Ends the request if anything is wrong.
    pub(crate) fn check(self) -> Result<(), Box<RequestProblem>> {
        let wrong = self.finish();
        if wrong.is_empty() { Ok(()) } else { Err(RequestProblem::invalid(wrong)) }
    }
}

/// Programs that know only one kind of number write 3 as 3.0.
fn whole(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let number: f64 = text.parse().ok()?;
    // Beyond this, neighbours are more than one apart.
    let fits = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and fits")]
    fits.then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(text: &str) -> BodyFields {
        BodyFields::of(&Json::parse(text).unwrap(), "").unwrap()
    }

    #[test]
    fn all_faults_of_a_body_are_reported_at_once() {
        let mut fields =
            fields(r#"{"type": 7, "priority": "high", "colour": "red", "notes": null}"#);
        assert_eq!(fields.required("type"), "");
        assert_eq!(fields.integer("priority"), None);
        assert_eq!(fields.text("notes"), None);
        assert_eq!(fields.required("description"), "");
        let wrong = fields.finish();
        let names: Vec<&str> = wrong.iter().map(|wrong| wrong.field.as_str()).collect();
        assert_eq!(names, ["type", "priority", "description", "colour"]);
        assert!(wrong[3].detail.contains("type, priority, notes, description"));
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        for (text, number) in
            [("3", Some(3)), ("3.0", Some(3)), ("3e2", Some(300)), ("-1", Some(-1))]
        {
            assert_eq!(whole(text), number, "{text}");
        }
        for text in ["3.5", "1e300", "\"3\"", "true", "[]", "NaN"] {
            assert_eq!(whole(text), None, "{text}");
        }
    }

    #[test]
    fn missing_null_and_a_value_are_three_things() {
        let mut fields = fields(r#"{"a": null, "b": "x"}"#);
        assert_eq!(fields.clearable("a"), Some(None));
        assert_eq!(fields.clearable("b").flatten().unwrap().as_str(), "\"x\"");
        assert_eq!(fields.clearable("c"), None);
        assert!(fields.finish().is_empty());
    }

    proptest! {
        #[test]
        fn no_body_makes_reading_it_panic(text in r#"\{("[a-c]":("x"|1|null|\[1\]|1e9)(,"[a-c]":\[\])*)?\}|.{0,40}"#) {
            if let Ok(json) = Json::parse(&text)
                && let Ok(mut fields) = BodyFields::of(&json, "")
            {
                let _ = (fields.text("a"), fields.integer("b"), fields.texts("c"));
                fields.finish();
            }
        }
    }
}
