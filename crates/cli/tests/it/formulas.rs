//! `bd formula` and `bd cook`.

use gt_testkit::Sandbox;
use serde_json::{Value, json};

use crate::support::{Steps as _, assert_says, json_refusal, nowhere, refusal, texts, town};

const TEA: &str = r#"
formula = "tea"
description = "A cup of tea"
version = 2
colour = "green"

[vars.kind]
description = "Which tea"
required = true
enum = ["green", "black"]

[vars.milk]
default = "no"

[[steps]]
id = "boil"
title = "Boil water"

[[steps]]
id = "warm"
title = "Warm the milk"
condition = "{{milk}}"

[[steps]]
id = "pour"
title = "Pour {{kind}} tea"
acceptance = "It is hot"
needs = ["boil", "warm"]
"#;

fn town_with_tea() -> Sandbox {
    let town = town();
    town.write(".beads/formulas/tea.formula.toml", TEA);
    town
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let found = list.as_array().unwrap().iter().find(|formula| formula["name"] == name);
    found.unwrap_or_else(|| panic!("{name} in {list}"))
}

/// The lines of standard error that say what is wrong.
fn errors(stderr: &str) -> Vec<&str> {
    stderr.lines().filter_map(|line| line.strip_prefix("Error: ")).collect()
}

#[test]
fn built_in_formulas_can_be_listed_shown_and_cooked() {
    let town = town();
    let list = town.json(&["formula", "list"]);

    for name in ["mol-polecat-work", "mol-review", "mol-release", "exp-refine"] {
        let formula = named(&list, name);
        assert_eq!(formula["tier"], "built in");
        assert_eq!(formula["shadowed"], false);
        let shown = town.bd(["formula", "show", name]).ok();
        assert_eq!(shown.stderr, "", "no warnings, no problems");
        if formula["type"] == "workflow" {
            town.bd(["cook", name]).ok();
        }
    }
    for name in ["mol-polecat-work", "mol-review"] {
        let cooked = town.json(&["cook", name, "--var", "issue=gt-abc", "--dry-run"]);
        assert_eq!(cooked["steps"].as_array().unwrap().len(), 5);
        assert!(!cooked.to_string().contains("{{"), "{cooked}");
    }
    let work = town.json(&["cook", "mol-polecat-work", "--dry-run"]);
    assert_says(&work["steps"][4]["description"].to_string(), &["exit status 0"]);
}

#[test]
fn the_nearest_formula_counts_and_the_others_are_shadowed() {
    let town = town();
    town.gt(["rig", "add", "web"]).ok();
    let write = |directory: &str, description: &str| {
        let text = TEA.replace("A cup of tea", description);
        town.write(&format!("{directory}/tea.formula.toml"), text);
    };
    let found = |from: &Sandbox, arguments: &[&str]| {
        let shown = from.json(&[&["formula", "show", "tea"], arguments].concat());
        shown["description"].as_str().unwrap().to_owned()
    };
    write("../home/.beads/formulas", "of the person");
    assert_eq!(found(&town, &[]), "of the person");
    write(".beads/formulas", "of the town");
    assert_eq!(found(&town, &[]), "of the town");
    write(".gt/formulas", "of the town, ours");
    assert_eq!(found(&town, &[]), "of the town, ours");
    write("web/.beads/formulas", "of the rig");
    let web = town.in_dir("web");
    assert_eq!(found(&web, &[]), "of the rig");
    let deep = town.in_dir(town.make_dir("web/src/deep"));
    assert_eq!(found(&deep, &[]), "of the rig");
    assert_eq!(found(&town, &[]), "of the town, ours", "seen from the town");
    write("elsewhere", "asked for");
    assert_eq!(found(&web, &["--search-path", "../elsewhere"]), "asked for");

    let list = web.json(&["formula", "list"]);
    let teas: Vec<&Value> =
        list.as_array().unwrap().iter().filter(|formula| formula["name"] == "tea").collect();
    let tiers: Vec<_> = teas.iter().map(|tea| (&tea["tier"], &tea["shadowed"])).collect();
    assert_eq!(
        json!(tiers),
        json!([["rig", false], ["town", true], ["town", true], ["user", true],])
    );
    assert_says(&web.bd(["formula", "list"]).ok().stdout, &["town (shadowed)"]);
}

