// SPDX-License-Identifier: GPL-2.0

//! Just enough SVG: lines, text, marks. The same input gives the same bytes.

use std::fmt::Write;

/// Where a text's given point is.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// At its beginning.
    Start,
    /// In its middle.
    Middle,
    /// At its end.
    End,
}

/// A drawing; coordinates are pixels from the top left.
pub struct Svg {
    body: String,
    width: f64,
    height: f64,
}

/// Text as XML and HTML have it.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

impl Svg {
    /// An empty drawing.
    pub fn new(width: f64, height: f64) -> Self {
        Self {
            body: String::new(),
            width,
            height,
        }
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        let ((x1, y1), (x2, y2)) = (from, to);
        _ = writeln!(
            self.body,
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{colour}" stroke-width="{width}"/>"#
        );
    }

    /// A line through points.
    pub fn polyline(&mut self, points: &[(f64, f64)], colour: &str, width: f64, dash: &str) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let points = points.join(" ");
        _ = writeln!(
            self.body,
            r#"<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round" stroke-dasharray="{dash}"/>"#
        );
    }

    /// A dot.
    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, colour: &str) {
        _ = writeln!(
            self.body,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{colour}"/>"#
        );
    }

    /// A filled rectangle.
    pub fn bar(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str) {
        _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"/>"#
        );
    }

    /// A text of `size` pixels.
    pub fn text(
        &mut self,
        (x, y): (f64, f64),
        size: f64,
        colour: &str,
        anchor: Anchor,
        text: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" fill="{colour}" text-anchor="{anchor}">{text}</text>"#
        );
    }

    /// The file's text, with what a screen reader says of it.
    pub fn finish(self, title: &str, description: &str) -> String {
        let (title, description) = (escape(title), escape(description));
        let Self {
            body,
            width,
            height,
        } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
             role=\"img\">\n<title>{title}</title>\n<desc>{description}</desc>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text((1.0, 2.0), 12.0, "black", Anchor::Start, "<a & \"b\">");
        assert!(
            svg.finish("<t>", "d")
                .contains(">&lt;a &amp; &quot;b&quot;&gt;</text>")
        );
    }
}
