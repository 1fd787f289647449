//! The guarantees of a runtime: the command that is started, and how long it waits.

use std::time::Duration;

use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;
use crate::Timestamp;

fn name(text: &str) -> RuntimeName {
    RuntimeName::parse(text).unwrap()
}

fn layer(command: &str) -> RuntimeLayer {
    RuntimeLayer { command: Some(command.to_owned()), ..RuntimeLayer::default() }
}

const VALUES: InvocationValues<'_> = InvocationValues {
    prompt: "Do 'it' {now}",
    prompt_file: "/runs/prompt.md",
    bead: "gt-a",
    run: "gt-a#2",
    title: "A title",
    session: "0b0e3a38-4f1f-4f6e-8f3a-3d2f6a1c9e55",
    tree: "/town/web",
    gt: "/bin/gt",
    account_dir: None,
};

#[test]
fn the_prompt_goes_the_way_that_was_chosen() {
    let with = |way, command: &str| RuntimeLayer { prompt: Some(way), ..layer(command) };
    let start = |layer: RuntimeLayer| layer.finish(name("x")).unwrap().invocation(&VALUES).unwrap();

    let given = start(with(PromptMethod::Argument, "a -p {prompt}"));
    assert_eq!(given.argv, ["a", "-p", VALUES.prompt]);
    assert_eq!((given.stdin, given.prompt_file, given.paste), (None, None, None));

    let given = start(with(PromptMethod::Stdin, "{gt} scripted {run}"));
    assert_eq!(given.argv, ["/bin/gt", "scripted", "gt-a#2"]);
    assert_eq!(given.stdin.as_deref(), Some(VALUES.prompt.as_bytes()));

    let given = start(with(PromptMethod::File, "a --file={prompt_file}"));
    assert_eq!(given.argv, ["a", "--file=/runs/prompt.md"]);
    let file = given.prompt_file.unwrap();
    assert_eq!((file.path.as_str(), file.contents.as_str()), (VALUES.prompt_file, VALUES.prompt));
    assert_eq!(given.stdin, None);

    let paste = RuntimeLayer {
        is_interactive: Some(true),
        paste_confirm: Some(Pattern::parse("> Do").unwrap()),
        ..with(PromptMethod::Paste, "a")
    };
    let given = start(paste);
    assert_eq!(given.paste.unwrap().text, VALUES.prompt);
    assert_eq!(given.prompt_file, None);
}

#[test]
fn a_prompt_that_is_too_long_is_read_from_a_file() {
    let long = "x".repeat(200_000);
    let values = InvocationValues { prompt: &long, ..VALUES };
    let argument = RuntimeLayer { prompt: Some(PromptMethod::Argument), ..layer("a {prompt}") };
    let given = argument.finish(name("x")).unwrap().invocation(&values).unwrap();
    assert_eq!(given.argv, ["a", "Read /runs/prompt.md and do what it says."]);
    assert_eq!(given.prompt_file.unwrap().contents, long);

    let stdin = layer("a").finish(name("x")).unwrap().invocation(&values).unwrap();
    assert_eq!(stdin.stdin.unwrap().len(), long.len());
    assert_eq!(stdin.prompt_file, None);
}

#[test]
fn an_account_is_told_its_directory() {
    let values = InvocationValues { account_dir: Some("/acc"), ..VALUES };
    let start = |layer: RuntimeLayer| layer.finish(name("x")).unwrap().invocation(&values).unwrap();
    let variable = RuntimeLayer { account_variable: Some("HOME_OF_A".to_owned()), ..layer("a b") };
    assert_eq!(start(variable).environment, [("HOME_OF_A".to_owned(), "/acc".to_owned())]);
    let flag = RuntimeLayer { account_flag: Some("--config".to_owned()), ..layer("a b") };
    assert_eq!(start(flag).argv, ["a", "--config", "/acc", "b"]);
    assert_eq!(start(layer("a b")).argv, ["a", "b"]);
}

