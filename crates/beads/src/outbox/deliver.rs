//! One pass over the notices that are due.

use std::time::Duration;

use gt_core::decide::{NOTICE_WAIT_MAX, next_delivery};
use gt_core::schedule::{Notice, NoticeChannel};
use gt_store::{DueNotices, Writer};

use super::{NoticeTarget, Notifier, SendFailure, setting_of, target_of};
use gt_core::jitter;
use gt_town::settings::layers_in;
use gt_town::{Result, Town};

/// How long sending one notice may take.
pub const SEND_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a notice is leased to one sender; if that dies, others take it after that.
const NOTICE_LEASE_TIME: Duration = Duration::from_mins(1);
/// How much of the reason of a failed delivery is kept, in characters.
const ERROR_CHARACTERS_MAX: usize = 500;

/// The result of a pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivered {
    /// How many arrived.
    pub sent: usize,
    /// How many did not, and will be tried again.
    pub failed: usize,
    /// How many did not, for the last time.
    pub given_up: usize,
}

/// Sends due notices, at most `limit` of each channel. Any number of processes may do this at the same time: each
/// notice is leased to one of them, in the transaction that also records the result of the one before it, and sent
/// outside of any transaction. An unreachable channel is skipped for the rest of the pass. If nothing is due, this is
/// one look into an index.
pub fn deliver(town: &Town, notifier: &dyn Notifier, limit: usize) -> Result<Delivered> {
    let mut delivered = Delivered::default();
    for channel in NoticeChannel::ALL {
        let due = due(town);
        if town.read(|reader| Ok(reader.due_notice(*channel, due)?))?.is_some() {
            deliver_on(town, notifier, *channel, limit, &mut delivered)?;
        }
    }
    Ok(delivered)
}

/// Whether anything is due.
pub fn is_due(town: &Town) -> Result<bool> {
    let due = due(town);
    town.read(|reader| {
        for channel in NoticeChannel::ALL {
            if reader.due_notice(*channel, due)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

fn due(town: &Town) -> DueNotices {
    let now = town.now();
    DueNotices { now, far: now.plus(NOTICE_WAIT_MAX) }
}

fn deliver_on(
    town: &Town,
    notifier: &dyn Notifier,
    channel: NoticeChannel,
    limit: usize,
    delivered: &mut Delivered,
) -> Result<()> {
    let settings = town.read(|reader| layers_in(town.root(), reader))?;
    let target = target_of(&settings, channel)?;
    let mut tried: Option<(Notice, Result<(), SendFailure>)> = None;
    let mut count = 0;
    loop {
        let unreachable = matches!(&tried, Some((_, Err(SendFailure::Unreachable(_)))));
        let goes_on = count < limit && !unreachable;
        let due = due(town);
        let taken = town.write(|writer| {
            if let Some((notice, result)) = &tried {
                record(writer, notice, result)?;
            }
            if !goes_on {
                return Ok(None);
            }
            Ok(writer.take_notice(channel, due, due.now.plus(NOTICE_LEASE_TIME))?)
        })?;
        match tried.take() {
            None => {}
            Some((_, Ok(()))) => delivered.sent += 1,
            Some((notice, Err(_))) if is_last(&notice) => delivered.given_up += 1,
            Some((_, Err(_))) => delivered.failed += 1,
        }
        let Some(notice) = taken else { return Ok(()) };
        let result = send(notifier, channel, target.as_ref(), &notice);
        tried = Some((notice, result));
        count += 1;
    }
}

fn send(
    notifier: &dyn Notifier,
    channel: NoticeChannel,
    target: Option<&NoticeTarget>,
    notice: &Notice,
) -> Result<(), SendFailure> {
    match target {
        Some(target) => notifier.send(target, notice),
        None => Err(SendFailure::Unreachable(format!("{} is not set", setting_of(channel)))),
    }
}

fn is_last(notice: &Notice) -> bool {
    next_delivery(notice.attempts, notice.created_at, 0.5).is_none()
}

fn record(
    writer: &mut Writer<'_>,
    notice: &Notice,
    result: &Result<(), SendFailure>,
) -> Result<()> {
    match result {
        Ok(()) => writer.notice_sent(notice)?,
        Err(error) => {
            let why: String = error.why().chars().take(ERROR_CHARACTERS_MAX).collect();
            let next = next_delivery(
                notice.attempts,
                writer.now(),
                jitter(&format!("{}#{}", notice.key, notice.attempts)),
            );
            // A process that took it meanwhile knows better.
            writer.notice_failed(notice, &why, next)?;
        }
    }
    Ok(())
}
