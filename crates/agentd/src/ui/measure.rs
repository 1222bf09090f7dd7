//! Text in the columns of a terminal: how wide it is, where it can be broken, and how it is
//! shortened. Whatever is cut ends, or begins, with `…`.

use agentd_core::text::{Line, printable, reveal};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// What stands for something that was left out.
const CUT: char = '…';

/// A space that no line is broken at.
pub(crate) const NO_BREAK: char = '\u{a0}';

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Text from outside on one line, without anything that steers a terminal: neither control
/// characters nor those that turn the direction of writing.
pub(crate) fn one_line(text: &str) -> String {
    Line::new(&reveal(text)).to_string()
}

/// At most this many columns of a text, which ends with `…` if it is cut.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let text = printable(text);
    if text.width() <= columns {
        return text.into_owned();
    }
    let mut fitting = String::new();
    let mut used = 1;
    for cluster in text.graphemes(true) {
        used += cluster.width();
        if used > columns {
            break;
        }
        fitting.push_str(cluster);
    }
    fitting.truncate(fitting.trim_end().len());
    fitting.push(CUT);
    fitting
}

/// At most this many columns of a path, or of anything else whose end says the most: it begins
/// with `…` if it is cut, where possible at a directory.
pub(crate) fn fit_end(text: &str, columns: usize) -> String {
    let text = printable(text);
    if text.width() <= columns {
        return text.into_owned();
    }
    let mut used = 1;
    let mut start = text.len();
    for (at, cluster) in text.grapheme_indices(true).rev() {
        used += cluster.width();
        if used > columns {
            break;
        }
        start = at;
    }
    let kept = &text[start..];
    // A whole name says more than a whole name and a piece of what is in front of it.
    let border = if kept.contains(' ') { ' ' } else { '/' };
    let at_border = kept.find(border).filter(|at| kept[at + 1..].contains(|c| c != border));
    let is_whole = text[..start].ends_with(border);
    let kept = if is_whole { kept } else { &kept[at_border.unwrap_or(0)..] };
    format!("{CUT}{kept}")
}

/// Breaks a text into lines of so many columns. Its own lines stay lines. Words are not broken, unless
/// one is longer than a line: that is broken behind signs such as `/`, and otherwise shortened. Scripts
/// that are written without spaces break between characters.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for line in printable(text).lines() {
        let mut current = String::new();
        let line = kept_together(line);
        for (space, piece) in pieces(&line, columns) {
            let space = if space && !current.is_empty() { " " } else { "" };
            if current.width() + space.len() + piece.width() <= columns {
                current.push_str(space);
                current.push_str(piece);
                continue;
            }
            if !current.is_empty() {
                lines.push(std::mem::take(&mut current));
            }
            current = fit(piece, columns);
        }
        lines.push(current);
    }
    lines.iter().map(|line| line.replace(NO_BREAK, " ")).collect()
}

/// A line in which figures stay with their units (`2 m 05 s`), and a `·` with what is before it: at the
/// begin of a line it would look like the mark of a list.
fn kept_together(line: &str) -> String {
    const UNITS: [&str; 6] = ["ms", "s", "m", "min", "h", "d"];
    let is_figure = |word: &str| {
        word.contains(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_ascii_digit() || c == '.')
    };
    if !line.contains(|c: char| c.is_ascii_digit() || c == '·') {
        return line.to_owned();
    }
    let mut kept = String::with_capacity(line.len());
    let (mut before, mut behind_figure) = ("", false);
    for (index, word) in line.split(' ').enumerate() {
        let unit = word.trim_end_matches([',', '.', ';', ':', ')']);
        let is_unit = is_figure(before) && UNITS.contains(&unit);
        let stays = word == "·" || is_unit || (behind_figure && is_figure(word));
        if index > 0 {
            kept.push(if stays { NO_BREAK } else { ' ' });
        }
        kept.push_str(word);
        (before, behind_figure) = (word, is_unit);
    }
    kept
}

