//! What has changed between two texts, line by line.

/// A line of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change<'t> {
    Same(&'t str),
    Removed(&'t str),
    Added(&'t str),
}

/// More work than this is not done for one file: what differs is then shown whole.
const MOST_CELLS: usize = 4_000_000;

/// The lines of both texts: those they share, in order, and between them what each has alone.
pub(super) fn diff<'t>(old: &'t str, new: &'t str) -> Vec<Change<'t>> {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let behind = |lines: &[&'t str]| lines[start..].iter().rev().copied().collect::<Vec<_>>();
    let end = behind(&old).iter().zip(&behind(&new)).take_while(|(a, b)| a == b).count();
    let mut out: Vec<Change<'t>> = old[..start].iter().map(|line| Change::Same(line)).collect();
    middle(&old[start..old.len() - end], &new[start..new.len() - end], &mut out);
    out.extend(old[old.len() - end..].iter().map(|line| Change::Same(line)));
    out
}

/// The longest common subsequence, by the table.
fn middle<'t>(old: &[&'t str], new: &[&'t str], out: &mut Vec<Change<'t>>) {
    let width = new.len() + 1;
    let cells = (old.len() + 1).saturating_mul(width);
    if old.is_empty() || new.is_empty() || cells > MOST_CELLS {
        out.extend(old.iter().map(|line| Change::Removed(line)));
        out.extend(new.iter().map(|line| Change::Added(line)));
        return;
    }
    let mut longest = vec![0_u32; cells];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i * width + j] = if old[i] == new[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            out.push(Change::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1])
        {
            out.push(Change::Removed(old[i]));
            i += 1;
        } else {
            out.push(Change::Added(new[j]));
            j += 1;
        }
    }
}

/// Leaves out what is the same, but for some lines around each difference.
pub(super) fn hunks<'t>(changes: &[Change<'t>], context: usize) -> Vec<Vec<Change<'t>>> {
    let differs = |change: &Change<'_>| !matches!(change, Change::Same(_));
    let mut hunks: Vec<Vec<Change<'t>>> = Vec::new();
    let mut last = None;
    for (at, change) in changes.iter().enumerate() {
        let from = at.saturating_sub(context);
        let near = changes[from..changes.len().min(at + context + 1)].iter().any(differs);
        if !near {
            continue;
        }
        if last.is_none_or(|last: usize| last + 1 != at) {
            hunks.push(Vec::new());
        }
        if let Some(hunk) = hunks.last_mut() {
            hunk.push(*change);
        }
        last = Some(at);
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(old: &str, new: &str) -> String {
        diff(old, new)
            .iter()
            .map(|change| match change {
                Change::Same(line) => format!(" {line}\n"),
                Change::Removed(line) => format!("-{line}\n"),
                Change::Added(line) => format!("+{line}\n"),
            })
            .collect()
    }

    #[test]
    fn differences_are_told_as_people_would() {
        assert_eq!(told("a\nb\nc\n", "a\nx\nc\n"), " a\n-b\n+x\n c\n");
        assert_eq!(told("a\nb\n", "a\nb\nc\n"), " a\n b\n+c\n");
        assert_eq!(told("a\nb\nc\nd\n", "b\nd\ne\n"), "-a\n b\n-c\n d\n+e\n");
        assert_eq!(told("", "a\n"), "+a\n");
        assert_eq!(told("a\na\na\n", "a\na\n"), " a\n a\n-a\n");
    }

    #[test]
    fn hunks_keep_some_lines_around() {
        let old: String = (0..40).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("\n30\n", "\n");
        let found = hunks(&diff(&old, &new), 2);
        let sizes: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(sizes, [6, 5]);
    }
}
