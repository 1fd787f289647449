//! What `gt doctor` and `bd doctor` do.

use comfy_table::Color;
use gt_operations::health::{Check, Grade, examine};
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;
use crate::output::{Cell, Table};

/// Looks at everything and says what is wrong.
pub(crate) fn examine_town(context: &Context<'_>) -> Result<(), CliError> {
    let printer = context.printer;
    // Somewhere without a town there is nothing to look at; a town that does not open is a finding.
    let root = context.root()?;
    let checks = match context.town() {
        Ok(town) => examine(&town)?,
        Err(error) => {
            vec![Check::unopened(format!("{}: {}", root.display(), error.chain()))]
        }
    };
    let problems = checks.iter().filter(|check| check.grade == Grade::Problem).count();
    if printer.json() {
        let mut list = printer.list();
        for check in &checks {
            list.push(&json(check))?;
        }
        list.finish()?;
    } else {
        let mut table = Table::new();
        for check in &checks {
            let (mark, colour) = match check.grade {
                Grade::Good => ("✓", Color::Green),
                Grade::Warning => ("!", Color::Yellow),
                Grade::Problem => ("✗", Color::Red),
            };
            let fix =
                if check.fix.is_empty() { String::new() } else { format!(" → {}", check.fix) };
            table.row(vec![
                Cell::coloured(mark, Some(colour)),
                Cell::new(check.name),
                Cell::new(format!("{}{fix}", check.detail)),
            ]);
        }
        printer.table(table)?;
    }
    match problems {
        0 => Ok(()),
        1 => Err(CliError::request("1 problem was found")),
        many => Err(CliError::request(format!("{many} problems were found"))),
    }
}

fn json(check: &Check) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("check", check.name);
    let grade = match check.grade {
        Grade::Good => "good",
        Grade::Warning => "warning",
        Grade::Problem => "problem",
    };
    object.text("grade", grade);
    object.text("detail", &check.detail);
    if !check.fix.is_empty() {
        object.text("fix", &check.fix);
    }
    object.finish();
    out
}
