//! `gt token`: tokens for clients of the server.

use serde_json::json;

use crate::support::{Steps as _, assert_says, keys, refusal, texts, town};

#[test]
fn a_token_is_shown_once_listed_without_its_secret_and_revoked() {
    let town = town();
    assert_says(&town.gt(["token", "list"]).ok().stdout, &["No tokens yet"]);
    let made = town.gt_json(&["token", "create", "steve-w", "--scope", "work,read"]);
    let secret = made["token"].as_str().unwrap();
    assert!(secret.starts_with("gtw_") && secret.len() == 68, "{secret}");
    assert_eq!((&made["scopes"], &made["name"]), (&json!(["read", "work"]), &json!("steve-w")));

    let list = town.gt_json(&["token", "list"]);
    assert_eq!(
        keys(&list[0]),
        [
            "agent",
            "created_at",
            "created_by",
            "expires_at",
            "id",
            "name",
            "revoked_at",
            "scopes",
            "shown_as",
            "used_at",
            "valid"
        ]
    );
    let id = made["id"].as_str().unwrap();
    assert_eq!((texts(&list, "id"), &list[0]["valid"]), (vec![id.to_owned()], &json!(true)));
    let everything = format!("{} {:?}", town.export(), town.events());
    assert!(!everything.contains(&secret[4..]), "the secret is nowhere");

    assert_says(&town.gt(["token", "revoke", id]).ok().stdout, &["Revoked the token", "steve-w"]);
    assert_says(&town.gt(["token", "revoke", id]).ok().stdout, &["revoked already"]);
    assert_eq!(town.gt_json(&["token", "list"])[0]["valid"], false);
    assert_says(&town.gt(["token", "list"]).ok().stdout, &[id, "revoked just now"]);
}

#[test]
fn a_token_is_revoked_by_the_name_of_its_holder_if_that_names_one() {
    let town = town();
    let _ = town.gt_json(&["token", "create", "ann"]);
    let revoked = town.gt_json(&["token", "revoke", "ann"]);
    assert_eq!((&revoked["name"], &revoked["valid"]), (&json!("ann"), &json!(false)));
    let two = [(), ()].map(|()| town.gt_json(&["token", "create", "ann"])["id"].clone());
    let refused = town.gt(["token", "revoke", "ann"]);
    assert_eq!(refused.code, 1, "{refused}");
    let ids = two.each_ref().map(|id| id.as_str().unwrap());
    assert_says(&refused.stderr, &["ann holds several tokens", ids[0], ids[1]]);
}

#[test]
fn people_see_the_secret_alone_on_a_line() {
    let town = town();
    let made = town.gt(["token", "create", "ci", "--scope", "submit", "--expires", "90d"]).ok();
    assert!(made.stdout.lines().any(|line| line.starts_with("gtw_") && line.len() == 68), "{made}");
    assert_says(&made.stderr, &["the only time it is shown"]);
    assert_says(&town.gt(["token", "list"]).ok().stdout, &["valid until"]);
    let quiet = town.gt(["token", "create", "ci", "-q"]).ok();
    assert_eq!(quiet.stdout.lines().count(), 1, "{quiet}");
}

#[test]
fn wrong_tokens_are_refused_and_no_secret_is_repeated() {
    let town = town();
    let before = town.last_event();
    let secret = format!("gtw_{}", "a1".repeat(32));
    for (arguments, code, reason) in [
        (&["create", "x", "--scope", "write"][..], 2, "is not a scope"),
        (&["create", "x", "--scope", ""], 2, "needs a scope"),
        (&["create", ""], 1, "name"),
        (&["create", "x", "--expires", "soon"], 1, "not a duration"),
        (&["create", "x", "--expires", "0"], 1, "expired already"),
        (&["revoke", &secret], 1, "not the id of a token"),
        (&["revoke", "0123456789ab"], 1, "there is no token 0123456789ab"),
    ] {
        let ran = town.gt(["token"].iter().chain(arguments));
        assert_eq!(ran.code, code, "{arguments:?}\n{ran}");
        assert_says(&ran.stderr, &[reason]);
        assert!(!ran.stderr.contains("a1a1"), "{ran}");
    }
    assert_eq!(town.last_event(), before);
    let _ = refusal(&town.gt(["token", "revoke", "0123456789ab"]));
}
