//! The frame of every page, and the parts that pages share.
//!
//! Pages are built with maud, which escapes every text that is put into them. The one place
//! that makes HTML out of text is [`markdown`](super::markdown).

use std::borrow::Cow;

use agentd_core::diagnostic::Severity;
use agentd_core::stamp::Stamp;
use agentd_core::text::reveal;
use maud::{DOCTYPE, Markup, html};

use super::assets;

/// HTML as it is sent. Whatever text a page shows, wherever it came from: what nobody could see
/// in it is shown by its number, so that people read what is really there.
pub(super) fn visible(markup: Markup) -> String {
    let is_control = |c: char| c.is_control() && c != '\n' && c != '\t';
    let mut html = markup.into_string();
    if html.contains(is_control) {
        html = html.replace(is_control, "\u{fffd}");
    }
    match reveal(&html) {
        Cow::Borrowed(_) => html,
        Cow::Owned(shown) => shown,
    }
}

/// A page of its own, with the bar at the top.
pub(super) struct Page<'a> {
    /// The title of the window.
    pub(super) title: &'a str,
    /// The way to this page: names and addresses.
    pub(super) crumbs: &'a [(&'a str, String)],
    /// The name of the project.
    pub(super) project: &'a str,
    /// The content of `<main>`.
    pub(super) body: Markup,
}

impl Page<'_> {
    pub(super) fn render(&self) -> Markup {
        document(
            self.title,
            &html! {
                a.skip href="#main" { "Skip to content" }
                header.bar {
                    nav aria-label="You are here" {
                        a.brand href="/" { "agentd" }
                        a href="/" { (self.project) }
                        @for (name, address) in self.crumbs {
                            a href=(address) { (name) }
                        }
                    }
                }
                main #main tabindex="-1" { (self.body) }
            },
        )
    }
}

/// A page without the bar, which may be shown to strangers.
pub(super) fn bare_page(title: &str, body: &Markup) -> Markup {
    document(title, &html! { main #main .bare { (body) } })
}

/// A small letter "a" on a dot, as a `data:` address.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='8' fill='%234f46e5'/%3E%3Cpath d='M5 11 8 4l3 7M6 9h4' fill='none' stroke='white' stroke-width='1.5'/%3E%3C/svg%3E";

fn document(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href=(ICON);
                link rel="stylesheet" href=(assets::CSS.address());
                script src=(assets::JS.address()) defer {}
            }
            body { (body) }
        }
    }
}

/// A badge for a severity.
pub(super) fn severity(severity: Severity) -> Markup {
    let label = severity.label();
    html! { span.badge.(label.to_lowercase()) { (label) } }
}

/// A moment, for machines and for people; the page's script turns it into "3 hours ago".
pub(super) fn time(at: Stamp) -> Markup {
    let text = at.to_string();
    let shown = text.replace('T', " ").trim_end_matches('Z').to_owned();
    let minutes = shown.get(..16).unwrap_or(&shown);
    html! { time datetime=(text) title={ (shown) " UTC" } { (minutes) } }
}

/// An amount of money.
pub(super) fn dollars(cost: f64) -> String {
    if cost > 0.0 && cost < 0.01 { format!("${cost:.4}") } else { format!("${cost:.2}") }
}

/// How many tasks are done, as a bar.
pub(super) fn progress(completed: usize, total: usize) -> Markup {
    html! {
        @if total == 0 {
            span.quiet { "no tasks" }
        } @else {
            span.progress {
                progress max=(total) value=(completed)
                    aria-label={ (completed) " of " (total) " tasks done" } {}
                " " (completed) "/" (total)
            }
        }
    }
}

/// A box that scrolls by itself and can be reached with the keyboard.
pub(super) fn scroll_box(class: &str, label: &str, content: &Markup) -> Markup {
    html! { div.(class) tabindex="0" role="region" aria-label=(label) { (content) } }
}

/// A text as the part of an address after `#`: letters, digits and dashes.
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::from("h-");
    for c in text.chars() {
        if c.is_alphanumeric() {
            slug.extend(c.to_lowercase());
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn text_stays_text() {
        let hostile = "<a href='x'>&\"\u{1b}";
        let shown = visible(html! { p title=(hostile) { (hostile) } });
        let inside = "&lt;a href='x'&gt;&amp;&quot;\u{fffd}";
        assert_eq!(shown, format!("<p title=\"{inside}\">{inside}</p>"));
        assert_eq!(visible(html! { "a\u{202e}b" }), "a‹U+202E›b");
        assert_eq!(slug("R1: <script>alert(1)</script> É"), "h-r1-script-alert-1-script-é");
    }

    /// HTML that is not escaped comes from Markdown, and from nowhere else.
    #[test]
    fn only_markdown_is_inserted_unescaped() {
        let unescaped = concat!("Pre", "Escaped");
        let mut files = Vec::new();
        let mut dirs = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    dirs.push(path);
                } else if std::fs::read_to_string(&path).unwrap().contains(unescaped) {
                    files.push(path.file_name().unwrap().to_owned());
                }
            }
        }
        assert_eq!(files, ["markdown.rs"]);
    }
}
