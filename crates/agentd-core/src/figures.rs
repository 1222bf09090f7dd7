//! Figures as people read them.

use std::time::Duration;

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
}
