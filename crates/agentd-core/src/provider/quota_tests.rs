use super::*;
use crate::outcome::FailureKind as K;
use crate::provider::classify::kind_of_message;

/// What the providers answer, as they send it or as gemini 0.61, codex 0.166, claude 2.1, codex-acp,
/// claude-agent-acp, opencode and qwen report it. An account without quota or credit is named twice: with
/// what ends their work, and with what soon passes.
const USED_UP_BODIES: &[(&str, &str)] = &[
    ("Google", PER_DAY),
    ("Google", "You have exhausted your daily quota on this model."),
    (
        "Google",
        "[API Error: You have exhausted your daily quota on this model.]\nPlease wait and try again later.",
    ),
    (
        "Google",
        "You have exhausted your capacity on this model. Your quota will reset after 21h14m49s.",
    ),
    (
        "Google",
        "Quota exceeded for quota metric 'Gemini 2.5 Pro Requests' and limit 'Gemini 2.5 Pro Requests per day per user per tier'",
    ),
    (
        "Google",
        r#"{"error":{"code":429,"message":"You have exhausted your capacity on this model.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"QUOTA_EXHAUSTED","domain":"cloudcode-pa.googleapis.com"}]}}"#,
    ),
    (
        "OpenAI",
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
    ),
    ("OpenAI", "Quota exceeded. Check your plan and billing details."),
    (
        "OpenAI",
        r#"{"error":{"code":"billing_hard_limit_reached","message":"Billing hard limit has been reached","param":null,"type":"invalid_request_error"}}"#,
    ),
    (
        "ChatGPT",
        "You\u{2019}ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at 11:06 AM.",
    ),
    (
        "ChatGPT",
        "You've hit your usage limit. Upgrade to Pro or try again in 3 days 4 hours 9 minutes.",
    ),
    (
        "ChatGPT",
        r#"{"type":"error","error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_in_seconds":13872},"status_code":429}"#,
    ),
    ("ChatGPT", r#"{"codexErrorInfo":"usageLimitExceeded"}"#),
    ("ChatGPT", "Your workspace is out of credits. Add credits to continue."),
    (
        "ChatGPT",
        "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.",
    ),
    ("Anthropic", "Internal error: Credit balance is too low"),
    (
        "Anthropic",
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}"#,
    ),
    (
        "Anthropic",
        "API Error: 400 You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
    ),
    ("Claude", "You've hit your limit · resets 8am (Europe/London)"),
    ("Claude", "You've hit your session limit · resets 12:50pm (Europe/Paris)"),
    (
        "Claude",
        "You've hit your session limit · resets 5:40pm (Europe/Berlin)\n/login to switch to an API usage-billed account.",
    ),
    ("Claude", "You've hit your weekly limit · resets 10am"),
    ("Claude", "You've hit your Opus limit · resets Nov 21 at 9am"),
    (
        "Claude",
        "You've hit your org's monthly spend limit · ask your admin to raise it at claude.ai/settings/usage",
    ),
    ("Claude", "You're out of usage credits · resets 3pm"),
    ("Claude", "Your org is out of usage · contact your admin"),
    ("Claude", "Weekly limit reached · resets 10am (Asia/Seoul) · /upgrade to Max"),
    ("Claude", "Claude AI usage limit reached|1760000400"),
    ("Claude", "5-hour limit reached ∙ resets 3pm"),
    (
        "OpenRouter",
        r#"{"error":{"message":"Insufficient credits. Add more using https://openrouter.ai/settings/credits","code":402}}"#,
    ),
    (
        "OpenRouter",
        r#"API Error: 402 {"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 27342. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account","code":402,"metadata":{"provider_name":null}}}"#,
    ),
    (
        "OpenRouter",
        r#"429 {"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0"}}}}"#,
    ),
    (
        "OpenRouter",
        r#"429 {"error":{"message":"Rate limit exceeded: free-models-per-day-high-balance. ","type":"rate_limit_error","code":"429"}}"#,
    ),
    (
        "opencode",
        r#"{"type":"error","error":{"type":"FreeUsageLimitError","message":"Rate limit exceeded. Please try again later."},"metadata":{}}"#,
    ),
    ("opencode", "Free usage exceeded, add credits https://opencode.ai/zen"),
    (
        "opencode",
        r#"{"type":"error","error":{"type":"CreditsError","message":"Insufficient balance. Manage your billing here: https://opencode.ai/workspace/wrk_x/billing"}}"#,
    ),
    ("opencode", "Subscription quota exceeded. Retry in 3hr 4min."),
    ("GitHub", r#"402 {"error":{"message":"You have no quota","code":"quota_exceeded"}}"#),
    (
        "GitHub",
        r#"Model call failed: {"message":"You have no quota","code":"quota_exceeded"} (Request ID: 676E:18712)"#,
    ),
    ("GitHub", "You have exceeded your monthly quota of premium requests."),
    (
        "GitHub",
        "Sorry, you've hit a rate limit that restricts the number of Copilot model requests you can make within a specific time period. Please try again in 58 hours. Please review our Terms of Service.",
    ),
    (
        "GitHub",
        "You've reached your weekly rate limit. Please wait for your limit to reset on April 20, 2026 at 2:00 AM or switch to auto model to continue.",
    ),
    ("Alibaba", "Qwen OAuth quota exceeded: Your free daily quota has been reached."),
    (
        "Alibaba",
        r#"429 {"error":{"message":"Free allocated quota exceeded.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
    ),
    (
        "DeepSeek",
        r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}"#,
    ),
    (
        "Moonshot",
        r#"{"error":{"message":"Your account is suspended due to insufficient balance","type":"exceeded_current_quota_error"}}"#,
    ),
    (
        "Z.ai",
        r#"{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}"#,
    ),
    (
        "xAI",
        r#"{"code":"Some resource has been exhausted","error":"Your team has either used all available credits or reached its monthly spending limit."}"#,
    ),
    (
        "Groq",
        "Rate limit reached for model `x` in organization `o` service tier `on_demand` on tokens per day (TPD): Limit 100000, Used 99000, Requested 9000. Please try again in 1h55m12s.",
    ),
    ("AWS", "API Error: 429 Too many tokens per day, please wait before trying again."),
    ("unknown", "402 Payment Required"),
];

