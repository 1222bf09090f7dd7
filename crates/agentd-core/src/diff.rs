//! Differences between two texts, as `diff -u` shows them.

use similar::TextDiff;

/// A unified diff of one file; empty where nothing differs. A side that is not there is
/// `/dev/null`, as git says it.
pub fn unified(path: &str, old: Option<&str>, new: Option<&str>) -> String {
    if old == new {
        return String::new();
    }
    let name = |side: char, text: Option<&str>| {
        text.map_or_else(|| "/dev/null".to_owned(), |_| format!("{side}/{path}"))
    };
    let diff = TextDiff::from_lines(old.unwrap_or_default(), new.unwrap_or_default());
    diff.unified_diff().context_radius(3).header(&name('a', old), &name('b', new)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_are_shown_with_their_context() {
        let old = "1\n2\n3\n4\n5\n6\n";
        let expected = "--- a/x\n+++ b/x\n@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-5\n+five\n 6\n";
        assert_eq!(unified("x", Some(old), Some(&old.replace('5', "five"))), expected);
        assert_eq!(unified("x", Some(old), Some(old)), "");
        let created = "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n";
        assert_eq!(unified("x", None, Some("a\n")), created);
    }
}
