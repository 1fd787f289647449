//! The description of everything that can be asked for.

use serde_json::{Value, json};

use super::work::ITEMS_MAX;
use super::{described, described_of_town};
use crate::middleware::TOWN_API;

/// The answers that every route may give. Routes describe only their own.
const EVERYWHERE: [(&str, &str); 4] = [
    ("401", "A token is needed, or this one is not valid."),
    ("403", "The token may not do this."),
    ("500", "Something is broken; the log of the server says more."),
    ("503", "Too much at once, or the store is away; try again."),
];

/// The same for routes with a body.
const WITH_BODY: [(&str, &str); 4] = [
    ("408", "The body came too slowly."),
    ("413", "The body is too large."),
    ("415", "The body is not JSON, or does not say so."),
    ("422", "A field is wrong."),
];

/// The same for routes about one object.
const WITH_ID: [(&str, &str); 1] = [("404", "There is none.")];

/// The description of a server of a town, as JSON.
pub fn openapi_json() -> String {
    description(true)
}

/// The description, as JSON.
pub(super) fn description(serves_town: bool) -> String {
    let described = if serves_town { described_of_town() } else { described() };
    let (_, mut description) = described.split_for_parts();
    env!("CARGO_PKG_VERSION").clone_into(&mut description.info.version);
    let mut json = serde_json::to_value(&description).unwrap_or_default();
    let paths = json["paths"].as_object_mut().into_iter().flatten();
    for (path, methods) in paths {
        for (method, about) in methods.as_object_mut().into_iter().flatten() {
            complete(method, path, about);
        }
    }
    // The limits of a list, which a variant of an enum cannot say about itself.
    let list = &mut json["components"]["schemas"]["SubmissionDocument"]["oneOf"][1];
    (list["minItems"], list["maxItems"]) = (json!(1), json!(ITEMS_MAX));
    json["components"]["securitySchemes"] = json!({"token": {"type": "http", "scheme": "bearer"}});
    json["security"] = json!([{}, {"token": []}]);
    let mut text = serde_json::to_string_pretty(&json).unwrap_or_default();
    text.push('\n');
    text
}

/// The name of an operation for programs that make clients: its method and its path, so that no two have the same.
fn operation_id(method: &str, path: &str) -> String {
    let words =
        path.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    std::iter::once(method).chain(words).collect::<Vec<&str>>().join("_")
}

fn complete(method: &str, path: &str, about: &mut Value) {
    about["operationId"] = json!(operation_id(method, path));
    // A header or a parameter that may be missing is there or not; it has no way to say null.
    let parameters = about.get_mut("parameters").and_then(Value::as_array_mut);
    for parameter in parameters.into_iter().flatten() {
        let kind = &mut parameter["schema"]["type"];
        if let Some(kinds) = kind.as_array()
            && let Some(said) = kinds.iter().find(|kind| *kind != "null")
        {
            *kind = said.clone();
        }
    }
    if path.starts_with(TOWN_API) {
        about["security"] = json!([{"token": []}]);
    }
    let (has_body, has_id) = (about["requestBody"].is_object(), path.contains("{id}"));
    let Some(responses) = about["responses"].as_object_mut() else { return };
    let malformed = match (has_id, has_body) {
        (true, true) => Some(("400", "That is no id or no JSON.")),
        (true, false) => Some(("400", "That is no id.")),
        (false, true) => Some(("400", "That is no JSON.")),
        (false, false) => None,
    };
    let with_body = if has_body { &WITH_BODY[..] } else { &[] };
    let with_id = if has_id { &WITH_ID[..] } else { &[] };
    for (status, meaning) in EVERYWHERE.iter().chain(with_body).chain(with_id).chain(&malformed) {
        responses.entry(*status).or_insert_with(|| json!({"description": meaning}));
    }
    for (status, answer) in responses {
        if status.starts_with(['4', '5']) {
            let schema = json!({"$ref": "#/components/schemas/ProblemDocument"});
            answer["content"] = json!({"application/problem+json": {"schema": schema}});
        }
    }
}
