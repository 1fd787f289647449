//! Waiting until somebody has read a message.

use std::time::Duration;

use gt_core::{Address, Message, MessageId};

use super::address::check;
use super::inbox::require;
use crate::{OperationError, Result, Town};

/// How often one looks where no bell rings: one read of a row.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often one looks although no bell rang.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// Waits until a message is seen, at most so long; gives it as it is then. It is an error if nobody is left who
/// could read it.
pub fn wait_until_seen(town: &Town, id: MessageId, timeout: Option<Duration>) -> Result<Message> {
    let began = town.now();
    let bell = town.bell();
    loop {
        let looked = town.read(|reader| {
            let message = require(reader, id)?;
            if message.seen_at.is_none()
                && let Address::Work(bead) = &message.to
                && check(reader, &message.to).is_err()
            {
                return Err(OperationError::rejected(format!(
                    "nobody has seen {id}, and nobody works on {bead} any more; gt why {bead} says how it stands"
                )));
            }
            Ok(message)
        });
        let message = match looked {
            Ok(message) => Some(message),
            // Whoever waits is meant to stay.
            Err(error) if error.may_pass() => None,
            Err(error) => return Err(error),
        };
        let passed = town.now().since(began);
        let left = timeout.map_or(Duration::MAX, |limit| limit.saturating_sub(passed));
        match message {
            Some(message) if message.seen_at.is_some() || left.is_zero() => return Ok(message),
            None if left.is_zero() => return town.read(|reader| require(reader, id)),
            _ => {}
        }
        let usual = if bell.rings() { LOOK_ANYWAY } else { LOOK_EVERY };
        bell.wait(usual.min(left));
    }
}
