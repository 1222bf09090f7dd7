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
//! Words are known in English, in Chinese (traditional and simplified) and in Japanese.

use crate::agent::Complexity;

/// What is known of a change before it is planned.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangeFacts<'a> {
    /// What the person has asked for.
    pub description: &'a str,
    /// How many files the project has.
    pub project_files: usize,
}

/// An area in which mistakes are dear: its name, its points, and the beginnings of the
/// words by which it is recognized; one with a full stop is a whole word. Words of Chinese and
/// Japanese, which are written without spaces, count wherever they are.
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
            "安全",
            "登入",
            "登录",
            "登錄",
            "ログイン",
            "密碼",
            "密码",
            "パスワード",
            "權限",
            "权限",
            "認證",
            "认证",
            "認証",
            "身分驗證",
            "身份驗證",
            "身份验证",
            "授權",
            "授权",
            "加密",
            "暗号化",
            "憑證",
            "凭证",
            "令牌",
            "金鑰",
            "密鑰",
            "密钥",
            "機密",
            "セキュリティ",
        ],
    ),
    Risk(
        "money",
        3,
        &[
            "payment",
            "billing",
            "invoice",
            "checkout",
            "refund",
            "subscription",
            "付款",
            "支付",
            "金流",
            "帳單",
            "账单",
            "發票",
            "发票",
            "結帳",
            "结账",
            "退款",
            "訂閱",
            "订阅",
            "決済",
            "請求書",
            "返金",
            "課金",
        ],
    ),
    Risk(
        "migration of data",
        3,
        &[
            "migrat",
            "backfill",
            "data loss",
            "schema change",
            "遷移",
            "迁移",
            "移行する",
            "データ移行",
            "マイグレーション",
            "資料遺失",
            "数据丢失",
        ],
    ),
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
            "並行",
            "并行",
            "併發",
            "并发",
            "並列",
            "多執行緒",
            "多线程",
            "マルチスレッド",
            "死結",
            "死锁",
            "デッドロック",
            "競爭條件",
            "竞态",
            "非同步",
            "异步",
            "非同期",
            "事務處理",
            "事务",
            "トランザクション",
            "分散式",
            "分布式",
            "分散システム",
        ],
    ),
    Risk(
        "breaking changes",
        2,
        &[
            "breaking",
            "backward",
            "incompatib",
            "deprecat",
            "public api",
            "remove support",
            "破壞性",
            "破坏性",
            "破壊的",
            "不相容",
            "不兼容",
            "非互換",
            "向後相容",
            "向后兼容",
            "後方互換",
            "棄用",
            "弃用",
            "廃止",
        ],
    ),
    Risk(
        "persistent data",
        2,
        &[
            "database",
            "schema",
            "sql",
            "storage engine",
            "file format",
            "資料庫",
            "数据库",
            "データベース",
            "資料表",
            "数据表",
            "檔案格式",
            "文件格式",
            "ファイル形式",
        ],
    ),
    Risk(
        "structure of the code",
        2,
        &[
            "architect",
            "rewrite",
            "redesign",
            "refactor",
            "framework",
            "replace the",
            "架構",
            "架构",
            "アーキテクチャ",
            "重寫",
            "重写",
            "書き直",
            "重構",
            "重构",
            "リファクタ",
            "重新設計",
            "重新设计",
            "再設計",
            "框架",
            "フレームワーク",
        ],
    ),
    Risk(
        "privacy",
        2,
        &[
            "gdpr",
            "privacy",
            "personal data",
            "pii",
            "audit log",
            "隱私",
            "隐私",
            "プライバシー",
            "個資",
            "個人資料",
            "个人信息",
            "個人情報",
            "稽核",
            "审计",
            "監査",
        ],
    ),
];

const SMALL: &[&str] = &[
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
    "錯字",
    "错字",
    "錯別字",
    "错别字",
    "拼字",
    "拼写",
    "誤字",
    "誤植",
    "タイプミス",
    "改名",
    "重新命名",
    "重命名",
    "名称変更",
    "用詞",
    "用词",
    "文言の",
];

/// How hard a change is, and why, a reason each.
pub fn assess(known: &ChangeFacts<'_>) -> (Complexity, Vec<String>) {
    let text = known.description.to_lowercase();
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
    if reasons.is_empty() {
        reasons.push("nothing out of the ordinary".to_owned());
    }
    (complexity, reasons)
}

/// Whether a word of the text begins so: `migrat` is in `migration`, not in `emigration`.
fn mentions(text: &str, wanted: &str) -> bool {
    if wanted.chars().any(is_unspaced) {
        return text.contains(wanted);
    }
    let beginning = wanted.trim_end_matches('.');
    let in_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(beginning).any(|(at, found)| {
        let ends =
            wanted.len() == beginning.len() || !in_word(text[at + found.len()..].chars().next());
        ends && !in_word(text[..at].chars().next_back())
    })
}

/// Whether a character belongs to a script that puts no spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
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
                ][..],
                critical,
            ),
            (
                &[
                    "Fix a typo in the help",
                    "修正說明文字的錯字",
                    "修正说明里的错别字",
                    "ヘルプの誤字を直す",
                ],
                harmless,
            ),
            (&["Add a dark mode", "新增深色模式", "新增深色模式", "ダークモードを追加する"], plain),
            (
                &["Let the API check auth", "讓 API 檢查授權", "让 API 检查授权", "API で認証する"],
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
        assert_eq!(reasons, ["nothing out of the ordinary"]);
    }
}