const PER_DAY: &str = r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2s"}]}}"#;

const PASSING_BODIES: &[(&str, &str)] = &[
    (
        "Google",
        r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_input_token_count","quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier","quotaValue":"250000"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"26s"}]}}"#,
    ),
    (
        "Google",
        "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\nSuggested retry after 1s.",
    ),
    ("Google", "Resource has been exhausted (e.g. check quota)."),
    ("Google", "You have exhausted your capacity on this model. Your quota will reset after 0s."),
    ("Google", "You have exhausted your capacity on this model. Your quota will reset after 53s."),
    (
        "OpenAI",
        r#"{"error":{"message":"Rate limit reached for gpt-6.1-sol in organization org-x on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 1.5s. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    ),
    (
        "OpenAI",
        "Rate limit reached for gpt-6 on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.",
    ),
    ("OpenAI", "exceeded retry limit, last status: 429 Too Many Requests"),
    (
        "Azure",
        "Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 26 seconds.",
    ),
    (
        "Anthropic",
        r#"429 {"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 30,000 input tokens per minute (org: x). For details, refer to: https://docs.claude.com/en/api/rate-limits."},"request_id":"req_x"}"#,
    ),
    (
        "Anthropic",
        "API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.",
    ),
    (
        "Claude",
        "API Error: Server is temporarily limiting requests (not your usage limit) · this may be a temporary capacity issue.",
    ),
    ("OpenRouter", "429 Rate limit exceeded: free-models-per-min."),
    (
        "OpenRouter",
        r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"qwen/qwen3-coder:free is temporarily rate-limited upstream. Please retry shortly"}}}"#,
    ),
    (
        "GitHub",
        "You've hit your global rate limit. Please upgrade your plan or wait 6 seconds for your limit to reset.",
    ),
    (
        "GitHub",
        "Sorry, you have been rate-limited. Please wait 2 minutes before trying again or consider switching to Auto.",
    ),
    (
        "Alibaba",
        r#"429 {"error":{"message":"You exceeded your current quota, please check your plan and billing details. For details, see: https://help.aliyun.com/zh/model-studio/error-code#token-limit","type":"insufficient_quota","code":"insufficient_quota"}}"#,
    ),
    (
        "Alibaba",
        "429 Allocated quota exceeded, please increase your quota limit. For details, see: https://help.aliyun.com/zh/model-studio/error-code#token-limit",
    ),
    (
        "Alibaba",
        r#"{"error":{"message":"Requests rate limit exceeded, please try again later.","type":"limit_requests","code":"limit_requests"}}"#,
    ),
    (
        "Mistral",
        r#"{"object":"error","message":"Service tier capacity exceeded for this model.","type":"rate_limit_error","code":"3505"}"#,
    ),
    (
        "Moonshot",
        r#"{"error":{"message":"Your account x<ak-y> request reached max organization RPM: 3, please try again after 1 seconds","type":"rate_limit_reached_error"}}"#,
    ),
    ("Z.ai", r#"{"error":{"code":"1302","message":"Rate limit reached for requests"}}"#),
    (
        "Groq",
        "Rate limit reached for model `x` on tokens per day (TPD): Limit 100000, Used 99000, Requested 2000. Please try again in 14m24s.",
    ),
    ("AWS", "ThrottlingException: Too many tokens, please wait before trying again."),
    ("unknown", "429 Too Many Requests"),
    ("unknown", "429 rate_limit_error: see your usage limits at https://console.example/limits"),
    ("unknown", "You've reached your limit of concurrent requests: 429"),
];