#[test]
fn a_command_names_its_session_and_its_tree() {
    let values = InvocationValues { tree: "/town/web/a tree", ..VALUES };
    let runtime = layer("a --session {session} --trust={tree}").finish(name("x")).unwrap();
    let argv = runtime.invocation(&values).unwrap().argv;
    assert_eq!(argv, ["a", "--session", VALUES.session, "--trust=/town/web/a tree"]);
}

#[test]
fn one_place_of_a_login_is_enough() {
    let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let places =
        LoginPlaces { variables: strings(&["A_KEY", "B_KEY"]), files: strings(&[".a/key"]) };
    let found = |text: &str| LoginState::Found(text.to_owned());
    assert_eq!(places.find(|name| name == "B_KEY", |_| true), found("B_KEY"));
    assert_eq!(places.find(|_| false, |file| file == ".a/key"), found("~/.a/key"));
    assert_eq!(places.find(|_| false, |_| false), LoginState::Missing);
    assert_eq!(LoginPlaces::default().find(|_| true, |_| true), LoginState::Unknown);
    assert_eq!(places.names(), ["A_KEY", "B_KEY", "~/.a/key"]);
}

#[test]
fn the_command_of_the_rig_is_asked_for() {
    let custom = layer("").finish(name("custom")).unwrap();
    let refused = custom.invocation(&VALUES).unwrap_err().to_string();
    assert!(refused.contains("gt config set rig.<name>.command"), "{refused}");
    let own = custom.for_rig(Some("work {bead}"));
    assert_eq!(own.invocation(&VALUES).unwrap().argv, ["work", "gt-a"]);
    let other = layer("a").finish(name("x")).unwrap().for_rig(Some("work {bead}"));
    assert_eq!(other.invocation(&VALUES).unwrap().argv, ["a"]);
}

#[test]
fn a_layer_replaces_what_it_says_and_leaves_the_rest() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let below = RuntimeLayer {
        environment: vec![pair("A", "1"), pair("B", "2")],
        account_variable: Some("DIR".to_owned()),
        program: Some("agent".to_owned()),
        memory_mb: Some(7),
        ..layer("agent run")
    };
    let over = RuntimeLayer {
        environment: vec![pair("B", "3")],
        account_flag: Some("--dir".to_owned()),
        ..layer("other run")
    };
    let both = over.over(below).finish(name("x")).unwrap();
    assert_eq!(both.command, Command::Own("other run".to_owned()));
    assert_eq!(both.environment, [pair("A", "1"), pair("B", "3")]);
    assert_eq!(both.account, Some(AccountWay::Flag("--dir".to_owned())));
    assert_eq!(both.program, "other", "another command is another program");
    assert_eq!(both.memory_mb, 7);
}

#[test]
fn an_impossible_value_is_refused_with_its_key() {
    let paste = RuntimeLayer { prompt: Some(PromptMethod::Paste), ..layer("a") };
    for (layer, expected) in [
        (RuntimeLayer::default(), "the runtime x: command: missing"),
        (layer("a {nothing}"), "the runtime x: command: {nothing} stands for nothing"),
        (
            RuntimeLayer { prompt: Some(PromptMethod::Argument), ..layer("a") },
            "the runtime x: command: lacks {prompt}",
        ),
        (
            RuntimeLayer { prompt: Some(PromptMethod::File), ..layer("a") },
            "the runtime x: command: lacks {prompt_file}",
        ),
        (
            RuntimeLayer { is_interactive: Some(true), ..layer("a") },
            "the runtime x: prompt: what needs a terminal reads from it",
        ),
        (paste.clone(), "the runtime x: prompt: paste needs a terminal"),
        (
            RuntimeLayer { is_interactive: Some(true), ..paste },
            "the runtime x: paste.confirm: missing",
        ),
        (
            RuntimeLayer {
                account_variable: Some("A".to_owned()),
                account_flag: Some("-a".to_owned()),
                ..layer("a")
            },
            "the runtime x: account_flag: there is account_variable too",
        ),
    ] {
        let refused = layer.finish(name("x")).unwrap_err().to_string();
        assert!(refused.starts_with(expected), "{refused}");
    }
}

