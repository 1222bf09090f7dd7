//! A forecast in the words of a person.

use super::{Basis, Forecast, PastError};
use crate::figures;
use crate::state::Ranges;
use crate::text::counted;

/// Two figures as a range, or one where they are the same.
fn range<T: PartialEq>([least, most]: [T; 2], shown: impl Fn(T) -> String) -> String {
    if least == most {
        return shown(most);
    }
    format!("{}–{}", shown(least), shown(most))
}

fn money(usd: f64) -> String {
    match usd {
        _ if usd <= 0.0 => "$0".to_owned(),
        _ if usd < 0.1 => format!("${usd:.3}"),
        _ if usd < 10.0 => format!("${usd:.2}"),
        _ => format!("${usd:.0}"),
    }
}

fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.saturating_add(30) / 60),
        _ => format!("{} h", seconds.saturating_add(1800) / 3600),
    }
}

impl Ranges {
    /// `9–25`
    pub fn calls_shown(&self) -> String {
        range(self.calls, |calls| calls.to_string())
    }

    /// `1.3M–12.0M`
    pub fn tokens_shown(&self) -> String {
        range(self.tokens, figures::tokens)
    }

    /// `$0.95–$8.70`
    pub fn cost_shown(&self) -> String {
        range(self.cost_usd, money)
    }

    /// `12 min–2 h`
    pub fn time_shown(&self) -> String {
        range(self.seconds, time)
    }
}

impl Forecast {
    /// The figures of all steps together, on one line.
    pub fn summary(&self) -> String {
        let ranges = &self.ranges;
        format!(
            "{} calls, {} tokens, {}, {}",
            ranges.calls_shown(),
            ranges.tokens_shown(),
            ranges.cost_shown(),
            ranges.time_shown()
        )
    }

    /// Where the figures come from.
    pub fn basis_shown(&self) -> String {
        match (self.basis, self.based_on) {
            (Basis::BuiltIn, _) => "built-in guesses".to_owned(),
            (Basis::Ledger, 0) => "calls of unfinished changes, and built-in guesses".to_owned(),
            (Basis::Ledger, changes) => {
                format!("{} of this project", counted(changes, "finished change"))
            }
        }
    }
}

impl PastError {
    /// How earlier forecasts turned out; nothing where there were none.
    pub fn shown(&self) -> Option<String> {
        let Self { changes, inside } = self;
        (*changes > 0).then(|| {
            let earlier = counted(*changes, "earlier change");
            let were = if *inside == 1 { "was" } else { "were" };
            format!("of {earlier} with a forecast, {inside} {were} inside the range")
        })
    }
}
