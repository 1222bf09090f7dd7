//! A description, taken apart into the single things that it asks for.

use agentd_core::check;
use agentd_core::text::{Line, head};

/// More than this becomes unreadable; neighbors are then put together.
const MOST: usize = 60;
/// The longest point, in bytes; the tools take sentences of 2000 characters.
const LONGEST: usize = 1500;
/// Longer sentences are stories, and their commas no lists.
const SHORT_SENTENCE: usize = 40;

/// What a description asks for, one line each, in its own words. Never empty.
pub(super) fn points(description: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for paragraph in paragraphs(description) {
        for sentence in sentences(&paragraph) {
            for clause in clauses(sentence) {
                let point = plain(clause.trim_matches(|c: char| {
                    c.is_whitespace()
                        || matches!(c, '.' | ',' | ';' | ':' | '!' | '。' | '；' | '*' | '_')
                }));
                let known = |other: &String| other.to_lowercase() == point.to_lowercase();
                if point.contains(char::is_alphanumeric) && !found.iter().any(known) {
                    found.push(point);
                }
            }
        }
    }
    if found.is_empty() {
        let whole = plain(description);
        return vec![if whole.is_empty() { "what the description says".to_owned() } else { whole }];
    }
    let together = found.len().div_ceil(MOST);
    found.chunks(together).map(|some| plain(&some.join("; "))).collect()
}

/// One line without anything that would be read as something else: backticks would
/// end a quotation, and `TODO` in capitals says that something is left open.
pub(super) fn plain(text: &str) -> String {
    let mut line = Line::new(text).to_string().replace('`', "'");
    while line.contains("???") {
        line = line.replace("???", "?");
    }
    for mark in check::open_points(&line) {
        line = line.replace(mark, &mark.to_lowercase());
    }
    if line.len() > LONGEST {
        line = format!("{}…", head(&line, LONGEST).trim_end());
    }
    line
}

/// Paragraphs and list items, without the marks of Markdown; code is left out.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut in_code = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            in_code = !in_code;
            continue;
        }
        let bare = without_marks(trimmed);
        let starts_point = bare.len() < trimmed.len() || !bare.contains(char::is_alphanumeric);
        if starts_point {
            found.push(String::new());
        }
        if in_code || !bare.contains(char::is_alphanumeric) {
            continue;
        }
        if let Some(last) = found.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(bare);
        }
    }
    found.retain(|paragraph| !paragraph.is_empty());
    found
}

fn without_marks(line: &str) -> &str {
    let mut bare = line.trim_start_matches(['#', '>', '|', ' ', '\t']);
    for mark in ["- ", "* ", "+ ", "• "] {
        bare = bare.strip_prefix(mark).unwrap_or(bare).trim_start();
    }
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=3).contains(&digits)
        && let Some(rest) = bare[digits..].strip_prefix([')', '.'])
        && rest.starts_with(' ')
    {
        bare = rest.trim_start();
    }
    for mark in ["[ ] ", "[x] ", "[X] "] {
        bare = bare.strip_prefix(mark).unwrap_or(bare);
    }
    bare
}

/// Abbreviations whose full stop ends no sentence.
const ABBREVIATIONS: [&str; 8] = ["e.g", "i.e", "etc", "vs", "approx", "no", "resp", "incl"];

fn sentences(paragraph: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, c) in paragraph.char_indices() {
        let rest = &paragraph[at + c.len_utf8()..];
        let ends = match c {
            ';' | '；' | '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                let word = paragraph[start..at].rsplit([' ', '(']).next().unwrap_or_default();
                rest.starts_with(char::is_whitespace)
                    && !ABBREVIATIONS.contains(&word.to_lowercase().as_str())
            }
            _ => false,
        };
        if ends {
            found.push(&paragraph[start..at]);
            start = at + c.len_utf8();
        }
    }
    found.push(&paragraph[start..]);
    found
}

