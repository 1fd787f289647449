//! The block that the first queue kept in a bead's description: a delimiter line, then `key: value` lines to
//! the next delimiter line or the end.
//!
//! ```
//! use gt_core::queue_block::{FoundBlock, parse};
//!
//! let description = "Fix it.\n---gt:queue:v1---\ntarget_rig: web\nvar: branch=main";
//! let FoundBlock::Block(block) = parse(description) else { panic!("there is a block") };
//! assert_eq!(block.fields.target_rig, "web");
//! assert_eq!(block.fields.vars, ["branch=main"]);
//! assert_eq!(block.remaining, "Fix it.");
//! ```

#[cfg(test)]
mod tests;

use crate::Timestamp;

/// The line that begins a block.
pub const DELIMITER: &str = "---gt:queue:v1---";

/// The block that a description holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundBlock {
    /// Only text of the user, which may mention the delimiter.
    Nothing,
    /// A block that says where its bead goes.
    Block(Box<QueueBlock>),
    /// Text that can only be a block, but that does not say where its bead goes.
    Damaged {
        /// The block, verbatim.
        text: String,
        /// The description without it.
        remaining: String,
    },
}

/// A block and the text around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueBlock {
    /// The fields.
    pub fields: QueueFields,
    /// Keys that are not among the fields, in their order.
    pub unknown: Vec<(String, String)>,
    /// The description without it, and without the line break that was put before it.
    pub remaining: String,
    /// The block, verbatim, with older versions of it that stand directly beside it.
    pub text: String,
}

/// The fields of a block. An empty value is none; a value that cannot be read is the default, as it was for
/// the program that wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueFields {
    /// Where the bead goes; never empty.
    pub target_rig: String,
    /// The formula to work by.
    pub formula: Option<String>,
    /// Instructions in plain language.
    pub args: Option<String>,
    /// Variables of the formula, each `key=value`.
    pub vars: Vec<String>,
    /// When it was queued.
    pub enqueued_at: Option<Timestamp>,
    /// `direct`, `mr` or `local`.
    pub merge: Option<String>,
    /// The convoy that was made for it.
    pub convoy: Option<String>,
    /// The branch to begin from.
    pub base_branch: Option<String>,
    /// Whether the branch is kept instead of merged.
    pub no_merge: bool,
    /// Whether a person reviews it before it is over.
    pub review_only: bool,
    /// The account to work with.
    pub account: Option<String>,
    /// The runtime to work with.
    pub agent: Option<String>,
    /// Whether no formula is applied.
    pub hook_raw_bead: bool,
    /// Whether its convoy is landed by its owner.
    pub owned: bool,
    /// `ralph`, or nothing.
    pub mode: Option<String>,
    /// How many starts have failed in a row.
    pub dispatch_failures: u32,
    /// Why the last of them failed.
    pub last_failure: Option<String>,
}

impl QueueFields {
    /// Takes a value if its key is one of the fields. The last of several counts.
    fn set(&mut self, key: &str, value: &str) -> bool {
        let text = || (!value.is_empty()).then(|| value.to_owned());
        let flag = || value == "true";
        match key {
            "target_rig" => value.clone_into(&mut self.target_rig),
            "formula" => self.formula = text(),
            "args" => self.args = text(),
            "var" => self.vars.extend(text()),
            "enqueued_at" => self.enqueued_at = Timestamp::parse(value).ok(),
            "merge" => self.merge = text(),
            "convoy" => self.convoy = text(),
            "base_branch" => self.base_branch = text(),
            "no_merge" => self.no_merge = flag(),
            "review_only" => self.review_only = flag(),
            "account" => self.account = text(),
            "agent" => self.agent = text(),
            "hook_raw_bead" => self.hook_raw_bead = flag(),
            "owned" => self.owned = flag(),
            "mode" => self.mode = text(),
            "dispatch_failures" => self.dispatch_failures = value.parse().unwrap_or(0),
            "last_failure" => self.last_failure = text(),
            _ => return false,
        }
        true
    }
}

