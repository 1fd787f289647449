//! Accounts that runs are charged to.

use std::path::Path;

use gt_core::Invalid;
use gt_core::limits::LABEL_BYTES_MAX;
use gt_core::schedule::{Account, ParkSubject, check_account_handle, check_variable_name};
use gt_store::{Reader, SettingScope, Writer};
use serde_json::Value;

use crate::dispatch::forget;
use gt_beads::interchange::KEPT_ACCOUNTS;
use gt_town::{OperationError, Result, Town};

/// Most variables of an account.
const VARIABLES_MAX: usize = 100;
/// How many runs a refusal names.
const RUNS_SHOWN_MAX: usize = 3;

/// An account to be added.
#[derive(Debug, Clone, Default)]
pub struct NewAccount {
    /// Its short name.
    pub handle: String,
    /// Where its agent keeps its configuration; empty for nowhere of its own.
    pub config_dir: String,
    /// Variables that its runs get.
    pub environment: Vec<(String, String)>,
    /// Most live runs; 0 for no limit.
    pub max_runs: u32,
}

/// Adds an account. The first one does not become the default by itself, so that no user pays by surprise.
pub fn add(town: &Town, new: &NewAccount) -> Result<Account> {
    check(new)?;
    town.write(|writer| {
        let handle = &new.handle;
        if writer.accounts()?.iter().any(|account| account.handle == *handle) {
            return Err(OperationError::rejected(format!(
                "there is an account {handle} already; remove it first with gt config account remove \
                 {handle}, or choose another name"
            )));
        }
        put(writer, new)
    })
}

fn put(writer: &mut Writer<'_>, new: &NewAccount) -> Result<Account> {
    let account = Account {
        handle: new.handle.clone(),
        config_dir: new.config_dir.clone(),
        environment: new.environment.clone(),
        max_runs: new.max_runs,
        is_default: false,
        created_at: writer.now(),
    };
    writer.put_account(&account)?;
    Ok(account)
}

fn check(new: &NewAccount) -> Result<(), Invalid> {
    check_account_handle(&new.handle)?;
    let handle = &new.handle;
    if new.environment.len() > VARIABLES_MAX {
        return Err(Invalid(format!("{handle} has more than {VARIABLES_MAX} variables")));
    }
    for (at, (name, value)) in new.environment.iter().enumerate() {
        check_variable_name(name)?;
        if value.contains('\0') {
            return Err(Invalid(format!("the value of {name} has a NUL character in it")));
        }
        if new.environment[..at].iter().any(|(earlier, _)| earlier == name) {
            return Err(Invalid(format!("the variable {name} is given twice")));
        }
    }
    if new.config_dir.chars().any(char::is_control) {
        return Err(Invalid(format!("the directory of {handle} has a control character in it")));
    }
    Ok(())
}

/// Every account, by handle.
pub fn list(town: &Town) -> Result<Vec<Account>> {
    town.read(|reader| Ok(reader.accounts()?))
}

/// Makes an account the default, or none; says whether that changed anything.
pub fn set_default(town: &Town, handle: Option<&str>) -> Result<bool> {
    town.write(|writer| {
        if let Some(handle) = handle {
            require_account(writer, handle)?;
        }
        let default = writer.accounts()?.into_iter().find(|account| account.is_default);
        if default.as_ref().map(|account| account.handle.as_str()) == handle {
            return Ok(false);
        }
        writer.set_default_account(handle)?;
        Ok(true)
    })
}

/// Removes an account that nothing is scheduled or running for.
pub fn remove(town: &Town, handle: &str) -> Result<Account> {
    town.write(|writer| {
        let account = require_account(writer, handle)?;
        let queued = writer.count_queued_on(handle)?;
        let runs = writer.live_runs()?;
        let runs: Vec<String> =
            runs.iter().filter(|run| run.account == handle).map(|run| run.id.to_string()).collect();
        let mut users = Vec::new();
        if queued > 0 {
            users.push(format!("{queued} scheduled for it (gt scheduler list)"));
        }
        if !runs.is_empty() {
            let shown = &runs[..runs.len().min(RUNS_SHOWN_MAX)];
            let more = if shown.len() < runs.len() { ", …" } else { "" };
            users.push(format!("{} running on it ({}{more})", runs.len(), shown.join(", ")));
        }
        if !users.is_empty() {
            return Err(OperationError::rejected(format!(
                "the account {handle} is in use: {}; let them finish, or take them back with gt \
                 scheduler clear and gt run cancel",
                users.join(" and ")
            )));
        }
        writer.delete_account(handle)?;
        forget(writer, &ParkSubject::account(handle))?;
        writer.forget_usage_windows(&ParkSubject::account(handle))?;
        Ok(account)
    })
}

/// The account of this name, or an error that names those there are.
pub(crate) fn require_account(reader: &Reader<'_>, handle: &str) -> Result<Account> {
    let accounts = reader.accounts()?;
    let known: Vec<String> = accounts.iter().map(|account| account.handle.clone()).collect();
    accounts.into_iter().find(|account| account.handle == handle).ok_or_else(|| {
        OperationError::NoAccount { name: handle.chars().take(LABEL_BYTES_MAX).collect(), known }
    })
}

/// Accounts that came with an import.
#[derive(Debug, Default)]
pub struct AccountIntake {
    /// Those that are here now.
    pub added: Vec<Account>,
    /// Those that are not, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// The default, if the import named one and there was none.
    pub default: Option<String>,
}

