//! The description of everything that can be asked for.

use serde_json::{Value, json};

use super::described;
use super::work::ITEMS_MAX;

/// What may be answered wherever one asks, and is not repeated at every route.
const EVERYWHERE: [(&str, &str); 4] = [
    ("401", "A token is needed, or this one is not valid."),
    ("403", "The token may not do this."),
    ("500", "Something is broken; the log of the server says more."),
    ("503", "Too much at once, or the store is away; try again."),
];

/// The same for whatever has a body.
const WITH_BODY: [(&str, &str); 3] = [
    ("408", "The body came too slowly."),
    ("413", "The body is too large."),
    ("415", "The body is not JSON, or does not say so."),
];

/// The description, as JSON.
pub fn openapi_json() -> String {
    let (_, mut description) = described().split_for_parts();
    env!("CARGO_PKG_VERSION").clone_into(&mut description.info.version);
    let mut json = serde_json::to_value(&description).unwrap_or_default();
    let paths = json["paths"].as_object_mut().into_iter().flatten();
    for about in paths.flat_map(|(_, methods)| methods.as_object_mut().into_iter().flatten()) {
        complete(about.1);
    }
    // What a variant of an enum cannot say about itself.
    let list = &mut json["components"]["schemas"]["SubmissionDocument"]["oneOf"][1];
    (list["minItems"], list["maxItems"]) = (json!(1), json!(ITEMS_MAX));
    json["components"]["securitySchemes"] = json!({"token": {"type": "http", "scheme": "bearer"}});
    json["security"] = json!([{}, {"token": []}]);
    let mut text = serde_json::to_string_pretty(&json).unwrap_or_default();
    text.push('\n');
    text
}

fn complete(about: &mut Value) {
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
    let has_body = about["requestBody"].is_object();
    let Some(responses) = about["responses"].as_object_mut() else { return };
    let more = if has_body { &WITH_BODY[..] } else { &[] };
    for (status, meaning) in EVERYWHERE.iter().chain(more) {
        let schema = json!({"$ref": "#/components/schemas/ProblemDocument"});
        let problem = json!({
            "description": meaning,
            "content": {"application/problem+json": {"schema": schema}},
        });
        responses.entry(*status).or_insert(problem);
    }
}
