//! `[replay]`: which recording the agent `replay` plays, and how fast.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// `[replay]`
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Replay {
    /// A directory of run files, from the root of the project or absolute.
    pub recording: Option<String>,
    /// How fast it is played.
    pub speed: Speed,
}

/// How fast a recording is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Speed {
    /// Without any pause.
    #[default]
    Full,
    /// So many times as fast as it was; in hundredths, so that speeds can be compared.
    Times(u32),
}

impl Speed {
    /// How long to wait for something that took so long when it was recorded.
    pub fn pause(self, recorded_ms: u64) -> u64 {
        match self {
            Self::Full => 0,
            Self::Times(hundredths) => recorded_ms.saturating_mul(100) / u64::from(hundredths),
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Times(hundredths) if hundredths % 100 == 0 => write!(f, "{}x", hundredths / 100),
            Self::Times(hundredths) => write!(f, "{}x", f64::from(*hundredths) / 100.0),
        }
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "full" {
            return Ok(Self::Full);
        }
        let times = text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
        match times.filter(|times| (0.01..=1000.0).contains(times)) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "1 to 100 000"
            )]
            Some(times) => Ok(Self::Times((times * 100.0).round() as u32)),
            None => Err(format!("`{text}` is not a speed; it is `full`, or as in `1x`, `2.5x`")),
        }
    }
}

impl<'de> Deserialize<'de> for Speed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_as_they_are_written() {
        for text in ["full", "1x", "2.5x", "0.1x", "1000x"] {
            assert_eq!(text.parse::<Speed>().unwrap().to_string(), text);
        }
        for bad in ["", "1", "x", "0x", "-1x", "NaNx", "infx", "2000x", "fast"] {
            assert!(bad.parse::<Speed>().is_err(), "{bad}");
        }
        assert_eq!("2x".parse::<Speed>().unwrap().pause(100), 50);
        assert_eq!(Speed::Full.pause(100), 0);
    }
}