#[test]
fn a_formula_of_the_town_takes_the_place_of_a_built_in_one() {
    let town = town();
    let raw = town.bd(["formula", "show", "mol-review", "--raw"]).ok().stdout;
    assert!(raw.starts_with("formula = \"mol-review\""), "{raw}");
    town.write(
        ".beads/formulas/mol-review.formula.toml",
        raw.replace("version = 1", "version = 7"),
    );

    assert_eq!(town.json(&["formula", "show", "mol-review"])["version"], 7);
    let list = town.json(&["formula", "list"]);
    assert_eq!(named(&list, "mol-review")["shadowed"], false);
}

#[test]
fn formulas_are_listed_by_type() {
    let town = town_with_tea();
    assert_eq!(
        texts(&town.json(&["formula", "list", "--type", "expansion"]), "name"),
        ["exp-refine"]
    );
    assert_eq!(town.json(&["formula", "list", "--type", "aspect"]), json!([]));
    let ran = town.bd(["formula", "list", "--type", "dance"]).fails(1);
    assert_says(&ran.stderr, &["known: workflow, expansion, aspect, convoy"]);
    assert_eq!(town.gt_json(&["formula", "list"]), town.json(&["formula", "list"]));
}

#[test]
fn showing_a_formula_tells_variables_steps_and_order() {
    let town = town_with_tea();
    let shown = town.bd(["formula", "show", "tea"]).ok();
    assert_says(
        &shown.stdout,
        &[
            "tea  workflow version 2",
            "required; one of green, black",
            "default \"no\"",
            "after boil, warm",
            "if {{milk}}",
            "1. boil, warm",
            "2. pour",
        ],
    );
    assert_says(&shown.stderr, &["tea.formula.toml:5: the key colour is not known"]);
    let json = town.json(&["formula", "show", "tea"]);
    assert_eq!(json["colour"], "green", "unknown keys are kept");
    assert_eq!(json["steps"][2]["acceptance"], "It is hot");
    assert_eq!(json["vars"]["kind"]["enum"], json!(["green", "black"]));
}

#[test]
fn cooking_prints_the_resolved_formula_and_writes_nothing() {
    let town = town_with_tea();
    let before = town.last_event();

    let compiled = town.bd(["cook", "tea"]).ok();
    assert_eq!(compiled.json()["steps"][2]["title"], "Pour {{kind}} tea");
    assert_eq!(town.json(&["cook", "tea"]), compiled.json(), "JSON either way");
    let filled = town.json(&["cook", "tea", "--var", "kind=green"]);
    assert_eq!(texts(&filled["steps"], "title"), ["Boil water", "Pour green tea"]);
    assert_eq!(filled["steps"][1]["needs"], json!(["boil"]));

    let preview = town.bd(["cook", "tea", "--var", "kind=black", "--var", "milk=yes", "-n"]).ok();
    assert_says(
        &preview.stdout,
        &[
            "Would make tea with 3 steps",
            "Pour black tea",
            "after boil, warm",
            "Nothing was written.",
        ],
    );
    assert_eq!(town.last_event(), before);
    assert_eq!(town.json(&["list", "--all"]), json!([]));
}

