//! The scenarios of a spec, and the words by which their steps are known.

use memchr::memmem;

use super::{Keyword, Scenario, Step};
use crate::language;
use crate::outline::{Section, lines};
use crate::span::Uncompared;
use crate::text::Line;

pub(crate) fn scenario_name(title: &str) -> Option<&str> {
    let english = title.get(..8).filter(|p| p.eq_ignore_ascii_case("scenario"));
    let word = english.or_else(|| {
        let end = |c: char| matches!(c, ' ' | ':' | '：') || c.is_ascii_digit();
        let word = title.split(end).next()?;
        (language::heading(word) == Some("Scenario")).then_some(word)
    })?;
    let rest = title[word.len()..].trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
    Some(rest.strip_prefix([':', '：']).unwrap_or(rest))
}

pub(super) fn scenario(text: &str, part: &Section<'_>) -> Option<Scenario> {
    let name = Line::new(scenario_name(part.title)?);
    let mut steps: Vec<Step> = Vec::new();
    for (_, line, _) in lines(part.body.of(text)) {
        let bare = line.trim_start();
        let bullet = bare
            .strip_prefix("- ")
            .or_else(|| bare.strip_prefix("* "))
            .or_else(|| bare.strip_prefix("+ "));
        let indented = line.starts_with([' ', '\t']);
        let before = steps.len();
        steps_of(bullet.unwrap_or(bare), &mut steps);
        if steps.len() > before {
            continue;
        }
        if bullet.is_some() || !indented {
            steps.extend(translated_step(bullet.unwrap_or(bare)));
        } else if let Some(last) = steps.last_mut() {
            // A wrapped bullet continues, indented.
            *last = Step::new(last.keyword, &format!("{} {bare}", last.text));
        }
    }
    if steps.is_empty() {
        steps_of(name.as_str(), &mut steps);
    }
    let (place, section) = (Uncompared(part.heading.span), Uncompared(part.span));
    Some(Scenario { name, steps, place, section })
}

/// Adds the steps in one line: usually one, two in the one-line form `WHEN … THEN …`.
fn steps_of(line: &str, steps: &mut Vec<Step>) {
    let Some((keyword, mut from)) = first_step(line) else { return };
    let bold = line.starts_with("**");
    let mut last = keyword;
    if matches!(keyword, Keyword::Given | Keyword::When) {
        let inside = if bold { [" **WHEN** ", " **THEN** "] } else { [" WHEN ", " THEN "] };
        for (keyword, word) in [Keyword::When, Keyword::Then].into_iter().zip(inside) {
            let rest = &line[from..];
            // Hardly any line has two steps, and this is quicker than looking for the word.
            if bold && memchr::memchr(b'*', rest.as_bytes()).is_none() {
                break;
            }
            if let Some(at) = memmem::find(rest.as_bytes(), word.as_bytes()) {
                steps.push(Step::new(last, &rest[..at]));
                (last, from) = (keyword, from + at + word.len());
            }
        }
    }
    steps.push(Step::new(last, &line[from..]));
}

/// The keyword that a line starts with, and where its text starts.
fn first_step(line: &str) -> Option<(Keyword, usize)> {
    let stars = if line.starts_with("**") { 2 } else { 0 };
    let keyword = match line.as_bytes().get(stars)?.to_ascii_uppercase() {
        b'G' => Keyword::Given,
        b'W' => Keyword::When,
        b'T' => Keyword::Then,
        b'A' => Keyword::And,
        _ => return None,
    };
    let word = keyword.label();
    let at_start = line.get(stars..stars + word.len())?;
    if !at_start.eq_ignore_ascii_case(word) || (stars == 0 && at_start != word) {
        // Prose that merely starts with a small `then` is no step.
        return None;
    }
    let rest = &line[stars + word.len()..];
    let behind = match stars {
        0 => rest,
        _ => rest.strip_prefix("**").or_else(|| rest.strip_prefix(":**"))?,
    };
    // `WHENEVER` is no WHEN.
    let whole = behind.is_empty() || behind.starts_with([' ', ':', '\t']);
    whole.then(|| (keyword, line.len() - behind.len()))
}

/// A step that starts with the word of another language. Without stars around it, a small letter makes
/// it prose.
fn translated_step(line: &str) -> Option<Step> {
    let bold = line.strip_prefix("**");
    let text = bold.unwrap_or(line);
    if bold.is_none() && text.starts_with(char::is_lowercase) {
        return None;
    }
    let (means, len) = language::keyword(text)?;
    let keyword = Keyword::ALL.into_iter().find(|keyword| keyword.label() == means)?;
    let (word, rest) = text.split_at(len);
    let said = match bold {
        Some(_) => rest.trim_start_matches([':', '：']).strip_prefix("**")?,
        None if word.contains(language::is_unspaced) || word.ends_with(['\'', '’']) => rest,
        None if rest.is_empty() || rest.starts_with([' ', ':', '\t']) => rest,
        None => return None,
    };
    Some(Step::new(keyword, said.trim_start_matches(['：', '，', '、', ',', ' '])))
}
