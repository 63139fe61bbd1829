//! A picture of lines and labels, and its two forms: SVG, and PNG for those who can't show that.

use std::fmt::Write as _;

use crate::render::quoted;

/// Colours of lines.
const COLOURS: [u32; 6] = [0x34_65_a4, 0xcc_00_00, 0x4e_9a_06, 0x75_50_7b, 0xc1_7d_11, 0x06_98_9a];
const WHITE: u32 = 0xff_ff_ff;
const GREY: u32 = 0xdd_dd_dd;
const BLACK: u32 = 0;
/// What a PNG may use, by its number there.
const PALETTE: [u32; 9] = [WHITE, GREY, BLACK, COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[3], COLOURS[4], COLOURS[5]];
/// Pixels of a PNG at most; a taller picture ends there.
const TALLEST: usize = 10_000;

/// One thing in a picture.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// Its left end, on the line that it stands on. Debuggee text.
    Text {
        x: f64,
        y: f64,
        text: String,
    },
    Frame {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
    },
    /// A line through points, in one of six colours.
    Line {
        colour: usize,
        points: Vec<(f64, f64)>,
    },
}

/// What is to be drawn, whatever the form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Picture {
    pub width: f64,
    pub height: f64,
    pub marks: Vec<Mark>,
}

/// How a file of that name is drawn.
#[must_use]
pub fn form(file: &str) -> Option<fn(&Picture) -> Vec<u8>> {
    let end = file.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
    match end.as_deref() {
        Some("svg") => Some(|picture| svg(picture).into_bytes()),
        Some("png") => Some(png),
        _ => None,
    }
}

/// As text that browsers show.
#[must_use]
pub fn svg(picture: &Picture) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"monospace\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        picture.width, picture.height
    );
    for mark in &picture.marks {
        let _ = match mark {
            Mark::Text { x, y, text } => writeln!(out, "<text x=\"{x}\" y=\"{y:.0}\">{}</text>", xml(text)),
            Mark::Frame { x, y, width, height } => {
                writeln!(
                    out,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#ddd\"/>"
                )
            }
            Mark::Line { colour, points } => {
                let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                writeln!(
                    out,
                    "<polyline fill=\"none\" stroke=\"#{:06x}\" stroke-width=\"1.5\" points=\"{}\"/>",
                    COLOURS[colour % COLOURS.len()],
                    points.join(" ")
                )
            }
        };
    }
    out.push_str("</svg>\n");
    out
}

fn xml(text: &str) -> String {
    quoted(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The same in pixels. Labels are in capitals of a few dots; what has no such letter is a box.
#[must_use]
pub fn png(picture: &Picture) -> Vec<u8> {
    let mut canvas = Canvas::new(whole(picture.width), whole(picture.height));
    for mark in &picture.marks {
        match mark {
            Mark::Text { x, y, text } => canvas.text(*x, *y, text),
            Mark::Frame { x, y, width, height } => {
                let (right, bottom) = (x + width, y + height);
                for (from, to) in [
                    ((*x, *y), (right, *y)),
                    ((right, *y), (right, bottom)),
                    ((right, bottom), (*x, bottom)),
                    ((*x, bottom), (*x, *y)),
                ] {
                    canvas.line(from, to, 1);
                }
            }
            Mark::Line { colour, points } => {
                #[expect(clippy::cast_possible_truncation, reason = "less than six")]
                let colour = 3 + (colour % COLOURS.len()) as u8;
                for pair in points.windows(2) {
                    canvas.line(pair[0], pair[1], colour);
                    canvas.line((pair[0].0, pair[0].1 + 1.0), (pair[1].0, pair[1].1 + 1.0), colour);
                }
            }
        }
    }
    canvas.encode()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the size of a picture")]
fn whole(number: f64) -> usize {
    number.round().clamp(0.0, TALLEST as f64) as usize
}

/// Pixels, each the number of a colour.
struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Self {
        let (width, height) = (width.max(1), height.max(1));
        Self { width, height, pixels: vec![0; width * height] }
    }

    fn dot(&mut self, x: f64, y: f64, colour: u8) {
        let (x, y) = (whole(x), whole(y));
        if x < self.width && y < self.height {
            self.pixels[y * self.width + x] = colour;
        }
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: u8) {
        let (wide, high) = (to.0 - from.0, to.1 - from.1);
        let steps = whole(wide.abs().max(high.abs())).max(1);
        for step in 0..=steps {
            let part = step as f64 / steps as f64;
            self.dot(from.0 + wide * part, from.1 + high * part, colour);
        }
    }

    fn text(&mut self, x: f64, y: f64, text: &str) {
        for (at, c) in text.chars().enumerate() {
            let glyph = glyph(c.to_ascii_uppercase());
            for (row, column) in (0..5).flat_map(|row| (0..3).map(move |column| (row, column))) {
                if glyph >> (14 - row * 3 - column) & 1 == 1 {
                    let (left, top) = (x + at as f64 * 8.0 + f64::from(column) * 2.0, y - 10.0 + f64::from(row) * 2.0);
                    for (dx, dy) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
                        self.dot(left + dx, top + dy, 2);
                    }
                }
            }
        }
    }

    /// The file: a palette, two pixels a byte.
    fn encode(&self) -> Vec<u8> {
        let mut rows = Vec::with_capacity(self.height * (self.width / 2 + 2));
        for row in self.pixels.chunks(self.width) {
            rows.push(0);
            rows.extend(row.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)));
        }
        let size = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
        let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
        let head = [&size(self.width)[..], &size(self.height), &[4, 3, 0, 0, 0]].concat();
        let palette: Vec<u8> = PALETTE.iter().flat_map(|colour| colour.to_be_bytes().into_iter().skip(1)).collect();
        for (kind, data) in [(b"IHDR", head), (b"PLTE", palette), (b"IDAT", packed(&rows)), (b"IEND", Vec::new())] {
            out.extend(size(data.len()));
            let from = out.len();
            out.extend(kind);
            out.extend(&data);
            let check = checksum(&out[from..]);
            out.extend(check.to_be_bytes());
        }
        out
    }
}

