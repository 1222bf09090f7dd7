//! The frame of every page, and the one way in which text becomes HTML.

use std::fmt;

use agentd_core::diagnostic::Severity;
use agentd_core::stamp::Stamp;
use agentd_core::text::reveal;

use super::assets;

/// Text in HTML, in an element or in a quoted attribute: whatever it is, it stays text.
pub(super) fn esc(text: &(impl fmt::Display + ?Sized)) -> Esc {
    Esc(reveal(&text.to_string()).into_owned())
}

/// See [`esc`].
pub(super) struct Esc(String);

impl fmt::Display for Esc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_str();
        let special = |c: char| {
            matches!(c, '&' | '<' | '>' | '"' | '\'') || (c.is_control() && c != '\n' && c != '\t')
        };
        while let Some(at) = rest.find(special) {
            f.write_str(&rest[..at])?;
            let c = rest[at..].chars().next().unwrap_or_default();
            f.write_str(match c {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                '\'' => "&#39;",
                _ => "\u{fffd}",
            })?;
            rest = &rest[at + c.len_utf8()..];
        }
        f.write_str(rest)
    }
}

/// A page of its own, with the bar at the top.
pub(super) struct Page<'a> {
    /// For the window's title.
    pub(super) title: &'a str,
    /// The way to here: names and addresses.
    pub(super) crumbs: &'a [(&'a str, String)],
    /// The name of the project.
    pub(super) project: &'a str,
    /// Inside of `<main>`.
    pub(super) body: &'a str,
}

impl Page<'_> {
    pub(super) fn render(&self) -> String {
        let mut crumbs = format!(
            "<a class=\"brand\" href=\"/\">agentd</a><a href=\"/\">{}</a>",
            esc(self.project)
        );
        for (name, address) in self.crumbs {
            crumbs.push_str(&format!("<a href=\"{}\">{}</a>", esc(address), esc(name)));
        }
        let body = format!(
            "<a class=\"skip\" href=\"#main\">Skip to content</a>\
             <header class=\"bar\"><nav aria-label=\"You are here\">{crumbs}</nav></header>\
             <main id=\"main\" tabindex=\"-1\">{}</main>",
            self.body
        );
        document(self.title, &body)
    }
}

/// A page without the bar, for those who may be strangers.
pub(super) fn bare_page(title: &str, body: &str) -> String {
    document(title, &format!("<main id=\"main\" class=\"bare\">{body}</main>"))
}

/// A small a on a dot, as a picture in the address itself.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='8' fill='%234f46e5'/%3E%3Cpath d='M5 11 8 4l3 7M6 9h4' fill='none' stroke='white' stroke-width='1.5'/%3E%3C/svg%3E";

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>{}</title><link rel=\"icon\" href=\"{ICON}\">\
         <link rel=\"stylesheet\" href=\"{}\"><script src=\"{}\" defer></script>\
         </head><body>{body}</body></html>",
        esc(title),
        assets::CSS.address(),
        assets::JS.address(),
    )
}

/// A badge for a severity.
pub(super) fn severity(severity: Severity) -> String {
    let label = severity.label();
    format!("<span class=\"badge {}\">{label}</span>", label.to_lowercase())
}

/// A moment, for machines and for people; the page's script makes "3 hours ago" of it.
pub(super) fn time(at: Stamp) -> String {
    let text = at.to_string();
    let shown = text.replace('T', " ").trim_end_matches('Z').to_owned();
    let minutes = shown.get(..16).unwrap_or(&shown);
    format!(
        "<time datetime=\"{}\" title=\"{} UTC\">{}</time>",
        esc(&text),
        esc(&shown),
        esc(minutes)
    )
}

/// Money.
pub(super) fn dollars(cost: f64) -> String {
    if cost > 0.0 && cost < 0.01 { format!("${cost:.4}") } else { format!("${cost:.2}") }
}

/// A number of tasks that are done, as a bar.
pub(super) fn progress(completed: usize, total: usize) -> String {
    if total == 0 {
        return "<span class=\"quiet\">no tasks</span>".to_owned();
    }
    format!(
        "<span class=\"progress\"><progress max=\"{total}\" value=\"{completed}\" \
         aria-label=\"{completed} of {total} tasks done\"></progress> {completed}/{total}</span>"
    )
}

/// A text as the part of an address behind `#`: letters, digits and dashes.
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
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(
            esc("<a href='x'>&\"\u{1b}").to_string(),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\u{fffd}"
        );
        assert_eq!(esc("a\u{202e}b").to_string(), "a‹U+202E›b");
        assert_eq!(slug("R1: <script>alert(1)</script> É"), "h-r1-script-alert-1-script-é");
    }
}
