//! The kinds of secrets that can be recognized by their form. A [`Mark`] is a text that stands in
//! or in front of each secret of a kind and rarely elsewhere, so that one pass finds the
//! places to look at; what is there decides.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use memchr::memmem;

use super::named;
use super::scan::{begins_word, from_base64, is_base64, is_word, run_end, skip_quote, skip_while};

/// What to look at where a mark was found.
#[derive(Debug, Clone, Copy)]
enum Mark {
    /// A token that begins so: the least number of characters that follow.
    Token(usize),
    /// The same, but only letters and digits, and only at the start of a word: the mark is short.
    Plain(usize),
    /// `sk-`, which ends many words.
    Sk,
    /// The id of an AWS key.
    Aws,
    /// Something, a dot, and a signature.
    SendGrid,
    Jwt,
    Url,
    PrivateKey,
    Bearer,
    Basic,
    Cookie,
    /// The signature in an address of Azure storage.
    Signature,
    /// The name of something secret, with its value behind it.
    Name,
}

/// At most 64, and each at least three bytes: beyond that the search has no quick path.
const MARKS: [(&str, Mark); 54] = [
    ("ghp_", Mark::Token(20)),
    ("gho_", Mark::Token(20)),
    ("ghu_", Mark::Token(20)),
    ("ghs_", Mark::Token(20)),
    ("ghr_", Mark::Token(20)),
    ("github_pat_", Mark::Token(20)),
    ("glpat-", Mark::Token(16)),
    ("xoxb-", Mark::Token(16)),
    ("xoxp-", Mark::Token(16)),
    ("xoxa-", Mark::Token(16)),
    ("xoxr-", Mark::Token(16)),
    ("xoxs-", Mark::Token(16)),
    ("xapp-", Mark::Token(16)),
    ("ya29.", Mark::Token(20)),
    ("pypi-A", Mark::Token(32)),
    ("sk_live_", Mark::Token(16)),
    ("rk_live_", Mark::Token(16)),
    ("sk_test_", Mark::Token(16)),
    ("rk_test_", Mark::Token(16)),
    ("whsec_", Mark::Token(20)),
    ("dop_v1_", Mark::Token(32)),
    ("AGE-SECRET-KEY-", Mark::Token(20)),
    ("npm_", Mark::Plain(30)),
    ("hf_", Mark::Plain(28)),
    ("AIza", Mark::Plain(30)),
    ("sk-", Mark::Sk),
    ("AKIA", Mark::Aws),
    ("ASIA", Mark::Aws),
    ("SG.", Mark::SendGrid),
    ("eyJ", Mark::Jwt),
    ("://", Mark::Url),
    (":\\/\\/", Mark::Url),
    (":\\\\/\\\\/", Mark::Url),
    ("-----BEGIN ", Mark::PrivateKey),
    ("earer ", Mark::Bearer),
    ("asic ", Mark::Basic),
    ("ookie", Mark::Cookie),
    ("sig=", Mark::Signature),
    ("assword", Mark::Name),
    ("ASSWORD", Mark::Name),
    ("asswd", Mark::Name),
    ("ASSWD", Mark::Name),
    ("assphrase", Mark::Name),
    ("ecret", Mark::Name),
    ("ECRET", Mark::Name),
    ("oken", Mark::Name),
    ("OKEN", Mark::Name),
    ("_key", Mark::Name),
    ("_KEY", Mark::Name),
    ("-key", Mark::Name),
    ("-Key", Mark::Name),
    ("pikey", Mark::Name),
    ("Key", Mark::Name),
    ("uthorization", Mark::Name),
];

static SEARCH: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let marks = MARKS.iter().map(|(mark, _)| mark);
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(marks).ok()
});

/// Whether there is anything in a text that is worth a look.
pub(super) fn has_marks(text: &[u8]) -> bool {
    SEARCH.as_ref().is_some_and(|search| search.is_match(text))
}

/// The places of secrets in a text, in order; none overlaps another.
pub(super) fn find(text: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let Some(search) = SEARCH.as_ref() else { return found };
    let mut from = 0;
    while let Some(hit) = search.find(aho_corasick::Input::new(text).range(from..)) {
        let Some((_, mark)) = MARKS.get(hit.pattern().as_usize()) else { break };
        let known = found.len();
        mark.look(text, hit.range(), &mut found);
        from = if found.len() > known { found[found.len() - 1].end } else { hit.start() + 1 };
    }
    found
}

impl Mark {
    fn look(self, text: &[u8], at: Range<usize>, found: &mut Vec<Range<usize>>) {
        let place = match self {
            Self::Token(least) => token(text, at, least),
            Self::Plain(least) if begins_word(text, at.start) => token(text, at, least),
            Self::Sk if begins_word(text, at.start) => sk(text, at),
            Self::Aws if begins_word(text, at.start) => aws(text, at),
            Self::SendGrid if begins_word(text, at.start) => send_grid(text, at),
            Self::Plain(_) | Self::Sk | Self::Aws | Self::SendGrid => None,
            Self::Jwt => jwt(text, at),
            Self::Url => url(text, at),
            Self::PrivateKey => private_key(text, at),
            Self::Bearer => bearer(text, at),
            Self::Basic => basic(text, at),
            Self::Signature => signature(text, at),
            Self::Cookie => return cookies(text, at, found),
            Self::Name => named::value(text, at),
        };
        found.extend(place);
    }
}

