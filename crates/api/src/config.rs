//! Settings, runtimes and accounts.

use gt_core::cost::SeenWindow;
use gt_core::schedule::Account;
use serde::Serialize;
use utoipa::ToSchema;

use crate::UtcTime;

/// A setting.
#[derive(Debug, Clone, Serialize)]
pub struct SettingDocument {
    pub key: String,
    pub value: String,
    pub origin: String,
    pub default: String,
    pub help: String,
}

/// An account.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AccountDocument {
    pub handle: String,
    pub config_dir: String,
    /// Names alone: many variables hold keys.
    pub environment: Vec<String>,
    pub max_runs: u64,
    pub default: bool,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UtcTime,
    /// The windows of its subscription, as its service told of them last; left out if it told of none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub windows: Vec<UsageWindowDocument>,
}

/// A window of a subscription.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct UsageWindowDocument {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub resets_at: Option<UtcTime>,
    #[schema(value_type = String, format = DateTime)]
    pub seen_at: UtcTime,
}

impl From<&SeenWindow> for UsageWindowDocument {
    fn from(seen: &SeenWindow) -> Self {
        let window = &seen.window;
        Self {
            name: window.name.clone(),
            used_percent: window.used_percent.map(Into::into),
            length_seconds: window.length.map(|length| length.as_secs()),
            resets_at: window.resets_at.map(Into::into),
            seen_at: seen.seen_at.into(),
        }
    }
}

impl AccountDocument {
    /// The same with the windows of its subscription.
    #[must_use]
    pub fn with_windows<'w>(self, windows: impl Iterator<Item = &'w SeenWindow>) -> Self {
        Self { windows: windows.map(UsageWindowDocument::from).collect(), ..self }
    }
}

/// The default account.
#[derive(Debug, Clone, Serialize)]
pub struct DefaultAccountDocument {
    pub default: Option<String>,
    pub changed: bool,
}

/// A runtime.
#[derive(Debug, Clone, Serialize)]
pub struct RuntimeDocument {
    pub name: String,
    pub description: String,
    pub origin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub command: Option<String>,
    pub prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paste: Option<PasteDocument>,
    pub environment: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_variable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_flag: Option<String>,
    pub exit_zero: String,
    pub memory_mb: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned_memory_mb: Option<u64>,
    pub max_runs: u64,
    pub usage: UsagePatternsDocument,
    pub interactive: bool,
    pub transcript: String,
    pub program: String,
    pub version_flag: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tried_with: String,
    pub login: LoginPlacesDocument,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub root_variable: String,
    pub ignore: Vec<String>,
    pub limit: Vec<LimitPatternDocument>,
    pub warnings: Vec<String>,
}

/// Where an agent finds its login or key.
#[derive(Debug, Clone, Serialize)]
pub struct LoginPlacesDocument {
    pub variables: Vec<String>,
    pub files: Vec<String>,
}

/// How a prompt is pasted.
#[derive(Debug, Clone, Serialize)]
pub struct PasteDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    pub confirm: String,
    pub bytes_max: u64,
}

/// Patterns that find what a run used.
#[derive(Debug, Clone, Serialize)]
pub struct UsagePatternsDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
}

/// A pattern that finds a limit.
#[derive(Debug, Clone, Serialize)]
pub struct LimitPatternDocument {
    pub pattern: String,
    pub wait: String,
}

/// A runtime whose file cannot be used.
#[derive(Debug, Clone, Serialize)]
pub struct BrokenRuntimeDocument {
    pub name: String,
    pub problem: String,
}

/// A runtime in a list.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum RuntimeEntryDocument {
    Known(Box<RuntimeDocument>),
    Broken(BrokenRuntimeDocument),
}

/// A runtime that was tried.
#[derive(Debug, Clone, Serialize)]
pub struct TestedRuntimeDocument {
    pub name: String,
    pub program: String,
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
    pub warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

impl From<&Account> for AccountDocument {
    fn from(account: &Account) -> Self {
        Self {
            handle: account.handle.clone(),
            config_dir: account.config_dir.clone(),
            environment: account.environment.iter().map(|(name, _)| name.clone()).collect(),
            max_runs: account.max_runs.into(),
            default: account.is_default,
            created_at: account.created_at.into(),
            windows: Vec::new(),
        }
    }
}
