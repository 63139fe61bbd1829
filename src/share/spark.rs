//! A row of numbers as a small line, in a drawing that needs nothing else.

use std::fmt::Write as _;

/// The most points of a line; of more, every so many-th is drawn.
const POINTS: usize = 400;
const WIDTH: f64 = 200.0;
const HEIGHT: f64 = 28.0;

/// The numbers among the values of an expression, in their order.
#[derive(Debug)]
pub struct Spark {
    points: Vec<(u64, f64)>,
    stride: u64,
    seen: u64,
    low: f64,
    high: f64,
    numbers: u64,
}

impl Default for Spark {
    fn default() -> Self {
        Self { points: Vec::new(), stride: 1, seen: 0, low: f64::INFINITY, high: f64::NEG_INFINITY, numbers: 0 }
    }
}

impl Spark {
    /// Takes the next value; one that is no number leaves its place empty.
    pub fn add(&mut self, text: &str) {
        let at = self.seen;
        self.seen += 1;
        let Some(number) = text.trim().parse::<f64>().ok().filter(|number| number.is_finite()) else { return };
        self.numbers += 1;
        self.low = self.low.min(number);
        self.high = self.high.max(number);
        if at.is_multiple_of(self.stride) {
            self.points.push((at, number));
        }
        if self.points.len() > POINTS {
            self.stride *= 2;
            self.points.retain(|(at, _)| at.is_multiple_of(self.stride));
        }
    }

    /// The line, with its lowest and highest number; nothing where there is none to draw.
    #[must_use]
    pub fn svg(&self) -> String {
        if self.points.len() < 2 {
            return String::new();
        }
        #[expect(clippy::cast_precision_loss, reason = "a place in a drawing")]
        let across = |at: u64| at as f64 / (self.seen - 1).max(1) as f64 * WIDTH;
        let range = self.high - self.low;
        // The difference of two numbers may be none.
        let up = |number: f64| if range > 0.0 && range.is_finite() { (number - self.low) / range } else { 0.5 };
        let mut points = String::new();
        for (at, number) in &self.points {
            let _ = write!(points, "{:.1},{:.1} ", across(*at), 1.0 + (1.0 - up(*number)) * (HEIGHT - 2.0));
        }
        format!(
            "<svg width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\"><polyline points=\"{}\"/></svg> \
             <small>{} to {}</small>",
            points.trim_end(),
            self.low,
            self.high
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_a_line() {
        let mut spark = Spark::default();
        ["0", "1", "x", "4"].iter().for_each(|text| spark.add(text));
        let drawn = spark.svg();
        assert!(drawn.contains("points=\"0.0,27.0 66.7,20.5 200.0,1.0\""), "{drawn}");
        assert!(drawn.contains("<small>0 to 4</small>"), "{drawn}");
    }

    #[test]
    fn many_numbers_are_few_points_and_none_are_no_line() {
        let mut spark = Spark::default();
        (0..100_000).for_each(|number| spark.add(&number.to_string()));
        assert!((POINTS / 2 - 1..=POINTS).contains(&spark.points.len()), "{}", spark.points.len());
        assert!(spark.svg().contains("0 to 99999"));
        let mut spark = Spark::default();
        ["a", "nan", "inf", "3"].iter().for_each(|text| spark.add(text));
        assert_eq!(spark.svg(), "");
        let mut spark = Spark::default();
        ["-1e308", "1e308", "5"].iter().for_each(|text| spark.add(text));
        assert!(!spark.svg().contains("NaN"), "{}", spark.svg());
    }
}
