//! Cooking, from the model to the graph.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::decide::cycles;

fn step(id: &str, needs: &[&str]) -> Step {
    let needs = needs.iter().map(|need| (*need).to_owned()).collect();
    Step { id: id.to_owned(), title: format!("Do {id}"), needs, ..Step::default() }
}

fn formula(steps: Vec<Step>) -> Formula {
    Formula { name: "tea".to_owned(), version: 1, steps, ..Formula::default() }
}

fn variable(name: &str, default: Option<&str>) -> Variable {
    let default = default.map(str::to_owned);
    Variable { name: name.to_owned(), default, ..Variable::default() }
}

fn repeated(id: &str, repetition: Repetition, body: Vec<Step>) -> Step {
    let variable = Some("n".to_owned());
    let repeat = Loop { repetition, variable, body, carried: Vec::new() };
    Step { repeat: Some(Box::new(repeat)), title: String::new(), ..step(id, &[]) }
}

fn nowhere(name: &str) -> Result<Formula, Vec<FormulaProblem>> {
    Err(vec![FormulaProblem::new(
        &SourceLocation::default(),
        format!("formula \"{name}\""),
        "not found",
    )])
}

fn among(formulas: Vec<Formula>) -> impl Fn(&str) -> Result<Formula, Vec<FormulaProblem>> {
    move |name| match formulas.iter().find(|formula| formula.name == name) {
        Some(formula) => Ok(formula.clone()),
        None => nowhere(name),
    }
}

fn cook_with(formula: &Formula, given: &[(&str, &str)]) -> Result<Cooked, Vec<FormulaProblem>> {
    let given: BTreeMap<String, String> =
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    cook(
        formula,
        CookOptions { given: &given, mode: PlaceholderMode::Runtime, prefix: None },
        &nowhere,
    )
}

fn cooked(formula: &Formula) -> Cooked {
    cook_with(formula, &[]).unwrap()
}

fn cook_among(formula: &Formula, others: Vec<Formula>) -> Result<Cooked, Vec<FormulaProblem>> {
    let given = BTreeMap::new();
    cook(
        formula,
        CookOptions { given: &given, mode: PlaceholderMode::Runtime, prefix: None },
        &among(others),
    )
}

/// Each step with its needs.
fn lines(cooked: &Cooked) -> Vec<String> {
    let name = |number: &usize| cooked.steps[*number].step.as_str();
    let line = |step: &CookedStep| {
        let needs: Vec<&str> = step.needs.iter().map(name).collect();
        format!("{} < {}", step.step, needs.join(" ")).trim_end_matches([' ', '<']).to_owned()
    };
    cooked.steps.iter().map(line).collect()
}

