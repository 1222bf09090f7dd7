//! Reading text in which a secret may stand: plain, or as JSON, or as JSON in JSON. An
//! escape sequence is a border there and not a letter, however often it was escaped.

/// Whether a byte belongs to a word, so that what follows it is the inside of one.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Base64, plain or as in URLs.
pub(super) fn is_base64(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'+' | b'/' | b'=')
}

/// What a value without quotes may have.
pub(super) fn is_bare(byte: u8) -> bool {
    is_base64(byte) || matches!(byte, b'.' | b'~' | b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'*')
}

/// What a value in quotes may have.
pub(super) fn is_quoted(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b'\\')
}

/// Whether a word may begin here: at the start, behind what is no letter, or behind an
/// escape sequence that ends in one (`\n`, `\u000a`, `%0A`, the color in `ESC[31m`).
pub(super) fn begins_word(text: &[u8], at: usize) -> bool {
    let before = &text[..at];
    let Some(&last) = before.last() else { return true };
    if !is_word(last) {
        return true;
    }
    let hex = |mark: &[u8], digits: usize| {
        before.len().checked_sub(digits).is_some_and(|start| {
            before[..start].ends_with(mark) && before[start..].iter().all(u8::is_ascii_hexdigit)
        })
    };
    let letter = b"nrtbfvae0".contains(&last) && before[..at - 1].ends_with(b"\\");
    letter || hex(b"\\u", 4) || hex(b"\\x", 2) || hex(b"%", 2) || ends_color(before)
}

fn ends_color(before: &[u8]) -> bool {
    let Some(numbers) = before.strip_suffix(b"m") else { return false };
    let start = numbers.iter().rposition(|byte| !(byte.is_ascii_digit() || *byte == b';'));
    start.is_some_and(|start| numbers[start] == b'[')
}

/// Where the run of such bytes ends that begins here. Some serializers escape `/`, `+` or `=`
/// in JSON: those escapes belong to it.
pub(super) fn run_end(text: &[u8], from: usize, is_part: fn(u8) -> bool) -> usize {
    let mut at = from;
    while let Some(&byte) = text.get(at) {
        if is_part(byte) {
            at += 1;
            continue;
        }
        let behind = skip_while(text, at, |byte| byte == b'\\');
        match escaped(&text[behind..]) {
            Some((byte, length)) if behind > at && is_part(byte) => at = behind + length,
            _ => break,
        }
    }
    at
}

/// The printable character that stands behind the backslash of an escape, and its length.
fn escaped(text: &[u8]) -> Option<(u8, usize)> {
    if text.first() == Some(&b'/') {
        return Some((b'/', 1));
    }
    let digits = text.strip_prefix(b"u00")?.get(..2)?;
    let byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    byte.is_ascii_graphic().then_some((byte, 5))
}

/// The first place from here on that is not so.
pub(super) fn skip_while(text: &[u8], from: usize, is_skipped: impl Fn(u8) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.iter().position(|&byte| !is_skipped(byte)).unwrap_or(rest.len())
}

/// Behind blanks, also escaped ones; line ends are none.
pub(super) fn skip_blanks(text: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        let next = skip_while(text, at, |byte| byte == b' ' || byte == b'\t');
        let behind = skip_while(text, next, |byte| byte == b'\\');
        let tab = behind > next && text.get(behind) == Some(&b't');
        match if tab { behind + 1 } else { next } {
            same if same == at => return at,
            further => at = further,
        }
    }
}

/// Behind a quotation mark, escaped or not; where there is none, here.
pub(super) fn skip_quote(text: &[u8], from: usize) -> usize {
    let at = skip_while(text, from, |byte| byte == b'\\');
    match text.get(at) {
        Some(b'"' | b'\'' | b'`') => at + 1,
        _ => from,
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 without padding.
pub(super) fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let padded = [0, 1, 2].map(|at| u32::from(group.get(at).copied().unwrap_or(0)));
        let bits = padded[0] << 16 | padded[1] << 8 | padded[2];
        for digit in 0..=group.len() {
            let index = (bits >> (18 - 6 * digit)) & 63;
            out.push(char::from(DIGITS[index as usize]));
        }
    }
    out
}

/// What base64 stands for, up to its padding; None where it is something else.
pub(super) fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text.iter().filter(|byte| **byte != b'=') {
        let digit = DIGITS.iter().position(|digit| digit == byte)?;
        bits = bits << 6 | u32::try_from(digit).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from((bits >> count) & 255).ok()?);
        }
    }
    Some(out)
}
