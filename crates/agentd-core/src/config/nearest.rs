//! What was probably meant by a misspelt name.

/// The name that is most like a misspelt one, if any is like it at all.
pub fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let known: Vec<&str> = known.collect();
    let longer = known.iter().find(|name| wrong.len() >= 3 && name.starts_with(wrong.as_str()));
    if let Some(name) = longer {
        return Some(name);
    }
    let by_distance = known.into_iter().map(|name| (distance(&wrong, &name.to_lowercase()), name));
    let best = by_distance.min()?;
    (best.0 <= best.1.len().max(wrong.len()).div_ceil(3)).then_some(best.1)
}

/// How many letters must be changed, added, taken away or swapped with the next one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
