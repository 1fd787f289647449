//! Settings.

use super::EngineUnderTest;
use super::kit::CheckedStore;
use gt_store::SettingScope;

fn put(town: &CheckedStore, scope: SettingScope, key: &str, value: Option<&str>) -> bool {
    town.write(|writer| writer.put_setting(scope, key, value))
}

fn get(town: &CheckedStore, scope: SettingScope, key: &str) -> Option<String> {
    town.read(|reader| reader.setting(scope, key))
}

pub(super) fn a_setting_is_put_replaced_and_removed(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    assert_eq!(get(&town, SettingScope::Town, "a.b"), None);

    assert!(put(&town, SettingScope::Town, "a.b", Some("1")));
    assert_eq!(get(&town, SettingScope::Town, "a.b").as_deref(), Some("1"));
    assert!(put(&town, SettingScope::Town, "a.b", Some("")));
    assert_eq!(get(&town, SettingScope::Town, "a.b").as_deref(), Some(""));
    assert!(put(&town, SettingScope::Town, "a.b", None));
    assert_eq!(get(&town, SettingScope::Town, "a.b"), None);

    let payloads: Vec<String> =
        town.events_since(0).iter().map(|event| event.payload.to_string()).collect();
    let expected = [
        r#"{"scope":"gt","key":"a.b","old":null,"new":"1"}"#,
        r#"{"scope":"gt","key":"a.b","old":"1","new":""}"#,
        r#"{"scope":"gt","key":"a.b","old":"","new":null}"#,
    ];
    assert_eq!(payloads, expected);
}

pub(super) fn putting_what_is_there_already_writes_nothing(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    put(&town, SettingScope::Beads, "key", Some("value"));

    let story = town.story_of(|town| {
        assert!(!put(town, SettingScope::Beads, "key", Some("value")));
        assert!(!put(town, SettingScope::Beads, "absent", None));
    });

    assert!(story.is_empty(), "{story:?}");
}

pub(super) fn scopes_do_not_see_each_other(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for (scope, value) in [
        (SettingScope::Town, "town"),
        (SettingScope::Beads, "beads"),
        (SettingScope::Memory, "memory"),
        (SettingScope::Values, "values"),
        (SettingScope::Imported, "imported"),
        (SettingScope::Tombstone, "tombstone"),
        (SettingScope::FormerAccount, "former"),
    ] {
        put(&town, scope, "key", Some(value));
    }
    put(&town, SettingScope::Beads, "key", None);

    assert_eq!(get(&town, SettingScope::Town, "key").as_deref(), Some("town"));
    assert_eq!(get(&town, SettingScope::Beads, "key"), None);
    assert_eq!(get(&town, SettingScope::Memory, "key").as_deref(), Some("memory"));
    assert_eq!(get(&town, SettingScope::Imported, "key").as_deref(), Some("imported"));
    assert_eq!(get(&town, SettingScope::Tombstone, "key").as_deref(), Some("tombstone"));
}

pub(super) fn settings_are_listed_by_key(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for key in ["b", "c", "a", "a.b"] {
        put(&town, SettingScope::Memory, key, Some("x"));
    }

    let keys: Vec<String> = town
        .read(|reader| reader.settings(SettingScope::Memory))
        .into_iter()
        .map(|(key, _)| key)
        .collect();

    assert_eq!(keys, ["a", "a.b", "b", "c"]);
    assert_eq!(town.read(|reader| reader.settings(SettingScope::Town)), []);
}

pub(super) fn secrets_are_not_in_the_log(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    put(&town, SettingScope::Town, "notify.secret", Some("s3cret"));
    put(&town, SettingScope::Town, "notify.secret", None);
    put(&town, SettingScope::Town, "notify.webhook", Some("https://example.com/k3y"));
    put(&town, SettingScope::Beads, "notify.webhook", Some("of others"));

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
