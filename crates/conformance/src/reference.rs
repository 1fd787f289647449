//! The cases as a document, with the engines beside each.

use super::{CASES, Case, Engine, PLACES};

/// Every case by group, with the places of each engine where it is a test.
pub fn reference() -> String {
    let mut lines = vec![
        "# Behaviour of every store".to_owned(),
        String::new(),
        "Every sentence is a test that runs on each engine, in the places named beside it."
            .to_owned(),
    ];
    let mut group = "";
    for case in CASES {
        let (of, sentence) = case.name.split_once("::").unwrap_or(("", case.name));
        if of != group {
            group = of;
            let engines = Engine::ALL.map(Engine::name).join(" | ");
            let rule = Engine::ALL.map(|_| "---|").concat();
            lines.extend([String::new(), format!("## {}", capitalized(group)), String::new()]);
            lines.extend([format!("| | {engines} |"), format!("|---|{rule}")]);
        }
        let listed = Engine::ALL.map(|engine| listed(case, engine)).join(" | ");
        lines.push(format!("| {} | {listed} |", capitalized(sentence)));
    }
    lines.join("\n") + "\n"
}

/// Where the case is run on this engine, or why it is not.
fn listed(case: &Case, engine: Engine) -> String {
    if let Some(why) = case.why_not_on(engine) {
        return format!("does not apply: {why}");
    }
    let places = PLACES.iter().filter(|(_, on)| *on == engine);
    let names: Vec<String> = places.map(|(name, _)| spaced(name)).collect();
    if names.is_empty() { "not tested".to_owned() } else { format!("✓ {}", names.join(", ")) }
}

fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

fn capitalized(name: &str) -> String {
    let mut characters = name.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(spaced(characters.as_str()).chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::EXCEPTIONS;
    use super::*;

    #[test]
    fn a_case_has_its_engines_beside_it() {
        let text = reference();
        let bead = "| A bead is found by its alias | ✓ in memory, on files | ✓ on server |";
        assert!(text.contains(bead), "{text}");
        assert!(text.contains("does not apply: a server looks after its own files"), "{text}");
        assert!(!text.contains("not tested"), "{text}");
    }

    #[test]
    fn exceptions_are_made_of_cases_that_exist() {
        for (name, _, _) in EXCEPTIONS {
            assert!(CASES.iter().any(|case| case.name == *name), "{name}");
        }
    }
}
