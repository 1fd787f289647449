//! One record: its fields, and how two versions of it become one.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::Timestamp;
use crate::json::object_fields;

/// The author of comments that keep a value which lost.
const AUTHOR: &str = "bd merge-driver";

/// How much newer a merged record is than those that it was made of.
const NEWER_BY_NANOS: i64 = 1_000_000;

/// The fields that win or lose with the status.
const WITH_STATUS: &[&str] =
    &["closed_at", "close_reason", "outcome", "closed_by_session", "started_at", "assignee"];

/// Counts that follow from the rest of the file: the greater one is kept until the next export.
const COUNTS: &[&str] = &["dependency_count", "dependent_count", "comment_count"];

/// The fields of a record in their order, as they were spelled.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldMap(Vec<(String, Box<RawValue>)>);

impl FieldMap {
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let fields = object_fields(line).map_err(|error| {
            if error.is_eof() { "it is cut off".to_owned() } else { error.to_string() }
        })?;
        Ok(Self(fields.into_iter().map(|(name, raw)| (name, raw.to_owned())).collect()))
    }

    fn raw(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, raw)| &**raw)
    }

    /// A value; null counts as absent. One that no program can hold counts by its spelling.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        let raw = self.raw(name)?.get();
        let value = serde_json::from_str(raw).unwrap_or_else(|_| Value::String(raw.to_owned()));
        (!value.is_null()).then_some(value)
    }

    /// Sets a value; a field that is not there yet comes last.
    pub(super) fn set(&mut self, name: &str, value: &Value) {
        let Ok(raw) = RawValue::from_string(value.to_string()) else { return };
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = raw,
            None => self.0.push((name.to_owned(), raw)),
        }
    }

    /// Whether both say the same, in any order and spelling.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let values = |fields: &Self| -> BTreeMap<String, Option<Value>> {
            fields.0.iter().map(|(name, _)| (name.clone(), fields.value(name))).collect()
        };
        values(self) == values(other)
    }

    /// The record as one line.
    pub(super) fn line(&self) -> String {
        let field = |(name, raw): &(String, Box<RawValue>)| {
            format!("{}:{}", Value::from(name.as_str()), raw.get())
        };
        let fields: Vec<String> = self.0.iter().map(field).collect();
        format!("{{{}}}", fields.join(","))
    }

    /// Whether it stands for a bead that was deleted.
    pub(super) fn is_tombstone(&self) -> bool {
        self.value("status") == Some(Value::String("tombstone".to_owned()))
    }

    fn updated_at(&self) -> Option<Timestamp> {
        match self.value("updated_at") {
            Some(Value::String(text)) => Timestamp::parse(&text).ok(),
            _ => None,
        }
    }
}

/// A field that both sides changed, with the values of the side that won and of the one that lost.
struct LostValue {
    field: String,
    value: Value,
}

/// One record of two versions, and the value of a memory that lost.
pub(super) fn merge(
    before: &FieldMap,
    one: &FieldMap,
    other: &FieldMap,
) -> (FieldMap, Option<Value>) {
    // The order of the sides must not matter, so that it is settled here: the later record comes first, then the greater one.
    let order = (one.updated_at(), one.line()).cmp(&(other.updated_at(), other.line()));
    let (winner, loser) = if order.is_ge() { (one, other) } else { (other, one) };
    if winner.is_same(loser) || before.is_same(loser) {
        return (winner.clone(), None);
    }
    if before.is_same(winner) {
        return (loser.clone(), None);
    }
    if winner.is_tombstone() || loser.is_tombstone() {
        // Half a deletion is none: the later one of a change and a deletion counts.
        let is_tie = winner.updated_at() == loser.updated_at();
        let counts = if is_tie && loser.is_tombstone() { loser } else { winner };
        return (counts.clone(), None);
    }
    let is_later = winner.updated_at() != loser.updated_at();
    let mut merged = FieldMap::default();
    let mut lost = Vec::new();
    let names = winner.0.iter().chain(&loser.0).map(|(name, _)| name);
    for name in names {
        if merged.raw(name).is_some() || name == "comments" {
            continue;
        }
        let side = match status_side(name, before, winner, loser) {
            Some(side) => side,
            None => choose(name, before, winner, loser, is_later, &mut lost, &mut merged),
        };
        match side {
            Chosen::Winner => copy(&mut merged, winner, name),
            Chosen::Loser => copy(&mut merged, loser, name),
            Chosen::Made => {}
        }
    }
    note_lost_status(before, winner, loser, &mut lost);
    let comments = merge_comments(before, winner, loser, &lost);
    if !comments.is_empty() {
        merged.set("comments", &Value::Array(comments));
    }
    let memory = lost.into_iter().find(|lost| lost.field == "value").map(|lost| lost.value);
    if merged.is_same(winner) {
        return (winner.clone(), memory);
    }
    mark_as_newer(&mut merged, winner);
    (merged, memory)
}

