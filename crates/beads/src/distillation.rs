//! Formulas made of epics and molecules, as the opposite of pouring.

use std::collections::HashMap;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use gt_core::formula::{Formula, Step, Variable, validate};
use gt_core::{Bead, BeadId, DependencyType};
use gt_records::formula_json;
use gt_store::{BeadRow, Reader};

use crate::lookup::require;
use gt_town::{OperationError, Result, Town};

/// How a bead with parts becomes a formula.
#[derive(Debug, Clone, Default)]
pub struct DistillOptions {
    /// The name of the formula; made of the title without one.
    pub name: Option<String>,
    /// Variables, and the text in whose place each stands. Either side may be the one that the beads hold.
    pub variables: Vec<(String, String)>,
}

/// A formula that was made of beads.
#[derive(Debug, Clone)]
pub struct DistilledFormula {
    /// The formula.
    pub formula: Formula,
    /// The file that holds it, as JSON.
    pub text: String,
    /// Gates among the parts; they are left out.
    pub gates: Vec<BeadId>,
}

/// Makes a formula of a bead and its parts: the parts become steps, and their blocking dependencies the order.
pub fn distill(town: &Town, input: &str, options: &DistillOptions) -> Result<DistilledFormula> {
    let (root, rows) = town.read(|reader| {
        let root = require(town, reader, input)?;
        let rows = parts(reader, &root.id)?;
        Ok((root, rows))
    })?;
    let (gates, rows): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| row.bead.issue_type.as_str() == "gate");
    if rows.is_empty() {
        return Err(OperationError::rejected(format!(
            "{} has no parts, so there are no steps; bd create --parent {} adds one",
            root.id, root.id
        )));
    }
    let replaced = replacements(&options.variables, &root, &rows)?;
    let name = options.name.clone().unwrap_or_else(|| word_of(root.title.as_str()));
    let names = step_names(&rows);
    let formula = Formula {
        name,
        description: put_variables(&root.description, &replaced),
        version: 1,
        variables: replaced.iter().map(|(_, name)| variable(name)).collect(),
        steps: steps_below(&root.id, &rows, &names, &replaced),
        ..Formula::default()
    };
    if let Some(problem) = validate(&formula).first() {
        return Err(OperationError::rejected(format!(
            "{} makes no formula: {}",
            root.id, problem.message
        )));
    }
    let text = format!("{}\n", gt_records::pretty(&formula_json(&formula)));
    Ok(DistilledFormula {
        formula,
        text,
        gates: gates.into_iter().map(|row| row.bead.id).collect(),
    })
}

/// Writes the formula into a directory, which is made if need be. A file that exists is not replaced.
pub fn write_formula(distilled: &DistilledFormula, directory: &Path) -> Result<PathBuf> {
    let name = &distilled.formula.name;
    if name.starts_with('.') || name.contains('/') {
        return Err(OperationError::rejected(format!(
            "\"{name}\" cannot be the name of a file; name the formula: bd mol distill <id> <name>"
        )));
    }
    let path = directory.join(format!("{name}.formula.json"));
    let failed = |action, path: &Path, source| OperationError::File {
        action,
        path: path.to_owned(),
        source,
    };
    fs::create_dir_all(directory).map_err(|error| failed("create", directory, error))?;
    let mut file = match fs::File::create_new(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(OperationError::rejected(format!(
                "{} exists and was left as it is; choose another name: bd mol distill <id> <name>",
                path.display()
            )));
        }
        Err(error) => return Err(failed("create", &path, error)),
    };
    file.write_all(distilled.text.as_bytes()).map_err(|error| failed("write", &path, error))?;
    Ok(path)
}

/// All beads below this one, in the order of their ids.
fn parts(reader: &Reader<'_>, root: &BeadId) -> Result<Vec<BeadRow>> {
    let mut ids: Vec<BeadId> = reader.children_below(root)?.into_iter().collect();
    ids.sort_by(BeadId::natural_order);
    Ok(reader.bead_rows(&ids)?)
}

fn variable(name: &str) -> Variable {
    let description = format!("Value for {name}");
    Variable { name: name.to_owned(), description, required: true, ..Variable::default() }
}

/// Lower-case words with hyphens between.
fn word_of(title: &str) -> String {
    let lower = title.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let word = words.collect::<Vec<_>>().join("-");
    if word.is_empty() { "untitled".to_owned() } else { word }
}

