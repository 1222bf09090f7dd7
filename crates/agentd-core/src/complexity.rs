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
//! | a project over 500, over 5000 files | 1, 2 |
//!
//! Up to -1 is low, 0 to 2 medium, 3 to 5 high, from 6 on critical. Size alone never makes
//! a change critical: a long description of something harmless stays harmless. Answers to
//! questions do not count: who says more precisely what they want does not want more, and the
//! questions name much that was not chosen.
//!
//! Words are known in all languages of [`crate::language`].

use crate::agent::Complexity;
use crate::language::{self, Topic, is_unspaced};

/// What is known of a change before it is planned.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangeFacts<'a> {
    /// What the person has asked for.
    pub description: &'a str,
    /// How many files the project has.
    pub project_files: usize,
}

/// An area in which mistakes are dear: its name, its points, and the words by which it is
/// recognized.
struct Risk(&'static str, i32, Topic);

const RISKS: [Risk; 8] = [
    Risk("security", 3, Topic::Security),
    Risk("money", 3, Topic::Money),
    Risk("migration of data", 3, Topic::Migration),
    Risk("concurrency", 2, Topic::Concurrency),
    Risk("breaking changes", 2, Topic::Breaking),
    Risk("persistent data", 2, Topic::Persistence),
    Risk("structure of the code", 2, Topic::Structure),
    Risk("privacy", 2, Topic::Privacy),
];

/// How hard a change is, and why, a reason each.
pub fn assess(known: &ChangeFacts<'_>) -> (Complexity, Vec<String>) {
    let text = known.description;
    let mut points = 0;
    let mut reasons = Vec::new();
    let mut risk = 0;
    for Risk(name, weight, topic) in RISKS {
        if let Some(word) = language::first(topic, text) {
            risk += weight;
            reasons.push(format!("{name} (`{word}`)"));
        }
    }
    points += risk;
    if risk == 0
        && let Some(word) = language::first(Topic::Small, text)
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
    let words = words(known.description);
    add(i32::from(words > 60) + i32::from(words > 200), format!("a description of {words} words"));
    let things = things_asked_for(known.description);
    add(i32::from(things > 3), format!("{things} separate things are asked for"));
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
    (complexity, reasons)
}

/// How many words a text has; of scripts without spaces, two characters are about one.
fn words(text: &str) -> usize {
    let unspaced = text.chars().filter(|c| is_unspaced(*c)).count();
    let spaced = text.split(|c: char| c.is_whitespace() || is_unspaced(c));
    spaced.filter(|word| word.contains(char::is_alphanumeric)).count() + unspaced / 2
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
        description.split(['.', ';', '\n', '。', '；', '！']).filter(|part| words(part) >= 3);
    bullets.max(parts.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assessed(description: &str, project_files: usize) -> Complexity {
        assess(&ChangeFacts { description, project_files }).0
    }

    // contract PR5, C14, P9
    #[test]
    fn changes_are_as_hard_as_what_they_touch() {
        let long = "We would like a page that shows what has changed. ".repeat(25);
        for (description, files, expected) in [
            ("Fix a typo in the help text", 100, Complexity::Low),
            ("Rename the button", 40, Complexity::Low),
            ("Fix a typo in the help text", 9000, Complexity::Medium),
            ("Fix the typo in the password check", 100, Complexity::High),
            ("Add a dark mode", 100, Complexity::Medium),
            ("", 0, Complexity::Medium),
            ("Add a dark mode", 6000, Complexity::Medium),
            ("Author names on the cover page, in lightweight type", 10, Complexity::Medium),
            ("Let the API check auth", 10, Complexity::High),
            ("Let readers comment on posts", 10, Complexity::Medium),
            ("Add login with email and password; lock after 5 attempts", 10, Complexity::High),
            ("Add OAuth login over a database", 6000, Complexity::Critical),
            ("Migrate the payments table without downtime", 10, Complexity::Critical),
            ("Make the cache safe for parallel writers", 10, Complexity::Medium),
            ("A breaking redesign of the public API", 10, Complexity::High),
            (&long, 9000, Complexity::High),
        ] {
            assert_eq!(assessed(description, files), expected, "{description:.60}");
        }
    }

    /// F16: seed 004 is written in Chinese; the same wish is as hard in every language.
    #[test]
    fn the_language_does_not_change_how_hard_a_change_is() {
        let long = "希望能在首頁上顯示最近的更新內容，並且讓使用者可以依照日期排序。".repeat(12);
        let (harmless, plain) = (Complexity::Low, Complexity::Medium);
        let (hard, critical) = (Complexity::High, Complexity::Critical);
        for (texts, expected) in [
            (
                &[
                    "Add password login and permissions, with a database migration",
                    "新增密碼登入與權限控管，並進行資料庫遷移",
                    "新增密码登录与权限控制，并进行数据库迁移",
                    "パスワードによるログインと権限管理を追加し、データベースのマイグレーションを行う",
                    "Anmeldung mit Passwort und Berechtigungen hinzufügen, mit Migration der Datenbank",
                    "Ajouter la connexion par mot de passe et les autorisations, avec une migration de la base de données",
                    "Añadir inicio de sesión con contraseña y permisos, con una migración de la base de datos",
                ][..],
                critical,
            ),
            (
                &[
                    "Fix a typo in the help",
                    "修正說明文字的錯字",
                    "修正说明里的错别字",
                    "ヘルプの誤字を直す",
                    "Einen Tippfehler in der Hilfe beheben",
                    "Corriger une faute de frappe dans l’aide",
                    "Corregir una errata en la ayuda",
                ],
                harmless,
            ),
            (
                &[
                    "Add a dark mode",
                    "新增深色模式",
                    "ダークモードを追加する",
                    "Einen dunklen Modus hinzufügen",
                    "Ajouter un mode sombre",
                    "Añadir un modo oscuro",
                    // Not risky: an application, an answer, a fence.
                    "在應用程式中新增深色模式",
                    "応答にダークモードを加える",
                ],
                plain,
            ),
            (
                &[
                    "Let the API check auth",
                    "讓 API 檢查授權",
                    "让 API 检查授权",
                    "API で認証する",
                    "Die API soll die Anmeldung prüfen",
                    "L’API vérifie l’authentification",
                    "La API comprueba la autenticación",
                ],
                hard,
            ),
            (&["Fix the typo in the password check", "修正密碼檢查的錯字"], hard),
            (&[&long], plain),
        ] {
            for text in texts {
                assert_eq!(assessed(text, 10), expected, "{text}");
            }
        }
        assert_eq!(words("新增 OAuth 登入"), 3);
        assert_eq!(
            things_asked_for("新增登入頁面；記住使用者的選擇；鎖定多次失敗的帳號；寄出通知郵件。"),
            4
        );
    }

    #[test]
    fn every_point_has_its_reason() {
        let known = ChangeFacts {
            description: "Move billing to a new provider, with a database migration:\n- a\n- b\n- c\n- d",
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
                "a project of 501 files",
            ]
        );
        let (_, reasons) =
            assess(&ChangeFacts { description: "Add a page", ..ChangeFacts::default() });
        assert_eq!(reasons, [""; 0]);
    }
}