/// Makes a record that is new to both sides newer than either, because an import takes only what is newer.
fn mark_as_newer(merged: &mut FieldMap, winner: &FieldMap) {
    if let Some(at) = winner.updated_at() {
        let later = Timestamp::from_nanos(at.as_nanos().saturating_add(NEWER_BY_NANOS));
        merged.set("updated_at", &Value::String(later.to_string()));
    }
}

/// The side whose value of a field counts.
enum Chosen {
    Winner,
    Loser,
    /// The value was made from both, and is set.
    Made,
}

fn copy(merged: &mut FieldMap, from: &FieldMap, name: &str) {
    if let Some(raw) = from.raw(name) {
        merged.0.push((name.to_owned(), raw.to_owned()));
    }
}

/// The side that the fields of the status come from, if both sides changed the status in different ways or one alone did.
fn status_side(
    name: &str,
    before: &FieldMap,
    winner: &FieldMap,
    loser: &FieldMap,
) -> Option<Chosen> {
    if name != "status" && !WITH_STATUS.contains(&name) {
        return None;
    }
    let (base, first, second) =
        (before.value("status"), winner.value("status"), loser.value("status"));
    if first == second {
        // The status is not in question; its fields are merged like others.
        return None;
    }
    Some(if first == base { Chosen::Loser } else { Chosen::Winner })
}

/// Keeps a status that lost, with its reason.
fn note_lost_status(
    before: &FieldMap,
    winner: &FieldMap,
    loser: &FieldMap,
    lost: &mut Vec<LostValue>,
) {
    let (base, first, second) =
        (before.value("status"), winner.value("status"), loser.value("status"));
    let both_changed = first != second && first != base && second != base;
    if !both_changed {
        return;
    }
    for field in ["status", "close_reason", "assignee"] {
        let value = loser.value(field);
        if let Some(value) = value.filter(|value| Some(value) != winner.value(field).as_ref()) {
            lost.push(LostValue { field: field.to_owned(), value });
        }
    }
}

fn choose(
    name: &str,
    before: &FieldMap,
    winner: &FieldMap,
    loser: &FieldMap,
    is_later: bool,
    lost: &mut Vec<LostValue>,
    merged: &mut FieldMap,
) -> Chosen {
    let (base, first, second) = (before.value(name), winner.value(name), loser.value(name));
    if first == second || second == base {
        return Chosen::Winner;
    }
    if first == base {
        return Chosen::Loser;
    }
    if name == "updated_at" {
        return Chosen::Winner;
    }
    if COUNTS.contains(&name) {
        let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or(0);
        return if number(first.as_ref()) >= number(second.as_ref()) {
            Chosen::Winner
        } else {
            Chosen::Loser
        };
    }
    let (base, one, other) = (base.as_ref(), first.as_ref(), second.as_ref());
    let made = match name {
        "labels" => merge_list(base, one, other, ToString::to_string),
        "dependencies" => merge_list(base, one, other, edge_name),
        "metadata" => merge_object(base, one, other, lost),
        _ => None,
    };
    if let Some(made) = made {
        merged.set(name, &made);
        return Chosen::Made;
    }
    let first_wins = is_later || text_of(one) >= text_of(other);
    let (chosen, other) =
        if first_wins { (Chosen::Winner, second) } else { (Chosen::Loser, first) };
    if let Some(value) = other {
        lost.push(LostValue { field: name.to_owned(), value });
    }
    chosen
}