/// A runtime that knows these patterns.
fn with_limits(patterns: &[&str]) -> Runtime {
    let limit = |text: &&str| Limit::new(Pattern::parse(text).unwrap(), None).unwrap();
    let limits = Some(patterns.iter().map(limit).collect());
    RuntimeLayer { limits, ..layer("a") }.finish(name("x")).unwrap()
}

/// Two places, without asking the machine.
fn places(name: &str) -> Option<TimeZone> {
    let hours = match name {
        "America/Chicago" => -6,
        "Asia/Dhaka" => 6,
        _ => return None,
    };
    Some(TimeZone::fixed(jiff::tz::offset(hours)))
}

fn zones() -> Zones<'static> {
    Zones { local: TimeZone::fixed(jiff::tz::offset(1)), named: &places }
}

const NOW: &str = "2026-05-31T12:00:00Z";

fn now() -> Timestamp {
    Timestamp::parse(NOW).unwrap()
}

#[test]
fn points_in_time_are_read_as_programs_write_them() {
    let runtime = with_limits(&["until (?<until>.)", "after (?<after>.)"]);
    for (said, expected) in [
        // It is one o'clock in the afternoon here.
        ("until 5pm", "2026-05-31T16:00:00Z"),
        ("until 9:30 AM. View your usage", "2026-06-01T08:30:00Z"),
        ("until 9am (America/Chicago).", "2026-05-31T15:00:00Z"),
        ("until 1:30am (Asia/Dhaka)", "2026-05-31T19:30:00Z"),
        ("until 5pm (Middle/Earth)", "2026-05-31T16:00:00Z"),
        ("until 17:05", "2026-05-31T16:05:00Z"),
        ("until 17:05 UTC", "2026-05-31T17:05:00Z"),
        ("until 12:00 UTC", "2026-06-01T12:00:00Z"),
        ("until 12am", "2026-05-31T23:00:00Z"),
        ("until 12pm", "2026-06-01T11:00:00Z"),
        ("until Jun 2 at 9pm (America/Chicago)", "2026-06-03T03:00:00Z"),
        ("until Jun 2nd, 2026 8:19 PM.", "2026-06-02T19:19:00Z"),
        ("until 2 June, 8:19 PM", "2026-06-02T19:19:00Z"),
        ("until tomorrow at 08:00", "2026-06-01T07:00:00Z"),
        ("until Monday 9am", "2026-06-01T08:00:00Z"),
        ("until Sunday 9am", "2026-06-07T08:00:00Z"),
        ("until 2026-06-01 10:00", "2026-06-01T09:00:00Z"),
        ("until 2026-06-01T10:00:00Z\"}", "2026-06-01T10:00:00Z"),
        ("until 1780232400", "2026-05-31T13:00:00Z"),
        ("until 1780232400000,", "2026-05-31T13:00:00Z"),
        ("until Sep 9", "2026-06-07T12:00:00Z"),
        ("after 2 hours 5 minutes", "2026-05-31T14:05:00Z"),
        ("after 5 days 22 hours 11\nminutes.", "2026-06-06T10:11:00Z"),
        ("after 3h14m7s.", "2026-05-31T15:14:07Z"),
        ("after 1 day, 2 hours and 3 minutes", "2026-06-01T14:03:00Z"),
        ("after 90", "2026-05-31T12:01:30Z"),
        ("after 4.5s", "2026-05-31T12:00:04.5Z"),
        ("after 30 days", "2026-06-07T12:00:00Z"),
    ] {
        let found = runtime.limit_in(said, now(), &zones()).unwrap();
        assert_eq!(found.at.to_string(), expected, "{said}");
        assert!(found.is_exact, "{said}");
    }
}