fn token(text: &[u8], mark: Range<usize>, least: usize) -> Option<Range<usize>> {
    let end = run_end(text, mark.end, is_word);
    let tail = &text[mark.end..end];
    // `ghp_your_token_goes_here_instead` is none.
    (tail.len() >= least && looks_made(tail)).then_some(mark.start..end)
}

/// Whether letters look like those of a key and not like words that are joined together.
fn looks_made(text: &[u8]) -> bool {
    let longest = text.split(|byte| matches!(byte, b'-' | b'_')).map(<[u8]>::len).max();
    text.iter().any(u8::is_ascii_digit)
        || longest.is_some_and(|longest| longest >= 16)
        || named::changes(text) >= text.len() / 4
}

fn sk(text: &[u8], mark: Range<usize>) -> Option<Range<usize>> {
    let end = run_end(text, mark.end, is_word);
    let tail = &text[mark.end..end];
    let mixed = tail.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    let unbroken = tail.split(|byte| matches!(byte, b'-' | b'_')).any(|part| part.len() >= 16);
    (tail.len() >= 16 && (mixed || unbroken)).then_some(mark.start..end)
}

fn aws(text: &[u8], mark: Range<usize>) -> Option<Range<usize>> {
    let end = skip_while(text, mark.end, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let is_whole = text.get(end).is_none_or(|byte| !is_base64(*byte) || *byte == b'=');
    (end - mark.end >= 16 && end - mark.end <= 28 && is_whole).then_some(mark.start..end)
}

fn send_grid(text: &[u8], mark: Range<usize>) -> Option<Range<usize>> {
    let dot = run_end(text, mark.end, is_word);
    if dot - mark.end < 16 || text.get(dot) != Some(&b'.') {
        return None;
    }
    let end = run_end(text, dot + 1, is_word);
    (end - dot > 16).then_some(mark.start..end)
}

/// `eyJ….eyJ….signature`, or the five parts of an encrypted one.
fn jwt(text: &[u8], mark: Range<usize>) -> Option<Range<usize>> {
    let dot = run_end(text, mark.end, is_word);
    if dot - mark.end < 8 || text.get(dot) != Some(&b'.') {
        return None;
    }
    let mut end = run_end(text, dot + 1, is_word);
    let is_signed = text[dot + 1..end].starts_with(b"eyJ");
    let mut parts = 2;
    while text.get(end) == Some(&b'.') && parts < 5 {
        let next = run_end(text, end + 1, is_word);
        if next == end + 1 && !is_signed {
            break;
        }
        end = next;
        parts += 1;
    }
    (parts == 5 || (is_signed && parts >= 3)).then_some(mark.start..end)
}

/// The password of an address, and the addresses that are secrets as a whole.
fn url(text: &[u8], mark: Range<usize>) -> Option<Range<usize>> {
    let host = mark.end;
    let is_part = |byte: u8| byte.is_ascii_graphic() && !b"/?#\"'`<>\\()|,".contains(&byte);
    let end = skip_while(text, host, is_part).min(host + 512);
    let authority = &text[host..end];
    for (address, path) in [
        (&b"hooks.slack.com"[..], &b"/services/"[..]),
        (b"discord.com", b"/api/webhooks/"),
        (b"discordapp.com", b"/api/webhooks/"),
    ] {
        if authority == address && text[end..].starts_with(path) {
            let start = end + path.len();
            let end = run_end(text, start, |byte| is_word(byte) || byte == b'/');
            return (end > start).then_some(start..end);
        }
    }
    let at = authority.iter().rposition(|byte| *byte == b'@')?;
    let login = &authority[..at];
    let (start, password) = match login.iter().position(|byte| *byte == b':') {
        Some(colon) => (host + colon + 1, &login[colon + 1..]),
        // The token alone, as in `https://TOKEN@host`.
        None if named::is_random(login, true) => (host, login),
        None => return None,
    };
    let is_blank = password.first().is_none_or(|first| b"$<{[*%".contains(first));
    (!is_blank).then_some(start..host + at)
}

/// The most that a private key has.
const KEY_BYTES: usize = 64 << 10;

/// A private key, up to its end mark or to what can be no part of it; not a certificate.
fn private_key(text: &[u8], mark: Range<usize>) -> Option<Range<usize>> {
    let head = &text[mark.end..text.len().min(mark.end + 64)];
    let words = memmem::find(head, b"-----")?;
    memmem::find(&head[..words], b"PRIVATE KEY")?;
    let body = mark.end + words + 5;
    Some(mark.start..key_end(text, body))
}

/// Where a private key ends that is open here.
pub(super) fn key_end(text: &[u8], from: usize) -> usize {
    let rest = &text[from..text.len().min(from + KEY_BYTES)];
    if let Some(end) = memmem::find(rest, b"-----END ")
        && let Some(words) = memmem::find(&rest[end + 9..], b"-----")
        && memmem::find(&rest[end + 9..end + 9 + words], b"PRIVATE KEY").is_some()
        && memmem::find(&rest[..end], b"-----BEGIN ").is_none()
    {
        return from + end + 9 + words + 5;
    }
    // It was cut: as many lines as look like those of a key.
    let mut end = from;
    let mut at = from;
    while at < text.len() {
        at = skip_line_ends(text, at);
        let line_end = run_end(text, at, is_base64);
        let is_header = [&b"Proc-Type:"[..], b"DEK-Info:", b"Version:", b"Comment:"]
            .iter()
            .any(|name| text[at..].starts_with(name));
        if is_header {
            at = skip_while(text, at, |byte| {
                byte.is_ascii_graphic() && byte != b'\\' || byte == b' '
            });
        } else if line_end - at >= 16 || (line_end > at && line_end == text.len()) {
            at = line_end;
        } else {
            break;
        }
        end = at;
    }
    end
}

/// Behind blanks and line ends, also escaped ones.
fn skip_line_ends(text: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        let next = skip_while(text, at, |byte| byte.is_ascii_whitespace());
        let behind = skip_while(text, next, |byte| byte == b'\\');
        let escape = behind > next && text.get(behind).is_some_and(|byte| b"nrt".contains(byte));
        match if escape { behind + 1 } else { next } {
            same if same == at => return at,
            further => at = further,
        }
    }
}

