//! Plans as people write them: a Markdown file with a `##` heading per bead.

use super::{BeadName, Draft, PlacedText, Plan, PlanNaming, at};
use crate::{Invalid, IssueType, Priority};

/// The sections that can stand under a `###` heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanSection {
    Description,
    Design,
    Acceptance,
    Notes,
    Priority,
    Type,
    Assignee,
    Labels,
    Dependencies,
    Parent,
    ExternalRef,
    Estimate,
    Id,
}

/// The headings, as they are written in small letters, and the sections they begin.
const SECTIONS: [(&str, PlanSection); 17] = [
    ("description", PlanSection::Description),
    ("design", PlanSection::Design),
    ("acceptance criteria", PlanSection::Acceptance),
    ("acceptance", PlanSection::Acceptance),
    ("notes", PlanSection::Notes),
    ("priority", PlanSection::Priority),
    ("type", PlanSection::Type),
    ("assignee", PlanSection::Assignee),
    ("labels", PlanSection::Labels),
    ("dependencies", PlanSection::Dependencies),
    ("deps", PlanSection::Dependencies),
    ("parent", PlanSection::Parent),
    ("external ref", PlanSection::ExternalRef),
    ("external reference", PlanSection::ExternalRef),
    ("estimate", PlanSection::Estimate),
    ("estimated minutes", PlanSection::Estimate),
    ("id", PlanSection::Id),
];

/// A line with its number.
type NumberedLine<'t> = (usize, &'t str);

/// Reads a plan: every `## Title` begins a bead, the text under it is its description, and `###`
/// headings such as `### Priority` say the rest. `source` is the name of the file in errors.
pub fn parse_markdown(source: &str, text: &str) -> Result<Plan, Invalid> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut drafts: Vec<Draft> = Vec::new();
    let mut reading: Option<BeadReading<'_>> = None;
    let mut fence = Fence::default();
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        let content = fence.holds(number, line);
        match heading(line).filter(|_| !content) {
            Some((2, title)) => {
                drafts.extend(reading.take().map(|reading| reading.finish(source)).transpose()?);
                let place = format!("{source}:{number}");
                if title.is_empty() {
                    return Err(Invalid(format!("{place}: the heading has no title")));
                }
                reading = Some(BeadReading::new(number, title));
            }
            Some((3, name)) => {
                if let Some(reading) = &mut reading {
                    reading.begin(source, number, name)?;
                }
            }
            _ => {
                if let Some(reading) = &mut reading {
                    reading.lines.push((number, line));
                }
            }
        }
    }
    if let Some((opened, _)) = fence.open {
        return Err(Invalid(format!("{source}:{opened}: this code fence is never closed")));
    }
    drafts.extend(reading.map(|reading| reading.finish(source)).transpose()?);
    if drafts.is_empty() {
        return Err(Invalid(format!(
            "{source}: there is no bead in it; every bead begins with a line \"## Its title\""
        )));
    }
    Plan::new(source, drafts, Vec::new(), PlanNaming::Titles)
}

/// A fenced block of code: everything inside is text, even if it looks like a heading.
#[derive(Default)]
struct Fence {
    /// The line that opened it, and the sign and how often it stood there.
    open: Option<(usize, (char, usize))>,
}

impl Fence {
    /// Whether a line belongs to a block, its first and last line included.
    fn holds(&mut self, number: usize, line: &str) -> bool {
        let marker = fence_marker(line);
        match (self.open, marker) {
            (None, None) => false,
            (None, Some((sign, length, rest))) => {
                // Backticks behind the fence make it a piece of code within a line.
                let opens = sign == '~' || !rest.contains('`');
                if opens {
                    self.open = Some((number, (sign, length)));
                }
                opens
            }
            (Some((_, (sign, length))), Some((closing, count, rest)))
                if closing == sign && count >= length && rest.trim().is_empty() =>
            {
                self.open = None;
                true
            }
            (Some(_), _) => true,
        }
    }
}

/// Three or more backticks or tildes at the beginning of a line, and the text after them.
fn fence_marker(line: &str) -> Option<(char, usize, &str)> {
    let trimmed = line.trim_start_matches(' ');
    let sign = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = trimmed.trim_start_matches(sign);
    let count = trimmed.len() - rest.len();
    (count >= 3).then_some((sign, count, rest))
}

/// The level and the text of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    if level == 0 || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let text = rest.trim();
    // Signs that close a heading are not part of it.
    let open = text.trim_end_matches('#');
    let closed = open.len() < text.len() && (open.is_empty() || open.ends_with([' ', '\t']));
    Some((level, if closed { open.trim_end() } else { text }))
}

/// A bead whose lines are being collected.
struct BeadReading<'t> {
    line: usize,
    draft: Draft,
    /// The section the lines belong to; none directly under the title.
    section: Option<(usize, PlanSection)>,
    lines: Vec<NumberedLine<'t>>,
    /// The sections so far, each with its lines.
    sections: Vec<(usize, PlanSection, Vec<NumberedLine<'t>>)>,
    opening: Vec<NumberedLine<'t>>,
}

