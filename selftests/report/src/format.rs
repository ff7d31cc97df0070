// SPDX-License-Identifier: GPL-2.0

//! Numbers and sentences for people.

/// Three significant digits, no exponent.
fn three(value: f64) -> String {
    let digits = match value.abs() {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

/// A time given in µs: `474 µs`, `43.6 ms`, `1.20 s`.
pub fn time(us: f64) -> String {
    if us < 0.9995 {
        format!("{:.0} ns", us * 1e3)
    } else if us < 999.5 {
        format!("{} µs", three(us))
    } else if us < 999_500.0 {
        format!("{} ms", three(us / 1e3))
    } else {
        format!("{} s", three(us / 1e6))
    }
}

/// A throughput given in Mbit/s.
pub fn throughput(mbit: f64) -> String {
    format!("{} Mbit/s", three(mbit))
}

/// A ratio to the control: `0.67x`.
pub fn ratio(value: f64, control: f64) -> String {
    if control > 0.0 {
        format!("{}x", three(value / control))
    } else {
        "-".into()
    }
}

/// A count: whole numbers as such, large ones with a unit.
pub fn count(n: f64) -> String {
    if n >= 999_500.0 {
        format!("{}M", three(n / 1e6))
    } else if n.fract() == 0.0 {
        format!("{n:.0}")
    } else {
        three(n)
    }
}

/// Words in lines of at most `width` characters, the lines after the first behind `indent` spaces.
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if column > indent && column + 1 + length > width {
            out += "\n";
            out += &" ".repeat(indent);
            column = indent;
        } else if !out.is_empty() {
            out += " ";
            column += 1;
        }
        out += word;
        column += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        for (us, text) in [
            (0.5, "500 ns"),
            (474.1, "474 µs"),
            (9.996, "10.0 µs"),
            (999.9, "1.00 ms"),
            (43_620.0, "43.6 ms"),
            (208_000.0, "208 ms"),
            (1_204_000.0, "1.20 s"),
        ] {
            assert_eq!(time(us), text);
        }
        assert_eq!(
            (throughput(2682.0).as_str(), ratio(1.0, 3.0).as_str()),
            ("2682 Mbit/s", "0.33x")
        );
        assert_eq!(
            (
                count(6000.0).as_str(),
                count(1_234_567.0).as_str(),
                count(0.25).as_str()
            ),
            ("6000", "1.23M", "0.25")
        );
    }

    #[test]
    fn lines_stay_inside() {
        let text = wrap("one two three four five six", 12, 4);
        assert_eq!(text, "one two\n    three\n    four\n    five six");
        assert_eq!(
            wrap("averyveryverylongword x", 5, 0),
            "averyveryverylongword\nx"
        );
    }
}
