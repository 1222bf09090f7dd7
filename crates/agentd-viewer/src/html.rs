//! The frame of every page, and the parts that pages share.
//!
//! Pages are built with maud, which escapes every text that is put into them. The one place
//! that makes HTML out of text is [`markdown`](super::markdown).

use std::borrow::Cow;

use agentd_core::diagnostic::Severity;
use agentd_core::stamp::Stamp;
use agentd_core::text::reveal;
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};

use super::{App, assets};

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

/// A page with the bar at the top.
pub(super) struct Page<'a> {
    pub(super) app: &'a App,
    /// The title of the window, without the name of the project.
    pub(super) title: &'a str,
    /// The way to this page: names and addresses.
    pub(super) crumbs: &'a [(&'a str, String)],
    /// The stream that says when the page has changed.
    pub(super) follow: Option<String>,
    /// The content of `<main>`.
    pub(super) body: Markup,
}

impl Page<'_> {
    pub(super) fn render(&self) -> Markup {
        let project = self.app.project_name();
        let title = match self.title {
            "" => format!("{project} · agentd"),
            title => format!("{title} · {project}"),
        };
        document(
            &title,
            &html! {
                a.skip href="#main" { "Skip to content" }
                (self.bar(&project))
                main #main tabindex="-1" data-follow=[&self.follow] { (self.body) }
                (help(self.app))
                // What happens is said here, for those who do not see it.
                div.visually-hidden #said role="status" {}
            },
        )
    }

    fn bar(&self, project: &str) -> Markup {
        html! {
            header.bar {
                div.bar-inner {
                    nav.crumbs aria-label="You are here" {
                        a.brand href="/" { "agentd" }
                        a href="/" { (project) }
                        @for (name, address) in self.crumbs {
                            a href=(address) { (name) }
                        }
                    }
                    form.search action="/search" role="search" aria-label="Everything" {
                        label {
                            span.visually-hidden { "Search documents, findings and transcripts" }
                            input type="search" name="q" placeholder="Search everything"
                                autocomplete="off" aria-keyshortcuts="s";
                        }
                    }
                    nav.places aria-label="Project" {
                        a href="/specs" { "Specs" }
                        a href="/archive" { "Archive" }
                        a href="/costs" { "Costs" }
                    }
                    @if self.app.acts { a.button.small href="/new" { "New change" } }
                    span.connection #connection hidden title="This page updates itself" { "live" }
                    button.icon #notices type="button" hidden aria-pressed="false"
                        title="Notify me when something waits for me, fails or ends" {
                        (icon("M8 2a4 4 0 0 0-4 4c0 4-2 5-2 5h12s-2-1-2-5a4 4 0 0 0-4-4M7 14h2"))
                        span.visually-hidden { "Notify me" }
                    }
                    button.icon #help-button type="button" hidden title="Keys and settings (?)" {
                        span aria-hidden="true" { "?" }
                        span.visually-hidden { "Keys and settings" }
                    }
                }
            }
        }
    }
}

/// A small drawing of one line.
pub(super) fn icon(path: &str) -> Markup {
    html! { svg.line-icon viewBox="0 0 16 16" aria-hidden="true" { path d=(path) {} } }
}

/// The keys, as `?` shows them.
const KEYS: [(&str, &str); 10] = [
    ("/", "filter this list, or search everything"),
    ("s", "search everything"),
    ("j k", "next and previous item"),
    ("Enter", "open it"),
    ("c", "comment on it"),
    ("e", "edit it"),
    ("1 2 3 4", "Plan, Review, Code, Runs"),
    ("n", "what is next: the first action of the change"),
    ("h", "all changes"),
    ("?", "this list"),
];

/// The keys and the settings of this browser.
fn help(app: &App) -> Markup {
    html! {
        dialog #help aria-labelledby="help-title" {
            h2 #help-title { "Keys" }
            table.keys {
                tbody {
                    @for (key, what) in KEYS {
                        tr {
                            th scope="row" {
                                @for key in key.split(' ') { kbd { (key) } " " }
                            }
                            td { (what) }
                        }
                    }
                    tr { th scope="row" { kbd { "Ctrl" } " " kbd { "Enter" } } td { "send what you type" } }
                }
            }
            h2 { "Settings of this browser" }
            p {
                label.check { input #keys-setting type="checkbox"; " Use single-key shortcuts" }
            }
            p {
                label {
                    "Colors "
                    select #theme-setting {
                        option value="" { "same as the system" }
                        option value="light" { "light" }
                        option value="dark" { "dark" }
                    }
                }
            }
            p.quiet {
                @if app.acts {
                    "Commands can be started and stopped from these pages."
                } @else {
                    "These pages start no commands. To let them, run "
                    code { "agentd view --act" } "."
                }
            }
            form method="dialog" { button.primary { "Close" } }
        }
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
                link #icon rel="icon" href=(ICON);
                link rel="stylesheet" href=(assets::CSS.address());
                // Before anything is drawn: the colors that were chosen.
                script src=(assets::THEME_JS.address()) {}
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

/// How long something has been running; the page's script counts on.
pub(super) fn elapsed(since: Timestamp) -> Markup {
    let passed = Timestamp::now().duration_since(since);
    let passed = std::time::Duration::try_from(passed).unwrap_or_default();
    html! {
        time.elapsed data-since=(since.as_millisecond()) datetime=(since) {
            (agentd_core::figures::clock(passed))
        }
    }
}

/// An amount of money. A sum of nothing is no debt.
pub(super) fn dollars(cost: f64) -> String {
    let cost = if cost > 0.0 { cost } else { 0.0 };
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

/// A line for a shell, with a button that copies it.
pub(super) fn command(line: &str) -> Markup {
    html! {
        span.command {
            code { (line) }
            button.copy type="button" hidden data-copy=(line) title="Copy the command" {
                "Copy" span.visually-hidden { ": " (line) }
            }
        }
    }
}

/// A text with `code` in backticks, as messages have it.
pub(super) fn with_code(text: &str) -> Markup {
    html! {
        @for (at, piece) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}

/// Why a change stands where it does, as the beginning of a sentence: "its plan is approved" is said
/// on a page that is about the change.
pub(super) fn sentence(why: &str) -> String {
    let why = why.strip_prefix("its ").map_or_else(|| why.to_owned(), |rest| format!("the {rest}"));
    let mut chars = why.chars();
    chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default() + chars.as_str()
}

/// A number of things that stands beside a name.
pub(super) fn count(number: usize) -> Markup {
    html! { span.count { (number) } }
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

/// A text as the value in a query.
pub(super) fn query_value(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
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
        assert_eq!(query_value("a&b=ü #"), "a%26b%3D%C3%BC%20%23");
        let code = with_code("a `<b>` c `d").into_string();
        assert_eq!(code, "a <code>&lt;b&gt;</code> c <code>d</code>");
        assert_eq!(sentence("its plan is approved"), "The plan is approved");
        assert_eq!(sentence("questions about it are open"), "Questions about it are open");
    }

    /// D8: the sum of no floats is -0.0.
    #[test]
    fn nothing_costs_nothing() {
        let sum: f64 = std::iter::empty::<f64>().sum();
        let costs = [sum, -1.0, f64::NAN, 0.001, 1.5];
        assert_eq!(costs.map(dollars), ["$0.00", "$0.00", "$0.00", "$0.0010", "$1.50"]);
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
        files.sort();
        assert_eq!(files, ["line.rs", "markdown.rs"]);
    }
}
