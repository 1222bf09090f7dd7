//! Figures as people read them.

use std::time::Duration;

use jiff::Timestamp;

use crate::stamp::Stamp;

/// `950`, `12.3k`, `1.2M`
pub fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// `450 ms`, `4.5 s`, `2 m 05 s`
pub fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} m {:02} s", ms / 60_000, ms / 1_000 % 60),
    }
}

/// How long something has been running: `0:07`, `12:05`, `1:02:05`
pub fn clock(time: Duration) -> String {
    let (hours, minutes, seconds) =
        (time.as_secs() / 3600, time.as_secs() / 60 % 60, time.as_secs() % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// How long ago something was: `now`, `12 s ago`, `5 min ago`, `3 h ago`, `6 d ago`, or the day.
pub fn ago(now: Timestamp, at: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    match now.as_second().saturating_sub(at.as_second()) {
        // Clocks of two machines differ a little.
        i64::MIN..2 => "now".to_owned(),
        seconds @ 2..MINUTE => format!("{seconds} s ago"),
        seconds @ MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        seconds @ HOUR..DAY => format!("{} h ago", seconds / HOUR),
        seconds if seconds < 100 * DAY => format!("{} d ago", seconds / DAY),
        _ => Stamp::new(at).date(),
    }
}

/// US dollars as people write them, to the cent; less than a cent with all that counts.
pub fn usd(amount: f64) -> String {
    match amount {
        _ if amount <= 0.0 => "$0".to_owned(),
        _ if amount < 0.01 => format!("${amount:.4}"),
        _ => format!("${amount:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!([tokens(999), tokens(12_345), tokens(1_250_000)], ["999", "12.3k", "1.2M"]);
        assert_eq!(
            [duration(450), duration(4_521), duration(125_000)],
            ["450 ms", "4.5 s", "2 m 05 s"]
        );
        let clock = |seconds| clock(Duration::from_secs(seconds));
        assert_eq!([clock(7), clock(725), clock(3725)], ["0:07", "12:05", "1:02:05"]);
    }

    #[test]
    fn times_are_relative_until_they_are_long_ago() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let after =
            |seconds: i64| ago(Timestamp::from_second(at.as_second() + seconds).unwrap(), at);
        let days = |days: i64| after(days * 86_400);
        assert_eq!(
            [after(-5), after(1), after(2), after(59)],
            ["now", "now", "2 s ago", "59 s ago"]
        );
        assert_eq!([after(60), after(7199), days(1)], ["1 min ago", "1 h ago", "1 d ago"]);
        assert_eq!([days(99), days(100)], ["99 d ago", "2027-01-15"]);
    }

    #[test]
    fn cents_are_enough_unless_there_are_none() {
        let shown = [0.0, -1.0, 0.00049, 0.0099, 0.01, 1.005, 1234.5].map(usd);
        assert_eq!(shown, ["$0", "$0", "$0.0005", "$0.0099", "$0.01", "$1.00", "$1234.50"]);
    }
}