impl BeadReading<'_> {
    fn new(line: usize, title: &str) -> Self {
        Self {
            line,
            draft: Draft { title: title.to_owned(), ..Draft::default() },
            section: None,
            lines: Vec::new(),
            sections: Vec::new(),
            opening: Vec::new(),
        }
    }

    fn end_section(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        match self.section.take() {
            Some((number, section)) => self.sections.push((number, section, lines)),
            None => self.opening = lines,
        }
    }

    fn begin(&mut self, source: &str, number: usize, name: &str) -> Result<(), Invalid> {
        self.end_section();
        let place = format!("{source}:{number}");
        let lower = name.to_lowercase();
        let known = lower.trim_end_matches(':').trim_end();
        let Some((_, section)) = SECTIONS.iter().find(|(name, _)| *name == known) else {
            return Err(Invalid(format!(
                "{place}: \"{}\" is not a section of a bead; use Description, Design, Acceptance \
                 Criteria, Notes, Priority, Type, Assignee, Labels, Dependencies, Parent, External \
                 Ref, Estimate or Id, and #### for headings of your own",
                name.escape_debug()
            )));
        };
        if let Some((first, ..)) = self.sections.iter().find(|(_, known, _)| known == section) {
            return Err(Invalid(format!(
                "{place}: \"{}\" is there twice, first in line {first}",
                name.escape_debug()
            )));
        }
        self.section = Some((number, *section));
        Ok(())
    }

    fn finish(mut self, source: &str) -> Result<Draft, Invalid> {
        self.end_section();
        let mut draft = self.draft;
        draft.place = format!("{source}:{}", self.line);
        draft.description = text(&self.opening);
        for (number, section, lines) in self.sections {
            let place = format!("{source}:{number}");
            let fill = |invalid: Invalid| at(&place, &invalid);
            match section {
                PlanSection::Description => {
                    let more = text(&lines);
                    if !draft.description.is_empty() && !more.is_empty() {
                        draft.description.push_str("\n\n");
                    }
                    draft.description.push_str(&more);
                }
                PlanSection::Design => draft.design = text(&lines),
                PlanSection::Acceptance => draft.acceptance_criteria = text(&lines),
                PlanSection::Notes => draft.notes = text(&lines),
                PlanSection::Priority => {
                    if let Some(value) = single(&place, &lines)? {
                        draft.priority = Priority::parse(value).map_err(fill)?;
                    }
                }
                PlanSection::Type => {
                    let value = single(&place, &lines)?;
                    let value = value.map(IssueType::parse);
                    draft.issue_type = value.transpose().map_err(fill)?;
                }
                PlanSection::Assignee => {
                    single(&place, &lines)?.unwrap_or_default().clone_into(&mut draft.assignee);
                }
                PlanSection::Labels => {
                    let parts = entries(&lines).flat_map(|(_, entry)| entry.split(','));
                    let labels = parts.map(str::trim).filter(|label| !label.is_empty());
                    draft.labels = labels.map(str::to_owned).collect();
                }
                PlanSection::Dependencies => {
                    let said = |(number, entry): NumberedLine<'_>| PlacedText {
                        place: format!("{source}:{number}"),
                        text: entry.to_owned(),
                    };
                    draft.links = entries(&lines).map(said).collect();
                }
                PlanSection::Parent => {
                    let value = single(&place, &lines)?;
                    draft.parent = value.map(|value| BeadName::Either(value.to_owned()));
                }
                PlanSection::ExternalRef => {
                    draft.external_ref = single(&place, &lines)?.map(str::to_owned);
                }
                PlanSection::Estimate => {
                    let value = single(&place, &lines)?;
                    let minutes = value.map(|value| {
                        value.parse().map_err(|_| {
                            Invalid(format!(
                                "{place}: \"{}\" is not a number of minutes",
                                value.escape_debug()
                            ))
                        })
                    });
                    draft.estimated_minutes = minutes.transpose()?;
                }
                PlanSection::Id => draft.id = single(&place, &lines)?.map(str::to_owned),
            }
        }
        Ok(draft)
    }
}

/// Lines as one text, without the blank ones around it.
fn text(lines: &[NumberedLine<'_>]) -> String {
    let blank = |line: &NumberedLine<'_>| line.1.trim().is_empty();
    let first = lines.iter().position(|line| !blank(line)).unwrap_or(lines.len());
    let end = lines.iter().rposition(|line| !blank(line)).map_or(first, |last| last + 1);
    let kept: Vec<&str> = lines[first..end].iter().map(|(_, line)| *line).collect();
    kept.join("\n")
}

/// The lines that are not blank, without the sign of a list.
fn entries<'t>(lines: &[NumberedLine<'t>]) -> impl Iterator<Item = NumberedLine<'t>> {
    let entry = |(number, line): &NumberedLine<'t>| {
        let line = line.trim();
        let item = ["- ", "* ", "+ "].iter().find_map(|sign| line.strip_prefix(sign));
        (*number, item.unwrap_or(line).trim())
    };
    lines.iter().map(entry).filter(|(_, line)| !line.is_empty()).collect::<Vec<_>>().into_iter()
}

/// The one value of a section that has no room for more.
fn single<'t>(place: &str, lines: &[NumberedLine<'t>]) -> Result<Option<&'t str>, Invalid> {
    let mut values = entries(lines);
    let value = values.next().map(|(_, value)| value);
    match values.next() {
        None => Ok(value),
        Some((number, _)) => Err(Invalid(format!(
            "{place}: this section takes one line, but there is another one in line {number}"
        ))),
    }
}
