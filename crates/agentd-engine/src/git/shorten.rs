//! Shortening a diff to a given size.

/// The most that the note about a shortened file takes.
const CUT_MARK_BYTES: usize = 64;

/// The least of a file that is worth showing.
const LEAST_SHARE: usize = 400;

/// Shortens a diff to a size. Small files stay whole and large ones share what is left, so that
/// a lock file does not push everything else out.
pub(super) fn shorten(text: &str, limit: usize) -> (String, bool) {
    if text.len() <= limit {
        return (text.to_owned(), false);
    }
    let mut files: Vec<&str> = Vec::new();
    let mut rest = text;
    // Every line of content starts with a marker, so that only a header starts like this.
    while let Some(at) = rest.get(1..).and_then(|behind| behind.find("\ndiff --git ")) {
        let (file, behind) = rest.split_at(at + 2);
        files.push(file);
        rest = behind;
    }
    files.push(rest);
    // A share that is too small to be useful helps nobody: then some files get nothing, new ones
    // first, since what they break is seen elsewhere.
    let scarce = limit / files.len() < LEAST_SHARE;
    let is_new = |file: &str| scarce && file.contains("\nnew file mode ");
    let mut by_size: Vec<usize> = (0..files.len()).collect();
    by_size.sort_by_cached_key(|&i| (is_new(files[i]), files[i].len()));
    let mut shares = vec![0; files.len()];
    let mut left = limit;
    for (taken, &i) in by_size.iter().enumerate() {
        let fair = (left / (files.len() - taken)).max(LEAST_SHARE).min(left);
        shares[i] = files[i].len().min(fair);
        left -= shares[i];
    }
    let mut short = String::new();
    for (file, share) in files.into_iter().zip(shares) {
        push_shortened(&mut short, file, share);
    }
    (short, true)
}

fn push_shortened(out: &mut String, file: &str, share: usize) {
    if file.len() <= share {
        out.push_str(file);
        return;
    }
    // A share that is too small for the note gets nothing.
    let Some(room) = share.checked_sub(CUT_MARK_BYTES) else { return };
    let head = agentd_core::text::head(file, room);
    let whole = head.rfind('\n').map_or(0, |at| at + 1);
    let dropped = file[whole..].lines().count();
    out.push_str(&file[..whole]);
    out.push_str(&format!("[agentd: cut, lines of this file left out: {dropped}]\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_does_not_push_out_small_ones() {
        let file = |name: &str, lines: usize| {
            format!("diff --git a/{name} b/{name}\n@@ -0,0 +1 @@\n{}", "+x\n".repeat(lines))
        };
        let text = [file("Cargo.lock", 10_000), file("src/a.rs", 10), file("z", 2)].concat();
        assert_eq!(shorten(&text, text.len()), (text.clone(), false));
        let (short, cut) = shorten(&text, 2000);
        assert!(cut && short.len() <= 2000 && short.len() > 1800, "{}", short.len());
        assert!(short.ends_with(&[file("src/a.rs", 10), file("z", 2)].concat()), "{short}");
        assert_eq!(short.matches("[agentd: cut, lines of this file left out: ").count(), 1);
        // Many files: some are left out, and those that were there before are not.
        let new =
            |i: usize| file(&format!("new-{i}"), 20).replace("\n@@", "\nnew file mode 100644\n@@");
        let many: String = (0..300).map(new).chain([file("zz", 40)]).collect();
        let (short, cut) = shorten(&many, 4000);
        assert!(cut && short.len() <= 4000 && short.len() > 3500, "{}", short.len());
        assert!(short.ends_with(&file("zz", 40)) && short.starts_with(&new(0)), "{short}");
        for limit in 0..400 {
            assert!(shorten(&text, limit).0.len() <= limit, "{limit}");
        }
        // Content cannot look like the header of a file.
        let sly = format!("diff --git a/x b/x\n{}", "+\n+diff --git a/y b/y\n".repeat(200));
        assert_eq!(shorten(&sly, 1000).0.matches("[agentd: cut").count(), 1);
    }
}
