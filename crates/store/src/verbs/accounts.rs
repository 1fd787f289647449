//! Accounts.

use gt_core::event::AccountChange;
use gt_core::schedule::Account;
use gt_core::{EventPayload, Json, Timestamp};

use super::settings::SettingScope;
use super::statements;
use crate::engine::{Param, Row};
use crate::{Reader, StoreError, Writer};

statements! {
    ALL = "SELECT handle, config_dir, environment, max_runs, is_default, created_at FROM accounts ORDER BY handle";
    PUT = "INSERT INTO accounts (handle, config_dir, environment, max_runs, is_default, created_at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (handle) DO UPDATE SET config_dir = excluded.config_dir, \
        environment = excluded.environment, max_runs = excluded.max_runs";
    NO_DEFAULT = "UPDATE accounts SET is_default = 0 WHERE is_default = 1";
    SET_DEFAULT = "UPDATE accounts SET is_default = 1 WHERE handle = ?1";
    DELETE = "DELETE FROM accounts WHERE handle = ?1";
}

impl Reader<'_> {
    /// Every account, by handle.
    pub fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.rows(ALL, &[], account_from)
    }

    /// Every account, and those that were changed or removed, as they were: their keys are masked in what is shown.
    pub fn accounts_to_mask(&self) -> Result<Vec<Account>, StoreError> {
        let mut accounts = self.accounts()?;
        for (name, json) in self.settings(SettingScope::FormerAccount)? {
            accounts.push(Account {
                handle: name,
                config_dir: String::new(),
                environment: environment_of(&Json::trusted(json))?,
                max_runs: 0,
                is_default: false,
                created_at: Timestamp::from_nanos(0),
            });
        }
        Ok(accounts)
    }
}

impl Writer<'_> {
    /// Adds an account, or changes one; whether it is the default stays as it is.
    pub fn put_account(&mut self, account: &Account) -> Result<(), StoreError> {
        self.keep_former_environment(&account.handle, Some(&account.environment))?;
        let environment = environment_json(&account.environment);
        let params = [
            (&account.handle).into(),
            (&account.config_dir).into(),
            Param::Text(environment.as_str()),
            i64::from(account.max_runs).into(),
            account.is_default.into(),
            account.created_at.into(),
        ];
        self.execute(PUT, &params)?;
        self.record_account(&account.handle, "put");
        Ok(())
    }

    /// Makes an account the default, or none.
    pub fn set_default_account(&mut self, handle: Option<&str>) -> Result<(), StoreError> {
        self.execute(NO_DEFAULT, &[])?;
        if let Some(handle) = handle {
            self.execute(SET_DEFAULT, &[handle.into()])?;
        }
        self.record_account(handle.unwrap_or_default(), "default");
        Ok(())
    }

    /// Removes an account.
    pub fn delete_account(&mut self, handle: &str) -> Result<(), StoreError> {
        self.keep_former_environment(handle, None)?;
        self.execute(DELETE, &[handle.into()])?;
        self.record_account(handle, "removed");
        Ok(())
    }

    /// Keeps the environment that an account loses, because the logs of its runs may have the keys in it.
    fn keep_former_environment(
        &mut self,
        handle: &str,
        next: Option<&[(String, String)]>,
    ) -> Result<(), StoreError> {
        let accounts = self.accounts()?;
        let Some(account) = accounts.iter().find(|account| account.handle == handle) else {
            return Ok(());
        };
        if account.environment.is_empty() || next == Some(&account.environment) {
            return Ok(());
        }
        let key = format!("{handle} {}", self.now());
        let environment = environment_json(&account.environment);
        self.put_setting(SettingScope::FormerAccount, &key, Some(environment.as_str())).map(drop)
    }

    /// Records a change of an account, but nothing of its environment, which may hold keys.
    fn record_account(&mut self, handle: &str, change: &str) {
        let (account, change) = (handle.to_owned(), change.to_owned());
        self.record_of_town(EventPayload::AccountChanged(AccountChange { account, change }));
    }
}

fn environment_json(environment: &[(String, String)]) -> Json {
    let fields: Vec<_> =
        environment.iter().map(|(name, value)| (name.clone(), Json::string(value))).collect();
    Json::object(&fields)
}

fn environment_of(json: &Json) -> Result<Vec<(String, String)>, StoreError> {
    let damaged = || StoreError::Corrupt("the environment of an account".to_owned());
    let names = json.fields().ok_or_else(damaged)?;
    let value = |name: String| {
        let value = json.string_field(&name).ok_or_else(damaged)?;
        Ok((name, value))
    };
    names.into_iter().map(|(name, _)| value(name)).collect()
}

fn account_from(row: &dyn Row) -> Result<Account, StoreError> {
    let environment = environment_of(&Json::trusted(row.text(2)?.to_owned()))?;
    Ok(Account {
        handle: row.text(0)?.to_owned(),
        config_dir: row.text(1)?.to_owned(),
        environment,
        max_runs: u32::try_from(row.int(3)?).unwrap_or(0),
        is_default: row.flag(4)?,
        created_at: Timestamp::from_nanos(row.int(5)?),
    })
}
