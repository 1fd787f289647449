//! The watchers of a convoy: they get a message when it lands.

use gt_core::message::{MessageBody, MessageKind, NewMessage, WrittenAddress};
use gt_core::{Bead, BeadChangeKind, Json, MessageAddress, Sender};
use gt_store::{Reader, Writer};

use super::change::again;
use super::{Convoy, require};
use crate::messages::{MessageParty, check_address, subject};
use gt_town::{OperationError, Result, Town};

/// The address in this text, checked.
pub(super) fn watcher(reader: &Reader<'_>, text: &str) -> Result<String> {
    match WrittenAddress::parse(text)? {
        WrittenAddress::Standing(address) => {
            check_address(reader, &address)?;
            Ok(address.to_string())
        }
        WrittenAddress::Run(_) | WrittenAddress::Bead(_) => Err(OperationError::rejected(format!(
            "\"{}\" may be gone when the convoy lands; name mayor, deacon or <rig>/crew/<name>",
            text.escape_debug()
        ))),
    }
}

/// The caller's own address for messages.
pub(super) fn own_address(town: &Town, reader: &Reader<'_>) -> Result<String> {
    let party = MessageParty::of(town, reader, None)?;
    let mine =
        party.addresses().into_iter().find(|address| !matches!(address, MessageAddress::Work(_)));
    Ok(mine.unwrap_or(MessageAddress::Mayor).to_string())
}

/// The addresses that watch a convoy.
pub(super) fn watchers(convoy: &Bead) -> Vec<String> {
    let fields = convoy.metadata.as_ref().and_then(Json::fields).unwrap_or_default();
    let kept = fields.into_iter().find(|(name, _)| name == "watchers");
    let elements = kept.and_then(|(_, value)| value.elements()).unwrap_or_default();
    elements.iter().filter_map(Json::to_text).collect()
}

pub(super) fn write_watchers(watchers: &[String]) -> Json {
    Json::array(&watchers.iter().map(|watcher| Json::string(watcher)).collect::<Vec<_>>())
}

/// Adds or removes a watcher of a convoy; the caller, if none is named. Says whether that changed anything.
pub fn watch(
    town: &Town,
    convoy: &str,
    who: Option<&str>,
    watches: bool,
) -> Result<(Convoy, String, bool)> {
    town.write(|writer| {
        let old = require(town, writer, convoy)?;
        let who = match who {
            Some(text) => watcher(writer, text)?,
            None => own_address(town, writer)?,
        };
        let mut all = watchers(&old);
        let changes = all.contains(&who) != watches;
        if changes {
            all.retain(|known| *known != who);
            if watches {
                all.push(who.clone());
            }
            let kept = old.metadata.clone().unwrap_or_else(|| Json::object(&[]));
            let kept = kept.with("watchers", &write_watchers(&all));
            let updated_at = writer.now().of_change_after(old.updated_at);
            let new = Bead { metadata: Some(kept), updated_at, ..old.clone() };
            writer.save_bead(&old, &new, BeadChangeKind::Updated)?;
        }
        Ok((again(writer, &old.id)?, who, changes))
    })
}

/// Sends a message to the watchers of a convoy.
pub(crate) fn send_to_watchers(writer: &mut Writer<'_>, convoy: &Bead, what: &str) -> Result<()> {
    for watcher in watchers(convoy) {
        // An address that cannot be read any more has no mailbox.
        let Some(to) = MessageAddress::exact(&watcher) else { continue };
        writer.send_message(NewMessage {
            kind: MessageKind::Mail,
            from: Sender::Standing(MessageAddress::Deacon),
            to,
            subject: subject(&format!("Convoy {}: {}", convoy.id, convoy.title)).ok(),
            body: MessageBody::parse(what)?,
            bead: Some(convoy.id.clone()),
            topic: None,
            reply_to: None,
        })?;
    }
    Ok(())
}
