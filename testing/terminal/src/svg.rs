//! A terminal session as an animated SVG: small, sharp at any size, and without a script, so
//! that code hosts show it. Where nothing may move it is the last screen of the session.

use std::fmt::Write as _;
use std::time::Duration;

use crate::screen::{Recording, Row, Shown, Style};

/// The columns of the terminal of the picture in the README: no line of the demo is broken.
pub const COLUMNS: u16 = 118;

const COLUMN: f32 = 8.0;
const LINE: f32 = 18.0;
const MARGIN: f32 = 14.0;
const TITLE_BAR: f32 = 30.0;

/// The sixteen colours, legible on the dark ground.
const COLORS: [&str; 16] = [
    "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
    "#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc",
];

/// How the session looked, in a window of so many lines. `command` is what was typed, `label`
/// says what is to be seen to those who cannot see it.
pub fn picture(recording: &Recording, command: &str, label: &str, lines: usize) -> String {
    let rows = recording.rows();
    let prompt = format!("$ {command}");
    let width = f32::from(recording.columns) * COLUMN + 2.0 * MARGIN;
    let height = window(lines) + TITLE_BAR + 2.0 * MARGIN;
    let mut svg = String::new();
    let (label, prompt) = (escape(label), escape(&prompt));
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{label}\">\n\
         <title>{label}</title>\n<style>\n\
         text {{ font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; \
         fill: #c9d1d9; white-space: pre }}\n\
         .b {{ font-weight: 700; fill: #f0f6fc }}\n.d {{ fill: #8b949e }}"
    );
    for (index, color) in COLORS.iter().enumerate() {
        let _ = writeln!(svg, ".c{index} {{ fill: {color} }}");
    }
    // Everything is visible unless it is animated, so that a picture without motion is whole.
    let _ = writeln!(
        svg,
        "@keyframes in {{ from, to {{ visibility: hidden }} }}\n\
         @keyframes on {{ from, to {{ visibility: visible }} }}\n\
         .i {{ animation: in 1ms step-end backwards }}\n.o {{ visibility: hidden; animation: on step-end }}"
    );
    svg.push_str(&scrolling(&rows, lines));
    let _ = writeln!(
        svg,
        "@media (prefers-reduced-motion: reduce) {{ * {{ animation: none !important }} }}\n</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <g fill=\"#30363d\"><circle cx=\"18\" cy=\"16\" r=\"5\"/><circle cx=\"36\" cy=\"16\" r=\"5\"/>\
         <circle cx=\"54\" cy=\"16\" r=\"5\"/></g>\n\
         <svg x=\"{MARGIN}\" y=\"{}\" width=\"{}\" height=\"{}\"><g class=\"s\">\n\
         <text class=\"b\" y=\"{}\">{prompt}</text>",
        TITLE_BAR + MARGIN,
        f32::from(recording.columns) * COLUMN,
        window(lines),
        baseline(0),
    );
    for (number, row) in rows.iter().enumerate() {
        let ends = row.shown.iter().skip(1).map(|next| Some(next.from)).chain([None]);
        for (shown, end) in row.shown.iter().zip(ends) {
            svg.push_str(&line(shown, end, number + 1));
        }
    }
    svg.push_str("</g></svg>\n</svg>\n");
    svg
}

#[allow(clippy::cast_precision_loss, reason = "a few hundred lines")]
fn window(lines: usize) -> f32 {
    lines as f32 * LINE
}

fn baseline(row: usize) -> f32 {
    window(row + 1) - 5.0
}

fn line(shown: &Shown, end: Option<Duration>, row: usize) -> String {
    if shown.runs.is_empty() {
        return String::new();
    }
    let from = shown.from.as_millis();
    let (class, timing) = match end {
        None => ("i", format!("animation-delay:{from}ms")),
        Some(end) => {
            let lasts = end.as_millis().saturating_sub(from);
            ("o", format!("animation-delay:{from}ms;animation-duration:{lasts}ms"))
        }
    };
    let mut text = format!("<text class=\"{class}\" y=\"{}\" style=\"{timing}\">", baseline(row));
    for run in &shown.runs {
        let x = f32::from(run.column) * COLUMN;
        // Whatever the font of the reader is, columns stay below each other.
        let length = f32::from(run.width) * COLUMN;
        let _ = write!(
            text,
            "<tspan{} x=\"{x}\" textLength=\"{length}\">{}</tspan>",
            class_of(run.style),
            escape(&run.text)
        );
    }
    text.push_str("</text>\n");
    text
}

fn class_of(style: Style) -> String {
    let color = style.color.map(|index| format!("c{index}"));
    let names = [style.bold.then(|| "b".to_owned()), style.dim.then(|| "d".to_owned()), color];
    let names: Vec<String> = names.into_iter().flatten().collect();
    if names.is_empty() { String::new() } else { format!(" class=\"{}\"", names.join(" ")) }
}

/// The style sheet's part that moves the lines up as new ones come.
fn scrolling(rows: &[Row], lines: usize) -> String {
    let mut begun: Vec<(Duration, usize)> = rows
        .iter()
        .enumerate()
        .filter_map(|(number, row)| Some((row.shown.first()?.from, number + 1)))
        .collect();
    begun.sort();
    let end = rows.iter().flat_map(|row| &row.shown).map(|shown| shown.from).max();
    let end = end.unwrap_or_default().max(Duration::from_millis(1));
    let mut frames = String::new();
    let mut moved = 0;
    for (at, row) in begun {
        let up = (row + 1).saturating_sub(lines);
        if up > moved {
            moved = up;
            let percent = at.as_secs_f64() / end.as_secs_f64() * 100.0;
            let _ = write!(frames, " {percent:.2}% {{ transform: translateY(-{}px) }}", window(up));
        }
    }
    format!(
        "@keyframes scroll {{ 0% {{ transform: none }}{frames} }}\n\
         .s {{ transform: translateY(-{}px); animation: scroll {}ms step-end backwards }}\n",
        window(moved),
        end.as_millis()
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_lines_come_in_time() {
        let pieces = vec![
            (Duration::from_millis(100), b"<b> & co\r\n".to_vec()),
            (Duration::from_millis(200), b"two\r\nthree".to_vec()),
        ];
        let recording = Recording { columns: 20, pieces };
        let svg = picture(&recording, "run \"it\"", "A label", 3);
        assert!(svg.contains(">$ run &quot;it&quot;</text>"), "{svg}");
        assert!(svg.contains(">&lt;b&gt; &amp; co</tspan>"), "{svg}");
        assert!(svg.contains("animation-delay:200ms\">"), "{svg}");
        // The prompt and two lines fit; the third line moves all of it up by one.
        assert!(svg.contains(".s { transform: translateY(-18px)"), "{svg}");
    }
}