/// Breaks a line that may have looks of its own, between words; further lines are indented a little
/// more than it is. One that fits stays as it is.
pub(crate) fn fold(line: &str, columns: usize) -> Vec<String> {
    let plain = anstream::adapter::strip_str(line).to_string();
    if plain.width() <= columns {
        return vec![line.to_owned()];
    }
    let indent = plain.len() - plain.trim_start_matches(' ').len();
    let further = (indent + 2).min(columns / 2);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for (is_word, text) in tokens(line, columns - further) {
        let last = lines.len() - 1;
        if !is_word {
            // Looks take no room, and hold until they are ended.
            lines[last].push_str(text);
            continue;
        }
        let wide = text.width();
        let is_space = text.trim().is_empty();
        if used + wide <= columns {
            lines[last].push_str(text);
            used += wide;
        } else if is_space {
            // What follows does not belong to what is before it.
            used = columns;
        } else {
            let start = " ".repeat(further);
            lines.push(start + &fit(text, columns - further));
            used = further + text.width().min(columns - further);
        }
    }
    lines.into_iter().map(|line| line.trim_end_matches(' ').to_owned()).collect()
}

/// The words and spaces of a line, and between them the sequences that give it a look. A word that is
/// longer than a line is in pieces: the place of a finding must not lose its end.
fn tokens(line: &str, columns: usize) -> Vec<(bool, &str)> {
    let mut found = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let length = if rest.starts_with('\u{1b}') {
            rest.find('m').map_or(rest.len(), |end| end + 1)
        } else if rest.starts_with(' ') {
            rest.find(|c| c != ' ').unwrap_or(rest.len())
        } else {
            rest.find([' ', '\u{1b}']).unwrap_or(rest.len())
        };
        let (token, behind) = rest.split_at(length);
        if token.starts_with('\u{1b}') || token.starts_with(' ') {
            found.push((!token.starts_with('\u{1b}'), token));
        } else {
            // Scripts without spaces break between characters.
            found.extend(pieces(token, columns).map(|(_, piece)| (true, piece)));
        }
        rest = behind;
    }
    found
}

/// The pieces of a line that must not be broken, each with whether a space is in front of it.
pub(super) fn pieces(line: &str, columns: usize) -> impl Iterator<Item = (bool, &str)> {
    let words = line.split(|c: char| c.is_whitespace() && c != NO_BREAK);
    words.filter(|word| !word.is_empty()).flat_map(move |word| {
        let is_long = word.width() > columns;
        let mut start = 0;
        let mut before: Option<&str> = None;
        let mut found = Vec::new();
        for (at, cluster) in word.grapheme_indices(true) {
            let breaks = |before: &str| {
                may_break(before, cluster) || (is_long && "/-_.:,=&?".contains(before))
            };
            if before.is_some_and(breaks) {
                found.push((start == 0, &word[start..at]));
                start = at;
            }
            before = Some(cluster);
        }
        found.push((start == 0, &word[start..]));
        found
    })
}

