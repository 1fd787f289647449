//! Records that an import keeps for capabilities that come later.

use gt_beads::interchange::{
    ImportContents, ImportOptions, KEPT_ACCOUNTS, KEPT_PAUSE, SourceKind, import,
};
use gt_store::SettingScope;

use crate::town::town;

#[test]
fn accounts_and_pause_state_are_kept_as_they_stood() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("mayor/town.json", "{}");
    write(
        "mayor/accounts.json",
        "{\n  \"default\": \"work\",\n  \"accounts\": {\"work\": {\"cap\": 1.50}}\n}\n",
    );
    write(".runtime/queue-state.json", "{\"paused\": true}");
    let town = town();

    assert_eq!(SourceKind::of(directory.path()).unwrap(), SourceKind::GasTown);
    let options = ImportOptions::default();
    let arrival = ImportContents::open(directory.path(), SourceKind::GasTown, options).unwrap();
    import(&town, &arrival, options, |_| {}).unwrap();

    let kept = |key| town.read(|reader| Ok(reader.setting(SettingScope::Imported, key)?)).unwrap();
    let accounts = kept(KEPT_ACCOUNTS);
    assert_eq!(accounts.as_deref(), Some(r#"{"default":"work","accounts":{"work":{"cap":1.50}}}"#));
    assert_eq!(kept(KEPT_PAUSE).as_deref(), Some(r#"{"paused":true}"#));
}
