//! What happened, as JSON.

use gt_core::Event;

use super::ObjectWriter;

/// An event as JSON.
pub fn event_json(event: &Event) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.count("number", event.number);
    object.text("event_type", event.kind.as_str());
    if let Some(bead) = &event.bead {
        object.text("issue_id", bead.as_str());
    }
    if let Some(rig) = &event.rig {
        object.text("rig", rig.as_str());
    }
    if let Some(run) = &event.run {
        object.text("run", run);
    }
    object.text("actor", &event.actor);
    object.timestamp("created_at", event.at);
    object.raw("payload", event.payload.as_str());
    object.finish();
    out
}
