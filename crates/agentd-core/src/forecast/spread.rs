//! How far from a forecast the truth may be, from how far it was before.
//!
//! Totals of changes differ by factors, so everything is in logarithms. What is not known yet is what
//! is built in: a spread that counts as [`PRIOR_CHANGES`] changes, and is outweighed by real ones.
//! The range is that of Student's t: the fewer changes, the wider.

/// How many changes the built-in spread counts as, and the built-in center.
const PRIOR_CHANGES: f64 = 6.0;
const PRIOR_CENTER: f64 = 4.0;
/// No forecast is taken to have been wrong by more than this factor.
const MOST_WRONG: f64 = 100.0;
/// The point of the normal distribution below which are 95 %: nine of ten are in the range.
const NORMAL_95: f64 = 1.645;

/// How wrong forecasts were, for each figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Residuals {
    pub(super) changes: usize,
    pub(super) calls: Wrong,
    pub(super) tokens: Wrong,
    pub(super) cost: Wrong,
    pub(super) seconds: Wrong,
}

impl Default for Residuals {
    fn default() -> Self {
        Self {
            changes: 0,
            calls: Wrong::new(0.25),
            tokens: Wrong::new(0.55),
            cost: Wrong::new(0.6),
            seconds: Wrong::new(0.5),
        }
    }
}

/// By what factors forecasts of one figure were wrong, as logarithms.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wrong {
    /// The deviation that is built in.
    prior: f64,
    seen: Vec<f64>,
}

impl Wrong {
    fn new(prior: f64) -> Self {
        Self { prior, seen: Vec::new() }
    }

    /// Adds what was used where something was expected. Nothing at all says nothing.
    pub(super) fn add(&mut self, used: f64, expected: f64) {
        if used > 0.0 && expected > 0.0 {
            let most = MOST_WRONG.ln();
            self.seen.push((used / expected).ln().clamp(-most, most));
        }
    }

    /// The range in which a figure will be, of which this is expected.
    pub(super) fn around(&self, expected: f64) -> [f64; 2] {
        let n = number(u64::try_from(self.seen.len()).unwrap_or(u64::MAX));
        let mean = if n > 0.0 { self.seen.iter().sum::<f64>() / n } else { 0.0 };
        let squares: f64 = self.seen.iter().map(|seen| (seen - mean).powi(2)).sum();
        let weight = PRIOR_CENTER + n;
        let center = mean * n / weight;
        // The normal-inverse-gamma posterior, and what it predicts.
        let sum =
            PRIOR_CHANGES * self.prior.powi(2) + squares + PRIOR_CENTER * n / weight * mean.powi(2);
        let freedom = PRIOR_CHANGES + n;
        let scale = (sum / freedom * (1.0 + 1.0 / weight)).sqrt();
        let reach = student_95(freedom) * scale;
        [expected * (center - reach).exp(), expected * (center + reach).exp()]
    }
}

/// The point of Student's t below which are 95 %, to three digits from 6 degrees of freedom on.
fn student_95(freedom: f64) -> f64 {
    let z = NORMAL_95;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / freedom + second / freedom.powi(2)
}

/// A mean of factors, by weight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LogMean {
    weight: f64,
    sum: f64,
    squares: f64,
}

impl LogMean {
    /// Begins with a guess; none where it is zero.
    pub(super) fn new(guess: f64, weight: f64) -> Self {
        let mut mean = Self::default();
        mean.add(guess, weight);
        mean
    }

    /// Adds a figure. Nothing at all says nothing.
    pub(super) fn add(&mut self, figure: f64, weight: f64) {
        if figure > 0.0 && figure.is_finite() {
            let log = figure.ln();
            self.weight += weight;
            self.sum += weight * log;
            self.squares += weight * log.powi(2);
        }
    }

    /// Adds what others have added.
    pub(super) fn merge(&mut self, others: &Self) {
        self.weight += others.weight;
        self.sum += others.sum;
        self.squares += others.squares;
    }

    /// Whether nothing is known, not even a guess.
    pub(super) fn is_empty(&self) -> bool {
        self.weight <= 0.0
    }

    /// The mean; zero where nothing is known.
    pub(super) fn mean(&self) -> f64 {
        if self.weight > 0.0 { (self.sum / self.weight).exp() } else { 0.0 }
    }

    /// By what the figures vary, as the logarithm of a factor; half a guess.
    pub(super) fn deviation(&self) -> f64 {
        const GUESS: f64 = 0.6;
        if self.weight <= 0.0 {
            return GUESS;
        }
        let mean = self.sum / self.weight;
        let variance = (self.squares / self.weight - mean.powi(2)).max(0.0);
        let weight = self.weight + 2.0;
        ((variance * self.weight + 2.0 * GUESS.powi(2)) / weight).sqrt()
    }
}

/// Rounds a range to two digits, outward: more would claim to be known.
pub(super) fn outward([least, most]: [f64; 2]) -> [f64; 2] {
    let rounded = |figure: f64, round: fn(f64) -> f64| {
        if !(figure > 0.0 && figure.is_finite()) {
            return 0.0;
        }
        // Scaled by a power of ten above 1, which is exact.
        let digits = 1.0 - figure.log10().floor();
        if digits >= 0.0 {
            let scale = 10_f64.powf(digits);
            round(figure * scale) / scale
        } else {
            let scale = 10_f64.powf(-digits);
            round(figure / scale) * scale
        }
    };
    [rounded(least, f64::floor), rounded(most, f64::ceil)]
}

/// A count as a number.
#[expect(clippy::cast_precision_loss, reason = "a forecast has two digits")]
pub(super) fn number(count: u64) -> f64 {
    count as f64
}

/// A number as a count: nothing below zero, and at most what fits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts of floats saturate"
)]
pub(super) fn whole(number: f64) -> u64 {
    number as u64
}
