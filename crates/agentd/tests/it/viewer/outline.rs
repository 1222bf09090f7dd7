//! A page as a text browser shows it: lines for a snapshot, in place of tags.

/// Elements that begin a line.
const BLOCKS: [&str; 29] = [
    "article",
    "aside",
    "blockquote",
    "dd",
    "details",
    "div",
    "dt",
    "fieldset",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "header",
    "label",
    "nav",
    "li",
    "ol",
    "p",
    "pre",
    "section",
    "select",
    "summary",
    "svg",
    "table",
    "time",
    "title",
    "tr",
    "ul",
];

/// Classes that say more than how something looks.
const CLASSES: [&str; 8] =
    ["added", "finding", "graph", "issue-note", "mermaid", "node", "removed", "thread"];

/// The text of a piece of HTML, with the addresses of links, the ids of elements, the buttons of
/// forms, and what comments are for.
pub(crate) fn outline(html: &str) -> String {
    let mut shown = Outline::default();
    for piece in html.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap_or((piece, ""));
        match tag.strip_prefix('/') {
            Some(name) => shown.close(name),
            None => shown.open(tag),
        }
        shown.text(text);
    }
    shown.end_line();
    shown.lines
}

#[derive(Default)]
struct Outline {
    lines: String,
    line: String,
    /// The addresses of links that are open.
    links: Vec<String>,
    /// The element inside of which nothing is shown.
    hidden: Option<String>,
    in_svg: bool,
    in_pre: bool,
}

impl Outline {
    fn open(&mut self, tag: &str) {
        if self.hidden.is_some() {
            return;
        }
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        if BLOCKS.contains(&name) {
            self.end_line();
        }
        self.in_svg |= name == "svg";
        self.in_pre |= name == "pre";
        let class = attribute(tag, "class").unwrap_or_default();
        if let Some(at) = attribute(tag, "data-at") {
            self.word(&format!("[comment on {at:?}]"));
            self.hidden = Some(name.to_owned());
            return;
        }
        if class.contains("visually-hidden")
            || class.contains("copy")
            || name == "option"
            || (self.in_svg && name == "text")
        {
            self.hidden = Some(name.to_owned());
            return;
        }
        match name {
            "h1" | "h2" | "h3" | "h4" => self.word(&"#".repeat(name[1..].parse().unwrap())),
            "li" => self.word("-"),
            "td" | "th" => self.word("|"),
            "form" => {
                self.word(&format!("(form {})", attribute(tag, "action").unwrap_or_default()));
            }
            "button" => self.word(if tag.contains(" disabled") { "[disabled:" } else { "[" }),
            "a" => self.links.push(attribute(tag, "href").unwrap_or_default()),
            _ if tag.starts_with("!--") => self.word(&format!("<{tag}>")),
            _ => {}
        }
        if CLASSES.contains(&class.split(' ').next().unwrap_or_default()) {
            self.word(&format!("({class})"));
        }
        if tag.contains(" aria-current=") {
            self.word("(current)");
        }
        for (name, shown) in [("id", "#"), ("data-follow", "follows "), ("role", "")] {
            if let Some(value) = attribute(tag, name).filter(|it| name != "role" || it == "alert") {
                self.word(&format!("({shown}{value})"));
            }
        }
    }

    fn close(&mut self, name: &str) {
        if let Some(hidden) = &self.hidden {
            if hidden == name {
                self.hidden = None;
            }
            return;
        }
        match name {
            "a" => {
                let link = self.links.pop().unwrap_or_default();
                self.word(&format!("({link})"));
            }
            "button" => self.word("]"),
            "svg" => self.in_svg = false,
            "pre" => self.in_pre = false,
            _ => {}
        }
        if BLOCKS.contains(&name) {
            self.end_line();
        }
    }

    fn text(&mut self, text: &str) {
        if self.hidden.is_some() {
            return;
        }
        for (number, line) in decoded(text).lines().enumerate() {
            if self.in_pre && number > 0 {
                self.end_line();
            }
            let line = line.trim();
            if line.starts_with([',', '.', ':']) {
                self.line.push_str(line);
            } else {
                self.word(line);
            }
        }
    }

    fn word(&mut self, word: &str) {
        if !word.is_empty() {
            let space = if self.line.is_empty() { "" } else { " " };
            self.line.push_str(&format!("{space}{word}"));
        }
    }

    fn end_line(&mut self) {
        // A bullet alone belongs to what follows.
        if !["", "-"].contains(&self.line.as_str()) {
            self.lines.push_str(&format!("{}\n", self.line));
            self.line.clear();
        }
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    Some(decoded(rest.split('"').next()?))
}

fn decoded(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&#39;", "'").replace("&amp;", "&")
}
