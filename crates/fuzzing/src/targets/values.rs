//! Single values: ids, names, titles, times, JSON, settings.

use gt_core::bead::{NewDependency, check_label, check_name, check_text};
use gt_core::command_template::expand;
use gt_core::command_wrap::CommandWrap;
use gt_core::decide::resolve_partial;
use gt_core::message::{MessageBody, WrittenAddress};
use gt_core::query::Query;
use gt_core::settings::{KEYS, Layers, SettingOrigin, checked, lookup, parse_text, suggest};
use gt_core::time::{format_duration, parse_duration};
use gt_core::words::split;
use gt_core::{
    BeadId, DependencyType, EventKind, ExecutorKind, IssueType, Json, MessageAddress, MessageId,
    Outcome, Prefix, Priority, RigSlug, RigState, Sender, Status, Timestamp, Title, Uid,
    WebAddress, limits,
};
use gt_records::{contains_nul, escape_html, pretty, sorted_object};

use crate::promise::{
    accepted, is_json_line, keeps, reads_back, tells_on_one_line, text, two_texts,
};

/// An id, and a part of one by which a person means it.
pub(super) fn bead_id(input: &[u8]) {
    let Some((id, part)) = two_texts(input) else { return };
    if let Some(uid) = Uid::parse(id) {
        assert_eq!(Uid::parse(&uid.to_string()), Some(uid));
    }
    let Some(parsed) = accepted(BeadId::parse(id)) else { return };
    assert_eq!(parsed.as_str(), id);
    assert!(id.len() <= limits::ID_BYTES_MAX);
    assert!(id.starts_with(parsed.guessed_prefix()));
    assert_eq!(resolve_partial(id, std::iter::once(&parsed)), [&parsed]);
    let _ = (parsed.has_prefix(part), resolve_partial(part, std::iter::once(&parsed)));
    if let Ok(child) = BeadId::parse(parsed.child(1).as_str()) {
        assert!(child.is_child());
        assert_eq!(child.guessed_prefix(), parsed.guessed_prefix());
    }
}

/// The address of a web service.
pub(super) fn web_address(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let Some(address) = accepted(WebAddress::parse(text)) else { return };
    let printed = address.to_string();
    assert!(printed.bytes().all(|byte| byte.is_ascii_graphic()), "{printed:?}");
    assert!(address.target().starts_with('/'));
    assert_eq!(WebAddress::parse(&printed), Ok(address));
}

pub(super) const NAMES: &[&str] = &[
    "open",
    "in_progress",
    "closed",
    "staged:ready",
    "success",
    "failed",
    "P",
    "p0",
    "+",
    "task",
    "enhancement",
    "mr",
    "blocks:",
    "waits-for:",
    "discovered-from:",
    "active",
    "tmux",
    "my-app",
    "hq",
    "created",
    "label_added",
    "mayor",
    "/polecats/",
    "/crew/",
    "msg-",
    "#3",
];

/// Every name that is one of a few, or of any of a certain form.
pub(super) fn names(input: &[u8]) {
    let Some(name) = text(input) else { return };
    keeps(name, RigSlug::parse, ToString::to_string);
    keeps(name, DependencyType::parse, ToString::to_string);
    keeps(name, Outcome::parse, |outcome| outcome.as_str().to_owned());
    keeps(name, RigState::parse, |state| state.as_str().to_owned());
    keeps(name, ExecutorKind::parse, |kind| kind.as_str().to_owned());
    assert_eq!(EventKind::from_name(name).as_str(), name);
    assert_eq!(Sender::stored(name).to_string(), name);
    // These have several spellings, and print one of them.
    if let Some(WrittenAddress::Standing(address)) = accepted(WrittenAddress::parse(name)) {
        assert_eq!(MessageAddress::stored(&address.to_string()), address);
        reads_back(
            &WrittenAddress::Standing(address.clone()),
            &address.to_string(),
            WrittenAddress::parse,
        );
    }
    if let Some(id) = accepted(MessageId::parse(name)) {
        reads_back(&id, &id.to_string(), MessageId::parse);
    }
    if let Some(body) = accepted(MessageBody::parse(name)) {
        reads_back(&body, body.as_str(), MessageBody::parse);
    }
    if let Some(prefix) = accepted(Prefix::parse(name)) {
        reads_back(&prefix, prefix.as_str(), Prefix::parse);
    }
    if let Some(status) = accepted(Status::parse(name)) {
        reads_back(&status, status.as_str(), Status::parse);
    }
    if let Some(kind) = accepted(IssueType::parse(name)) {
        reads_back(&kind, kind.as_str(), IssueType::parse);
    }
    if let Some(priority) = accepted(Priority::parse(name)) {
        reads_back(&priority, &priority.to_string(), Priority::parse);
    }
    if let Some(link) = accepted(NewDependency::parse(name)) {
        assert_eq!(link.other.trim(), link.other);
        assert!(!link.other.is_empty());
    }
    // However many are taken, the derived text is a valid and free prefix.
    let taken = |candidate: &str| candidate.len() < name.len().min(4);
    if let Some(prefix) = accepted(Prefix::derive(name, taken)) {
        reads_back(&prefix, prefix.as_str(), Prefix::parse);
        assert!(!taken(prefix.as_str()) && !Prefix::RESERVED.contains(&prefix.as_str()));
    }
    for checked in [check_name("name", name), check_label("label", name)] {
        if accepted(checked).is_some() {
            assert!(!name.is_empty() && !name.chars().any(char::is_control));
        }
    }
}