// contract G4
#[test]
fn a_used_up_quota_is_not_a_passing_rate_limit() {
    for (vendor, body) in USED_UP_BODIES {
        assert_eq!(kind_of_message(body), Some(K::QuotaExhausted), "{vendor}: {body}");
    }
    for (vendor, body) in PASSING_BODIES {
        assert_eq!(kind_of_message(body), Some(K::RateLimited), "{vendor}: {body}");
    }
    assert!(K::QuotaExhausted.drops_out() && !K::QuotaExhausted.is_transient());
    assert!(!K::RateLimited.drops_out() && K::RateLimited.is_transient());
}

/// What is neither.
#[test]
fn other_failures_of_providers_are_no_limits() {
    for (message, kind) in [
        (
            "API Error: 529 Overloaded. This is a server-side issue, usually temporary",
            K::ServerError,
        ),
        ("No capacity available for model gemini-3-pro-preview on the server", K::ServerError),
        ("Internal error: Invalid API key · Fix external API key", K::Auth),
        ("unexpected status 401 Unauthorized: Incorrect API key provided: test-key.", K::Auth),
        (
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#,
            K::Auth,
        ),
        ("max_tokens: 32000 is more than the model can write", K::OutputLimit),
    ] {
        assert_eq!(kind_of_message(message), Some(kind), "{message}");
    }
}

#[test]
fn waits_that_are_asked_for_are_found() {
    assert_eq!(retry_after_ms("Please try again in 1.5s."), Some(1500));
    assert_eq!(retry_after_ms(r#"{"retryDelay":"34s"}"#), Some(34_000));
    assert_eq!(retry_after_ms("retry after 20"), Some(20_000));
    assert_eq!(retry_after_ms("try again in 3 minutes"), Some(180_000));
    assert_eq!(retry_after_ms("try again in 7m12s."), Some(432_000));
    assert_eq!(retry_after_ms("will reset after 8h44m7s."), Some(31_447_000));
    assert_eq!(retry_after_ms("try again in 3 days 4 hours"), Some(273_600_000));
    assert_eq!(retry_after_ms(r#"{"resets_in_seconds":13872}"#), Some(13_872_000));
    assert_eq!(retry_after_ms("please wait. Then try again after 1 seconds"), Some(1000));
    assert_eq!(retry_after_ms("upgrade or wait 6 seconds"), Some(6000));
    for text in ["try again later", "retry after 2026-12-01T00:00:00Z", "retry after 11:06 AM"] {
        assert_eq!(retry_after_ms(text), None, "{text}");
    }
}
