//! A moment as documents write it: RFC 3339, in UTC, to the second.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(Timestamp);

impl Stamp {
    /// The moment, cut to the second.
    pub fn new(moment: Timestamp) -> Self {
        Self(Timestamp::from_second(moment.as_second()).unwrap_or(moment))
    }

    /// The moment.
    pub fn moment(self) -> Timestamp {
        self.0
    }

    /// The day in UTC, `YYYY-MM-DD`.
    pub fn date(self) -> String {
        self.0.to_zoned(TimeZone::UTC).date().to_string()
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Stamp {
    type Err = String;

    /// Reads a moment, or a day, which means its first second.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(moment) = text.parse::<Timestamp>() {
            return Ok(Self::new(moment));
        }
        let day = text.parse::<Date>().ok().and_then(|day| day.to_zoned(TimeZone::UTC).ok());
        day.map(|day| Self::new(day.timestamp()))
            .ok_or_else(|| "expected a time such as 2026-01-19T10:30:00Z".to_owned())
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_days_are_read() {
        let moment: Stamp = "2026-01-19T10:30:00.75Z".parse().unwrap();
        assert_eq!(moment.to_string(), "2026-01-19T10:30:00Z");
        assert_eq!("2026-01-19".parse::<Stamp>().unwrap().to_string(), "2026-01-19T00:00:00Z");
        assert!("soon".parse::<Stamp>().is_err());
    }
}
