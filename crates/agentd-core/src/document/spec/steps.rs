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
        let mut found = steps_of(bullet.unwrap_or(bare));
        if found.is_empty() && (bullet.is_some() || !indented) {
            found.extend(translated_step(bullet.unwrap_or(bare)));
        }
        if found.is_empty() && bullet.is_none() && indented {
            // A wrapped bullet continues, indented.
            if let Some(last) = steps.last_mut() {
                *last = Step::new(last.keyword, &format!("{} {bare}", last.text));
            }
        }
        steps.extend(found);
    }
    if steps.is_empty() {
        steps = steps_of(name.as_str());
    }
    let (place, section) = (Uncompared(part.heading.span), Uncompared(part.span));
    Some(Scenario { name, steps, place, section })
}

/// The steps in one line: usually one, two in the one-line form `WHEN … THEN …`.
fn steps_of(line: &str) -> Vec<Step> {
    let bold = line.starts_with("**");
    let mut found: Vec<(Keyword, usize, usize)> = Vec::new();
    for keyword in [Keyword::Given, Keyword::When, Keyword::Then, Keyword::And] {
        let word = keyword.label();
        let at_start = if bold { line[2..].get(..word.len()) } else { line.get(..word.len()) };
        if at_start.is_some_and(|start| start.eq_ignore_ascii_case(word)) {
            let after = word.len() + if bold { 2 } else { 0 };
            let rest = &line[after..];
            let behind = if bold {
                rest.strip_prefix("**").or_else(|| rest.strip_prefix(":**"))
            } else {
                Some(rest)
            };
            // `whenever` is no WHEN, and prose that merely starts with a small `then` is no step.
            let whole = behind.is_some_and(|b| b.is_empty() || b.starts_with([' ', ':', '\t']));
            if whole && (bold || at_start == Some(word)) {
                found.push((keyword, 0, line.len() - behind.unwrap_or_default().len()));
            }
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    if matches!(found[0].0, Keyword::Given | Keyword::When) {
        let inside = if bold { [" **WHEN** ", " **THEN** "] } else { [" WHEN ", " THEN "] };
        for (keyword, word) in [Keyword::When, Keyword::Then].into_iter().zip(inside) {
            let from = found.last().map_or(0, |last| last.2);
            if let Some(at) = memmem::find(&line.as_bytes()[from..], word.as_bytes()) {
                found.push((keyword, from + at, from + at + word.len()));
            }
        }
    }
    let mut steps = Vec::new();
    for (i, &(keyword, _, text_start)) in found.iter().enumerate() {
        let end = found.get(i + 1).map_or(line.len(), |next| next.1);
        steps.push(Step::new(keyword, &line[text_start..end]));
    }
    steps
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
