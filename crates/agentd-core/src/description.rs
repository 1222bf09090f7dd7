//! What somebody asks for, in their own words: is it said well enough to plan from?

/// Fewer words than this leave too much open, whatever they say.
const ENOUGH_WORDS: usize = 50;
/// So many words or marks that pin something down are wanted.
const ENOUGH_DETAILS: usize = 4;

/// Whether a description is detailed enough to be planned without asking (P2).
///
/// Nobody can be sure without understanding it, and a question too many costs a
/// minute where a wrong plan costs an hour. So the answer is yes only where all of this
/// holds, and the person can always say `--skip-clarify`:
///
/// - it has at least 50 words (two characters of a script without spaces count as one);
/// - it leaves nothing open by its own account: no question mark, no `TBD`, `maybe`,
///   `somehow`, `etc`, `and so on`;
/// - it pins at least four things down: a number, a name in backticks or quotes, a path
///   or a dotted name, a word of obligation (must, shall, only, never…), or an item of a list.
pub fn detailed_enough(description: &str) -> bool {
    words(description) >= ENOUGH_WORDS
        && !is_open(description)
        && details(description) >= ENOUGH_DETAILS
}

/// Whether the writing system does without spaces.
fn is_dense(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

fn words(text: &str) -> usize {
    let dense = text.chars().filter(|&c| is_dense(c)).count();
    let spaced = text
        .split(|c: char| c.is_whitespace() || is_dense(c))
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .count();
    spaced + dense / 2
}

fn plain(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn is_open(text: &str) -> bool {
    const OPEN: [&str; 9] =
        ["tbd", "todo", "maybe", "perhaps", "somehow", "something", "whatever", "etc", "possibly"];
    text.contains(['?', '？'])
        || text.to_lowercase().contains("and so on")
        || text.split_whitespace().any(|word| OPEN.contains(&plain(word).as_str()))
}

fn details(text: &str) -> usize {
    const OBLIGATION: [&str; 10] = [
        "must", "shall", "should", "only", "never", "always", "exactly", "at least", "most",
        "within",
    ];
    let of_word = |word: &&str| {
        let bare = plain(word);
        let number = bare.chars().next().is_some_and(|c| c.is_ascii_digit());
        let name = bare.contains(['/', '.', '_']) || bare.contains("::");
        let quoted = word.starts_with(['`', '"', '\'', '“', '「']);
        number || name || quoted || OBLIGATION.contains(&bare.as_str())
    };
    let is_item = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("- ") || line.starts_with("* ")
    };
    text.split_whitespace().filter(of_word).count() + text.lines().filter(is_item).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P2
    #[test]
    fn only_a_description_that_leaves_nothing_open_is_detailed_enough() {
        let detailed = "Add a login with email and password to the web client. The route is \
            `POST /login` and answers 200 with a session cookie that lives for 30 days, or 401 with \
            the text \"wrong email or password\", which must never say which of the two was wrong. \
            After 5 failed attempts within 10 minutes the account is locked for 15 minutes. \
            Passwords are hashed with argon2id in src/auth/hash.rs; sessions are kept in PostgreSQL.";
        let table = [
            (detailed.to_owned(), true),
            (detailed.replace("30 days", "30 days?"), false),
            (detailed.replace("in PostgreSQL", "somehow"), false),
            (detailed.replace("in PostgreSQL", "in a database, tables TBD"), false),
            (format!("{detailed} Lock the account, and so on."), false),
            (String::new(), false),
            ("Add login".to_owned(), false),
            ("Add login with email and password; lock after 5 attempts".to_owned(), false),
            ("word ".repeat(200), false),
            ("5 `x` must 7 ".repeat(8), false),
            (
                "We would like our users to have a nicer experience when they come back to the \
                 application after some time, so that they feel at home and find what they were \
                 working on before they left, with a friendly greeting and a good overview of what \
                 has changed in the meantime for them and for their colleagues."
                    .to_owned(),
                false,
            ),
            (
                format!(
                    "新增登入功能。{}\n- `POST /login` 回傳 200\n- 失敗 5 次後鎖定 15 分鐘",
                    "使用者以電子郵件與密碼登入系統並取得工作階段。".repeat(4)
                ),
                true,
            ),
        ];
        for (description, expected) in table {
            assert_eq!(detailed_enough(&description), expected, "{description}");
        }
    }
}
