//! The cases as a document, with the engines beside each.

use super::{CASES, Case, Engine, PLACES};

/// Every case by group, with the places of each engine where it is a test.
pub fn reference() -> String {
    let mut text = String::from(
        "# What every store does\n\n\
         Every sentence is a test that runs on each engine, in the places named beside it.\n",
    );
    let mut group = "";
    for case in CASES {
        let (of, sentence) = case.name.split_once("::").unwrap_or(("", case.name));
        if of != group {
            group = of;
            text.push_str(&format!("\n## {}\n\n| |", capitalized(group)));
            text.extend(Engine::ALL.map(|engine| format!(" {} |", engine.name())));
            text.push_str("\n|---|");
            text.extend(Engine::ALL.map(|_| "---|"));
            text.push('\n');
        }
        text.push_str(&format!("| {} |", capitalized(sentence)));
        text.extend(Engine::ALL.map(|engine| format!(" {} |", standing(case, engine))));
        text.push('\n');
    }
    text
}

/// Where the case is run on this engine, or why it is not.
fn standing(case: &Case, engine: Engine) -> String {
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
