//! Keeping secrets out of what agentd writes and shows: the values of variables that look
//! secret, and texts that look like keys of well-known services.
//!
//! Texts are cleaned before they are serialized. They may be JSON themselves, as the lines of
//! agents are, and JSON in JSON; what is left of JSON is JSON again.

mod kinds;
mod named;
mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ffi::OsString;

use agentd_core::config::Config;
use agentd_core::event::AgentEvent;
use agentd_core::hash::{hex, unhex};
use agentd_core::layout;
use agentd_core::outcome::{AgentOutcome, Failure};
use agentd_core::run_format::{FileEdit, RunHeader};
use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use crate::store::Project;

/// What stands in the place of a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// Shorter values are not secrets but `true`, `1` or `eu-west`, and replacing them
/// would only spoil the text.
const SHORTEST: usize = 8;

/// The shortest line of a value of several lines that is looked for by itself.
const SHORTEST_LINE: usize = 20;

/// Replaces secrets in text that is about to be written.
#[derive(Debug, Clone)]
pub struct Redactor {
    /// The values of variables; none where no variable is secret.
    values: Option<AhoCorasick>,
}

/// What a stream of texts has left open for the next of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Open {
    /// A private key has begun and not ended.
    key: bool,
}

impl Redactor {
    /// One that knows the secrets of this environment.
    pub fn new(environment: &[(OsString, OsString)]) -> Self {
        let mut patterns = Vec::new();
        for (name, value) in environment {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
            let secret = if looks_secret(name) { Some(value) } else { password_in_url(value) };
            let Some(secret) = secret else { continue };
            // A path is no secret, and is what the agents talk about.
            if secret.len() < SHORTEST || secret.starts_with('/') {
                continue;
            }
            patterns.extend(forms(secret));
            let lines = secret.lines().filter(|line| line.len() >= SHORTEST_LINE);
            patterns.extend(lines.filter(|line| *line != secret).flat_map(forms));
        }
        patterns.sort_unstable();
        patterns.dedup();
        if patterns.is_empty() {
            return Self { values: None };
        }
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
        Self { values: search.ok() }
    }

    /// One that knows the secrets of this environment, and what the settings add to it for agents.
    pub(crate) fn with_settings(environment: &[(OsString, OsString)], config: &Config) -> Self {
        let mut environment = environment.to_vec();
        for agent in config.all_agents() {
            let added = &config.agent(agent).env;
            environment.extend(added.iter().map(|(name, value)| (name.into(), value.into())));
        }
        Self::new(&environment)
    }

    /// The same with the settings of a project. Those that cannot be read add nothing.
    pub fn of_project(environment: &[(OsString, OsString)], project: &Project) -> Self {
        let text = project.dir().read_to_string(&layout::config()).unwrap_or_default();
        Self::with_settings(environment, &Config::parse(&text).unwrap_or_default())
    }

    /// The text without secrets; None when there are none in it, which is the
    /// usual case and costs a pass or two.
    pub fn redact(&self, text: &[u8]) -> Option<Vec<u8>> {
        let values = self
            .values
            .as_ref()
            .and_then(|values| without(text, values.find_iter(text).map(|found| found.range())));
        let kinds = {
            let text = values.as_deref().unwrap_or(text);
            without(text, kinds::find(text))
        };
        kinds.or(values)
    }

    /// The text without secrets.
    pub(crate) fn redact_text(&self, text: &str) -> String {
        self.clean(text).into_owned()
    }