#[test]
fn a_limit_without_a_believable_time_is_guessed() {
    let runtime = with_limits(&["until (?<until>.)", "after (?<after>.)", "quota exceeded"]);
    for said in [
        "quota exceeded",
        "after 0s",
        // A time that has passed cannot be the end of a limit that is still in force.
        "until 1760000400",
        "until May 30 at 9am",
        "until 2026-05-30T10:00:00Z",
    ] {
        let found = runtime.limit_in(said, now(), &zones()).unwrap();
        assert_eq!(found.at.to_string(), "2026-05-31T12:30:00Z", "{said}");
        assert!(!found.is_exact, "{said}");
    }
    for said in [
        "all is well",
        "until you pay",
        "after lunch",
        "until 25:00",
        "until 13pm",
        "until 7",
        "until Feb 31 9am",
    ] {
        assert_eq!(runtime.limit_in(said, now(), &zones()), None, "{said}");
    }
}

#[test]
fn a_wrong_clock_makes_no_limit_longer_than_its_window() {
    let hours = |hours| now().plus(Duration::from_hours(hours));
    let told = |until, window| LimitUntil::reported(until, window, "limit", now());
    let five = Some(Duration::from_hours(5));
    assert_eq!(told(Some(hours(3)), five).at, hours(3));
    assert_eq!(told(Some(hours(3000)), five).at, hours(5));
    assert_eq!(told(Some(hours(3000)), None).at, hours(7 * 24));
    for past in [None, Some(now())] {
        let limit = told(past, five);
        assert_eq!((limit.at, limit.is_exact), (now().plus(Duration::from_mins(5)), false));
    }
}

#[test]
fn the_last_word_counts_and_colours_do_not() {
    let runtime = with_limits(&["resets (?<until>.)"]);
    let output = "resets 5pm\nit went on\n\u{1b}[31mYou\u{2019}ve hit your limit · \u{1b}[1mresets 7pm\u{1b}[0m\nbye";
    let found = runtime.limit_in(output, now(), &zones()).unwrap();
    assert_eq!(found.at.to_string(), "2026-05-31T18:00:00Z");
    assert_eq!(found.said, "You've hit your limit · resets 7pm");

    let long_ago = format!("resets 5pm\n{}", "working\n".repeat(2_000));
    assert_eq!(runtime.limit_in(&long_ago, now(), &zones()), None);
}

#[test]
fn patterns_are_checked() {
    for bad in ["", "(", "a*", "x{9999}{9999}"] {
        assert!(Pattern::parse(bad).is_err(), "{bad}");
    }
    let long = Some(Duration::from_hours(8 * 24));
    assert!(Limit::new(Pattern::parse("a").unwrap(), long).is_err());
}

proptest! {
    #[test]
    fn no_wait_is_endless(
        said in "(until|after) ([0-9]{1,14}|[A-Za-z]{1,9}|[0-9]{1,2}(:[0-9]{2})?|am|PM|[ ,.()/:T-]|.){0,12}",
        nanos in -4_000_000_000_000_000_000_i64..9_000_000_000_000_000_000,
    ) {
        let runtime = with_limits(&["until (?<until>.)?", "after (?<after>.)?"]);
        let now = Timestamp::from_nanos(nanos);
        if let Some(found) = runtime.limit_in(&said, now, &zones()) {
            prop_assert!(found.at > now);
            prop_assert!(found.at <= now.plus(LIMIT_WAIT_MAX));
            prop_assert!(!found.said.chars().any(char::is_control));
        }
    }

    #[test]
    fn a_clock_time_is_within_a_day(hour in 0_u8..24, minute in 0_u8..60) {
        let runtime = with_limits(&["until (?<until>.)"]);
        let said = format!("until {hour:02}:{minute:02}");
        let found = runtime.limit_in(&said, now(), &zones()).unwrap();
        prop_assert!(found.is_exact);
        prop_assert!(found.at.since(now()) <= Duration::from_hours(24));
    }

    #[test]
    fn nothing_makes_it_panic(output in ".{0,300}", text in ".{0,30}") {
        let runtime = with_limits(&[".", "(?<until>.)", "(?<after>.)"]);
        let _ = runtime.limit_in(&output, now(), &zones());
        let _ = Pattern::parse(&text);
        let _ = RuntimeName::parse(&text);
        let _ = layer(&text).finish(name("x"));
    }
}