/// Titles and other free text.
pub(super) fn texts(input: &[u8]) {
    let Some(given) = text(input) else { return };
    if let Some(title) = accepted(Title::parse(given)) {
        reads_back(&title, title.as_str(), Title::parse);
        assert!(!title.as_str().chars().any(char::is_control));
        // A title that a person may write is also valid in a file.
        reads_back(&title, title.as_str(), Title::imported);
    }
    keeps(given, Title::imported, ToString::to_string);
    assert_eq!(accepted(check_text("text", given)).is_some(), !given.contains('\0'));
}

pub(super) const TIMES: &[&str] = &[
    "2026-05-31",
    "T12:34:56",
    "Z",
    "+02:00",
    "-00:00",
    ".789012345",
    "now",
    "today",
    "tomorrow",
    "+2d",
    "1h30m",
    "500ms",
    "1w",
    "ns",
    "1678-",
    "2261-",
    "[UTC]",
    "24:00:00",
    ":60",
];

/// Instants and durations.
pub(super) fn time(input: &[u8]) {
    let Some(given) = text(input) else { return };
    let now = Timestamp::from_nanos(1_780_230_896_789_012_345);
    for instant in [Timestamp::parse(given), Timestamp::parse_relative(given, now)] {
        if let Some(instant) = accepted(instant) {
            reads_back(&instant, &instant.to_string(), Timestamp::parse);
            reads_back(&instant, &instant.to_string(), |text| Timestamp::parse_relative(text, now));
        }
    }
    if let Some(duration) = accepted(parse_duration(given)) {
        reads_back(&duration, &format_duration(duration), parse_duration);
    }
}

/// JSON that is only passed on, and the ways it is printed and edited.
pub(super) fn json(input: &[u8]) {
    let Some(given) = text(input) else { return };
    let _ = (pretty(given), sorted_object(given), escape_html(given), contains_nul(given));
    let Some(json) = accepted(Json::parse(given)) else { return };
    is_json_line(json.as_str());
    reads_back(&json, json.as_str(), Json::parse);
    let pretty = pretty(json.as_str());
    reads_back(&Json::trusted(escape_html(json.as_str())), &pretty, Json::parse);
    let Some(fields) = json.fields() else {
        assert!(!json.as_str().starts_with('{'), "an object without fields: {json}");
        return;
    };
    is_json_line(&sorted_object(json.as_str()));
    let rebuilt = Json::object(&fields);
    assert_eq!(rebuilt.fields().as_deref(), Some(fields.as_slice()));
    let edited = json.with("key", &Json::string(given));
    is_json_line(edited.as_str());
    assert_eq!(edited.string_field("key").as_deref(), Some(given));
    let others = |json: &Json| {
        let mut fields = json.fields().unwrap_or_default();
        fields.retain(|(name, _)| name != "key");
        fields
    };
    assert_eq!(others(&edited), others(&json), "an edit changed something else");
    assert_eq!(others(&edited.without("key")), others(&json));
}

