//! The agents: which versions, where they are installed, and how each is pointed at the fake model.

use std::path::{Path, PathBuf};

use gt_testkit::FakeModel;
use serde_json::json;

use crate::cases::AgentAbility;

/// The list that `scripts/agents` installs from.
const PINNED: &str = include_str!("../../../scripts/agents.txt");

/// An agent with its pinned version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PinnedAgent {
    /// Its name, which is also that of its runtime.
    pub(crate) name: &'static str,
    /// The package that it comes from.
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
    /// The name of its program.
    pub(crate) program: &'static str,
}

/// All agents, in the order of the table.
pub(crate) fn pinned() -> Vec<PinnedAgent> {
    let lines = PINNED.lines().filter(|line| !line.starts_with('#'));
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let agents = words.filter_map(|words| match words[..] {
        [name, _, package, version, program] => {
            Some(PinnedAgent { name, package, version, program })
        }
        _ => None,
    });
    agents.collect()
}

impl PinnedAgent {
    /// Its program below the cache directory; none if it is not installed.
    pub(crate) fn installed(&self, cache: &Path) -> Option<PathBuf> {
        let directory = cache.join(format!("{}-{}", self.name, self.version));
        // Written last, so a half installed agent is none.
        if !directory.join("installed").exists() {
            return None;
        }
        let places = ["node_modules/.bin", "bin"];
        places
            .iter()
            .map(|place| directory.join(place).join(self.program))
            .find(|program| program.is_file())
    }

    /// Whether it works through tools. An agent without tools runs no `gt`, so it cannot report anything.
    pub(crate) fn has_tools(&self) -> bool {
        self.name != "aider"
    }

    /// Whether it has the ability that a case needs.
    pub(crate) fn has(&self, ability: AgentAbility) -> bool {
        match ability {
            AgentAbility::Work => true,
            AgentAbility::Tools => self.has_tools(),
            // One sends telemetry, the other writes a file about its session.
            AgentAbility::LiveUsage => matches!(self.name, "claude" | "codex"),
            // Others are configured by files in the home of their user, which we do not change.
            AgentAbility::Mcp => matches!(self.name, "claude" | "codex"),
        }
    }

    /// How it is pointed at the fake model.
    pub(crate) fn setup(&self, model: &FakeModel) -> AgentSetup {
        setup(self.name, &model.url(), &model.text_url())
    }
}