/// Looks for the block in a description.
///
/// A block is a delimiter that is a line of its own, directly followed by `key: value` lines that name a
/// `target_rig`; it ends before the first line that is none of these. A delimiter followed by nothing at
/// all, or only by such lines with known keys but no rig, is damaged. The last block counts; those
/// directly before and behind it are older versions of it and go with it. Everything else, blocks that
/// the user quotes included, is the user's text and stays, to the byte.
pub fn parse(description: &str) -> FoundBlock {
    let lines: Vec<&str> = description.split('\n').collect();
    let mut found: Option<AdjacentBlocks> = None;
    let mut at = 0;
    while at < lines.len() {
        let Some(BlockPiece { length, says }) = read(&lines[at..]) else {
            at += 1;
            continue;
        };
        let end = at + length;
        found = Some(match found {
            Some(run) if run.end == at => AdjacentBlocks { end, says: says.or(run.says), ..run },
            Some(run) if run.says.is_some() && says.is_none() => run,
            _ => AdjacentBlocks { start: at, end, says },
        });
        at = end;
    }
    let Some(AdjacentBlocks { start, end, says }) = found else { return FoundBlock::Nothing };
    let text = lines[start..end].join("\n");
    let remaining = [&lines[..start], &lines[end..]].concat().join("\n");
    match says {
        Some((fields, unknown)) => {
            FoundBlock::Block(Box::new(QueueBlock { fields, unknown, remaining, text }))
        }
        None => FoundBlock::Damaged { text, remaining },
    }
}

/// The contents of a block: its fields, and the keys that are none.
type BlockContents = (QueueFields, Vec<(String, String)>);

/// Blocks that follow each other directly.
struct AdjacentBlocks {
    start: usize,
    end: usize,
    /// The contents of the last of them that is not damaged.
    says: Option<BlockContents>,
}

/// A block with its length in lines.
struct BlockPiece {
    length: usize,
    /// Nothing if it is damaged.
    says: Option<BlockContents>,
}

/// Reads the block at the very beginning of `lines`, unless a line of the user's stands there.
fn read(lines: &[&str]) -> Option<BlockPiece> {
    let (_, after) = lines.split_first().filter(|(first, _)| is_delimiter(first))?;
    let end = after.iter().position(|line| is_delimiter(line)).unwrap_or(after.len());
    let within = &after[..end];
    let args_end = args_end(within);
    let mut fields = QueueFields::default();
    let mut unknown = Vec::new();
    let (mut count, mut any_known) = (0, false);
    for (at, line) in within.iter().enumerate() {
        let before_time = at < args_end;
        match (key_and_value(line), &mut fields.args) {
            // One was written already, so a second one is part of the user's instructions.
            (None | Some(("args", _)), Some(args)) if before_time => {
                args.push('\n');
                args.push_str(line.strip_suffix('\r').unwrap_or(line));
            }
            // Instructions may begin with an empty line.
            (Some(("args", value)), args) if before_time => {
                *args = Some(value.to_owned());
                any_known = true;
            }
            (Some((key, value)), _) => {
                if fields.set(key, value) {
                    any_known = true;
                } else {
                    unknown.push((key.to_owned(), value.to_owned()));
                }
            }
            (None, _) => break,
        }
        count = at + 1;
    }
    fields.args = fields.args.filter(|args| !args.is_empty());
    let nothing_else = within[count..].iter().all(|line| line.trim().is_empty());
    let length = 1 + count;
    if !fields.target_rig.is_empty() {
        return Some(BlockPiece { length, says: Some((fields, unknown)) });
    }
    let is_damaged = nothing_else && (count == 0 || any_known);
    is_damaged.then_some(BlockPiece { length, says: None })
}

/// Where instructions of several lines end, which were written as they were: at the time, which always stands
/// behind them.
fn args_end(within: &[&str]) -> usize {
    let is_time = |line: &&str| {
        key_and_value(line)
            .is_some_and(|(key, value)| key == "enqueued_at" && Timestamp::parse(value).is_ok())
    };
    within.iter().position(is_time).unwrap_or(0)
}

fn is_delimiter(line: &str) -> bool {
    line.strip_suffix('\r').unwrap_or(line) == DELIMITER
}

/// Splits `key: value`; keys are words in small letters.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let named = key.starts_with(|c: char| c.is_ascii_lowercase())
        && key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let apart = value.is_empty() || value.starts_with([' ', '\t', '\r']);
    (named && apart).then(|| (key, value.trim()))
}
