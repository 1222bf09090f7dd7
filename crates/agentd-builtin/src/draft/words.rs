//! The words by which a sentence is taken apart. They are English, and small: what they do not cover is
//! asked about.

/// How an imperative becomes a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// The program does it whenever it runs: `show`.
    Behavior,
    /// It may be done once, by the change, or again and again, by the program: `remove`.
    Work,
    /// Something is to be there: `add`.
    Provide,
    /// It does not say what must hold in the end: `improve`.
    Unsaid,
    /// People do it, and the program lets them: `sign in with Google`.
    OfPeople,
}

/// What people ask for with an English verb, if it is one.
pub(super) fn act(word: &str) -> Option<Act> {
    let word = word.to_lowercase();
    let word = word.as_str();
    VERBS.split(' ').find(|verb| *verb == word)?;
    Some(match word {
        "add" | "implement" | "introduce" | "provide" => Act::Provide,
        "correct" | "extend" | "fix" | "handle" | "improve" | "reduce" | "refactor" | "repair" => {
            Act::Unsaid
        }
        _ if WORK.contains(&word) => Act::Work,
        _ => Act::Behavior,
    })
}

/// Verbs of work on code or data.
const WORK: [&str; 26] = [
    "apply",
    "build",
    "change",
    "convert",
    "copy",
    "create",
    "delete",
    "disable",
    "drop",
    "enable",
    "make",
    "merge",
    "migrate",
    "move",
    "remove",
    "rename",
    "replace",
    "reset",
    "split",
    "switch",
    "test",
    "translate",
    "update",
    "upgrade",
    "wrap",
    "write",
];

/// Verbs that are nouns as well, so that a sentence may be about them: `Search must answer`.
pub(super) fn may_be_noun(word: &str) -> bool {
    let word = word.to_lowercase();
    NOUNS.contains(&word.as_str())
}

const NOUNS: [&str; 61] = [
    "open", "read", "answer", "block", "build", "cache", "call", "change", "check", "copy",
    "count", "delete", "display", "download", "drop", "email", "exit", "export", "fetch", "filter",
    "fix", "force", "format", "hash", "import", "insert", "limit", "link", "list", "load", "lock",
    "log", "mark", "merge", "move", "offer", "print", "prompt", "record", "redirect", "refresh",
    "report", "reset", "retry", "return", "run", "search", "set", "sign", "sort", "split", "start",
    "stop", "store", "stream", "support", "switch", "sync", "test", "update", "upload",
];

/// Words that begin a clause about something in the main clause, or a question: what obliges behind
/// them obliges something else. In English, French and Spanish.
pub(super) const RELATIVE: [&str; 19] = [
    "that", "which", "who", "whom", "whose", "where", "what", "how", "why", "whether", "because",
    "so", "que", "qui", "dont", "où", "quien", "donde", "porque",
];

/// What says that something can, may or will be. It may be a wish, and it may be what is wrong today:
/// `Search may return duplicates`.
pub(super) const WEAK: [&str; 20] = [
    "may",
    "will",
    "required",
    "requires",
    "kann",
    "können",
    "wird",
    "werden",
    "darf",
    "dürfen",
    "erforderlich",
    "peut",
    "peuvent",
    "puede",
    "pueden",
    "可以",
    "てもよい",
    "てもよろしい",
    "ことができる",
    "ことができます",
];

/// With these, a permission forbids everything else.
pub(super) const FORBIDDING: [&str; 12] = [
    "only", "not", "never", "no", "nur", "nicht", "nie", "niemals", "kein", "keine", "keinen",
    "keiner",
];

/// Behind these, a sentence says what is the case instead.
pub(super) const BUT: [&str; 8] =
    ["but", "although", "however", "aber", "jedoch", "mais", "pero", "sino"];

/// Verbs that take a whole clause, which has a verb of its own.
pub(super) const OF_CLAUSES: [&str; 8] =
    ["ensure", "make", "let", "verify", "check", "help", "keep", "require"];