/// Whether a line may end between two characters of a word: beside ideographs and their like, but
/// not in front of a sign that closes something, or behind one that opens it.
fn may_break(before: &str, after: &str) -> bool {
    const CLOSES: &str = "、。，．：；？！）」』】》〉〕］｝”’…—·%)]},.:;?!\u{a0}";
    const OPENS: &str = "（「『【《〈〔［｛“‘([{";
    let is_wide = |cluster: &str| cluster.width() == 2;
    (is_wide(before) || is_wide(after)) && !CLOSES.contains(after) && !OPENS.contains(before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_cut_ends_with_an_ellipsis() {
        for (text, columns, fitting) in [
            ("a short one", 11, "a short one"),
            ("a short one", 10, "a short o…"),
            ("a short one", 8, "a short…"),
            ("新增密碼登入", 12, "新增密碼登入"),
            ("新增密碼登入", 11, "新增密碼登…"),
            ("新增密碼登入", 10, "新增密碼…"),
            ("👩‍💻 codes", 3, "👩‍💻…"),
            ("abc", 1, "…"),
        ] {
            assert_eq!(fit(text, columns), fitting, "{columns}");
        }
    }

    #[test]
    fn a_path_keeps_its_end() {
        for (text, columns, fitting) in [
            ("/home/me/src/shop/src/auth/flow.rs", 40, "/home/me/src/shop/src/auth/flow.rs"),
            ("/home/me/src/shop/src/auth/flow.rs", 20, "…/src/auth/flow.rs"),
            ("/home/me/src/shop/src/auth/flow.rs", 18, "…/src/auth/flow.rs"),
            ("/home/me/src/shop/src/auth/flow.rs", 17, "…src/auth/flow.rs"),
            ("/home/me/src/shop/src/auth/flow.rs", 16, "…/auth/flow.rs"),
            ("/home/me/src/shop/src/auth/flow.rs", 6, "…ow.rs"),
            ("agentd/add-oauth", 10, "…add-oauth"),
            ("I have read all of the plan", 20, "… all of the plan"),
        ] {
            assert_eq!(fit_end(text, columns), fitting, "{columns}");
        }
    }

    #[test]
    fn words_and_ideographs_are_kept_whole() {
        for (text, columns, lines) in [
            ("one two  three", 7, &["one two", "three"][..]),
            ("one\n\ntwo", 7, &["one", "", "two"]),
            ("extraordinarily so", 7, &["extrao…", "so"]),
            ("讓搜尋更快，並顯示錯誤訊息。", 14, &["讓搜尋更快，並", "顯示錯誤訊息。"]),
            ("讓搜尋更快，並顯示", 11, &["讓搜尋更", "快，並顯示"]),
            ("使用 OAuth 登入", 8, &["使用", "OAuth 登", "入"]),
            ("src/auth/flow.rs:12", 9, &["src/auth/", "flow.rs:", "12"]),
            ("「登入」頁", 4, &["「登", "入」", "頁"]),
            ("it took 2 m 05 s, then 12 s", 12, &["it took", "2 m 05 s,", "then 12 s"]),
            ("1 open · none archived · three", 15, &["1 open · none", "archived ·", "three"]),
            ("登入 · 登出", 5, &["登", "入 ·", "登出"]),
        ] {
            assert_eq!(wrap(text, columns), lines, "{text:?} in {columns}");
        }
    }

    #[test]
    fn a_line_with_looks_is_folded_between_words() {
        let line = "  \u{1b}[1mone\u{1b}[0m two three 讓搜尋更快";
        assert_eq!(fold(line, 12), ["  \u{1b}[1mone\u{1b}[0m two", "    three 讓", "    搜尋更快"]);
        assert_eq!(fold(line, 80), [line]);
        let place = "  --> agentd/changes/add-oauth/tasks.md:23:15";
        assert_eq!(fold(place, 30), ["  --> agentd/changes/add-", "    oauth/tasks.md:23:15"]);
    }

    proptest! {
        #[test]
        fn folding_fits_and_loses_no_word(words in prop::collection::vec("[a-z新]{1,9}", 1..20), columns in 20_usize..60) {
            let line = words.join("\u{1b}[1m \u{1b}[0m");
            let folded = fold(&line, columns);
            for line in &folded {
                let plain = anstream::adapter::strip_str(line).to_string();
                prop_assert!(plain.width() <= columns, "{plain:?}");
            }
            let kept = |text: &str| anstream::adapter::strip_str(text).to_string().replace(' ', "");
            prop_assert_eq!(kept(&folded.concat()), kept(&line));
        }

        #[test]
        fn nothing_is_wider_than_allowed(text in "\\PC{0,60}", columns in 1_usize..40) {
            prop_assert!(fit(&text, columns).width() <= columns);
            prop_assert!(fit_end(&text, columns).width() <= columns);
            for line in wrap(&text, columns) {
                prop_assert!(line.width() <= columns, "{line:?}");
            }
        }

        #[test]
        fn wrapping_loses_nothing_that_fits(words in prop::collection::vec("[a-z新增，]{1,8}", 0..20)) {
            let text = words.join(" ");
            let wrapped: String = wrap(&text, 20).concat();
            let kept = |text: &str| text.replace(' ', "");
            prop_assert_eq!(kept(&wrapped), kept(&text));
        }
    }
}
