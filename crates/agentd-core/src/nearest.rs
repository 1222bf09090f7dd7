//! What a misspelled name probably stands for.

use strsim::osa_distance;

use crate::text::head;

/// Names are compared up to this length: the work grows with its square.
const COMPARED: usize = 64;

/// The name that is most like a misspelled one, if any is close.
pub fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let known: Vec<&str> = known.collect();
    let longer = known.iter().find(|name| wrong.len() >= 3 && name.starts_with(wrong.as_str()));
    if let Some(name) = longer {
        return Some(name);
    }
    let by_distance = known.into_iter().map(|name| {
        (osa_distance(head(&wrong, COMPARED), head(&name.to_lowercase(), COMPARED)), name)
    });
    let best = by_distance.min()?;
    (best.0 <= best.1.len().max(wrong.len()).div_ceil(3)).then_some(best.1)
}