/// A line as a shell would split it.
pub(super) fn words(input: &[u8]) {
    let Some(line) = text(input) else { return };
    let Some(words) = accepted(split(line)) else { return };
    for word in &words {
        if let Some((key, value)) = word.assignment() {
            assert_eq!(format!("{key}={value}"), word.text);
        }
    }
    let texts: Vec<String> = words.into_iter().map(|word| word.text).collect();
    let quoted: Vec<String> =
        texts.iter().map(|text| format!("'{}'", text.replace('\'', r"'\''"))).collect();
    let again = split(&quoted.join(" "))
        .map(|words| words.into_iter().map(|word| word.text).collect::<Vec<String>>());
    assert_eq!(again.as_ref(), Ok(&texts));
}

/// The command of a rig.
pub(super) fn command_template(input: &[u8]) {
    let Some(template) = text(input) else { return };
    if let Some(Some(wrap)) = accepted(CommandWrap::parse(template)) {
        let command = ["{command}".to_owned(), "{".to_owned()];
        let values = ["tree", "repository", "town", "rig", "run"].map(|name| (name, "}{"));
        let filled = wrap.around(&command, &values, &[]);
        let filled = filled.expect("a template that is accepted can be filled");
        assert!(filled.windows(2).any(|words| words == command), "the command is not in it");
    }
    let values = [("bead", "gt-1"), ("title", "{bead} 'a b' }")];
    let Some(filled) = accepted(expand(template, &values)) else { return };
    let words = split(template).expect("a template that is accepted has words");
    assert_eq!(filled.len(), words.len(), "a value became several words");
    let doubled = |word: &String| {
        format!("'{}'", word.replace('{', "{{").replace('}', "}}").replace('\'', r"'\''"))
    };
    let again: Vec<String> = filled.iter().map(doubled).collect();
    assert_eq!(expand(&again.join(" "), &values), Ok(filled));
}

pub(super) const SETTINGS: &[&str] = &[
    "scheduler.max_polecats",
    "scheduler",
    "queue_max_polecats",
    "rig.web.",
    "max_polecats",
    "rescue.max",
    "256MiB",
    "GB",
    " = ",
    "true",
    "off",
    "5m",
    "-1",
    "fifo",
    "\"version\":",
    "\":{\"",
];

/// The name of a setting and a value; or a text with many of both.
pub(super) fn settings(input: &[u8]) {
    let Some((name, value)) = two_texts(input) else { return };
    accepted(parse_text(name));
    let _ = suggest(name);
    if let Some((setting, full)) = accepted(lookup(name)) {
        reads_back(&(setting, full.clone()), full.as_str(), lookup);
    }
    for setting in KEYS {
        if let Some(canonical) = accepted(setting.kind.canonical(value)) {
            reads_back(&canonical, &canonical, |text| setting.kind.canonical(text));
        }
    }
    let mut layers = Layers::default();
    let added = layers.add([(name.to_owned(), value.to_owned())], &SettingOrigin::Store);
    let alone = checked(name, value);
    assert_eq!(added.is_ok(), alone.is_ok());
    if let Some((full, canonical)) = accepted(alone) {
        let resolved = layers.get(name).map(|resolved| (resolved.name, resolved.value));
        assert_eq!(resolved, Ok((full.clone(), canonical.clone())));
        assert!(layers.all().iter().any(|resolved| resolved.name == full));
        if !canonical.contains(['\n', '\r']) && canonical.trim() == canonical {
            reads_back(
                &[(full.clone(), canonical.clone())].into(),
                &format!("{full} = {canonical}"),
                parse_text,
            );
        }
    }
    accepted(added);
}

pub(super) const QUERIES: &[&str] = &[
    " AND ",
    " or ",
    "NOT ",
    "(",
    ")",
    "priority<=P1",
    "label=a,b",
    "title~\"x y\"",
    "updated>7d",
    "created=2026-01-02",
    "metadata.k!='v'",
    "assignee=none",
    "ready=true",
    ">=",
    "!=",
];

/// The queries of `bd query`.
pub(super) fn query(input: &[u8]) {
    const NOW: Timestamp = Timestamp::from_nanos(1_790_000_000_000_000_000);
    let Some(asked) = text(input) else { return };
    match Query::parse(asked, NOW) {
        Ok(query) => reads_back(&query, &query.to_string(), |again| Query::parse(again, NOW)),
        Err(error) => {
            tells_on_one_line(&error);
            error.detail_lines().iter().for_each(|line| assert!(!line.contains('\n')));
        }
    }
}
