//! When the steps of a change ran, drawn as bars on one clock. Waiting, which may take days, is drawn
//! short. Colors come from the style sheet, by class, so that one drawing works in light and dark.

use agentd_core::figures::duration;
use maud::{Markup, html};

/// The width of the drawing, in units of its own.
const WIDTH: f64 = 400.0;
const HEIGHT: usize = 18;

/// From when to when something ran, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bar {
    pub(super) start: i64,
    pub(super) end: i64,
}

/// A piece of time that is drawn, and where.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: i64,
    end: i64,
    /// How much of the time before it is not drawn.
    removed: i64,
}

/// A clock on which long waits are cut out.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    pieces: Vec<Piece>,
    /// How long all of it is, as drawn.
    total: i64,
}

impl Timeline {
    pub(super) fn new(mut bars: Vec<Bar>) -> Self {
        bars.retain(|bar| bar.end >= bar.start);
        bars.sort_by_key(|bar| bar.start);
        let busy: i64 = bars.iter().map(|bar| bar.end - bar.start).fold(0, i64::saturating_add);
        let longest_wait = (busy / 12).max(1);
        let mut pieces: Vec<Piece> = Vec::new();
        let Some(first) = bars.first().map(|bar| bar.start) else { return Self::default() };
        let mut removed = first;
        for bar in &bars {
            match pieces.last_mut() {
                Some(last) if bar.start - last.end <= longest_wait => {
                    last.end = last.end.max(bar.end);
                }
                last => {
                    if let Some(last) = last {
                        removed += bar.start - last.end - longest_wait;
                    }
                    pieces.push(Piece { start: bar.start, end: bar.end, removed });
                }
            }
        }
        let total = pieces.last().map_or(1, |last| last.end - last.removed);
        Self { pieces, total: total.max(1) }
    }

    /// Whether waiting was cut out.
    pub(super) fn is_cut(&self) -> bool {
        self.pieces.len() > 1
    }

    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a change fit into 52 bits")]
    fn x(&self, at: i64) -> f64 {
        let piece = self.pieces.iter().rfind(|piece| piece.start <= at).or(self.pieces.first());
        let drawn = piece.map_or(0, |piece| at - piece.removed);
        drawn.clamp(0, self.total) as f64 / self.total.max(1) as f64 * WIDTH
    }

    /// A bar in its row.
    pub(super) fn bar(&self, start: i64, end: i64, class: &str) -> Markup {
        let (x, to) = (self.x(start), self.x(end));
        let width = (to - x).clamp(2.0, WIDTH);
        let x = x.min(WIDTH - width);
        html! {
            svg.bar viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" aria-hidden="true" {
                @for cut in self.cuts() {
                    line.cut x1=(format!("{cut:.1}")) x2=(format!("{cut:.1}")) y1="0" y2=(HEIGHT) {}
                }
                rect.(class) x=(format!("{x:.1}")) y="3" width=(format!("{width:.1}")) height=(HEIGHT - 6) rx="2" {}
            }
        }
    }

    /// Where waiting was cut out.
    fn cuts(&self) -> impl Iterator<Item = f64> {
        self.pieces.windows(2).map(|pair| f64::midpoint(self.x(pair[0].end), self.x(pair[1].start)))
    }

    /// What the bars are measured by: how long it took, without waiting.
    pub(super) fn axis(&self) -> Markup {
        let took = u64::try_from(self.total).unwrap_or(0);
        html! {
            span.axis {
                span { "0" } span { (duration(took / 2)) } span { (duration(took)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(start: i64, end: i64) -> Bar {
        Bar { start, end }
    }

    #[test]
    fn a_week_of_waiting_does_not_hide_the_work() {
        const WEEK: i64 = 7 * 86_400_000;
        let timeline = Timeline::new(vec![bar(0, 10_000), bar(WEEK, WEEK + 10_000)]);
        assert!(timeline.is_cut());
        let width = |start, end| timeline.x(end) - timeline.x(start);
        assert!(width(0, 10_000) > 150.0, "{timeline:?}");
        assert!(width(WEEK, WEEK + 10_000) > 150.0, "{timeline:?}");
        assert!(timeline.x(WEEK) > timeline.x(10_000));
    }

    /// D7: steps of milliseconds stay in their order and do not overlap.
    #[test]
    fn short_steps_keep_their_order() {
        let bars: Vec<Bar> =
            (0..20).map(|n| bar(1_000_000 + n * 7, 1_000_000 + n * 7 + 6)).collect();
        let timeline = Timeline::new(bars.clone());
        for pair in bars.windows(2) {
            assert!(timeline.x(pair[0].end) <= timeline.x(pair[1].start), "{pair:?}");
        }
    }

    #[test]
    fn odd_times_are_still_drawn() {
        for bars in
            [vec![], vec![bar(5, 5)], vec![bar(9, 1)], vec![bar(i64::MIN / 4, i64::MAX / 4)]]
        {
            let timeline = Timeline::new(bars);
            let svg = timeline.bar(0, 1, "x").into_string();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
