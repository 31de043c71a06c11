//! A picture as SVG text: rectangles, lines and words, and one style sheet for light and dark.
//!
//! It knows no results. Every picture brings its ground along, since a page shows it as an image: there `prefers-color-scheme` is the
//! reader's system, which need not be the page's choice. Drawn by hand: a plotting library would want fonts to measure, and has one
//! set of colours for each file. Next: `figures.rs`.

use std::fmt::Write;

use crate::catalogue::CONTENDERS;

/// Where something is, in pixels from the upper left corner.
pub(crate) type Point = (f64, f64);

/// What has been drawn so far. Classes say how it looks: a colour (`plain`, `muted`, `faint` or that of a contender, [`color_class`]) and
/// for words `bold`, `small`, `end`, `middle`.
#[derive(Default)]
pub(crate) struct Picture {
    elements: String,
}

impl Picture {
    pub(crate) fn rectangle(&mut self, class: &str, (x, y): Point, (width, height): Point) {
        self.add(format_args!(r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="2"/>"#));
    }

    pub(crate) fn line(&mut self, class: &str, (x1, y1): Point, (x2, y2): Point) {
        self.add(format_args!(r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#));
    }

    pub(crate) fn path(&mut self, class: &str, points: &[Point]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.add(format_args!(r#"<polyline class="{class}" points="{}"/>"#, points.join(" ")));
    }

    pub(crate) fn dot(&mut self, class: &str, (x, y): Point, radius: f64) {
        self.add(format_args!(r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius}"/>"#));
    }

    /// `at` is on the line on which the words stand.
    pub(crate) fn words(&mut self, class: &str, (x, y): Point, words: &str) {
        self.add(format_args!(r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{}</text>"#, escaped(words)));
    }

    /// The text of the file. `description` is what those hear who cannot see it.
    pub(crate) fn finish(self, description: &str, (width, height): Point) -> String {
        let description = escaped(description);
        let style = style();
        let size = format!(r#"viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}""#);
        let (inner_width, inner_height) = (width - 1.0, height - 1.0);
        let elements = self.elements;
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">
<title>{description}</title>
<style>
{style}</style>
<rect class="ground" x="0.5" y="0.5" width="{inner_width:.1}" height="{inner_height:.1}" rx="8"/>
{elements}</svg>
"#
        )
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.elements, "{element}").expect("a String takes everything");
    }
}

/// The class that has a contender's colour.
pub(crate) fn color_class(contender: &str) -> String {
    match CONTENDERS.iter().position(|(name, ..)| *name == contender) {
        Some(index) => format!("c{index}"),
        None => "muted".to_owned(),
    }
}

const SHAPES: &str = "\
text{font:12.5px system-ui,-apple-system,'Segoe UI','Noto Sans',Helvetica,Arial,sans-serif;font-variant-numeric:tabular-nums}
text,rect,circle{fill:currentColor}
line,polyline{stroke:currentColor;fill:none;stroke-linecap:round;stroke-linejoin:round}
polyline{stroke-width:1.75}
polyline.thick{stroke-width:3.25}
text.title{font-size:19px}
text.small{font-size:11px}
text.title,text.bold{font-weight:600}
text.end{text-anchor:end}
text.middle{text-anchor:middle}
";

/// Class, on a light ground, on a dark one.
const COLORS: [(&str, &str, &str); 4] =
    [("ground", "#ffffff", "#0d1117"), ("plain", "#1f2328", "#e6edf3"), ("muted", "#59636e", "#9198a1"), ("faint", "#d8dee4", "#30363d")];

fn style() -> String {
    let mut light = String::new();
    let mut dark = String::new();
    let contenders = CONTENDERS.iter().enumerate().map(|(index, (_, light, dark))| (format!("c{index}"), *light, *dark));
    for (class, on_light, on_dark) in COLORS.map(|(class, light, dark)| (class.to_owned(), light, dark)).into_iter().chain(contenders) {
        write!(light, ".{class}{{color:{on_light}}}").expect("a String takes everything");
        write!(dark, ".{class}{{color:{on_dark}}}").expect("a String takes everything");
    }
    let edge = |index: usize| [COLORS[3].1, COLORS[3].2][index];
    format!("{SHAPES}{light}.ground{{stroke:{}}}\n@media(prefers-color-scheme:dark){{{dark}.ground{{stroke:{}}}}}\n", edge(0), edge(1))
}

/// Names come from files: nothing in them may be taken for markup.
fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
