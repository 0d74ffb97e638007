//! The matrix of tests and models on a terminal.

use std::io::{self, Write};

use anstyle::Style as Paint;
use mcptest_json::text::one_line;
use mcptest_trace::verdict::Verdict;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Style;
use super::terminal::{badge_word, colour, line, paint};
use crate::matrix::{Cell, Matrix};

/// The width if that of the display is unknown.
const DEFAULT_WIDTH: usize = 120;
/// The narrowest column of names.
const MIN_NAME_WIDTH: usize = 12;

/// Writes the matrix as a table, or as a list if the table is too wide.
pub(super) fn write(out: &mut dyn Write, matrix: &Matrix<'_>, style: Style) -> io::Result<()> {
    let width = style.width.map_or(DEFAULT_WIDTH, usize::from);
    let names: Vec<String> = matrix.rows.iter().map(|(name, _)| one_line(name)).collect();
    let models: Vec<String> = matrix.models.iter().map(|model| one_line(model)).collect();
    let columns: Vec<usize> = models
        .iter()
        .enumerate()
        .map(|(at, model)| {
            let cells = matrix
                .rows
                .iter()
                .map(|(_, cells)| cells[at].as_ref().map_or(1, cell_width));
            cells.chain([model.width()]).max().unwrap_or(0)
        })
        .collect();
    let first = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let rest: usize = columns.iter().map(|column| column + 2).sum();
    // Rows start with two spaces.
    let room = width.saturating_sub(2 + rest);
    if room < first.min(MIN_NAME_WIDTH) {
        return write_list(out, matrix, (&names, &models), style, width);
    }
    let first = first.min(room);
    let mut head = format!("  {}", " ".repeat(first));
    for (model, column) in models.iter().zip(&columns) {
        head.push_str("  ");
        head.push_str(&padded(model, *column));
    }
    line(out, &paint(style, Paint::new().bold(), head.trim_end()))?;
    for ((_, cells), name) in matrix.rows.iter().zip(&names) {
        let mut row = format!("  {}", padded(&cut(name, first), first));
        for (cell, column) in cells.iter().zip(&columns) {
            row.push_str("  ");
            match cell {
                Some(cell) => {
                    row.push_str(&shown(cell, style));
                    row.push_str(&" ".repeat(column.saturating_sub(cell_width(cell))));
                }
                None => row.push_str(&padded("-", *column)),
            }
        }
        line(out, &row)?;
    }
    Ok(())
}

fn write_list(
    out: &mut dyn Write,
    matrix: &Matrix<'_>,
    (names, models): (&[String], &[String]),
    style: Style,
    width: usize,
) -> io::Result<()> {
    let widest = models.iter().map(|model| model.width()).max().unwrap_or(0);
    let figures = matrix
        .rows
        .iter()
        .flat_map(|(_, cells)| cells.iter().flatten());
    let figure = figures.map(cell_width).max().unwrap_or(0);
    let room = widest.min(width.saturating_sub(4 + 2 + figure).max(MIN_NAME_WIDTH));
    for ((_, cells), name) in matrix.rows.iter().zip(names) {
        let name = cut(name, width.saturating_sub(2).max(MIN_NAME_WIDTH));
        line(out, &format!("  {name}"))?;
        for (cell, model) in cells.iter().zip(models) {
            if let Some(cell) = cell {
                let model = padded(&cut(model, room), room);
                line(out, &format!("    {model}  {}", shown(cell, style)))?;
            }
        }
    }
    Ok(())
}

fn shown(cell: &Cell, style: Style) -> String {
    let word = paint(style, colour(cell.verdict).bold(), word(cell.verdict));
    format!("{word} {}", cell.figure)
}

fn cell_width(cell: &Cell) -> usize {
    word(cell.verdict).len() + 1 + cell.figure.width()
}

fn word(verdict: Verdict) -> &'static str {
    badge_word(verdict).trim_end()
}

/// Pads a string to this number of display columns.
fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Truncates a string to this number of display columns, with a mark at the end.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > width {
            break;
        }
        short.push(character);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matrix<'a>(names: &[&'a str], models: &[&'a str]) -> Matrix<'a> {
        Matrix {
            suite: "s",
            models: models.to_vec(),
            rows: names
                .iter()
                .enumerate()
                .map(|(row, name)| {
                    let cells = (0..models.len()).map(|column| {
                        let verdict = if (row + column) % 2 == 0 {
                            Verdict::Pass
                        } else {
                            Verdict::Fail
                        };
                        (row + column != 3).then(|| Cell {
                            verdict,
                            figure: format!("{}%", 10 * (row + 1)),
                        })
                    });
                    (*name, cells.collect())
                })
                .collect(),
        }
    }

    fn written(matrix: &Matrix<'_>, width: u16) -> String {
        let style = Style {
            colour: false,
            width: Some(width),
            ..Style::default()
        };
        let mut out = Vec::new();
        write(&mut out, matrix, style).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_line_up_by_the_width_on_the_display() {
        let matrix = matrix(&["天気", "weather", "x"], &["a/one", "b/a-long-name", "c"]);
        assert_eq!(
            written(&matrix, 80),
            "           a/one     b/a-long-name  c
  天気     PASS 10%  FAIL 10%       PASS 10%
  weather  FAIL 20%  PASS 20%       -
  x        PASS 30%  -              PASS 30%
"
        );
    }

    #[test]
    fn a_narrow_display_gets_a_list() {
        let matrix = matrix(
            &["weather selection"],
            &["provider/model-one", "provider/model-two"],
        );
        assert_eq!(
            written(&matrix, 40),
            "  weather selection
    provider/model-one  PASS 10%
    provider/model-two  FAIL 10%
"
        );
        assert!(written(&matrix, 1).contains("provider/mo…  PASS 10%"));
    }

    proptest! {
        #[test]
        fn a_table_is_never_wider_than_the_display(
            names in proptest::collection::vec("[a-z天 ]{1,40}", 1..5),
            models in proptest::collection::vec("[a-z/]{1,20}", 1..5),
            width in 40..200_u16,
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let models: Vec<&str> = models.iter().map(String::as_str).collect();
            for line in written(&matrix(&names, &models), width).lines() {
                prop_assert!(line.width() <= usize::from(width), "{line}");
            }
        }
    }
}
