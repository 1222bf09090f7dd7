//! Figures in a description: how much of what, and on which side of it something happens.

/// An amount that a point names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Figure {
    /// As the description writes it: `10 MB`, `5 attempts`.
    pub(super) amount: String,
    /// What it measures: `a size`, `a time`.
    pub(super) what: &'static str,
    /// What happens at it.
    pub(super) side: Side,
    /// One less, where that says something: of a count.
    pub(super) below: Option<u64>,
}

/// On which side of a figure something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Up to the figure: `at most 10 MB`, `within 5 s`.
    UpTo,
    /// From the figure on: `after 5 attempts`.
    From,
}

/// Units, in lower case, and what they measure.
const UNITS: [(&str, &[&str]); 4] = [
    (
        "a size",
        &[
            "b",
            "byte",
            "bytes",
            "kb",
            "mb",
            "gb",
            "tb",
            "kib",
            "mib",
            "gib",
            "tib",
            "kilobytes",
            "megabyte",
            "megabytes",
            "gigabyte",
            "gigabytes",
            "px",
            "pixel",
            "pixels",
        ],
    ),
    (
        "a time",
        &[
            "ns",
            "µs",
            "us",
            "ms",
            "s",
            "sec",
            "secs",
            "second",
            "seconds",
            "millisecond",
            "milliseconds",
            "min",
            "mins",
            "minute",
            "minutes",
            "h",
            "hr",
            "hrs",
            "hour",
            "hours",
            "d",
            "day",
            "days",
            "week",
            "weeks",
            "month",
            "months",
            "year",
            "years",
        ],
    ),
    ("a share", &["%", "percent"]),
    ("a rate", &["rps", "qps", "hz", "fps"]),
];

const UP_TO: [&str; 12] = [
    "at most",
    "up to",
    "within",
    "under",
    "below",
    "less than",
    "no more than",
    "not more than",
    "maximum of",
    "max",
    "limit of",
    "limited to",
];
const FROM: [&str; 8] =
    ["after", "at least", "from", "more than", "over", "above", "minimum of", "once there are"];

/// The first figure of a point of which the words around it say what it is for. A number that is a
/// name, such as a status code or a port, is none.
pub(super) fn figure(point: &str) -> Option<Figure> {
    let words: Vec<&str> = point.split_whitespace().collect();
    words.iter().enumerate().find_map(|(i, word)| {
        let bare = word.trim_matches([',', '.', ';', ':', '(', ')']);
        let digits =
            bare.bytes().take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b',')).count();
        let (number, attached) = bare.split_at(digits);
        let number = number.trim_end_matches(['.', ',']);
        if number.is_empty() || !number.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let side = side(&words[..i])?;
        let next = words.get(i + 1).map(|next| next.trim_matches([',', '.', ';', ':', '(', ')']));
        let unit = if attached.is_empty() { next } else { Some(attached) };
        let what = unit.and_then(measured);
        if what.is_none() && !attached.is_empty() {
            return None;
        }
        let amount = match unit.filter(|unit| what.is_some() || is_noun(unit)) {
            Some(unit) if attached.is_empty() => format!("{number} {unit}"),
            Some(_) => bare.to_owned(),
            None => number.to_owned(),
        };
        let count: Option<u64> = number.parse().ok().filter(|_| what.is_none());
        // A count is a whole number; anything else would be "4 where 5.5 is said".
        if what.is_none() && count.is_none() {
            return None;
        }
        let below = count.and_then(|count| count.checked_sub(1));
        Some(Figure { amount, what: what.unwrap_or("a count"), side, below })
    })
}

fn measured(unit: &str) -> Option<&'static str> {
    let unit = unit.to_lowercase();
    UNITS.iter().find(|(_, units)| units.contains(&unit.as_str())).map(|(what, _)| *what)
}

fn is_noun(word: &str) -> bool {
    word.len() > 2 && word.chars().all(char::is_alphabetic)
}

/// What the words in front of a number say about it.
fn side(before: &[&str]) -> Option<Side> {
    let text = before.join(" ").to_lowercase();
    let ends = |phrases: &[&str]| {
        phrases.iter().any(|phrase| {
            text.strip_suffix(phrase).is_some_and(|rest| rest.is_empty() || rest.ends_with(' '))
        })
    };
    if ends(&UP_TO) {
        Some(Side::UpTo)
    } else if ends(&FROM) {
        Some(Side::From)
    } else {
        // `limit uploads to 10 MB`
        let limits = text.ends_with(" to") && text.split(' ').any(|word| word == "limit");
        limits.then_some(Side::UpTo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R7: a unit is not a count
    #[test]
    fn figures_have_units_and_sides() {
        let check = |point: &str, expected: Option<(&str, &str, Side)>| {
            let found = figure(point);
            let found = found.as_ref().map(|f| (f.amount.as_str(), f.what, f.side));
            assert_eq!(found, expected, "{point}");
        };
        check("lock after 5 attempts", Some(("5 attempts", "a count", Side::From)));
        check("limit uploads to 10 MB", Some(("10 MB", "a size", Side::UpTo)));
        check("accept files up to 10MB", Some(("10MB", "a size", Side::UpTo)));
        check("answer within 200 ms", Some(("200 ms", "a time", Side::UpTo)));
        check("answer within 2.5 s", Some(("2.5 s", "a time", Side::UpTo)));
        check("warn above 90 %", Some(("90 %", "a share", Side::From)));
        check("warn above 90%.", Some(("90%", "a share", Side::From)));
        check("retry at most 3 times", Some(("3 times", "a count", Side::UpTo)));
        check("expire sessions after 30 minutes", Some(("30 minutes", "a time", Side::From)));
        check("keep at least 12 characters", Some(("12 characters", "a count", Side::From)));
        for none in [
            "exit with code 0",
            "return 401",
            "listen on port 8080",
            "show 20 items per page",
            "support HTTP/2",
            "use sha256",
            "after v2 is out",
            "after 5.5.1",
            "",
        ] {
            check(none, None);
        }
    }
}