/// The names of accounts that came with an import and are not here.
pub fn kept(town: &Town) -> Result<Vec<String>> {
    town.read(|reader| {
        let here = reader.accounts()?;
        let (kept, _) = kept_in(reader, None)?;
        let is_new = |new: &NewAccount| here.iter().all(|account| account.handle != new.handle);
        Ok(kept.into_iter().filter(is_new).map(|new| new.handle).collect())
    })
}

/// Takes over the accounts that came with an import. Those that are here already stay as they are. `home`
/// is what `~` stands for in their directories.
pub fn take_in(town: &Town, home: Option<&Path>) -> Result<AccountIntake> {
    town.write(|writer| {
        let (kept, default) = kept_in(writer, home)?;
        if kept.is_empty() {
            return Err(OperationError::rejected(
                "no accounts came with an import; gt import <town> brings those of a Gas Town",
            ));
        }
        let mut taken = AccountIntake::default();
        for new in kept {
            let here = writer.accounts()?;
            if here.iter().any(|account| account.handle == new.handle) {
                taken.left_out.push((new.handle, "it is here already".to_owned()));
            } else if let Err(Invalid(why)) = check(&new) {
                taken.left_out.push((new.handle, why));
            } else {
                taken.added.push(put(writer, &new)?);
            }
        }
        let here = writer.accounts()?;
        if let Some(default) = default
            && here.iter().any(|account| account.handle == default)
            && !here.iter().any(|account| account.is_default)
        {
            writer.set_default_account(Some(&default))?;
            for account in taken.added.iter_mut().filter(|account| account.handle == default) {
                account.is_default = true;
            }
            taken.default = Some(default);
        }
        Ok(taken)
    })
}

/// The accounts that an import kept: `{"default": …, "accounts": {<handle>: {"config_dir": …}}}`.
fn kept_in(reader: &Reader<'_>, home: Option<&Path>) -> Result<(Vec<NewAccount>, Option<String>)> {
    let Some(text) = reader.setting(SettingScope::Imported, KEPT_ACCOUNTS)? else {
        return Ok((Vec::new(), None));
    };
    let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let accounts = value.get("accounts").and_then(Value::as_object);
    let mut kept: Vec<NewAccount> = accounts
        .into_iter()
        .flatten()
        .map(|(handle, fields)| {
            let directory = fields.get("config_dir").and_then(Value::as_str).unwrap_or_default();
            let config_dir = match (directory.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => home.join(rest).display().to_string(),
                _ => directory.to_owned(),
            };
            NewAccount { handle: handle.clone(), config_dir, ..NewAccount::default() }
        })
        .collect();
    kept.sort_by(|a, b| a.handle.cmp(&b.handle));
    let default = value.get("default").and_then(Value::as_str).map(str::to_owned);
    Ok((kept, default))
}

#[cfg(test)]
mod tests {
    use crate::Consequences;
    use std::sync::Arc;

    use gt_core::schedule::{CloseReason, ContextOrigin, Run};
    use gt_core::{ExecutorKind, RigSlug, RunState, Uid};
    use gt_store::NewContext;

    use super::*;
    use gt_beads::beads::{NewBead, create};
    use gt_town::{Actor, SystemClock};

    #[test]
    fn an_account_that_is_in_use_stays() {
        // Given an account that a bead is scheduled for and another runs on,
        let actor = Actor { name: "tester".to_owned(), owner: String::new() };
        let town = Town::in_memory(actor, Arc::new(SystemClock), Arc::new(Consequences)).unwrap();
        add(&town, &NewAccount { handle: "work".to_owned(), ..NewAccount::default() }).unwrap();
        add(&town, &NewAccount { handle: "lab".to_owned(), ..NewAccount::default() }).unwrap();
        let bead = |title: &str| {
            let new = NewBead { title: title.to_owned(), ..NewBead::default() };
            create(&town, &new, false).unwrap().bead
        };
        let (scheduled, running) = (bead("scheduled"), bead("running"));
        let rig = RigSlug::parse("web").unwrap();
        let new = NewContext {
            account: Some("work".to_owned()),
            ..NewContext::plain(
                scheduled.id.clone(),
                rig.clone(),
                scheduled.priority,
                ContextOrigin::Sling,
            )
        };
        let context = town
            .write(|writer| {
                let context = writer.insert_contexts(vec![new])?.remove(0);
                let run = Run {
                    account: "work".to_owned(),
                    ..Run::begun(
                        writer.next_run_id(&running.id)?,
                        Uid::fresh(),
                        context.number,
                        rig,
                        ExecutorKind::Process,
                        writer.now(),
                    )
                };
                writer.insert_run(&run)?;
                Ok(context)
            })
            .unwrap();

        // when a person wants to remove it, they are told by what it is used;
        let refused = remove(&town, "work").unwrap_err().to_string();
        let run = format!("1 running on it ({}#1)", running.id);
        for part in ["1 scheduled for it (gt scheduler list)", &run, "gt scheduler clear"] {
            assert!(refused.contains(part), "{part} in {refused}");
        }

        // others can go, and this one when nothing needs it.
        remove(&town, "lab").unwrap();
        town.write(|writer| {
            writer.close_context(&context, CloseReason::Cleared, "")?;
            let run = writer.live_run(&running.id)?.expect("it is live");
            let end = gt_core::schedule::RunEnd::without_status(RunState::Cancelled, "");
            Ok(writer.end_run(&run, &end, "tester")?)
        })
        .unwrap();
        remove(&town, "work").unwrap();
        let error = town.read(|reader| require_account(reader, "work")).unwrap_err().to_string();
        assert!(error.contains("known accounts: none"), "{error}");
    }
}
