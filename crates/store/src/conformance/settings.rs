//! Settings.

use super::Subject;
use super::kit::Town;
use crate::Scope;

fn put(town: &Town, scope: Scope, key: &str, value: Option<&str>) -> bool {
    town.write(|writer| writer.put_setting(scope, key, value))
}

fn get(town: &Town, scope: Scope, key: &str) -> Option<String> {
    town.read(|reader| reader.setting(scope, key))
}

pub(super) fn a_setting_is_put_replaced_and_removed(subject: &dyn Subject) {
    let town = Town::new(subject);
    assert_eq!(get(&town, Scope::Town, "a.b"), None);

    assert!(put(&town, Scope::Town, "a.b", Some("1")));
    assert_eq!(get(&town, Scope::Town, "a.b").as_deref(), Some("1"));
    assert!(put(&town, Scope::Town, "a.b", Some("")));
    assert_eq!(get(&town, Scope::Town, "a.b").as_deref(), Some(""));
    assert!(put(&town, Scope::Town, "a.b", None));
    assert_eq!(get(&town, Scope::Town, "a.b"), None);

    let payloads: Vec<String> =
        town.events_since(0).iter().map(|event| event.payload.to_string()).collect();
    let expected = [
        r#"{"scope":"gt","key":"a.b","old":null,"new":"1"}"#,
        r#"{"scope":"gt","key":"a.b","old":"1","new":""}"#,
        r#"{"scope":"gt","key":"a.b","old":"","new":null}"#,
    ];
    assert_eq!(payloads, expected);
}

pub(super) fn putting_what_is_there_already_writes_nothing(subject: &dyn Subject) {
    let town = Town::new(subject);
    put(&town, Scope::Beads, "key", Some("value"));

    let story = town.story_of(|town| {
        assert!(!put(town, Scope::Beads, "key", Some("value")));
        assert!(!put(town, Scope::Beads, "absent", None));
    });

    assert!(story.is_empty(), "{story:?}");
}

pub(super) fn scopes_do_not_see_each_other(subject: &dyn Subject) {
    let town = Town::new(subject);
    for (scope, value) in [
        (Scope::Town, "town"),
        (Scope::Beads, "beads"),
        (Scope::Memory, "memory"),
        (Scope::Values, "values"),
        (Scope::Imported, "imported"),
    ] {
        put(&town, scope, "key", Some(value));
    }
    put(&town, Scope::Beads, "key", None);

    assert_eq!(get(&town, Scope::Town, "key").as_deref(), Some("town"));
    assert_eq!(get(&town, Scope::Beads, "key"), None);
    assert_eq!(get(&town, Scope::Memory, "key").as_deref(), Some("memory"));
    assert_eq!(get(&town, Scope::Imported, "key").as_deref(), Some("imported"));
}

pub(super) fn settings_are_listed_by_key(subject: &dyn Subject) {
    let town = Town::new(subject);
    for key in ["b", "c", "a", "a.b"] {
        put(&town, Scope::Memory, key, Some("x"));
    }

    let keys: Vec<String> = town
        .read(|reader| reader.settings(Scope::Memory))
        .into_iter()
        .map(|(key, _)| key)
        .collect();

    assert_eq!(keys, ["a", "a.b", "b", "c"]);
    assert_eq!(town.read(|reader| reader.settings(Scope::Town)), []);
}

pub(super) fn secrets_are_not_in_the_log(subject: &dyn Subject) {
    let town = Town::new(subject);
    put(&town, Scope::Town, "notify.secret", Some("s3cret"));
    put(&town, Scope::Town, "notify.secret", None);
    put(&town, Scope::Town, "notify.webhook", Some("https://example.com/k3y"));
    put(&town, Scope::Beads, "notify.webhook", Some("of others"));

    let payloads: Vec<String> =
        town.events_since(0).iter().map(|event| event.payload.to_string()).collect();

    let expected = [
        r#"{"scope":"gt","key":"notify.secret","old":null,"new":"…"}"#,
        r#"{"scope":"gt","key":"notify.secret","old":"…","new":null}"#,
        r#"{"scope":"gt","key":"notify.webhook","old":null,"new":"https://example.com/…"}"#,
        r#"{"scope":"bd","key":"notify.webhook","old":null,"new":"of others"}"#,
    ];
    assert_eq!(payloads, expected);
}
