//! How hard a change is, from what is known before anybody plans it.
//!
//! The answer picks the model (P9), is made once and is stored (C14), so it must be
//! cheap, explainable and always the same: points are added up, each with its reason.
//!
//! | What | Points |
//! |---|---|
//! | each area of risk that is named (security, money, migration, …) | 2, irreversible ones 3 |
//! | a small matter by its own words (typo, rename, wording, …), where nothing risky is named | -2 |
//! | a description over 60, over 200 words | 1, 2 |
//! | more than three separate things that are asked for | 1 |
//! | three or more clarifications | 1 |
//! | a project over 500, over 5000 files | 1, 2 |
//!
//! Up to -1 is low, 0 to 2 medium, 3 to 5 high, from 6 on critical. Size alone never makes
//! a change critical: a long description of something harmless stays harmless.

use crate::agent::Complexity;

/// What is known of a change before it is planned.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangeFacts<'a> {
    /// What the person has asked for.
    pub description: &'a str,
    /// What they have answered, as one text; empty without clarifications.
    pub clarifications: &'a str,
    /// How many questions they have answered.
    pub answers: usize,
    /// How many files the project has.
    pub project_files: usize,
}

/// An area in which mistakes are dear: its name, its points, and the beginnings of the
/// words by which it is recognized; one with a full stop is a whole word.
struct Risk(&'static str, i32, &'static [&'static str]);

const RISKS: [Risk; 8] = [
    Risk(
        "security",
        3,
        &[
            "security",
            "secure",
            "auth.",
            "authent",
            "authori",
            "oauth",
            "login",
            "password",
            "credential",
            "permission",
            "encrypt",
            "decrypt",
            "crypto",
            "token",
            "session",
            "secret",
            "csrf",
            "xss",
            "sandbox",
        ],
    ),
    Risk("money", 3, &["payment", "billing", "invoice", "checkout", "refund", "subscription"]),
    Risk("migration of data", 3, &["migrat", "backfill", "data loss", "schema change"]),
    Risk(
        "concurrency",
        2,
        &[
            "concurren",
            "parallel",
            "thread",
            "race condition",
            "deadlock",
            "lock-free",
            "transaction",
            "distributed",
            "async",
        ],
    ),
    Risk(
        "breaking changes",
        2,
        &["breaking", "backward", "incompatib", "deprecat", "public api", "remove support"],
    ),
    Risk("persistent data", 2, &["database", "schema", "sql", "storage engine", "file format"]),
    Risk(
        "structure of the code",
        2,
        &["architect", "rewrite", "redesign", "refactor", "framework", "replace the"],
    ),
    Risk("privacy", 2, &["gdpr", "privacy", "personal data", "pii", "audit log"]),
];

const SMALL: [&str; 10] = [
    "typo",
    "rename",
    "code comment",
    "wording",
    "readme",
    "changelog",
    "log message",
    "spelling",
    "bump",
    "tooltip",
];

/// How hard a change is, and why, a reason each.
pub fn assess(known: &ChangeFacts<'_>) -> (Complexity, Vec<String>) {
    let text = format!("{}\n{}", known.description, known.clarifications).to_lowercase();
    let mut points = 0;
    let mut reasons = Vec::new();
    let mut risk = 0;
    for Risk(name, weight, words) in &RISKS {
        if let Some(word) = words.iter().find(|word| mentions(&text, word)) {
            risk += weight;
            reasons.push(format!("{name} (`{}`)", word.trim_end_matches('.')));
        }
    }
    points += risk;
    if risk == 0
        && let Some(word) = SMALL.iter().find(|word| mentions(&text, word))
    {
        points -= 2;
        reasons.push(format!("a small matter (`{word}`)"));
    }
    let mut size = 0;
    let mut add = |more: i32, reason: String| {
        if more > 0 {
            size += more;
            reasons.push(reason);
        }
    };
    let words = known.description.split_whitespace().count();
    add(i32::from(words > 60) + i32::from(words > 200), format!("a description of {words} words"));
    let things = things_asked_for(known.description);
    add(i32::from(things > 3), format!("{things} separate things are asked for"));
    let answers = known.answers;
    add(i32::from(answers >= 3), format!("{answers} clarifications"));
    let files = known.project_files;
    add(i32::from(files > 500) + i32::from(files > 5000), format!("a project of {files} files"));
    // Size without any risk is high at the most.
    points += if risk == 0 { size.min(5) } else { size };
    let complexity = match points {
        ..=-1 => Complexity::Low,
        0..=2 => Complexity::Medium,
        3..=5 => Complexity::High,
        6.. => Complexity::Critical,
    };
    if reasons.is_empty() {
        reasons.push("nothing out of the ordinary".to_owned());
    }
    (complexity, reasons)
}

/// Whether a word of the text begins so: `migrat` is in `migration`, not in `emigration`.
fn mentions(text: &str, wanted: &str) -> bool {
    let beginning = wanted.trim_end_matches('.');
    let in_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(beginning).any(|(at, found)| {
        let ends =
            wanted.len() == beginning.len() || !in_word(text[at + found.len()..].chars().next());
        ends && !in_word(text[..at].chars().next_back())
    })
}

/// Bullets and numbered lines, or else sentences and parts between semicolons.
fn things_asked_for(description: &str) -> usize {
    let bullet = |line: &&str| {
        let line = line.trim_start();
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.starts_with("- ")
            || line.starts_with("* ")
            || (number.len() < line.len() && (number.starts_with(". ") || number.starts_with(") ")))
    };
    let bullets = description.lines().filter(bullet).count();
    let parts =
        description.split(['.', ';', '\n']).filter(|part| part.split_whitespace().count() >= 3);
    bullets.max(parts.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assessed(description: &str, answers: usize, project_files: usize) -> Complexity {
        assess(&ChangeFacts { description, clarifications: "", answers, project_files }).0
    }

    // contract PR5, C14, P9
    #[test]
    fn changes_are_as_hard_as_what_they_touch() {
        let long = "We would like a page that shows what has changed. ".repeat(25);
        for (description, answers, files, expected) in [
            ("Fix a typo in the help text", 0, 100, Complexity::Low),
            ("Rename the button", 0, 40, Complexity::Low),
            ("Fix a typo in the help text", 0, 9000, Complexity::Medium),
            ("Fix the typo in the password check", 0, 100, Complexity::High),
            ("Add a dark mode", 0, 100, Complexity::Medium),
            ("", 0, 0, Complexity::Medium),
            ("Add a dark mode", 3, 6000, Complexity::High),
            ("Author names on the cover page, in lightweight type", 0, 10, Complexity::Medium),
            ("Let the API check auth", 0, 10, Complexity::High),
            ("Let readers comment on posts", 0, 10, Complexity::Medium),
            ("Add login with email and password; lock after 5 attempts", 0, 10, Complexity::High),
            ("Add OAuth login", 3, 6000, Complexity::Critical),
            ("Migrate the payments table without downtime", 0, 10, Complexity::Critical),
            ("Make the cache safe for parallel writers", 0, 10, Complexity::Medium),
            ("A breaking redesign of the public API", 0, 10, Complexity::High),
            (&long, 5, 9000, Complexity::High),
        ] {
            assert_eq!(assessed(description, answers, files), expected, "{description:.60}");
        }
    }

    #[test]
    fn every_point_has_its_reason() {
        let known = ChangeFacts {
            description: "Move billing to a new provider:\n- a\n- b\n- c\n- d",
            clarifications: "How? With a database migration.",
            answers: 3,
            project_files: 501,
        };
        let (complexity, reasons) = assess(&known);
        assert_eq!(complexity, Complexity::Critical);
        assert_eq!(
            reasons,
            [
                "money (`billing`)",
                "migration of data (`migrat`)",
                "persistent data (`database`)",
                "4 separate things are asked for",
                "3 clarifications",
                "a project of 501 files",
            ]
        );
        let (_, reasons) =
            assess(&ChangeFacts { description: "Add a page", ..ChangeFacts::default() });
        assert_eq!(reasons, ["nothing out of the ordinary"]);
    }
}