/// Verbs as they stand behind a subject: a sentence with one behind its first noun says what is the
/// case, whatever its first word is. `Search results are lost`, `Import crashes`.
pub(super) const FINITE: [&str; 53] = [
    "is",
    "are",
    "was",
    "were",
    "isn't",
    "aren't",
    "wasn't",
    "does",
    "doesn't",
    "don't",
    "has",
    "have",
    "had",
    "hasn't",
    "haven't",
    "gets",
    "fails",
    "failed",
    "crashes",
    "crashed",
    "hangs",
    "breaks",
    "broke",
    "works",
    "loses",
    "lost",
    "throws",
    "threw",
    "takes",
    "took",
    "shows",
    "returns",
    "ignores",
    "disappears",
    "vanishes",
    "grows",
    "fills",
    "looks",
    "appears",
    "seems",
    "needs",
    "goes",
    "comes",
    "stops",
    "causes",
    "leaks",
    "freezes",
    "panics",
    "contains",
    "depends",
    "flickers",
    "exceeds",
    "exists",
];

/// The same of several things. They are nouns as well: `Add work items`.
pub(super) const FINITE_OF_MANY: [&str; 25] = [
    "do",
    "get",
    "fail",
    "crash",
    "exist",
    "hang",
    "break",
    "work",
    "lose",
    "throw",
    "take",
    "disappear",
    "vanish",
    "grow",
    "fill",
    "look",
    "appear",
    "seem",
    "need",
    "go",
    "come",
    "cause",
    "leak",
    "freeze",
    "panic",
];

/// Words behind `log in` that say how people do it.
pub(super) const MEANS: [&str; 5] = ["with", "using", "by", "via", "through"];

/// What says that something is wished for, and so is not what is wrong today.
pub(super) const WISHING: [&str; 6] = ["want", "wants", "need", "needs", "wish", "like"];

/// Words that say what holds in the other case.
pub(super) const OTHERWISE: [&str; 4] = ["otherwise", "else", "except", "unless"];

/// Words that begin a case in which something holds.
pub(super) const CASES: [&str; 11] = [
    "when", "whenever", "if", "once", "while", "until", "unless", "after", "before", "since", "as",
];

/// Words that begin a sentence which asks something.
pub(super) const ASKING: [&str; 19] = [
    "what", "how", "why", "who", "which", "where", "is", "are", "do", "does", "can", "could",
    "should", "would", "must", "shall", "will", "may", "cannot",
];

/// What begins the words in front of a main clause, up to a comma.
pub(super) const LEADS: [&str; 46] = [
    "when", "whenever", "if", "once", "after", "before", "while", "as", "unless", "until", "for",
    "on", "upon", "in", "at", "by", "with", "without", "during", "from", "to", "given", "where",
    "inside", "instead", "wenn", "falls", "sobald", "nachdem", "bevor", "solange", "bei", "nach",
    "vor", "quand", "lorsque", "si", "dès", "après", "avant", "pendant", "cuando", "después",
    "antes", "mientras", "tras",
];

/// Words that limit the whole sentence they are in, so that a part of it says something else.
pub(super) const LIMITING: [&str; 30] = [
    "when", "whenever", "if", "once", "after", "before", "while", "unless", "until", "because",
    "since", "instead", "that", "which", "who", "where", "whether", "not", "never", "no", "don't",
    "without", "only", "let", "allow", "help", "enable", "prevent", "ensure", "to",
];

/// Words that speak of something said before. In all languages of the rules.
pub(super) const BACK: [&str; 40] = [
    "it",
    "its",
    "itself",
    "they",
    "them",
    "their",
    "theirs",
    "he",
    "she",
    "him",
    "his",
    "her",
    "this",
    "these",
    "those",
    "such",
    "otherwise",
    "then",
    "es",
    "er",
    "sie",
    "ihn",
    "ihm",
    "diese",
    "dieser",
    "dieses",
    "dann",
    "sonst",
    "il",
    "elle",
    "ils",
    "elles",
    "cela",
    "ce",
    "cette",
    "sinon",
    "esto",
    "ello",
    "este",
    "esta",
];

