//! The parameters of a context as one text column.

use gt_core::schedule::{Merge, SlingParameters};
use gt_core::{BeadId, Json};

use crate::StoreError;

/// The parameters as JSON; unset ones are left out.
pub(super) fn parameters_text(parameters: &SlingParameters) -> String {
    let SlingParameters {
        formula,
        args,
        vars,
        merge,
        convoy,
        base_branch,
        no_merge,
        review_only,
        review,
        runtime,
        hook_raw_bead,
        owned,
        ralph,
        retries,
        host,
    } = parameters;
    let mut fields: Vec<(String, Json)> = Vec::new();
    let mut text = |key: &str, value: Option<&str>| {
        fields.extend(value.map(|value| (key.to_owned(), Json::string(value))));
    };
    text("formula", formula.as_deref());
    text("args", args.as_deref());
    text("merge", merge.map(Merge::as_str));
    text("convoy", convoy.as_ref().map(BeadId::as_str));
    text("base_branch", base_branch.as_deref());
    text("runtime", runtime.as_deref());
    text("host", host.as_deref());
    for (key, flag) in [
        ("no_merge", no_merge),
        ("review_only", review_only),
        ("review", review),
        ("hook_raw_bead", hook_raw_bead),
        ("owned", owned),
        ("ralph", ralph),
    ] {
        if *flag {
            fields.push((key.to_owned(), Json::trusted("true".to_owned())));
        }
    }
    if *retries > 0 {
        fields.push(("retries".to_owned(), Json::trusted(retries.to_string())));
    }
    if !vars.is_empty() {
        let vars: Vec<_> =
            vars.iter().map(|(name, value)| (name.clone(), Json::string(value))).collect();
        fields.push(("vars".to_owned(), Json::object(&vars)));
    }
    Json::object(&fields).to_string()
}

/// Reads the text of [`parameters_text`]. Fields of newer programs are not for us.
pub(super) fn parameters_from(text: &str) -> Result<SlingParameters, StoreError> {
    let json = Json::trusted(text.to_owned());
    let damaged = || StoreError::Corrupt(format!("the parameters of a context are {text}"));
    let fields = json.fields().ok_or_else(damaged)?;
    let flag =
        |key: &str| fields.iter().any(|(name, value)| name == key && value.as_str() == "true");
    let merge = json.string_field("merge").map(|merge| Merge::parse(&merge)).transpose()?;
    let field = |key: &str| fields.iter().find(|(name, _)| name == key).map(|(_, value)| value);
    let vars = field("vars").and_then(Json::fields).unwrap_or_default();
    let vars =
        vars.into_iter().map(|(name, value)| Ok((name, text_of(&value).ok_or_else(damaged)?)));
    Ok(SlingParameters {
        formula: json.string_field("formula"),
        args: json.string_field("args"),
        vars: vars.collect::<Result<_, StoreError>>()?,
        merge,
        convoy: json.string_field("convoy").map(BeadId::trusted),
        base_branch: json.string_field("base_branch"),
        no_merge: flag("no_merge"),
        review_only: flag("review_only"),
        review: flag("review"),
        runtime: json.string_field("runtime"),
        hook_raw_bead: flag("hook_raw_bead"),
        owned: flag("owned"),
        ralph: flag("ralph"),
        retries: field("retries").and_then(|value| value.as_str().parse().ok()).unwrap_or(0),
        host: json.string_field("host"),
    })
}

/// The text that a JSON string holds.
fn text_of(value: &Json) -> Option<String> {
    Json::object(&[("text".to_owned(), value.clone())]).string_field("text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_come_out_as_they_went_in() {
        let full = SlingParameters {
            formula: Some("mol-review".into()),
            args: Some("be \"careful\"\nplease".into()),
            vars: vec![("a".into(), "1=2".into()), ("b".into(), String::new())],
            merge: Some(Merge::Mr),
            convoy: Some(BeadId::parse("hq-cv-a").unwrap()),
            base_branch: Some("next".into()),
            no_merge: true,
            review_only: true,
            review: true,
            runtime: Some("codex".into()),
            hook_raw_bead: true,
            owned: true,
            ralph: true,
            retries: 2,
            host: Some("builder/0a1b".to_owned()),
        };
        for parameters in [SlingParameters::default(), full] {
            let text = parameters_text(&parameters);
            assert_eq!(parameters_from(&text).unwrap(), parameters, "{text}");
        }
        assert!(parameters_from("[]").is_err());
    }
}
