//! Aligned columns: words to the left, figures to the right.

use std::io::{self, Write};

/// Rows under a header line.
pub(crate) struct Table {
    right: &'static [bool],
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column titles; `right` says which columns hold figures.
    pub fn new(titles: &[&str], right: &'static [bool]) -> Self {
        Self { right, rows: vec![titles.iter().map(|&title| title.to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Writes it with `indent` spaces before each line.
    pub fn write(&self, out: &mut dyn Write, indent: usize) -> io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|at| {
                self.rows
                    .iter()
                    .filter_map(|row| row.get(at))
                    .map(|cell| cell.chars().count())
                    .max()
            })
            .map(|width| width.unwrap_or(0))
            .collect();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for (at, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[at] - cell.chars().count());
                match self.right.get(at) {
                    Some(true) => line.extend([pad.as_str(), cell]),
                    _ => line.extend([cell.as_str(), &pad]),
                }
                line.push_str("  ");
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