    /// The text without secrets; itself, where there are none in it.
    pub fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redacted(text).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    fn redacted(&self, text: &str) -> Option<String> {
        let bytes = self.redact(text.as_bytes())?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The same for one of several texts that belong together, such as lines: a private key may
    /// continue from one to the next.
    pub(crate) fn clean_next<'t>(&self, text: &'t str, open: &mut Open) -> Cow<'t, str> {
        let begun = if open.key { kinds::key_end(text.as_bytes(), 0) } else { 0 };
        let rest = &text[begun..];
        let ends_here = begun > 0 && text[..begun].contains("-----END ");
        let is_all = begun > 0 && !ends_here && rest.trim_end().is_empty();
        open.key = is_all || kinds::leaves_key_open(rest.as_bytes());
        match (begun, self.redacted(rest)) {
            (0, None) => Cow::Borrowed(text),
            (0, Some(clean)) => Cow::Owned(clean),
            (_, clean) => Cow::Owned(format!("{REDACTED}{}", clean.as_deref().unwrap_or(rest))),
        }
    }

    /// Whether a text may have secrets in it, in whatever form it is serialized: quicker than
    /// to look.
    pub(crate) fn suspects(&self, text: &[u8]) -> bool {
        kinds::has_marks(text) || self.values.as_ref().is_some_and(|values| values.is_match(text))
    }

    /// The event without secrets; None when there are none in it.
    pub(crate) fn redact_event(&self, event: &AgentEvent<'_>) -> Option<AgentEvent<'static>> {
        event.with_texts(&mut |text| self.redacted(text))
    }

    /// Takes the secrets out of a failure.
    pub(crate) fn redact_failure(&self, failure: &mut Failure) {
        let hint = failure.hint.iter_mut();
        for text in [&mut failure.message, &mut failure.stderr_tail].into_iter().chain(hint) {
            self.redact_in(text);
        }
    }

    /// Takes the secrets out of what came of a call.
    pub(crate) fn redact_outcome(&self, outcome: &mut AgentOutcome) {
        self.redact_in(&mut outcome.text);
        outcome.denied_tools.iter_mut().for_each(|tool| self.redact_in(tool));
        for call in &mut outcome.tools.refused {
            self.redact_in(&mut call.tool);
            self.redact_in(&mut call.reason);
        }
        let names = outcome.tools.done.iter_mut().chain(&mut outcome.tools.unanswered);
        names.for_each(|tool| self.redact_in(tool));
        let said = [&mut outcome.session_id, &mut outcome.model];
        said.into_iter().flatten().for_each(|text| self.redact_in(text));
        if let Some(failure) = &mut outcome.failure {
            self.redact_failure(failure);
        }
    }

    /// The header of a run without secrets.
    #[must_use]
    pub fn header(&self, header: &RunHeader) -> RunHeader {
        let mut header = header.clone();
        let mut open = Open::default();
        for argument in &mut header.argv {
            if let Cow::Owned(clean) = self.clean_next(argument, &mut open) {
                *argument = clean;
            }
        }
        // A value may be the argument behind its name.
        for at in 1..header.argv.len() {
            let pair = format!("{} {}", header.argv[at - 1], header.argv[at]);
            let clean = self.clean(&pair);
            if let Some(value) = clean.strip_prefix(&format!("{} ", header.argv[at - 1])) {
                value.clone_into(&mut header.argv[at]);
            }
        }
        self.redact_in(&mut header.prompt);
        self.redact_in(&mut header.cwd);
        header
    }

    /// Edits of files without secrets. What is not text is looked at as bytes.
    pub fn edits(&self, edits: &[FileEdit]) -> Vec<FileEdit> {
        let mut edits = edits.to_vec();
        for edit in &mut edits {
            self.redact_in(&mut edit.path);
            edit.text.iter_mut().for_each(|text| self.redact_in(text));
            edit.hex.iter_mut().for_each(|digits| self.redact_hex(digits));
        }
        edits
    }

    /// A run file, or a part of one, without secrets: also one that was written by an agentd
    /// that knew fewer of them. None when there are none in it.
    pub fn redact_run(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut changed = false;
        let (mut lines, mut stderr) = (Open::default(), Open::default());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let is_worth_it = lines.key
                || stderr.key
                || self.suspects(line)
                || memchr::memmem::find(line, b"\"hex\":").is_some();
            let clean = is_worth_it.then(|| self.redact_record(line, &mut lines, &mut stderr));
            changed |= clean.as_ref().is_some_and(Option::is_some);
            out.extend_from_slice(clean.flatten().as_deref().unwrap_or(line));
        }
        changed.then_some(out)
    }

    fn redact_record(&self, line: &[u8], raw: &mut Open, stderr: &mut Open) -> Option<Vec<u8>> {
        let Ok(mut record) = serde_json::from_slice::<Value>(line) else {
            return self.redact(line);
        };
        let mut changed = false;
        for (key, open) in [("raw", raw), ("stderr", stderr)] {
            if let Some(Value::String(text)) = record.get_mut(key)
                && let Cow::Owned(clean) = self.clean_next(text, open)
            {
                changed |= *text != clean;
                *text = clean;
            }
        }
        changed |= self.redact_value(&mut record, "");
        let written = changed.then(|| format!("{record}\n").into_bytes());
        // A name and its value may be two texts.
        self.redact(written.as_deref().unwrap_or(line)).or(written)
    }

    /// Takes the secrets out of every text in a value; whether there were any.
    fn redact_value(&self, value: &mut Value, name: &str) -> bool {
        match value {
            Value::String(text) => {
                let before = text.len();
                let clean = match name {
                    "hex" => {
                        self.redact_hex(text);
                        return text.len() != before;
                    }
                    _ => self.redacted(text),
                };
                clean.is_some_and(|clean| {
                    *text = clean;
                    true
                })
            }
            // All of them are looked at, also behind the first that has one.
            Value::Array(values) => {
                values
                    .iter_mut()
                    .filter_map(|value| self.redact_value(value, name).then_some(()))
                    .count()
                    > 0
            }
            Value::Object(values) => {
                values
                    .iter_mut()
                    .filter_map(|(key, value)| self.redact_value(value, key).then_some(()))
                    .count()
                    > 0
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn redact_hex(&self, digits: &mut String) {
        if let Some(clean) = unhex(digits).and_then(|bytes| self.redact(&bytes)) {
            *digits = hex(&clean);
        }
    }

    fn redact_in(&self, text: &mut String) {
        if let Some(clean) = self.redacted(text) {
            *text = clean;
        }
    }
}

/// The text with [`REDACTED`] in these places; None where there are none.
fn without<I>(text: &[u8], places: I) -> Option<Vec<u8>>
where
    I: IntoIterator<Item = std::ops::Range<usize>>,
{
    let mut out: Option<Vec<u8>> = None;
    let mut copied = 0;
    for place in places {
        let out = out.get_or_insert_with(|| Vec::with_capacity(text.len()));
        out.extend_from_slice(&text[copied..place.start]);
        out.extend_from_slice(REDACTED.as_bytes());
        copied = place.end;
    }
    let mut out = out?;
    out.extend_from_slice(&text[copied..]);
    Some(out)
}

/// Parts of names whose values are secrets.
const SECRET_WORDS: [&str; 9] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "COOKIE", "_AUTH", "_PAT"];

/// Whether the value of a variable with this name is likely a secret.
pub(crate) fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word)) && !name.ends_with("_SOCK")
}

/// `user:password` in `http://user:password@host`.
fn password_in_url(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split('/').next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.contains(':').then_some(user)
}

/// A value as itself, as it looks in JSON and in JSON in JSON, in a URL, and in base64,
/// wherever it stands in what was encoded.
fn forms(secret: &str) -> Vec<String> {
    let once = inner_json(secret);
    let slashes = once.replace('/', "\\/");
    let in_url: String = secret
        .bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let mut forms = vec![inner_json(&once), inner_json(&slashes), slashes, once, in_url];
    for shift in 0..3 {
        let shifted = [vec![0; shift], secret.as_bytes().to_vec()].concat();
        let digits = scan::to_base64(&shifted);
        // The digits at either end belong to the neighbors, too.
        let first = (shift * 8).div_ceil(6);
        let last = shifted.len() * 8 / 6;
        let digits = digits[first..last].to_owned();
        forms.push(digits.replace('+', "-").replace('/', "_"));
        forms.push(digits);
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms.push(secret.to_owned());
    forms
}

fn inner_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