#[test]
fn the_graph_has_every_edge() {
    let town = town();
    town.write("g.formula.json", json!({
        "formula": "g",
        "steps": [
            {"id": "survey", "title": "S"},
            {"id": "sum", "title": "T", "needs": ["survey"], "waits_for": "any-children"},
            {"id": "ship", "title": "U", "needs": ["sum"], "gate": {"type": "gh:pr", "id": "7"}},
        ],
    }).to_string());

    let cooked = town.json(&["cook", "./g.formula.json", "--dry-run", "--prefix", "gt-"]);

    assert_eq!(cooked["root"]["id"], "gt-g");
    assert_eq!(cooked["root"]["issue_type"], "molecule");
    assert_eq!(
        texts(&cooked["steps"], "id"),
        ["gt-g.survey", "gt-g.sum", "gt-g.gate-ship", "gt-g.ship"]
    );
    let edges: Vec<Value> = cooked["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|edge| edge["type"] != "parent-child")
        .cloned()
        .collect();
    assert_eq!(
        json!(edges),
        json!([
            {"issue_id": "gt-g.sum", "depends_on_id": "gt-g.survey", "type": "waits-for",
             "metadata": "{\"gate\":\"any-children\"}"},
            {"issue_id": "gt-g.ship", "depends_on_id": "gt-g.gate-ship", "type": "blocks"},
            {"issue_id": "gt-g.ship", "depends_on_id": "gt-g.sum", "type": "blocks"},
        ])
    );
    assert_eq!(cooked["steps"][2]["gate"], json!({"type": "gh:pr", "id": "7"}));
    assert_eq!(cooked["steps"][1]["labels"], json!(["gate:any-children"]));
}

#[test]
fn every_problem_of_a_bad_formula_is_told() {
    let town = town();
    town.write("bad.formula.toml", "formula = \"bad\"\nversion = 0\n[[steps]]\nid = \"a\"\n\
        title = \"{{x}}\"\nneeds = [\"b\"]\n[[steps]]\nid = \"b\"\ntitle = \"B\"\nneeds = [\"a\", \"c\"]\n");

    let ran = town.bd(["cook", "bad.formula.toml"]).fails(1);

    assert_eq!(ran.stdout, "");
    let said = errors(&ran.stderr);
    assert_eq!(said.len(), 4, "{ran}");
    assert!(said.iter().all(|line| line.starts_with("bad.formula.toml")), "as it was named\n{ran}");
    for part in [
        "bad.formula.toml: version is 0; versions begin with 1",
        "bad.formula.toml:3: step \"a\": it mentions {{x}}, which is not declared",
        "bad.formula.toml:7: step \"b\": needs \"c\", which is not a step; steps: a, b",
        "bad.formula.toml:3: step \"a\": the steps wait for each other: a → b → a",
    ] {
        assert!(said.iter().any(|line| line.contains(part)), "{part} in {said:#?}");
    }
    let ran = town.bd(["cook", "bad.formula.toml", "--json"]).fails(1);
    let problems = ran.json()["problems"].clone();
    assert_eq!(problems.as_array().unwrap().len(), 4);
    assert_says(ran.json()["error"].as_str().unwrap(), &["versions begin with 1", "a → b → a"]);
}

#[test]
fn values_that_a_variable_does_not_allow_are_refused() {
    let town = town_with_tea();
    let said = refusal(&town.bd(["cook", "tea", "--var", "kind=red"]));
    assert_says(&said, &["variable \"kind\"", "\"red\"", "green, black"]);
    let said = refusal(&town.bd(["cook", "tea", "--mode", "runtime"]));
    assert_says(&said, &["variable \"kind\": has no value (Which tea)", "--var kind="]);
    let ran = town.bd(["cook", "tea", "--var", "kind=green", "--var", "size=big"]).ok();
    assert_says(&ran.stderr, &["warning: the formula has no variable size; it has: kind, milk"]);
    town.bd(["cook", "tea", "--var", "kind"]).fails(1);
}

#[test]
fn an_unknown_formula_is_not_found() {
    let town = town();
    assert_says(&refusal(&town.bd(["cook", "coffee"])), &["\"coffee\" not found", "formula list"]);
    let said = json_refusal(&town.bd(["formula", "show", "coffee", "--json"]));
    assert_says(&said, &["not found"]);
    refusal(&town.bd(["cook", "./coffee.formula.toml"]));
    refusal(&town.bd(["cook", ".."]));
    town.write(".beads/formulas/x.formula.toml", [0xff, 0xfe]);
    assert_says(&refusal(&town.bd(["cook", "x"])), &["not UTF-8"]);
    let list = town.json(&["formula", "list"]);
    assert_says(named(&list, "x")["error"].as_str().unwrap(), &["not UTF-8"]);
}

#[test]
fn storing_a_cooked_formula_is_refused_not_pretended() {
    let town = town_with_tea();
    for flag in ["--persist", "--force"] {
        let said = refusal(&town.bd(["cook", "tea", flag]));
        assert_says(&said, &["does not store", "not implemented yet"]);
    }
}

#[test]
fn a_formula_without_steps_is_shown_and_not_cooked() {
    let town = town();
    town.write(".beads/formulas/design.formula.toml",
        "formula = \"design\"\ntype = \"convoy\"\n[inputs.problem]\nrequired = true\n[[legs]]\nid = \"api\"\n\
         [synthesis]\ntitle = \"All\"\n");

    let shown = town.json(&["formula", "show", "design"]);
    assert_eq!(shown["legs"], json!([{"id": "api"}]));
    assert_eq!(shown["synthesis"], json!({"title": "All"}));
    assert_eq!(shown["inputs"], json!({"problem": {"required": true}}));
    assert_says(&refusal(&town.bd(["cook", "design"])), &["convoy without steps", "legs"]);
    assert_says(&refusal(&town.bd(["cook", "exp-refine"])), &["it is an expansion"]);
}

#[test]
fn a_formula_finds_what_it_extends_beside_it() {
    let town = town_with_tea();
    town.write("lib/base.formula.toml", TEA.replace("\"tea\"", "\"base\""));
    town.write("lib/own.formula.toml",
        "formula = \"own\"\nextends = [\"base\"]\n[[steps]]\nid = \"drink\"\ntitle = \"Drink\"\nneeds = [\"pour\"]\n");

    let cooked = town.json(&["cook", "lib/own.formula.toml", "--var", "kind=green"]);
    assert_eq!(texts(&cooked["steps"], "id"), ["boil", "pour", "drink"]);
    let ran = town.bd(["cook", "own"]).fails(1);
    assert_says(&ran.stderr, &["not found"]);
    town.write("loop.formula.toml", "formula = \"loop\"\nextends = [\"loop\"]\n");
    let said = refusal(&town.bd(["cook", "./loop.formula.toml"]));
    assert_says(&said, &["loop → loop"]);
}

#[test]
fn a_town_is_not_needed() {
    let nowhere = nowhere();
    nowhere.bd(["cook", "mol-review"]).ok();
    nowhere.write(".beads/formulas/tea.formula.toml", TEA);
    let cooked = nowhere.json(&["cook", "tea", "--var", "kind=green"]);
    assert_eq!(cooked["formula"], "tea");
}

#[test]
fn the_example_of_the_guide_works() {
    let guide = include_str!("../../../../docs/guides/formulas.md");
    let between = |begin: &str, end: &str| {
        let (_, rest) = guide.split_once(begin).unwrap();
        rest.split_once(end).unwrap().0
    };
    let town = town();
    let formula = between("ship-feature.formula.toml <<'END'\n", "END\n");
    town.write(".beads/formulas/ship-feature.formula.toml", formula);

    let shown = town.bd(["formula", "show", "ship-feature"]).ok();
    assert_eq!(shown.stderr, "");
    let preview = town.bd(["cook", "ship-feature", "--var", "feature=search", "--dry-run"]).ok();

    let words = |text: &str| -> Vec<Vec<String>> {
        let line = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        text.lines().map(line).collect()
    };
    let promised = words(between("```text\n", "```"));
    assert_eq!(words(&preview.stdout)[..promised.len()], promised);
    let without = ["cook", "ship-feature", "--var", "feature=x", "--var", "docs=no", "--dry-run"];
    assert_eq!(town.json(&without)["steps"].as_array().unwrap().len(), 8);
}
