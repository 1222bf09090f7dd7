//! Limits of providers: which of them soon pass, and which end the work of an agent for hours or until
//! somebody pays (G4).
//!
//! Both come as HTTP 429, and some as 400, 401 or 403, so only words tell them apart: those of the
//! providers, and what the agents make of them.

/// The longest wait for a limit that passes.
pub(super) const SOON_MS: u64 = 15 * 60_000;

/// Words for a quota, a credit or a plan that is used up, whatever else is said.
const USED_UP: [&str; 34] = [
    // Google: a violation of a quota per day, and what Gemini CLI makes of it.
    "perday",
    "daily quota",
    "quota_exhausted",
    "insufficient_g1_credits",
    // OpenAI: a key without credit, and a plan whose hours or week are used up, or without Codex.
    "insufficient_quota",
    "billing_hard_limit",
    "billing_not_active",
    "usage_limit_reached",
    "usagelimitexceeded",
    "spend cap",
    "usage_not_included",
    "to use codex with your chatgpt plan",
    // Anthropic: a key without credit or at its limit of the month, and a plan.
    "credit balance",
    "api usage limits",
    "regain access",
    "usage limit reached",
    "limit reached · resets",
    "limit reached ∙ resets",
    "usage credits",
    "out of extra usage",
    "org is out of usage",
    "spend limit reached",
    "billing_error",
    // Others, and those who pass requests on.
    "insufficient credit",
    "insufficient balance",
    "requires more credits",
    "out of credits",
    "payment required",
    "monthly quota",
    "spending limit",
    "free usage exceeded",
    "freeusagelimit",
    "free tier has been discontinued",
    "free allocated quota exceeded",
];

/// Words that mean it if nothing says that it soon passes: Google says the first three of a minute, or
/// of seconds, as well.
const MAY_BE_USED_UP: [&str; 8] = [
    "current quota",
    "billing details",
    "exhausted your capacity",
    "quota exceeded",
    "quota_exceeded",
    "per day",
    "per-day",
    "exceeded_current_quota",
];

/// What Alibaba says of the tokens of a minute, even as `insufficient_quota`.
const ALIBABA_TOKENS: [&str; 2] = ["allocated quota exceeded", "error-code#token-limit"];

/// How plans name their limits, between "your" and "limit".
const PLAN_LIMITS: [&str; 8] =
    ["session", "daily", "weekly", "monthly", "usage", "credit", "spend", "fable"];

fn has(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Whether a text in lower case says that a quota, a credit or a plan is used up.
pub(super) fn is_used_up(text: &str) -> bool {
    if has(text, &ALIBABA_TOKENS) {
        return text.contains("free allocated quota exceeded");
    }
    has(text, &USED_UP) || names_limit_of_plan(text)
}

/// The same for a text that is about a limit, which may also pass. A wait of minutes is one that does.
pub(super) fn is_limit_used_up(text: &str) -> bool {
    if has(text, &ALIBABA_TOKENS) {
        return is_used_up(text);
    }
    let wait = retry_after_ms(text);
    let passes = wait.is_some_and(|wait| wait <= SOON_MS)
        || has(text, &["perminute", "per minute", "per min"]);
    wait.is_some_and(|wait| wait > SOON_MS) || (has(text, &MAY_BE_USED_UP) && !passes)
}

/// Whether a text says that somebody has hit the limit of a plan: "You've hit your limit", "your
/// session limit", "your org's monthly usage limit". A rate limit is one only if it is that of a day or
/// longer, and "reached" is also said of requests that wait for others.
fn names_limit_of_plan(text: &str) -> bool {
    let named = |verb: &str| {
        let rest = text.split(verb).skip(1);
        let names = rest.filter_map(|rest| {
            let name = &rest[..rest.find("limit")?];
            (name.len() <= 40 && !name.contains(['.', '\n'])).then_some(name)
        });
        names.collect::<Vec<_>>()
    };
    let is_rate =
        |name: &&str| name.contains("rate") && !has(name, &["daily", "weekly", "monthly"]);
    named("hit your ").iter().any(|name| !is_rate(name))
        || named("reached your ").iter().any(|name| has(name, &PLAN_LIMITS) && !is_rate(name))
}

/// How long a message asks to wait: "try again in 1.5s", "retryDelay":"34s", "reset after 8h44m7s".
pub(super) fn retry_after_ms(message: &str) -> Option<u64> {
    const ASKS: [&str; 10] = [
        "retry after",
        "try again in",
        "try again after",
        "retry in",
        "retrydelay",
        "retry-after",
        "reset after",
        "resets_in_seconds",
        "please wait",
        "or wait",
    ];
    let text = message.to_ascii_lowercase();
    ASKS.iter().find_map(|ask| text.split(ask).skip(1).find_map(duration_ms))
}

/// The time that a text begins with.
fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text.trim_start_matches([' ', ':', '"', '\\', '=']);
    let mut sum = None;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse::<f64>() else { break };
        rest = rest[end..].trim_start();
        let unit = &rest[..rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len())];
        // A date, or the time of a day.
        if unit.is_empty() && rest.starts_with(['-', ':', '/']) {
            return None;
        }
        let factor = match unit {
            _ if unit.starts_with("ms") => 1.0,
            _ if unit.starts_with('m') => 60_000.0,
            _ if unit.starts_with('h') => 3_600_000.0,
            _ if unit.starts_with('d') => 86_400_000.0,
            _ => 1000.0,
        };
        sum = Some(sum.unwrap_or(0.0) + number * factor);
        rest = rest[unit.len()..].trim_start();
        if unit.is_empty() {
            break;
        }
    }
    // A float that is too big for the integer becomes its maximum, which callers cap.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    sum.map(|ms: f64| ms.ceil() as u64)
}

#[cfg(test)]
#[path = "quota_tests.rs"]
mod tests;
