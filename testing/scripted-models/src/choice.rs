//! Choosing the reply to a request.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::request::{ModelRequest, RequestKind};
use crate::script::{Provider, Reply, RequestFilter, Rule, Script};
use crate::wire::example;

/// A script and what has been used of it.
pub(crate) struct Choices {
    pub(crate) script: Script,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    /// Requests answered, by rule.
    requests: HashMap<usize, u32>,
    /// Prompts answered, by rule.
    prompts: HashMap<usize, u32>,
    /// Which rule with a limit on prompts answers this one.
    claims: HashMap<PromptKey, usize>,
    /// Prompts whose first round was answered in full.
    answered: HashSet<PromptKey>,
}

/// Distinguishes one prompt from another, the same over retries and rounds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PromptKey {
    provider: Provider,
    session: String,
    prompt: String,
    position: usize,
}

/// The reply to one request, with everything filled in.
pub(crate) struct Choice {
    /// Where in the script it is from.
    pub(crate) source: Source,
    pub(crate) reply: Reply,
    pub(crate) key: PromptKey,
}

/// Where a reply is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The rule at this position.
    Rule(usize),
    /// The script's `otherwise`.
    Otherwise,
    /// Made up for a side request.
    Side,
    /// Nothing in the script is for this request.
    Nothing,
}

impl Choices {
    pub(crate) fn new(script: Script) -> Self {
        Self { script, used: Mutex::default() }
    }

    /// Chooses the reply and counts it as used.
    pub(crate) fn choose(&self, request: &ModelRequest) -> Choice {
        let key = PromptKey {
            provider: request.provider,
            session: request.session.clone(),
            prompt: request.prompt.clone(),
            position: request.prompts(),
        };
        let mut groups = BTreeMap::new();
        let (source, reply) = if let Some(index) = self.claim_rule(request, &key, &mut groups) {
            let replies = &self.script.rules[index].replies;
            (Source::Rule(index), replies[request.round.min(replies.len() - 1)].clone())
        } else if request.kind == RequestKind::Side {
            let made_up = request.schema.as_ref().map_or_else(
                || "scripted side answer".to_owned(),
                |schema| example(schema, "text").to_string(),
            );
            (Source::Side, Reply::text(made_up))
        } else if let Some(otherwise) = &self.script.otherwise {
            (Source::Otherwise, otherwise.clone())
        } else {
            (Source::Nothing, Reply::status(400))
        };
        if let Some((_, change)) = step_and_change(&request.prompt) {
            groups.insert("change".to_owned(), change.to_owned());
        }
        groups.insert("prompt".to_owned(), request.prompt.clone());
        groups.insert("tool_result".to_owned(), request.tool_results.join("\n"));
        groups.insert("model".to_owned(), request.model.clone());
        groups.insert("round".to_owned(), request.round.to_string());
        groups.insert("cwd".to_owned(), request.working_directory());
        Choice { source, reply: filled_in(reply, &groups), key }
    }

    /// Notes that a prompt got a whole answer: if its first round comes again
    /// in the same words, it is another prompt and not a retry.
    pub(crate) fn answered(&self, key: PromptKey) {
        self.used().answered.insert(key);
    }

    fn claim_rule(
        &self,
        request: &ModelRequest,
        key: &PromptKey,
        groups: &mut BTreeMap<String, String>,
    ) -> Option<usize> {
        let mut used = self.used();
        if request.round == 0 && used.answered.remove(key) {
            used.claims.remove(key);
        }
        let claimed = used.claims.get(key).copied();
        for (index, rule) in self.script.rules.iter().enumerate() {
            if is_exhausted(&used.requests, index, rule.times) {
                continue;
            }
            let may_claim = claimed.is_none() && !is_exhausted(&used.prompts, index, rule.prompts);
            if rule.prompts.is_some() && claimed != Some(index) && !may_claim {
                continue;
            }
            let mut found = BTreeMap::new();
            if !matches(rule, request, &mut found) {
                continue;
            }
            *used.requests.entry(index).or_default() += 1;
            if rule.prompts.is_some() && claimed.is_none() {
                *used.prompts.entry(index).or_default() += 1;
                used.claims.insert(key.clone(), index);
            }
            groups.append(&mut found);
            return Some(index);
        }
        None
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_exhausted(counts: &HashMap<usize, u32>, index: usize, limit: Option<u32>) -> bool {
    limit.is_some_and(|limit| counts.get(&index).copied().unwrap_or(0) >= limit)
}

fn matches(rule: &Rule, request: &ModelRequest, groups: &mut BTreeMap<String, String>) -> bool {
    let is_wanted = match rule.requests {
        RequestFilter::Main => request.kind == RequestKind::Main,
        RequestFilter::Side => request.kind == RequestKind::Side,
        RequestFilter::Any => true,
    };
    let results = request.tool_results.join("\n");
    let history = match &rule.history {
        Some(_) => request.messages.iter().map(|message| message.text.as_str()).collect(),
        None => Vec::new(),
    };
    let history = history.join("\n");
    let mut patterns = [
        (&rule.history, &history),
        (&rule.prompt, &request.prompt),
        (&rule.system, &request.system),
        (&rule.model, &request.model),
        (&rule.after_tool, &results),
    ]
    .into_iter();
    is_wanted
        && rule.provider.is_none_or(|provider| provider == request.provider)
        && rule.round.is_none_or(|round| round == request.round)
        && (rule.after_tool.is_none() || !request.tool_results.is_empty())
        && rule.step.as_ref().is_none_or(|step| {
            step_and_change(&request.prompt).is_some_and(|(found, _)| found == step)
        })
        && patterns.all(|(pattern, text)| {
            pattern.as_ref().is_none_or(|pattern| pattern.find(text, groups))
        })
}

/// Reads the first line that agentd's prompts have: `agentd <step> <change-id>`.
fn step_and_change(prompt: &str) -> Option<(&str, &str)> {
    let line = prompt.trim_start().lines().next()?;
    let (step, change) = line.strip_prefix("agentd ")?.trim().split_once(' ')?;
    Some((step, change.trim()))
}

fn filled_in(mut reply: Reply, groups: &BTreeMap<String, String>) -> Reply {
    for text in [&mut reply.text, &mut reply.thinking].into_iter().flatten() {
        *text = fill_text(text, groups);
    }
    for call in &mut reply.calls {
        fill_value(&mut call.arguments, groups);
    }
    reply
}

fn fill_value(value: &mut Value, groups: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => *text = fill_text(text, groups),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_value(item, groups)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill_value(field, groups)),
        _ => {}
    }
}

fn fill_text(text: &str, groups: &BTreeMap<String, String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        rest = after;
        match after.split_once('}').and_then(|(name, tail)| Some((groups.get(name)?, tail))) {
            Some((value, tail)) => {
                filled.push_str(value);
                rest = tail;
            }
            None => filled.push_str("${"),
        }
    }
    filled.push_str(rest);
    filled
}
