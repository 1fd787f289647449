//! Contexts as the beads that others keep them in: version 1 of their description.

use gt_core::queue_block::QueueFields;
use gt_core::schedule::{Context, Merge, SlingParameters};
use gt_core::{Bead, BeadId, IssueType, Status, Title};

use crate::RecordError;
use crate::read::{RecordFields, values};
use crate::write::ObjectWriter;

/// The version that is written, and the only one that is read.
const VERSION: i64 = 1;

/// The description of the bead that a context is shown as. Nothing of ours reads it back.
pub fn context_json(context: &Context) -> String {
    let SlingParameters {
        formula,
        args,
        vars,
        merge,
        convoy,
        base_branch,
        no_merge,
        review_only,
        // Version 1 does not know it.
        review: _,
        runtime,
        hook_raw_bead,
        owned,
        ralph,
        retries: _,
        host: _,
    } = &context.parameters;
    let vars: Vec<String> = vars.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.number("version", VERSION);
    object.text("work_bead_id", context.bead.as_str());
    object.text("target_rig", context.rig.as_str());
    object.text_unless_empty("formula", &or_empty(formula));
    object.text_unless_empty("args", &or_empty(args));
    object.text_unless_empty("vars", &vars.join("\n"));
    object.timestamp("enqueued_at", context.enqueued_at);
    object.text_unless_empty("merge", merge.map(Merge::as_str).unwrap_or_default());
    object.text_unless_empty("convoy", convoy.as_ref().map(BeadId::as_str).unwrap_or_default());
    object.text_unless_empty("base_branch", &or_empty(base_branch));
    object.flag_if_set("no_merge", *no_merge);
    object.flag_if_set("review_only", *review_only);
    object.text_unless_empty("account", &or_empty(&context.account));
    object.text_unless_empty("agent", &or_empty(runtime));
    object.flag_if_set("hook_raw_bead", *hook_raw_bead);
    object.flag_if_set("owned", *owned);
    object.text_unless_empty("mode", if *ralph { "ralph" } else { "" });
    if context.failures > 0 {
        object.count("dispatch_failures", context.failures.into());
    }
    object.text_unless_empty("last_failure", &context.last_failure);
    object.finish();
    out
}

/// The bead that a context is shown as.
pub fn context_bead(context: &Context) -> Bead {
    let id = BeadId::trusted(context.id.as_str().to_owned());
    let closed = context.closed.as_ref();
    let closed_at = closed.map(|closed| closed.at);
    let title = Title::trusted(format!("sling context for {}", context.bead));
    Bead {
        description: context_json(context),
        status: if closed.is_some() { Status::Closed } else { Status::Open },
        priority: context.priority,
        issue_type: IssueType::trusted(IssueType::SLING_CONTEXT.to_owned()),
        created_by: context.enqueued_by.clone(),
        updated_at: closed_at.unwrap_or(context.enqueued_at),
        closed_at,
        close_reason: closed.map_or_else(String::new, |closed| closed.reason.as_str().to_owned()),
        ephemeral: true,
        ..Bead::new(id, title, context.enqueued_at)
    }
}

/// The description of a context that was a bead elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextRecord {
    /// The bead to work on.
    pub work_bead: BeadId,
    /// The parameters of its dispatch, in the fields of the older queue.
    pub fields: QueueFields,
}

/// Reads the description of a context that was a bead elsewhere. Fields of newer versions are
/// ignored.
pub fn parse_context(description: &str) -> Result<ContextRecord, RecordError> {
    let mut fields = RecordFields::parse(description)?;
    let version = fields.read("version", values::whole_number)?;
    if version.is_some_and(|version| version != VERSION) {
        return Err(RecordError::line("it is of a version that is not known here"));
    }
    let work_bead = fields.parsed("work_bead_id", BeadId::parse)?;
    let work_bead = work_bead.ok_or_else(|| RecordError::missing("work_bead_id"))?;
    let target_rig = fields.text("target_rig")?;
    if target_rig.is_empty() {
        return Err(RecordError::missing("target_rig"));
    }
    let failures = fields.read("dispatch_failures", values::whole_number)?.unwrap_or(0);
    let vars = fields.text("vars")?;
    let mut text = |name: &str| Ok(Some(fields.text(name)?).filter(|text| !text.is_empty()));
    let fields = QueueFields {
        target_rig,
        formula: text("formula")?,
        args: text("args")?,
        vars: vars.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(),
        merge: text("merge")?,
        convoy: text("convoy")?,
        base_branch: text("base_branch")?,
        account: text("account")?,
        agent: text("agent")?,
        mode: text("mode")?,
        last_failure: text("last_failure")?,
        enqueued_at: fields.timestamp("enqueued_at")?,
        no_merge: fields.flag("no_merge")?,
        review_only: fields.flag("review_only")?,
        hook_raw_bead: fields.flag("hook_raw_bead")?,
        owned: fields.flag("owned")?,
        dispatch_failures: u32::try_from(failures.max(0)).unwrap_or(u32::MAX),
    };
    Ok(ContextRecord { work_bead, fields })
}
