//! Refusals as the vendors word them: status, headers and body.

use serde_json::{Value, json};

use super::request::ModelApi;

/// A refused request.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Value,
}

/// The answer of a vendor whose usage limit is reached until `reset`, in seconds since 1970, which is `seconds` from
/// now.
pub(super) fn limit(api: ModelApi, reset: u64, seconds: u64) -> Refusal {
    let retry = ("retry-after", seconds.to_string());
    let (headers, body) = match api {
        ModelApi::Messages => (
            vec![
                retry,
                ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
                ("anthropic-ratelimit-unified-5h-status", "rejected".to_owned()),
                ("anthropic-ratelimit-unified-5h-reset", reset.to_string()),
                ("anthropic-ratelimit-unified-5h-utilization", "1.0".to_owned()),
                ("anthropic-ratelimit-unified-representative-claim", "five_hour".to_owned()),
                ("anthropic-ratelimit-unified-reset", reset.to_string()),
                ("anthropic-ratelimit-unified-overage-status", "rejected".to_owned()),
                ("x-should-retry", "false".to_owned()),
            ],
            json!({
                "type": "error",
                "error": {
                    "type": "rate_limit_error",
                    "message": "This request would exceed your account's rate limit. Please try again later.",
                },
                "request_id": "req_fake",
            }),
        ),
        ModelApi::Responses => (
            vec![
                retry,
                ("x-codex-primary-used-percent", "100.0".to_owned()),
                ("x-codex-primary-window-minutes", "300".to_owned()),
                ("x-codex-primary-reset-at", reset.to_string()),
                ("x-codex-primary-reset-after-seconds", seconds.to_string()),
            ],
            json!({"error": {
                "type": "usage_limit_reached", "message": "The usage limit has been reached",
                "plan_type": "plus", "resets_at": reset, "resets_in_seconds": seconds,
            }}),
        ),
        ModelApi::Chat => (
            vec![
                retry,
                ("x-ratelimit-remaining-requests", "0".to_owned()),
                ("x-ratelimit-reset-requests", format!("{seconds}s")),
            ],
            json!({"error": {
                "message": format!(
                    "You exceeded your current quota, please check your plan and billing details. Rate limit reached; \
                     please try again in {seconds}s."
                ),
                "type": "insufficient_quota", "param": null, "code": "insufficient_quota",
            }}),
        ),
        ModelApi::Gemini => (
            vec![retry],
            json!({"error": {
                "code": 429,
                "message": format!(
                    "You exceeded your current quota, please check your plan and billing details. Please retry in \
                     {seconds}.5s."
                ),
                "status": "RESOURCE_EXHAUSTED",
                "details": [
                    {
                        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                        "violations": [{
                            "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                            "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
                        }],
                    },
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")},
                ],
            }}),
        ),
    };
    Refusal { status: 429, headers, body }
}

/// The answer of a vendor that fails with this status.
pub(super) fn error(api: ModelApi, status: u16) -> Refusal {
    let message = "Internal server error";
    let body = match api {
        ModelApi::Messages => {
            json!({"type": "error", "error": {"type": "api_error", "message": message}})
        }
        ModelApi::Responses | ModelApi::Chat => {
            json!({"error": {"message": message, "type": "server_error", "param": null, "code": null}})
        }
        ModelApi::Gemini => {
            json!({"error": {"code": status, "message": message, "status": "INTERNAL"}})
        }
    };
    Refusal { status, headers: Vec::new(), body }
}