/// A zlib stream that only makes runs of one byte short: a picture is mostly white.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut bits = Bits { out: vec![0x78, 0x01], held: 0, count: 0 };
    // One last block with the fixed codes.
    bits.put(0b011, 3);
    let mut at = 0;
    while at < bytes.len() {
        bits.literal(bytes[at]);
        let mut run = bytes[at + 1..].iter().take_while(|byte| **byte == bytes[at]).count();
        at += run + 1;
        while run >= 3 {
            // The longest repetition that has a code of its own: 258 bytes of the one before.
            let length = if run >= 258 { 258 } else { run.min(10) };
            bits.repeat(length);
            run -= length;
        }
        at -= run;
    }
    bits.code(0, 7);
    let mut out = bits.end();
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    out.extend((b << 16 | a).to_be_bytes());
    out
}

/// Bits as deflate wants them: the lowest first, and codes with their highest first.
struct Bits {
    out: Vec<u8>,
    held: u32,
    count: u32,
}

impl Bits {
    fn put(&mut self, bits: u32, count: u32) {
        self.held |= bits << self.count;
        self.count += count;
        while self.count >= 8 {
            self.out.push(self.held.to_le_bytes()[0]);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    fn code(&mut self, code: u32, count: u32) {
        self.put(code.reverse_bits() >> (32 - count), count);
    }

    fn literal(&mut self, byte: u8) {
        let byte = u32::from(byte);
        if byte < 144 { self.code(0x30 + byte, 8) } else { self.code(0x190 + byte - 144, 9) }
    }

    /// So many bytes as the last one: 3 to 10, or 258.
    fn repeat(&mut self, length: usize) {
        match length {
            258 => self.code(0xc0 + 285 - 280, 8),
            _ => self.code(u32::try_from(length).unwrap_or(3) - 2, 7),
        }
        // A distance of one.
        self.code(0, 5);
    }

    fn end(mut self) -> Vec<u8> {
        self.put(0, 7);
        self.out
    }
}

/// The CRC-32 of PNG.
fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}

/// Three dots a row, five rows, the first row in the highest bits.
const fn glyph(c: char) -> u16 {
    match c {
        '0' => 0b111_101_101_101_111,
        '1' => 0b010_110_010_010_111,
        '2' => 0b111_001_111_100_111,
        '3' => 0b111_001_011_001_111,
        '4' => 0b101_101_111_001_001,
        '5' => 0b111_100_111_001_111,
        '6' => 0b111_100_111_101_111,
        '7' => 0b111_001_010_010_010,
        '8' => 0b111_101_111_101_111,
        '9' => 0b111_101_111_001_111,
        'A' => 0b010_101_111_101_101,
        'B' => 0b110_101_110_101_110,
        'C' => 0b011_100_100_100_011,
        'D' => 0b110_101_101_101_110,
        'E' => 0b111_100_110_100_111,
        'F' => 0b111_100_110_100_100,
        'G' => 0b011_100_101_101_011,
        'H' => 0b101_101_111_101_101,
        'I' => 0b111_010_010_010_111,
        'J' => 0b001_001_001_101_010,
        'K' => 0b101_101_110_101_101,
        'L' => 0b100_100_100_100_111,
        'M' => 0b101_111_111_101_101,
        'N' => 0b110_101_101_101_101,
        'O' => 0b010_101_101_101_010,
        'P' => 0b110_101_110_100_100,
        'Q' => 0b010_101_101_111_011,
        'R' => 0b110_101_110_101_101,
        'S' => 0b011_100_010_001_110,
        'T' => 0b111_010_010_010_010,
        'U' => 0b101_101_101_101_111,
        'V' => 0b101_101_101_101_010,
        'W' => 0b101_101_111_111_101,
        'X' => 0b101_101_010_101_101,
        'Y' => 0b101_101_010_010_010,
        'Z' => 0b111_001_010_100_111,
        '.' => 0b000_000_000_000_010,
        ',' => 0b000_000_000_010_100,
        ':' => 0b000_010_000_010_000,
        '-' => 0b000_000_111_000_000,
        '+' => 0b000_010_111_010_000,
        '_' => 0b000_000_000_000_111,
        '/' => 0b001_001_010_100_100,
        '*' => 0b000_101_010_101_000,
        '=' => 0b000_111_000_111_000,
        '<' => 0b001_010_100_010_001,
        '>' => 0b100_010_001_010_100,
        '(' => 0b001_010_010_010_001,
        ')' => 0b100_010_010_010_100,
        '[' => 0b011_010_010_010_011,
        ']' => 0b110_010_010_010_110,
        '\'' => 0b010_010_000_000_000,
        '"' => 0b101_101_000_000_000,
        '%' => 0b101_001_010_100_101,
        ' ' => 0,
        _ => 0b111_111_111_111_111,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_those_of_the_format() {
        assert_eq!(checksum(b"IEND"), 0xae42_6082);
        // As zlib itself packs them.
        assert_eq!(packed(b"a"), b"\x78\x01\x4b\x04\x00\x00\x62\x00\x62");
    }

    #[test]
    fn a_name_decides_the_form() {
        assert!(form("a.svg").is_some() && form("b.PNG").is_some());
        assert!(form("c.jpg").is_none() && form("png").is_none());
    }
}