/// A name for each step, by its title; a number tells steps with the same title apart.
fn step_names(rows: &[BeadRow]) -> HashMap<BeadId, String> {
    let mut names: HashMap<BeadId, String> = HashMap::new();
    for row in rows {
        let word = word_of(row.bead.title.as_str());
        let mut name = word.clone();
        let mut number = 1;
        while names.values().any(|taken| *taken == name) {
            number += 1;
            name = format!("{word}-{number}");
        }
        names.insert(row.bead.id.clone(), name);
    }
    names
}

fn steps_below(
    parent: &BeadId,
    rows: &[BeadRow],
    names: &HashMap<BeadId, String>,
    replaced: &[(String, String)],
) -> Vec<Step> {
    let text = |text: &str| put_variables(text, replaced);
    let is_below = |row: &&BeadRow| {
        let mut edges = row.dependencies.iter();
        edges.any(|edge| edge.kind == DependencyType::ParentChild && edge.target == *parent)
    };
    let step = |row: &BeadRow| {
        let bead = &row.bead;
        let blockers = row.dependencies.iter().filter(|edge| edge.kind == DependencyType::Blocks);
        Step {
            id: names.get(&bead.id).cloned().unwrap_or_default(),
            title: text(bead.title.as_str()),
            description: text(&bead.description),
            notes: text(&bead.notes),
            acceptance: text(&bead.acceptance_criteria),
            issue_type: Some(bead.issue_type.to_string()),
            priority: Some(bead.priority),
            labels: row.labels.clone(),
            needs: blockers.filter_map(|edge| names.get(&edge.target).cloned()).collect(),
            children: steps_below(&bead.id, rows, names, replaced),
            ..Step::default()
        }
    };
    rows.iter().filter(is_below).map(step).collect()
}

/// The texts and the variables that take their places. Longer texts come first, so that none is cut by another.
fn replacements(
    variables: &[(String, String)],
    root: &Bead,
    rows: &[BeadRow],
) -> Result<Vec<(String, String)>> {
    let texts = |bead: &Bead| {
        [bead.title.as_str(), &bead.description, &bead.notes, &bead.acceptance_criteria].join("\n")
    };
    let beads = std::iter::once(root).chain(rows.iter().map(|row| &row.bead));
    let all = beads.map(texts).collect::<Vec<_>>().join("\n");
    let mut replaced = Vec::with_capacity(variables.len());
    for (name, value) in variables {
        if !value.is_empty() && all.contains(value.as_str()) {
            replaced.push((value.clone(), name.clone()));
        } else if !value.is_empty() && all.contains(name.as_str()) {
            replaced.push((name.clone(), value.clone()));
        } else {
            return Err(OperationError::rejected(format!(
                "neither \"{name}\" nor \"{value}\" stands in the texts of {} and its parts",
                root.id
            )));
        }
    }
    replaced.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    Ok(replaced)
}

/// The text with a placeholder wherever a replaced text stands as a word of its own.
fn put_variables(text: &str, replaced: &[(String, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    while let Some(next) = rest.chars().next() {
        let found = replaced.iter().find(|(wanted, _)| {
            let after = rest.strip_prefix(wanted.as_str()).map(|after| after.chars().next());
            let begins_a_word = !is_word(before) || !is_word(Some(next));
            let ends_a_word = |after| !is_word(after) || !is_word(wanted.chars().next_back());
            begins_a_word && after.is_some_and(ends_a_word)
        });
        let taken = if let Some((wanted, name)) = found {
            out.push_str("{{");
            out.push_str(name);
            out.push_str("}}");
            wanted.len()
        } else {
            out.push(next);
            next.len_utf8()
        };
        before = rest[..taken].chars().next_back();
        rest = &rest[taken..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_take_the_places_of_whole_words() {
        let replaced =
            [("web site".to_owned(), "site".to_owned()), ("4".to_owned(), "n".to_owned())];
        let put = |text: &str| put_variables(text, &replaced);
        assert_eq!(put("Build the web site 4 times"), "Build the {{site}} {{n}} times");
        assert_eq!(put("404, web sites, 4."), "404, web sites, {{n}}.");
        assert_eq!(put("Ä4 4ä é"), "Ä4 4ä é");
    }

    #[test]
    fn titles_become_words() {
        assert_eq!(word_of("Ship it, now!"), "ship-it-now");
        assert_eq!(word_of("…"), "untitled");
    }
}