/// The same in scripts without spaces.
pub(super) const BACK_UNSPACED: [&str; 10] =
    ["它", "其", "这", "這", "否则", "否則", "それ", "これ", "その", "この"];

/// Chinese imperatives: what obliges behind them obliges something else.
pub(super) const UNSPACED_VERBS: [&str; 30] = [
    "添加", "增加", "新增", "加入", "删除", "刪除", "移除", "修复", "修復", "修正", "支持", "支援",
    "实现", "實作", "實現", "显示", "顯示", "允许", "允許", "检查", "檢查", "改进", "改善", "优化",
    "優化", "请", "請", "讓", "让", "把",
];

/// Small words of German, French and Spanish that are no English words.
pub(super) const FOREIGN: [&str; 46] = [
    "der", "das", "und", "oder", "von", "vom", "nach", "mit", "für", "ein", "eine", "einen",
    "einem", "im", "zum", "zur", "auf", "als", "bei", "beim", "den", "dem", "le", "la", "les",
    "des", "du", "de", "et", "ou", "pour", "avec", "sur", "dans", "en", "au", "aux", "une", "un",
    "el", "los", "las", "y", "con", "para", "del",
];

/// Small words of English.
pub(super) const ENGLISH: [&str; 32] = [
    "the", "a", "an", "of", "to", "in", "on", "with", "for", "and", "by", "from", "as", "at", "is",
    "are", "or", "when", "if", "not", "after", "than", "more", "within", "only", "all", "every",
    "each", "up", "into", "it", "be",
];

/// Words with which a noun begins or goes on elsewhere: none stands between a noun and its verb.
pub(super) const DETERMINERS: [&str; 26] = [
    "a", "an", "the", "this", "that", "these", "those", "my", "our", "your", "their", "its", "his",
    "her", "all", "any", "each", "every", "no", "some", "it", "them", "us", "me", "him", "you",
];

/// Where the words for what is counted end: `5 failed attempts | within 10 minutes`.
pub(super) const ENDS_NOUN: [&str; 44] = [
    "in", "on", "at", "by", "of", "for", "from", "with", "within", "to", "into", "as", "and", "or",
    "but", "per", "a", "an", "each", "every", "after", "before", "when", "if", "once", "while",
    "until", "is", "are", "must", "should", "shall", "may", "can", "cannot", "will", "without",
    "during", "unless", "that", "then", "so", "instead", "because",
];

/// In lower case, without the punctuation around it.
pub(super) fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// Verbs with which people ask for something.
const VERBS: &str = "\
    accept add alert allow answer apply archive ask assign attach authenticate avoid block build \
    cache call cancel capture change check clear close collapse collect commit compare compress \
    confirm connect convert copy correct count create decode decrypt deduplicate defer delete \
    deliver deny deploy detect disable display download drop email emit enable encode encrypt \
    ensure escape exclude exit expand expire export expose extend fail fetch filter fix force \
    format generate give handle hash hide highlight ignore implement import improve include \
    inform insert install introduce invalidate join keep launch let limit link list load \
    localize lock log maintain make mark mask match measure merge migrate move normalize notify \
    offer open paginate parse pause persist pin preserve prevent preview print prompt propagate \
    protect provide publish query queue raise rate-limit read receive record redirect reduce \
    refactor refresh refuse register reject reload remember remove rename render reopen repair \
    repeat replace report require rerun reset resize resolve respond restore resume retry return \
    review revoke rotate run sanitize save scan schedule search select send serialize serve set \
    share shorten show sign skip sleep sort split start stop store stream support swap switch \
    sync tag terminate test throttle track transform translate trigger trim turn undo uninstall \
    unlock unset unzip update upgrade upload use validate verify warn watch wrap write zip";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted_and_known() {
        assert!(VERBS.split(' ').is_sorted());
        for verb in WORK.iter().chain(&NOUNS) {
            assert!(act(verb).is_some(), "{verb}");
        }
        assert_eq!(act("Show"), Some(Act::Behavior));
        assert_eq!(act("shown"), None);
    }
}