/// Whether a private key begins in a text and does not end in it.
pub(super) fn leaves_key_open(text: &[u8]) -> bool {
    let Some(begin) = memmem::rfind(text, b"-----BEGIN ") else { return false };
    let rest = &text[begin + 11..];
    let head = &rest[..rest.len().min(64)];
    memmem::find(head, b"PRIVATE KEY").is_some()
        && memmem::find(rest, b"-----END ").is_none()
        && key_end(text, begin + 11 + memmem::find(rest, b"-----").map_or(0, |at| at + 5))
            == text.trim_ascii_end().len().max(begin)
}

fn bearer(text: &[u8], mark: Range<usize>) -> Option<Range<usize>> {
    let first = *text.get(mark.start.checked_sub(1)?)?;
    let end = run_end(text, mark.end, |byte| is_base64(byte) || matches!(byte, b'.' | b'~'));
    let value = text[mark.end..end].trim_ascii_end();
    let end = mark.end + value.iter().rposition(|byte| *byte != b'.')? + 1;
    let value = &text[mark.end..end];
    (matches!(first, b'B' | b'b') && value.len() >= 16 && looks_made(value))
        .then_some(mark.end..end)
}

/// `Basic` and what stands for `user:password`.
fn basic(text: &[u8], mark: Range<usize>) -> Option<Range<usize>> {
    let first = *text.get(mark.start.checked_sub(1)?)?;
    let end = run_end(text, mark.end, is_base64);
    if !matches!(first, b'B' | b'b') || end - mark.end < 8 {
        return None;
    }
    let login = from_base64(&text[mark.end..end])?;
    let is_login = login.contains(&b':') && login.iter().all(|byte| *byte >= b' ');
    is_login.then_some(mark.end..end)
}

fn signature(text: &[u8], mark: Range<usize>) -> Option<Range<usize>> {
    let before = text[..mark.start].last()?;
    let end = run_end(text, mark.end, |byte| is_base64(byte) || byte == b'%');
    (matches!(before, b'&' | b'?' | b';') && end - mark.end >= 40).then_some(mark.end..end)
}

/// Cookies whose names say that they are a login.
fn cookies(text: &[u8], mark: Range<usize>, found: &mut Vec<Range<usize>>) {
    let mut at = skip_quote(text, mark.end);
    at = skip_while(text, at, |byte| byte == b' ');
    if text.get(at) != Some(&b':') {
        return;
    }
    at = skip_quote(text, skip_while(text, at + 1, |byte| byte == b' '));
    loop {
        let name_end = run_end(text, at, |byte| is_word(byte) || byte == b'.');
        if name_end == at || text.get(name_end) != Some(&b'=') {
            return;
        }
        let name = text[at..name_end].to_ascii_lowercase();
        let end = run_end(text, name_end + 1, |byte| {
            byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b';' | b'\\' | b',' | b'[')
        });
        let is_login = ["sess", "sid", "auth", "token", "jwt", "csrf", "xsrf", "remember", "login"]
            .iter()
            .any(|word| memmem::find(&name, word.as_bytes()).is_some());
        if is_login && end - name_end > 8 {
            found.push(name_end + 1..end);
        }
        if text.get(end) != Some(&b';') {
            return;
        }
        at = skip_while(text, end + 1, |byte| byte == b' ');
    }
}
