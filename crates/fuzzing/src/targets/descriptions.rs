//! Data that other programs kept in the descriptions of beads.

use gt_core::decide::{AdoptionFacts, OldState, adopt};
use gt_core::queue_block::{DELIMITER, FoundBlock, parse};
use gt_records::parse_context;

use crate::promise::text;

pub(super) const BLOCKS: &[&str] = &[
    "---gt:queue:v1---",
    "\n---gt:queue:v1---\n",
    "target_rig: web\n",
    "args: ",
    "var: a=b\n",
    "enqueued_at: 2026-01-15T10:00:00Z\n",
    "mode: ralph\n",
    "x_y: z\n",
    "\r\n",
];

/// The block of the first queue: none of the text around it is lost.
pub(super) fn queue_block(input: &[u8]) {
    let Some(description) = text(input) else { return };
    match parse(description) {
        FoundBlock::Nothing => {}
        FoundBlock::Block(block) => {
            assert!(!block.fields.target_rig.is_empty());
            is_taken_out(description, &block.text, &block.remaining);
            assert!(
                matches!(parse(&block.text), FoundBlock::Block(again) if again.fields == block.fields)
            );
        }
        FoundBlock::Damaged { text, remaining } => {
            is_taken_out(description, &text, &remaining);
            assert!(matches!(parse(&text), FoundBlock::Damaged { .. }));
        }
    }
    let appended = format!("{description}\n.\n{DELIMITER}\ntarget_rig: web");
    match parse(&appended) {
        FoundBlock::Block(block) => assert_eq!(block.remaining, format!("{description}\n.")),
        other => panic!("a block was not found: {other:?}"),
    }
}

pub(super) const CONTEXTS: &[&str] = &[
    "{\"version\":1,",
    "\"work_bead_id\":\"gt-a\",",
    "\"target_rig\":\"web\"",
    ",\"vars\":\"a=b\\nc=d\"",
    ",\"enqueued_at\":\"2026-01-15T10:00:00Z\"",
    ",\"dispatch_failures\":3",
    ",\"no_merge\":true",
    "}",
];

/// A context that was a bead: the result names its bead and its rig, and a decision about it exists.
pub(super) fn context(input: &[u8]) {
    let Some(description) = text(input) else { return };
    let Ok(record) = parse_context(description) else { return };
    assert!(!record.fields.target_rig.is_empty());
    let facts = AdoptionFacts { home: None, is_closed: false, rigs: &[], accounts: &[] };
    let successor = adopt(&OldState::Queued(Box::new(record.fields)), facts);
    assert!(successor.closed.is_some(), "there is no rig it could go to");
}

/// `remaining` is the description without the lines of the block, which stand in it side by side.
fn is_taken_out(description: &str, block: &str, remaining: &str) {
    assert!(block.starts_with(DELIMITER));
    let around = description.match_indices(block).any(|(at, _)| {
        let (before, after) = (&description[..at], &description[at + block.len()..]);
        let joined = match (before.strip_suffix('\n'), after) {
            (Some(before), after) => format!("{before}{after}"),
            (None, after) => after.strip_prefix('\n').unwrap_or_default().to_owned(),
        };
        joined == remaining
    });
    assert!(around, "{remaining:?} is not all that stands around {block:?}");
}
