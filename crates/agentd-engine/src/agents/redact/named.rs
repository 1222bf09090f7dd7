//! Secrets that are recognized by the name before them: `api_key = "…"`, `"token":"…"`,
//! `--password …`, `password …` in a `.netrc`.

use std::ops::Range;

use memchr::memmem;

use super::scan::{is_bare, is_quoted, is_word, run_end, skip_blanks, skip_quote, skip_while};

/// How long a name may be, to either side of its mark.
const NAME: usize = 48;

/// The value behind a name, if the name is that of a secret and the value looks like one.
pub(super) fn value(text: &[u8], mark: Range<usize>) -> Option<Range<usize>> {
    let left = &text[mark.start.saturating_sub(NAME)..mark.start];
    let shared = left.iter().rev().take_while(|byte| is_word(**byte)).count();
    let mut start = mark.start - shared;
    // The letter of an escape sequence is none of the name.
    if shared > 0 && text[..start].ends_with(b"\\") {
        start += 1;
    }
    let end = skip_while(text, mark.end, is_word);
    if end - mark.end > NAME {
        return None;
    }
    let name: Vec<u8> = text[start..end]
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(u8::to_ascii_lowercase)
        .collect();
    if !is_secret_name(&name) {
        return None;
    }
    let closed = skip_quote(text, end);
    let at = skip_while(text, closed, |byte| byte == b']');
    let operator = skip_blanks(text, at);
    let begin = match (text.get(operator), text.get(operator + 1)) {
        (Some(b':'), Some(b'=')) | (Some(b'='), Some(b'>')) => operator + 2,
        (Some(b'='), Some(b'=')) => return None,
        (Some(b'=' | b':'), _) => operator + 1,
        (Some(b','), _) if text[start..].starts_with(b"--") => operator + 1,
        _ if operator > at && text[start..].starts_with(b"--") => operator,
        _ if operator > at && is_netrc(&text[..start], &name) => {
            let end = skip_while(text, operator, is_quoted);
            return (end > operator && text[operator] != b'[').then_some(operator..end);
        }
        _ => return None,
    };
    let begin = skip_scheme(text, skip_blanks(text, begin));
    let inside = skip_quote(text, begin);
    let in_quotes = inside > begin;
    let end = run_end(text, inside, if in_quotes { is_quoted } else { is_bare });
    let found = &text[inside..end];
    let found = if in_quotes { found } else { without_dots(found) };
    // The 40 characters of an AWS secret need not have a digit among them.
    let is_aws = found.len() == 40 && name.ends_with(b"secretaccesskey");
    (is_aws || is_random(found, in_quotes)).then(|| inside..inside + found.len())
}

/// The end of a sentence is none of the value.
fn without_dots(value: &[u8]) -> &[u8] {
    &value[..value.iter().rposition(|byte| *byte != b'.').map_or(0, |last| last + 1)]
}

/// Names as they are without case, `_` and `-`.
fn is_secret_name(name: &[u8]) -> bool {
    const PARTS: [&[u8]; 4] = [b"secret", b"password", b"passwd", b"passphrase"];
    const ENDS: [&[u8]; 15] = [
        b"token",
        b"apikey",
        b"accesskey",
        b"privatekey",
        b"authkey",
        b"encryptionkey",
        b"signingkey",
        b"accountkey",
        b"masterkey",
        b"servicekey",
        b"storagekey",
        b"sharedkey",
        b"sshkey",
        b"authorization",
        b"licensekey",
    ];
    PARTS.iter().any(|part| memmem::find(name, part).is_some())
        || ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether this is the password of a machine in a `.netrc`: `machine … login … password`. Less
/// would be prose about a login.
fn is_netrc(before: &[u8], name: &[u8]) -> bool {
    if name != b"password" {
        return false;
    }
    let near = &before[before.len().saturating_sub(256)..];
    let near =
        String::from_utf8_lossy(near).replace("\\n", " ").replace("\\t", " ").replace('\\', "");
    let mut words = near.split_whitespace().rev();
    let (_user, login, host, machine) = (words.next(), words.next(), words.next(), words.next());
    // An escape or a quotation mark may stand in front of a word.
    let is = |word: Option<&str>, known| word.is_some_and(|word| word.ends_with(known));
    is(login, "login") && (is(machine, "machine") || is(host, "default"))
}

/// `token abc` in a header: the word is none of the secret.
fn skip_scheme(text: &[u8], from: usize) -> usize {
    let inside = skip_quote(text, from);
    let end = run_end(text, inside, is_word);
    let word = text[inside..end].to_ascii_lowercase();
    let is_scheme = [&b"bearer"[..], b"basic", b"token", b"apikey"].contains(&&word[..]);
    if is_scheme && text.get(end) == Some(&b' ') { end + 1 } else { from }
}

/// Whether a value looks random: long, of letters and digits, and no name, path or digest.
pub(super) fn is_random(value: &[u8], in_quotes: bool) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    if value.len() < 16 || digits == 0 || letters == 0 || is_something_else(value) {
        return false;
    }
    let is_separator = |byte: &u8| matches!(byte, b'-' | b'_' | b'.' | b'/' | b':');
    let longest = value
        .split(is_separator)
        .filter(|part| part.iter().any(u8::is_ascii_digit))
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0);
    let unbroken = longest >= 16 && (digits >= 2 || in_quotes);
    unbroken || changes(value) >= value.len() / 4
}

/// How often letters, capitals and digits take turns: in what is random, all the time. The
/// small letters behind a single capital are no change: `camelCase`.
pub(super) fn changes(value: &[u8]) -> usize {
    let class = |byte: u8| match byte {
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        b'0'..=b'9' => 3,
        _ => 0,
    };
    let classes: Vec<u8> =
        value.iter().map(|byte| class(*byte)).filter(|class| *class > 0).collect();
    let mut count = 0;
    for at in 1..classes.len() {
        let is_hump = classes[at - 1] == 2 && classes[at] == 1 && (at < 2 || classes[at - 2] != 2);
        count += usize::from(classes[at] != classes[at - 1] && !is_hump);
    }
    count
}

fn is_something_else(value: &[u8]) -> bool {
    let starts = [
        &b"$"[..],
        b"<",
        b"{",
        b"[",
        b"/",
        b".",
        b"~",
        b"%",
        b"sha1",
        b"sha256",
        b"sha512",
        b"md5",
        b"your",
    ];
    let parts =
        [&b"://"[..], b"${", b"{{", b"(", b")", b"process.env", b"environ", b"****", b"xxxx"];
    starts.iter().any(|start| value.starts_with(start))
        || parts.iter().any(|part| memmem::find(value, part).is_some())
        || is_uuid(value)
}

fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
