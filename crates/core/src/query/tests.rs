//! The meaning of the query language, and that no text breaks the parser.

use proptest::prelude::*;

use super::*;
use crate::Timestamp;

fn now() -> Timestamp {
    Timestamp::parse("2026-05-31T12:34:56Z").unwrap()
}

fn parse(text: &str) -> Result<Query, QueryError> {
    Query::parse(text, now())
}

/// The printed form of a query that a person wrote.
#[track_caller]
fn printed(text: &str) -> String {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
}

#[test]
fn not_binds_tighter_than_and_which_binds_tighter_than_or() {
    for (given, expected) in [
        ("id=a OR id=b AND id=c", "id=a OR (id=b AND id=c)"),
        ("id=a AND id=b OR id=c", "(id=a AND id=b) OR id=c"),
        ("NOT id=a AND id=b", "NOT id=a AND id=b"),
        ("NOT (id=a AND id=b)", "NOT (id=a AND id=b)"),
        ("(id=a OR id=b) AND id=c", "(id=a OR id=b) AND id=c"),
        ("not not id=a", "NOT NOT id=a"),
        ("((id=a))", "id=a"),
        ("id=a and id=b AND id=c", "id=a AND id=b AND id=c"),
    ] {
        assert_eq!(printed(given), expected);
    }
    assert_ne!(parse("id=a OR id=b AND id=c"), parse("(id=a OR id=b) AND id=c"));
    assert_eq!(parse("id=a OR id=b AND id=c"), parse("id=a OR (id=b AND id=c)"));
}

#[test]
fn conditions_are_understood_as_people_write_them() {
    for (given, expected) in [
        ("STATUS = open", "status=open"),
        ("status!=closed", "NOT status=closed"),
        ("status=open,blocked", "status=open OR status=blocked"),
        ("label != a , b", "NOT (label=a OR label=b)"),
        ("type=feat", "type=feature"),
        ("priority<=P1", "priority<=1"),
        ("priority=p0,P1", "priority=0 OR priority=1"),
        ("title=login", "title~login"),
        ("title='fix the login'", "title~\"fix the login\""),
        ("desc=none", "description=none"),
        ("assignee=\"\"", "assignee=none"),
        ("assignee=None", "assignee=none"),
        ("assignee=\"none\"", "assignee=\"none\""),
        ("assignee=and", "assignee=and"),
        ("assignee=O'Neill", "assignee=\"O'Neill\""),
        ("id=gt-*", "id=gt-*"),
        ("id=\"gt-*\"", "id=\"gt-*\""),
        ("metadata.Team=blue", "metadata.Team=blue"),
        ("ephemeral=true AND ready", "ephemeral AND ready"),
        ("pinned=no", "NOT pinned"),
        ("blocked!=false", "NOT NOT blocked"),
        ("estimate>60 or estimate=none", "estimate>60 OR estimate=none"),
        ("created>7d", "created>2026-05-24T12:34:56Z"),
        ("created>-7d", "created>2026-05-24T12:34:56Z"),
        ("due<+2d", "due<2026-06-02T12:34:56Z"),
        ("due<=TOMORROW", "due<=2026-06-01T00:00:00Z"),
        ("closed=today", "closed=2026-05-31"),
        ("closed=2026-05-30", "closed=2026-05-30"),
        ("closed>2026-05-30", "closed>2026-05-30T00:00:00Z"),
        ("closed=2026-05-30T00:00:00Z", "closed=2026-05-30T00:00:00Z"),
        ("due!=none", "NOT due=none"),
        ("notes~\"say \\\"hi\\\"\"", "notes~\"say \\\"hi\\\"\""),
    ] {
        assert_eq!(printed(given), expected, "{given}");
    }
}

#[test]
fn an_error_points_at_what_is_wrong_and_says_what_was_expected() {
    for (given, column, says) in [
        ("", 1, "expected a field, NOT or (, found the end"),
        ("status", 7, "after \"status\", found the end"),
        ("status=", 8, "expected a value after =, found the end"),
        ("status=open AND", 16, "expected a field"),
        ("status=open priority=1", 13, "expected AND, OR or the end, found \"priority\""),
        ("(status=open", 13, "expected AND, OR or )"),
        ("status=open)", 12, "no parenthesis is open"),
        ("colour=red", 1, "\"colour\" is not a field; known are id, title"),
        ("priority=9", 10, "priority 9 is not between"),
        ("priority=none", 10, "is not a priority"),
        ("status=Open!", 12, "expected != here"),
        ("status=OPEN", 8, "is not a status"),
        ("status<open", 7, "status understands = != ~, not <"),
        ("priority~1", 9, "priority understands"),
        ("created>yesterdayish", 9, "expected a time"),
        ("created=7d", 9, "use < or >"),
        ("created=none", 9, "every bead has this time"),
        ("due<none", 5, "none goes with = or !="),
        ("ready=maybe", 7, "expected true or false"),
        ("title~\"\"", 7, "some text to look for"),
        ("title=\"open", 7, "another \" that closes"),
        ("title~a,b", 8, "a list of values goes with = or !="),
        ("metadata.=1", 1, "is not a field"),
        ("metadata.$x=1", 1, "is not a field"),
        ("outcome=maybe", 9, "is not an outcome"),
        ("ü=1 AND", 1, "is not a field"),
        ("title=ü bad", 9, "expected AND, OR or the end"),
    ] {
        let error = parse(given).expect_err(given);
        assert_eq!(error.column(), column, "{given}: {error}");
        assert!(error.to_string().contains(says), "{given}: {error}");
    }
}