/// `a, b and c` where what follows is a clause of its own; "email and password" stays whole.
fn clauses(sentence: &str) -> Vec<&str> {
    if sentence.split_whitespace().count() > SHORT_SENTENCE {
        return vec![sentence];
    }
    let mut found = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < sentence.len() {
        let rest = &sentence[at..];
        let joint = [", and then ", ", and ", ", then ", ", ", " and then ", " and "]
            .into_iter()
            .find(|joint| rest.starts_with(joint) && begins_clause(&rest[joint.len()..]));
        match joint {
            Some(joint) => {
                found.push(&sentence[start..at]);
                at += joint.len();
                start = at;
            }
            None => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    found.push(&sentence[start..]);
    found
}

/// Whether a text begins with an imperative, or says soon what must be.
fn begins_clause(text: &str) -> bool {
    let mut words =
        text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let first = words.next().unwrap_or_default();
    is_verb(first) || words.take(3).any(|word| MODALS.contains(&word.to_lowercase().as_str()))
}

const MODALS: [&str; 8] = ["must", "should", "shall", "can", "cannot", "may", "never", "always"];

/// Whether an English word is one with which people ask for something.
pub(super) fn is_verb(word: &str) -> bool {
    VERBS.binary_search(&word.to_lowercase().as_str()).is_ok()
}

/// Sorted, for the search.
const VERBS: &[&str] = &[
    "accept",
    "add",
    "allow",
    "answer",
    "apply",
    "ask",
    "avoid",
    "block",
    "build",
    "cache",
    "call",
    "change",
    "check",
    "clear",
    "close",
    "collect",
    "compare",
    "confirm",
    "convert",
    "copy",
    "count",
    "create",
    "delete",
    "deny",
    "detect",
    "disable",
    "display",
    "download",
    "drop",
    "email",
    "enable",
    "encrypt",
    "ensure",
    "exit",
    "expire",
    "export",
    "extend",
    "fail",
    "fetch",
    "filter",
    "fix",
    "force",
    "format",
    "generate",
    "give",
    "handle",
    "hash",
    "hide",
    "implement",
    "import",
    "improve",
    "include",
    "insert",
    "introduce",
    "invalidate",
    "keep",
    "let",
    "limit",
    "link",
    "list",
    "load",
    "lock",
    "log",
    "make",
    "mark",
    "merge",
    "migrate",
    "move",
    "notify",
    "offer",
    "open",
    "parse",
    "persist",
    "prevent",
    "print",
    "prompt",
    "provide",
    "publish",
    "read",
    "record",
    "redirect",
    "reduce",
    "refactor",
    "refresh",
    "refuse",
    "register",
    "reject",
    "remember",
    "remove",
    "rename",
    "render",
    "replace",
    "report",
    "require",
    "reset",
    "resize",
    "respond",
    "restore",
    "retry",
    "return",
    "revoke",
    "rotate",
    "run",
    "save",
    "search",
    "select",
    "send",
    "set",
    "show",
    "sign",
    "sort",
    "split",
    "start",
    "stop",
    "store",
    "stream",
    "support",
    "switch",
    "sync",
    "test",
    "throttle",
    "track",
    "translate",
    "trigger",
    "trim",
    "unlock",
    "update",
    "upgrade",
    "upload",
    "use",
    "validate",
    "verify",
    "warn",
    "wrap",
    "write",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(description: &str, expected: &[&str]) {
        assert_eq!(points(description), expected, "{description}");
    }

    #[test]
    fn a_description_becomes_its_single_wishes() {
        check(
            "Add login with email and password; lock after 5 attempts",
            &["Add login with email and password", "lock after 5 attempts"],
        );
        check(
            "Export as CSV, show a progress bar, and send an email when it is done.",
            &["Export as CSV", "show a progress bar", "send an email when it is done"],
        );
        check(
            "Fast search, e.g. by name. Users must see hits in 2 s.",
            &["Fast search, e.g. by name", "Users must see hits in 2 s"],
        );
        check("dunkelmodus", &["dunkelmodus"]);
        check("添加登录。锁定账户；五次失败后", &["添加登录", "锁定账户", "五次失败后"]);
    }

    #[test]
    fn markdown_is_taken_off_and_code_left_out() {
        check(
            "# Title\n---\n- [ ] add `x`\n2. keep\n   going\n\n```\nlet a = 1;\n```\n> said </review>",
            &["Title", "add 'x'", "keep going", "said </review>"],
        );
        check("---", &["---"]);
        check("", &["what the description says"]);
        check("TODO list ???", &["todo list ?"]);
    }

    #[test]
    fn many_are_put_together_and_verbs_are_sorted() {
        let many: String = (0..500).map(|n| format!("Point number {n}. ")).collect();
        let found = points(&many);
        assert!(found.len() <= MOST && found.len() > 50);
        assert!(found.iter().any(|point| point.contains("499")));
        assert!(VERBS.is_sorted());
    }
}
