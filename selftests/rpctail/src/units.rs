// SPDX-License-Identifier: GPL-2.0

//! Numbers with units, as they are typed on the command line and as they are printed.

use crate::Result;

/// One second in nanoseconds, the unit of every time inside the program.
pub const SECOND: u64 = 1_000_000_000;

/// The longest duration (ns), a year: a few of them and the clock still add up.
const LONGEST: u64 = 366 * 24 * 3600 * SECOND;

/// Splits `text` into its number and its unit.
fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(end)
}

/// Parses a number times a scale; refuses what is not finite and what does not fit.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(scale);
    }
    let value = number.parse::<f64>().ok()? * scale as f64;
    (value.is_finite() && value >= 0.0 && value < u64::MAX as f64).then(|| value.round() as u64)
}

/// Parses a number of bytes: `512`, `10K` (10 000), `1M`, `64Ki` (65 536), `1Mi`.
pub fn bytes(text: &str) -> Result<u64> {
    let (number, unit) = split(text);
    let scale = match unit {
        "" | "B" => 1,
        "k" | "K" | "kB" | "KB" => 1_000,
        "M" | "MB" => 1_000_000,
        "G" | "GB" => 1_000_000_000,
        "Ki" | "KiB" => 1 << 10,
        "Mi" | "MiB" => 1 << 20,
        "Gi" | "GiB" => 1 << 30,
        _ => {
            return Err(format!(
                "'{text}': unknown unit '{unit}'; use K, M, G (powers of 1000) or Ki, Mi, Gi"
            ));
        }
    };
    scaled(number, scale).ok_or(format!(
        "'{text}' is not a number of bytes; examples: 512, 10K, 64Ki, 1M"
    ))
}

/// Parses a duration into nanoseconds: `5s`, `300ms`, `50us`, `800ns`, `2m`; a bare number is seconds.
pub fn duration(text: &str) -> Result<u64> {
    let (number, unit) = split(text);
    let scale = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "" | "s" => SECOND,
        "m" | "min" => 60 * SECOND,
        _ => {
            return Err(format!(
                "'{text}': unknown unit '{unit}'; use ns, us, ms, s or m"
            ));
        }
    };
    match scaled(number, scale) {
        Some(ns) if ns <= LONGEST => Ok(ns),
        Some(_) => Err(format!("'{text}' is longer than a year")),
        None => Err(format!(
            "'{text}' is not a duration; examples: 10s, 300ms, 50us"
        )),
    }
}

/// Parses a rate in events a second into thousandths of events a second: `10000`, `10k`, `0.5`.
pub fn rate(text: &str) -> Result<u64> {
    let (number, unit) = split(text.strip_suffix("/s").unwrap_or(text));
    let scale = match unit {
        "" => 1_000,
        "k" | "K" => 1_000_000,
        "M" => 1_000_000_000,
        _ => {
            return Err(format!(
                "'{text}': unknown unit '{unit}'; use a number of requests a second, k or M"
            ));
        }
    };
    match scaled(number, scale) {
        Some(milli) if milli > 0 => Ok(milli),
        _ => Err(format!(
            "'{text}' is not a rate above 0 (at least 0.001/s); examples: 10000, 2.5k"
        )),
    }
}

/// Prints nanoseconds with three or four significant digits: `474 µs`, `43.6 ms`, `1.20 s`.
pub fn human_time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..SECOND => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = if value < 10.0 {
        2
    } else if value < 100.0 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {unit}")
}

/// Prints a duration for the echo of the options, in a form that [`duration`] reads back.
pub fn plain_time(ns: u64) -> String {
    match ns {
        _ if ns % SECOND == 0 => format!("{}s", ns / SECOND),
        _ if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        _ if ns % 1_000 == 0 => format!("{}us", ns / 1_000),
        _ => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_bytes() {
        assert_eq!(bytes("3096"), Ok(3096));
        assert_eq!(bytes("10K"), Ok(10_000));
        assert_eq!(bytes("64Ki"), Ok(65_536));
        assert_eq!(bytes("1.5M"), Ok(1_500_000));
        assert!(bytes("").is_err());
        assert!(bytes("-1").is_err());
        assert!(bytes("10Q").unwrap_err().contains("unknown unit 'Q'"));
        assert!(bytes("99999999999G").is_err());
    }

    #[test]
    fn reads_durations() {
        assert_eq!(duration("2"), Ok(2 * SECOND));
        assert_eq!(duration("0.5s"), Ok(SECOND / 2));
        assert_eq!(duration("300ms"), Ok(300_000_000));
        assert_eq!(duration("50us"), Ok(50_000));
        assert_eq!(duration("2m"), Ok(120 * SECOND));
        assert!(duration("5 parsecs").is_err());
        // Ends would be computed modulo 2⁶⁴.
        assert!(duration("18446744073").unwrap_err().contains("a year"));
    }

    #[test]
    fn reads_rates() {
        assert_eq!(rate("10000"), Ok(10_000_000));
        assert_eq!(rate("2.5k"), Ok(2_500_000));
        assert_eq!(rate("0.5/s"), Ok(500));
        assert!(rate("0").is_err());
        assert!(rate("fast").is_err());
    }

    #[test]
    fn prints_times() {
        assert_eq!(human_time(999), "999 ns");
        assert_eq!(human_time(474_100), "474 µs");
        assert_eq!(human_time(43_620_000), "43.6 ms");
        assert_eq!(human_time(1_204_000_000), "1.20 s");
        for text in ["5s", "300ms", "50us", "7ns"] {
            assert_eq!(plain_time(duration(text).unwrap()), text);
        }
    }
}