#[test]
fn the_caret_stands_under_the_place() {
    let error = parse("priority=1 AND colour=red").expect_err("no such field");
    assert_eq!(error.detail_lines(), ["priority=1 AND colour=red", "               ^"]);
}

#[test]
fn a_query_that_is_too_large_is_refused() {
    let deep = format!("{}id=a{}", "(".repeat(5_000), ")".repeat(5_000));
    let negated = format!("{}id=a", "NOT ".repeat(3_000));
    let wide = vec!["id=a"; 1_000].join(" OR ");
    let long = format!("title~{}", "x".repeat(100_000));
    for text in [deep, negated, wide, long] {
        assert!(parse(&text).is_err());
    }
}

fn text_field() -> impl Strategy<Value = TextField> {
    prop_oneof![
        Just(TextField::Id),
        Just(TextField::Assignee),
        Just(TextField::Label),
        Just(TextField::Parent),
        Just(TextField::Rig),
        Just(TextField::Spec),
        "[A-Za-z_][A-Za-z0-9_.-]{0,8}".prop_map(TextField::Metadata),
    ]
}

/// Text without NUL, which no engine stores.
fn words() -> impl Strategy<Value = String> {
    "[^\\x00]{1,12}"
}

fn condition() -> impl Strategy<Value = FieldCondition> {
    let comparison = prop_oneof![
        Just(Comparison::Equal),
        Just(Comparison::Less),
        Just(Comparison::AtMost),
        Just(Comparison::Greater),
        Just(Comparison::AtLeast),
    ];
    let text = prop_oneof![
        Just(TextTest::Empty),
        words().prop_map(TextTest::Is),
        "[a-z0-9-]{0,5}\\*[a-z0-9*-]{0,5}".prop_map(TextTest::Like),
        words().prop_map(TextTest::Contains),
    ];
    let time_field = prop_oneof![Just(TimeField::Due), Just(TimeField::Closed)];
    let time = prop_oneof![
        Just(TimeTest::Empty),
        (comparison.clone(), any::<i64>())
            .prop_map(|(how, nanos)| TimeTest::At(how, Timestamp::from_nanos(nanos))),
        (-100_000_i64..100_000)
            .prop_map(|day| TimeTest::Day(Timestamp::from_nanos(day * 86_400_000_000_000))),
    ];
    let prose = prop_oneof![Just(TextTest::Empty), words().prop_map(TextTest::Contains),];
    let flag = prop_oneof![Just(Flag::Ready), Just(Flag::Blocked), Just(Flag::Ephemeral)];
    prop_oneof![
        (text_field(), text).prop_map(|(field, test)| FieldCondition::Text { field, test }),
        prose.prop_map(|test| FieldCondition::Text { field: TextField::Title, test }),
        (comparison.clone(), 0_i64..5).prop_map(|(how, number)| FieldCondition::Number {
            field: NumberField::Priority,
            test: Some((how, number)),
        }),
        proptest::option::of((comparison, 0..=i64::from(u32::MAX)))
            .prop_map(|test| FieldCondition::Number { field: NumberField::Estimate, test }),
        (time_field, time).prop_map(|(field, test)| FieldCondition::Time { field, test }),
        flag.prop_map(FieldCondition::Flag),
    ]
}

fn expression() -> impl Strategy<Value = Expression> {
    condition().prop_map(Expression::Is).prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Expression::Not(Box::new(inner))),
            proptest::collection::vec(inner.clone(), 2..4).prop_map(Expression::All),
            proptest::collection::vec(inner, 2..4).prop_map(Expression::Any),
        ]
    })
}

proptest! {
    #[test]
    fn a_printed_query_reads_back_as_the_same(expression in expression()) {
        let query = Query { expression, now: now() };
        let text = query.to_string();
        prop_assert_eq!(parse(&text), Ok(query), "{}", text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,60}") {
        let _ = parse(&text);
    }

    #[test]
    fn nothing_like_a_query_makes_the_parser_panic(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("("), Just(")"), Just("AND"), Just("or"), Just("NOT"), Just("="), Just("!="),
                Just("<"), Just("~"), Just(","), Just("status"), Just("created"), Just("priority"),
                Just("ready"), Just("metadata.x"), Just("open"), Just("7d"), Just("P1"), Just("\""),
                Just("'"), Just("\\"), Just(" "), Just("none"), Just("!"), Just("*"), Just("ß"),
            ],
            0..20,
        )
    ) {
        let text = pieces.concat();
        let spaced = pieces.join(" ");
        for text in [text, spaced] {
            if let Err(error) = parse(&text) {
                prop_assert!(error.column() >= 1 && error.column() <= text.chars().count() + 1);
                let [_, caret] = error.detail_lines();
                prop_assert_eq!(caret.chars().count(), error.column());
            }
        }
    }
}