/// Everything that an agent needs besides its preset.
#[derive(Debug, Default)]
pub(crate) struct AgentSetup {
    /// Variables of its environment.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Files below the home directory.
    pub(crate) files: Vec<(&'static str, String)>,
    /// The arguments of a first call of its program that configures it.
    pub(crate) first_call: Vec<String>,
}

fn setup(name: &str, url: &str, text_url: &str) -> AgentSetup {
    let version_1 = format!("{url}/v1");
    let key = || "fake-key".to_owned();
    let yes = || "1".to_owned();
    match name {
        "claude" => AgentSetup {
            environment: vec![
                ("ANTHROPIC_BASE_URL", url.to_owned()),
                // The token of a subscription, because limits of subscriptions say when they end.
                ("CLAUDE_CODE_OAUTH_TOKEN", key()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", yes()),
                ("DISABLE_AUTOUPDATER", yes()),
                // Tests may run as root, and are in a container then.
                ("IS_SANDBOX", yes()),
            ],
            ..AgentSetup::default()
        },
        "codex" => AgentSetup {
            environment: vec![("FAKE_MODEL_KEY", key())],
            files: vec![(
                ".codex/config.toml",
                format!(
                    "model = \"fake-model\"\nmodel_provider = \"fake\"\ncheck_for_update_on_startup = false\n\
                     [model_providers.fake]\nname = \"fake\"\nbase_url = \"{version_1}\"\n\
                     env_key = \"FAKE_MODEL_KEY\"\nwire_api = \"responses\"\n"
                ),
            )],
            ..AgentSetup::default()
        },
        "gemini" => AgentSetup {
            environment: vec![
                ("GOOGLE_GEMINI_BASE_URL", url.to_owned()),
                ("GEMINI_API_KEY", key()),
                ("GEMINI_MODEL", "gemini-2.5-flash".to_owned()),
            ],
            files: vec![(
                ".gemini/settings.json",
                json!({
                    "security": {"auth": {"selectedType": "gemini-api-key"}},
                    "privacy": {"usageStatisticsEnabled": false},
                    "general": {"enableAutoUpdate": false},
                })
                .to_string(),
            )],
            ..AgentSetup::default()
        },
        "opencode" => {
            let provider = json!({
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": version_1, "apiKey": key()},
                "models": {"fake-model": {}},
            });
            let config = json!({
                "provider": {"fake": provider}, "model": "fake/fake-model", "small_model": "fake/fake-model",
                "autoupdate": false,
            });
            AgentSetup {
                environment: vec![
                    ("OPENCODE_CONFIG_CONTENT", config.to_string()),
                    ("OPENCODE_DISABLE_MODELS_FETCH", yes()),
                ],
                ..AgentSetup::default()
            }
        }
        "aider" => AgentSetup {
            environment: vec![
                ("OPENAI_API_BASE", format!("{text_url}/v1")),
                ("OPENAI_API_KEY", key()),
                ("AIDER_MODEL", "openai/fake-model".to_owned()),
                ("AIDER_ANALYTICS_DISABLE", "true".to_owned()),
                ("AIDER_SHOW_MODEL_WARNINGS", "false".to_owned()),
            ],
            ..AgentSetup::default()
        },
        "copilot" => AgentSetup {
            environment: vec![
                ("COPILOT_PROVIDER_BASE_URL", version_1),
                ("COPILOT_PROVIDER_TYPE", "openai".to_owned()),
                ("COPILOT_PROVIDER_API_KEY", key()),
                ("COPILOT_MODEL", "fake-model".to_owned()),
                ("COPILOT_OFFLINE", "true".to_owned()),
            ],
            ..AgentSetup::default()
        },
        "goose" => AgentSetup {
            environment: vec![
                ("GOOSE_PROVIDER", "openai".to_owned()),
                ("GOOSE_MODEL", "fake-model".to_owned()),
                ("OPENAI_HOST", url.to_owned()),
                ("OPENAI_BASE_PATH", "v1/chat/completions".to_owned()),
                ("OPENAI_API_KEY", key()),
                ("GOOSE_DISABLE_KEYRING", yes()),
            ],
            ..AgentSetup::default()
        },
        "qwen" => AgentSetup {
            environment: vec![
                ("OPENAI_BASE_URL", version_1),
                ("OPENAI_API_KEY", key()),
                ("OPENAI_MODEL", "fake-model".to_owned()),
            ],
            files: vec![(
                ".qwen/settings.json",
                json!({
                    "security": {"auth": {"selectedType": "openai"}},
                    "privacy": {"usageStatisticsEnabled": false},
                })
                .to_string(),
            )],
            ..AgentSetup::default()
        },
        "pi" => {
            let provider = json!({
                "baseUrl": version_1, "api": "openai-completions", "apiKey": key(),
                "models": [{"id": "fake-model"}],
            });
            AgentSetup {
                environment: vec![("PI_OFFLINE", yes())],
                files: vec![
                    (".pi/agent/models.json", json!({"providers": {"fake": provider}}).to_string()),
                    (
                        ".pi/agent/settings.json",
                        json!({"defaultProvider": "fake", "defaultModel": "fake-model"})
                            .to_string(),
                    ),
                ],
                ..AgentSetup::default()
            }
        }
        "cline" => {
            let words = [
                "auth",
                "--provider",
                "openai-compatible",
                "--apikey",
                "fake-key",
                "--modelid",
                "fake-model",
            ];
            let mut first_call: Vec<String> = words.map(str::to_owned).into();
            first_call.extend(["--baseurl".to_owned(), version_1]);
            AgentSetup { first_call, ..AgentSetup::default() }
        }
        _ => AgentSetup::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page that `scripts/agents` writes.
    const PAGE: &str = include_str!("../../../docs/reference/agents.md");

    #[test]
    fn the_page_and_the_presets_are_about_the_pinned_versions() {
        let presets =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../scheduling/src/runtimes/presets");
        for PinnedAgent { name, version, .. } in pinned() {
            assert!(
                PAGE.contains(&format!("| {name} | {version} |")),
                "{name}: run scripts/agents"
            );
            let preset = std::fs::read_to_string(presets.join(format!("{name}.toml"))).unwrap();
            let is_tried = preset.contains("tried_with");
            assert!(
                !is_tried || preset.contains(version),
                "{name}.toml was tried with another version"
            );
        }
    }

    #[test]
    fn every_pinned_agent_is_read() {
        let lines = PINNED.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let agents = pinned();
        assert_eq!(agents.len(), lines.count());
        let claude = &agents[0];
        assert_eq!((claude.name, claude.package), ("claude", "@anthropic-ai/claude-code"));
        assert!(claude.version.starts_with(|c: char| c.is_ascii_digit()));
    }
}