fn messages(problems: &[FormulaProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn steps_become_children_of_the_root() {
    let cooked = cooked(&formula(vec![step("boil", &[]), step("pour", &["boil"])]));

    assert_eq!(cooked.root.id, "tea");
    assert_eq!(cooked.steps[1].id, "tea.pour");
    let edges: Vec<(usize, Option<usize>, String)> =
        cooked.edges().into_iter().map(|e| (e.step, e.target, e.kind.to_string())).collect();
    assert_eq!(
        edges,
        [
            (0, None, "parent-child".to_owned()),
            (1, None, "parent-child".to_owned()),
            (1, Some(0), "blocks".to_owned()),
        ]
    );
    assert_eq!(cooked.waves(), [[0], [1]]);
}

#[test]
fn parts_hang_under_their_step_which_is_an_epic() {
    let whole = Step { children: vec![step("water", &[]), step("fire", &[])], ..step("boil", &[]) };
    let cooked = cooked(&formula(vec![whole, step("pour", &["fire"])]));

    assert_eq!(cooked.steps[1].id, "tea.boil.water");
    assert_eq!(cooked.steps[1].parent, Some(0));
    assert_eq!(cooked.steps[0].issue_type.as_str(), "epic");
    assert_eq!(lines(&cooked)[3], "pour < fire");
}

#[test]
fn a_gate_is_a_step_that_blocks_its_step() {
    let gate = StepGate { kind: "human".to_owned(), ..StepGate::default() };
    let cooked = cooked(&formula(vec![Step { gate: Some(gate), ..step("pour", &[]) }]));

    assert_eq!(lines(&cooked), ["gate-pour", "pour < gate-pour"]);
    assert_eq!(cooked.steps[0].issue_type.as_str(), "gate");
    assert!(matches!(&cooked.steps[0].role, Role::Gate(gate) if gate.kind == "human"));
}

#[test]
fn waiting_for_children_replaces_needing_the_step() {
    let waits_for = Some(WaitsFor::parse("any-children").unwrap());
    let cooked = cooked(&formula(vec![
        step("survey", &[]),
        Step { waits_for, ..step("sum-up", &["survey"]) },
    ]));

    let edge = cooked.edges().pop().unwrap();
    assert_eq!((edge.step, edge.target, edge.kind.as_str()), (1, Some(0), "waits-for"));
    assert_eq!(edge.metadata, r#"{"gate":"any-children"}"#);
    assert_eq!(cooked.steps[1].labels, ["gate:any-children"]);
    assert!(cooked.steps[1].needs.is_empty());
}

#[test]
fn every_problem_is_told_at_once() {
    let mut wrong = formula(vec![
        step("a", &["b"]),
        step("b", &["a"]),
        step("a", &["nowhere"]),
        Step { title: "{{what}}".to_owned(), ..step("c", &[]) },
        Step { title: String::new(), ..step("d e", &[]) },
    ]);
    wrong.version = 0;
    wrong.name = String::new();

    let said = messages(&cook_with(&wrong, &[]).unwrap_err());

    for part in [
        "it has no name",
        "versions begin with 1",
        "the id is taken",
        "needs \"nowhere\"",
        "a → b → a",
        "{{what}}, which is not declared",
        "it has no title",
        "becomes a part of bead ids",
    ] {
        assert!(said.contains(part), "{part} in:\n{said}");
    }
    assert!(messages(&cook_with(&formula(vec![]), &[]).unwrap_err()).contains("no step"));
}

#[test]
fn a_part_cannot_wait_for_its_whole() {
    let whole = Step { children: vec![step("part", &["other"])], ..step("whole", &[]) };
    let said = messages(&validate(&formula(vec![whole, step("other", &["whole"])])));
    assert!(said.contains("whole → part → other → whole"), "{said}");
}

#[test]
fn values_are_checked_against_their_variable() {
    let mut tea = formula(vec![Step { title: "{{kind}} {{cups}}".to_owned(), ..step("a", &[]) }]);
    tea.variables = vec![
        Variable {
            allowed: vec!["green".to_owned(), "black".to_owned()],
            ..variable("kind", None)
        },
        Variable { kind: Some(VariableKind::Integer), ..variable("cups", Some("2")) },
        Variable { required: true, pattern: Some("^[a-z]+$".to_owned()), ..variable("who", None) },
    ];

    let fine = cook_with(&tea, &[("kind", "green"), ("who", "ann"), ("more", "x")]).unwrap();
    assert_eq!(fine.steps[0].title.as_str(), "green 2");
    assert!(fine.warnings[0].contains("no variable more"), "{:?}", fine.warnings);

    let said = messages(&cook_with(&tea, &[]).unwrap_err());
    assert!(said.contains("\"kind\": has no value") && said.contains("\"who\": has no value"));
    let wrong = [("kind", "red"), ("cups", "two"), ("who", "ANN")];
    let said = messages(&cook_with(&tea, &wrong).unwrap_err());
    for part in ["choose from: green, black", "not a whole number", "does not match the pattern"] {
        assert!(said.contains(part), "{part} in:\n{said}");
    }
}

#[test]
fn placeholders_stay_when_compiling() {
    let mut tea = formula(vec![Step { title: "{{kind}} tea".to_owned(), ..step("a", &[]) }]);
    tea.variables = vec![Variable { required: true, ..variable("kind", None) }];
    tea.steps[0].condition = Some(VariableCondition::parse("{{kind}}").unwrap());
    let given = BTreeMap::new();
    let order = CookOptions { given: &given, mode: PlaceholderMode::Compile, prefix: Some("gt-") };

    let cooked = cook(&tea, order, &nowhere).unwrap();

    assert_eq!(cooked.steps[0].title.as_str(), "{{kind}} tea");
    assert_eq!(cooked.steps[0].id, "gt-tea.a");
    assert!(matches!(&cooked.steps[0].role, Role::Work { condition: Some(_), .. }));
}

#[test]
fn the_needs_of_a_step_that_is_left_out_pass_to_its_dependents() {
    let mut tea = formula(vec![
        step("boil", &[]),
        Step {
            condition: Some(VariableCondition::parse("{{milk}}").unwrap()),
            children: vec![step("warm", &[])],
            ..step("milk", &["boil"])
        },
        step("pour", &["milk"]),
    ]);
    tea.variables = vec![variable("milk", Some("no"))];

    assert_eq!(lines(&cooked(&tea)), ["boil", "pour < boil"]);
    let with = cook_with(&tea, &[("milk", "yes")]).unwrap();
    assert_eq!(lines(&with), ["boil", "milk < boil", "warm", "pour < milk"]);
}

#[test]
fn a_loop_is_unrolled_round_after_round() {
    let body = vec![
        Step { title: "Cup {n} of {{cups}}".to_owned(), ..step("fill", &[]) },
        step("drink", &["fill"]),
    ];
    let mut cups = repeated("cup", Repetition::Range("1..{cups}".to_owned()), body);
    cups.needs = vec!["boil".to_owned()];
    let mut tea = formula(vec![step("boil", &[]), cups, step("wash", &["cup"])]);
    tea.variables = vec![variable("cups", Some("2"))];

    let cooked = cooked(&tea);

    assert_eq!(
        lines(&cooked),
        [
            "boil",
            "cup.iter1.fill < boil",
            "cup.iter1.drink < cup.iter1.fill",
            "cup.iter2.fill < cup.iter1.drink",
            "cup.iter2.drink < cup.iter2.fill",
            "wash < cup.iter2.drink",
        ]
    );
    assert_eq!(cooked.steps[3].title.as_str(), "Cup 2 of 2");
    assert_eq!(cooked.steps[3].id, "tea.cup.iter2.fill");
}

#[test]
fn loops_nest_and_conditions_see_the_counter() {
    let odd = VariableCondition::parse("{{n}} != 2").unwrap();
    let inner = repeated("inner", Repetition::Count(1), vec![step("x", &["before"])]);
    let body = vec![Step { condition: Some(odd), ..step("before", &[]) }, inner];
    let tea = formula(vec![repeated("outer", Repetition::Count(2), body)]);

    assert_eq!(
        lines(&cooked(&tea)),
        [
            "outer.iter1.before",
            "outer.iter1.inner.iter1.x < outer.iter1.before",
            "outer.iter2.inner.iter1.x < outer.iter1.inner.iter1.x",
        ]
    );
}

#[test]
fn an_endless_loop_is_refused_before_it_is_unrolled() {
    let huge = repeated("a", Repetition::Range("1..10^15".to_owned()), vec![step("x", &[])]);
    let said = messages(&cook_with(&formula(vec![huge]), &[]).unwrap_err());
    assert!(said.contains("more than 5000"), "{said}");

    let mut nested = vec![step("x", &[])];
    for depth in 0..6 {
        nested = vec![repeated(&format!("l{depth}"), Repetition::Count(50), nested)];
    }
    let said = messages(&cook_with(&formula(nested), &[]).unwrap_err());
    assert!(said.contains("more than 5000 steps"), "{said}");

    let wide = (0..500).map(|number| step(&format!("x{number}"), &[])).collect();
    let wide = formula(vec![repeated("a", Repetition::Count(2), wide)]);
    assert!(messages(&cook_with(&wide, &[]).unwrap_err()).contains("more than 50000 times"));

    let until = Repetition::Until { condition: "x".to_owned(), max: Some(3) };
    let until = formula(vec![repeated("a", until, vec![step("x", &[])])]);
    assert!(messages(&cook_with(&until, &[]).unwrap_err()).contains("until is not supported"));
}

fn expansion(name: &str, template: Vec<Step>) -> Formula {
    let kind = FormulaKind::Expansion;
    Formula { kind, name: name.to_owned(), template, steps: Vec::new(), ..formula(vec![]) }
}

#[test]
fn an_expansion_takes_the_place_of_a_step() {
    let mut twice = expansion(
        "twice",
        vec![
            Step { title: "{how}: {target.title}".to_owned(), ..step("{target}.draft", &[]) },
            step("{target}.polish", &["{target}.draft"]),
        ],
    );
    twice.variables = vec![variable("how", Some("Quickly"))];
    let tea = formula(vec![
        step("boil", &[]),
        Step { expand: Some("twice".to_owned()), ..step("brew", &["boil"]) },
        step("pour", &["brew"]),
    ]);

    let cooked = cook_among(&tea, vec![twice.clone()]).unwrap();
    assert_eq!(
        lines(&cooked),
        ["boil", "brew.draft < boil", "brew.polish < brew.draft", "pour < brew.polish"]
    );
    assert_eq!(cooked.steps[1].title.as_str(), "Quickly: Do brew");

    let mut composed = formula(vec![step("brew", &[]), step("pour", &["brew"])]);
    composed.compose.map =
        vec![MapRule { select: "b*".to_owned(), with: "twice".to_owned(), ..MapRule::default() }];
    let cooked = cook_among(&composed, vec![twice]).unwrap();
    assert_eq!(lines(&cooked), ["brew.draft", "brew.polish < brew.draft", "pour < brew.polish"]);
}

#[test]
fn a_variable_that_an_expansion_brings_must_be_declared_too() {
    let asks = expansion(
        "asks",
        vec![Step { title: "Ask {{whom}}".to_owned(), ..step("{target}.ask", &[]) }],
    );
    let mut tea = formula(vec![Step { expand: Some("asks".to_owned()), ..step("brew", &[]) }]);
    let given = BTreeMap::new();
    for mode in [PlaceholderMode::Compile, PlaceholderMode::Runtime] {
        let order = CookOptions { given: &given, mode, prefix: None };
        let said = messages(&cook(&tea, order, &among(vec![asks.clone()])).unwrap_err());
        assert!(said.contains("{{whom}}, which is not declared"), "{said}");
    }
    tea.variables = vec![variable("whom", Some("ann"))];
    let cooked = cook_among(&tea, vec![asks]).unwrap();
    assert_eq!(cooked.steps[0].title.as_str(), "Ask ann");
}

#[test]
fn expansions_that_are_none_or_contain_each_other_are_refused() {
    let expands = |id: &str, with: &str| Step { expand: Some(with.to_owned()), ..step(id, &[]) };
    let tea = formula(vec![expands("brew", "a")]);
    for (others, expected) in [
        (vec![], "not found"),
        (
            vec![Formula { name: "a".to_owned(), ..formula(vec![step("x", &[])]) }],
            "of type workflow",
        ),
        (
            vec![
                expansion("a", vec![expands("{target}.x", "b")]),
                expansion("b", vec![expands("{target}.y", "a")]),
            ],
            "a → b → a",
        ),
    ] {
        let said = messages(&cook_among(&tea, others).unwrap_err());
        assert!(said.contains(expected), "{expected} in:\n{said}");
    }
}

#[test]
fn a_formula_inherits_and_overrides() {
    let mut base = formula(vec![step("boil", &[]), step("pour", &["boil"])]);
    base.variables = vec![variable("kind", Some("black"))];
    let mut own = formula(vec![
        Step { title: "Pour {{kind}}".to_owned(), ..step("pour", &["boil"]) },
        step("drink", &["pour"]),
    ]);
    own.name = "green-tea".to_owned();
    own.extends = vec!["tea".to_owned()];
    own.variables = vec![variable("kind", Some("green"))];

    let cooked = cook_among(&own, vec![base]).unwrap();
    assert_eq!(lines(&cooked), ["boil", "pour < boil", "drink < pour"]);
    assert_eq!(cooked.steps[1].title.as_str(), "Pour green");

    let mut other = formula(vec![]);
    other.extends = vec!["green-tea".to_owned()];
    own.extends = vec!["tea".to_owned()];
    let said = messages(&cook_among(&own, vec![own.clone(), other]).unwrap_err());
    assert!(said.contains("green-tea → tea → green-tea"), "{said}");
    assert!(messages(&cook_among(&own, vec![]).unwrap_err()).contains("not found"));
}

#[test]
fn an_unsupported_feature_is_refused_by_name() {
    let mut tea = formula(vec![step("a", &[])]);
    tea.compose.aspects = vec!["secure".to_owned()];
    tea.advice = vec![crate::Json::string("x")];
    let said = messages(&cook_with(&tea, &[]).unwrap_err());
    assert!(said.contains("compose.aspects is not supported"), "{said}");
    assert!(said.contains("advice is not supported"), "{said}");
    let convoy = Formula { kind: FormulaKind::Convoy, ..formula(vec![]) };
    assert!(messages(&cook_with(&convoy, &[]).unwrap_err()).contains("legs"));
}

#[test]
fn branches_are_another_way_to_write_needs() {
    let mut tea = formula(["boil", "cups", "milk", "serve"].map(|id| step(id, &[])).to_vec());
    tea.compose.branch = vec![Branch {
        from: "boil".to_owned(),
        steps: vec!["cups".to_owned(), "milk".to_owned()],
        join: "serve".to_owned(),
        ..Branch::default()
    }];
    assert_eq!(lines(&cooked(&tea)), ["boil", "cups < boil", "milk < boil", "serve < cups milk"]);
}

/// Steps that need only steps before them, some with a gate, a part, a condition or a loop.
fn acyclic() -> impl Strategy<Value = Formula> {
    let one = (prop::collection::vec(0_usize..12, 0..3), 0_u8..6, "[a-z{}n ]{0,6}");
    prop::collection::vec(one, 1..12).prop_map(|steps| {
        let mut formula = formula(Vec::new());
        formula.variables = vec![variable("v", Some("7")), variable("w", None)];
        for (number, (needs, shape, text)) in steps.into_iter().enumerate() {
            let id = format!("s{number}");
            let mut made = step(&id, &[]);
            made.title = format!("T{{{{v}}}} {text}");
            let needs = needs.into_iter().filter(|need| *need < number);
            made.needs = needs.map(|need| format!("s{need}")).collect();
            match shape {
                0 => made.gate = Some(StepGate { kind: "timer".to_owned(), ..StepGate::default() }),
                1 => made.children = vec![step(&format!("{id}-part"), &[])],
                2 => made.condition = Some(VariableCondition::parse("{{w}}").unwrap()),
                3 => {
                    let body = vec![step("x", &[]), step("y", &["x"])];
                    let Step { repeat, .. } = repeated("", Repetition::Count(2), body);
                    made.repeat = repeat;
                }
                _ => {}
            }
            formula.steps.push(made);
        }
        formula
    })
}

proptest! {
    #[test]
    fn an_acyclic_formula_gives_an_acyclic_graph(formula in acyclic(), with in any::<bool>()) {
        let given: &[(&str, &str)] = if with { &[("w", "yes")] } else { &[] };
        match cook_with(&formula, given) {
            Err(problems) => {
                // The only thing that can go wrong here is that nothing is left, or an odd variable.
                let said = messages(&problems);
                prop_assert!(said.contains("no step is left") || said.contains("not declared"));
            }
            Ok(cooked) => {
                let blockers: Vec<Vec<usize>> = cooked.steps.iter().map(|s| s.needs.clone()).collect();
                prop_assert!(cycles(&blockers).is_empty());
                let ids: HashSet<&str> = cooked.steps.iter().map(|s| s.id.as_str()).collect();
                prop_assert_eq!(ids.len(), cooked.steps.len());
                prop_assert!(cooked.steps.iter().all(|s| variables_in(s.title.as_str()).count() == 0));
                prop_assert_eq!(cooked.waves().concat().len(), cooked.steps.len());
                let mut pairs: Vec<_> = cooked.edges().iter().map(|e| (e.step, e.target)).collect();
                let all = pairs.len();
                pairs.sort_unstable();
                pairs.dedup();
                prop_assert_eq!(pairs.len(), all, "one edge for a pair");
            }
        }
    }

    #[test]
    fn any_graph_is_judged_without_panic(
        needs in prop::collection::vec(prop::collection::vec(0_usize..6, 0..3), 1..6)
    ) {
        let steps = needs.iter().enumerate().map(|(number, needs)| {
            let needs: Vec<String> = needs.iter().map(|need| format!("s{need}")).collect();
            step(&format!("s{number}"), &needs.iter().map(String::as_str).collect::<Vec<_>>())
        });
        let _ = cook_with(&formula(steps.collect()), &[]);
    }
}