fn text_of(value: Option<&Value>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

/// The elements that either side has and neither removed, by their names. Nothing if a side is no list.
fn merge_list(
    base: Option<&Value>,
    first: Option<&Value>,
    second: Option<&Value>,
    name: impl Fn(&Value) -> String,
) -> Option<Value> {
    let named = |list: Option<&Value>| -> Option<BTreeMap<String, Value>> {
        match list {
            None => Some(BTreeMap::new()),
            Some(Value::Array(list)) => {
                Some(list.iter().map(|element| (name(element), element.clone())).collect())
            }
            Some(_) => None,
        }
    };
    let (base, first, second) = (named(base)?, named(first)?, named(second)?);
    let mut merged: BTreeMap<&String, &Value> = BTreeMap::new();
    for (key, element) in first.iter().chain(&second) {
        let in_both = first.contains_key(key) && second.contains_key(key);
        if in_both || !base.contains_key(key) {
            // The same element with other fields: the greater one, on either side.
            let known = merged.entry(key).or_insert(element);
            if text_of(Some(element)) > text_of(Some(known)) {
                *known = element;
            }
        }
    }
    Some(Value::Array(merged.into_values().cloned().collect()))
}

/// The name of an edge: its end and its type.
fn edge_name(edge: &Value) -> String {
    format!("{} {}", edge["depends_on_id"], edge["type"])
}

/// An object whose keys were changed on different sides. A key that both changed has the greater value, and the other is kept.
fn merge_object(
    base: Option<&Value>,
    first: Option<&Value>,
    second: Option<&Value>,
    lost: &mut Vec<LostValue>,
) -> Option<Value> {
    let object = |value: Option<&Value>| match value {
        None => Some(Map::new()),
        Some(Value::Object(fields)) => Some(fields.clone()),
        Some(_) => None,
    };
    let (base, first, second) = (object(base)?, object(first)?, object(second)?);
    let mut merged = Map::new();
    let names: std::collections::BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    for name in names {
        let (before, one, other) = (base.get(name), first.get(name), second.get(name));
        let value = if one == other || other == before {
            one
        } else if one == before {
            other
        } else {
            let (greater, less) =
                if text_of(one) >= text_of(other) { (one, other) } else { (other, one) };
            if let Some(less) = less {
                let field = format!("metadata.{name}");
                lost.push(LostValue { field, value: less.clone() });
            }
            greater
        };
        if let Some(value) = value {
            merged.insert(name.clone(), value.clone());
        }
    }
    Some(Value::Object(merged))
}

/// The comments that either side has and neither removed, and one for each value that lost, oldest first.
fn merge_comments(
    before: &FieldMap,
    winner: &FieldMap,
    loser: &FieldMap,
    lost: &[LostValue],
) -> Vec<Value> {
    let name = |comment: &Value| match comment["id"].as_str() {
        Some(id) if !id.is_empty() => id.to_owned(),
        _ => format!("{} {} {}", comment["created_at"], comment["author"], comment["text"]),
    };
    let [base, first, second] = [before, winner, loser].map(|side| side.value("comments"));
    let merged = merge_list(base.as_ref(), first.as_ref(), second.as_ref(), name);
    let mut comments = match merged {
        Some(Value::Array(comments)) => comments,
        // Not a list on one side: the side that wins keeps its own.
        _ => match first {
            Some(Value::Array(comments)) => comments,
            _ => Vec::new(),
        },
    };
    let Some(Value::String(bead)) = winner.value("id") else { return comments };
    let at = winner.value("updated_at").or_else(|| winner.value("created_at"));
    for LostValue { field, value } in lost {
        let said = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text = format!("Both sides of a merge changed {field}; the other value was: {said}");
        let mut comment = json!({"issue_id": bead, "author": AUTHOR, "text": text});
        if let (Some(at), Some(fields)) = (&at, comment.as_object_mut()) {
            fields.insert("created_at".to_owned(), at.clone());
        }
        let is_known =
            |known: &Value| known["author"] == AUTHOR && known["text"] == comment["text"];
        if !comments.iter().any(is_known) {
            comments.push(comment);
        }
    }
    let order = |comment: &Value| (comment["created_at"].to_string(), comment.to_string());
    comments.sort_by_key(order);
    comments
}
