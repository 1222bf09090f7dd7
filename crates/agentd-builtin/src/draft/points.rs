//! A description, taken apart into the single things that it asks for.

use agentd_core::check;
use agentd_core::language::is_unspaced;
use agentd_core::text::{Line, head};

use super::figures::names_limit;
use super::reading::{first_word, looks_back, split_at_colon};
use super::words::{LIMITING, act, bare};

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
        for group in groups(&paragraph) {
            let parts = match group.as_slice() {
                [alone] => clauses(alone).into_iter().map(trimmed).collect(),
                _ => vec![joined(&group)],
            };
            for point in parts {
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

/// Sentences, each together with those that only say more of what it names: `Add a button. It must be
/// red.`
fn groups(paragraph: &str) -> Vec<Vec<&str>> {
    let mut groups: Vec<Vec<&str>> = Vec::new();
    for sentence in sentences(paragraph) {
        let len = groups.last().map_or(0, |group| group.iter().map(|s| s.len()).sum());
        match groups.last_mut() {
            Some(group) if looks_back(sentence) && len + sentence.len() < LONGEST / 2 => {
                group.push(sentence);
            }
            _ => groups.push(vec![sentence]),
        }
    }
    groups
}

fn joined(sentences: &[&str]) -> String {
    let mut text = String::new();
    for sentence in sentences.iter().map(|sentence| trimmed(sentence)) {
        if !text.is_empty() {
            let joint = if text.ends_with(is_unspaced) {
                "。"
            } else if text.ends_with('?') {
                " "
            } else {
                ". "
            };
            text.push_str(joint);
        }
        text.push_str(&sentence);
    }
    text
}

fn trimmed(clause: &str) -> String {
    plain(clause.trim_matches(|c: char| {
        c.is_whitespace()
            || matches!(c, '.' | ',' | ';' | ':' | '!' | '。' | '；' | '！' | '*' | '_')
    }))
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
    for trimmed in text.lines().flat_map(|line| items(line.trim())) {
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

/// `1. Add login 2. Add logout` as one line each.
fn items(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    for stop in ['.', ')'].into_iter().filter(|stop| line.starts_with(&format!("1{stop} "))) {
        for number in 2..100 {
            let Some(at) = rest.find(&format!(" {number}{stop} ")) else { break };
            found.push(&rest[..at]);
            rest = &rest[at + 1..];
        }
    }
    found.push(rest);
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

/// The sentences of a text, without what ends them but for a question mark. Behind a colon, a
/// semicolon goes on with what stands before the colon.
pub(super) fn sentences(paragraph: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, c) in paragraph.char_indices() {
        let own = &paragraph[start..at];
        let rest = &paragraph[at + c.len_utf8()..];
        let ends = match c {
            ';' | '；' => split_at_colon(own).is_none(),
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                let word = own.rsplit([' ', '(']).next().unwrap_or_default();
                rest.starts_with(char::is_whitespace)
                    && !ABBREVIATIONS.contains(&word.to_lowercase().as_str())
            }
            _ => false,
        };
        if ends {
            let behind = at + c.len_utf8();
            found.push(&paragraph[start..if matches!(c, '?' | '？') { behind } else { at }]);
            start = behind;
        }
    }
    found.push(&paragraph[start..]);
    found.retain(|sentence| sentence.contains(char::is_alphanumeric));
    found
}

/// `Export as CSV, show a progress bar, and beep` as its parts, if it is nothing but a list of
/// imperatives that can stand alone. A condition, a pronoun or a noun that several verbs share is a
/// reason to leave it whole.
fn clauses(sentence: &str) -> Vec<&str> {
    let words: Vec<String> = sentence.split_whitespace().map(bare).collect();
    let limits = |word: &String| LIMITING.contains(&word.as_str());
    if words.len() > SHORT_SENTENCE
        || words.iter().any(limits)
        || looks_back(sentence)
        || names_limit(sentence)
        || split_at_colon(sentence).is_some()
        || sentence.ends_with('?')
        || check::obliges(sentence)
    {
        return vec![sentence];
    }
    let mut found = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < sentence.len() {
        let rest = &sentence[at..];
        let joint = [", and then ", ", and ", ", then ", ", ", " and then ", " and "]
            .into_iter()
            .find(|joint| {
                rest.strip_prefix(joint).is_some_and(|rest| act(&bare(first_word(rest))).is_some())
            });
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
    let alone = |part: &&str| {
        let mut words = part.split_whitespace();
        let first = words.next().unwrap_or_default();
        act(&bare(first)).is_some() && !first.ends_with(',') && words.next().is_some()
    };
    if found.iter().all(alone) { found } else { vec![sentence] }
}

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
            &["Export as CSV, show a progress bar, and send an email when it is done"],
        );
        check(
            "Fast search, e.g. by name. Users must see hits in 2 s.",
            &["Fast search, e.g. by name", "Users must see hits in 2 s"],
        );
        check(
            "Export as CSV, show a progress bar, and print a summary.",
            &["Export as CSV", "show a progress bar", "print a summary"],
        );
        for whole in [
            "When the disk is full, show an error and exit with code 1",
            "Show a spinner and disable the button while it loads",
            "Allow users to create, edit and delete notes",
            "Users can create and delete notes",
            "Import and export CSV files",
            "Add, list and delete items",
            "Never log passwords and store them hashed",
            "Print the report: show totals; list errors",
        ] {
            check(whole, &[whole]);
        }
        check("Add a red button. It must beep.", &["Add a red button. It must beep"]);
        check("Can it export? List items.", &["Can it export?", "List items"]);
        check("dunkelmodus", &["dunkelmodus"]);
        check("添加登录。锁定账户；五次失败后", &["添加登录", "锁定账户", "五次失败后"]);
    }

    #[test]
    fn markdown_is_taken_off_and_code_left_out() {
        check(
            "# Title\n---\n- [ ] add `x`\n2. keep\n   going\n\n```\nlet a = 1;\n```\n> said </review>",
            &["Title", "add 'x'", "keep going", "said </review>"],
        );
        check("1. Add login 2. Add logout", &["Add login", "Add logout"]);
        check("1) Add login 2) Add logout 4) x", &["Add login", "Add logout 4) x"]);
        check("---", &["---"]);
        check("", &["what the description says"]);
        check("TODO list ???", &["todo list ?"]);
    }

    #[test]
    fn many_are_put_together() {
        let many: String = (0..500).map(|n| format!("Point number {n}. ")).collect();
        let found = points(&many);
        assert!(found.len() <= MOST && found.len() > 50);
        assert!(found.iter().any(|point| point.contains("499")));
    }
}
