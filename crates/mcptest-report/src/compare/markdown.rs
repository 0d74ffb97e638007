//! A comparison for a comment on a pull request.

use std::io::{self, Write};

use super::pretty::{figure, flip_word, nature, notes, totals, verdicts, word};
use super::{CaseChange, Comparison};
use crate::markdown::{Bounded, cell, code};
use crate::reporter::Style;

pub(super) fn render(comparison: &Comparison, _: Style, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Bounded::new();
    page.line("## mcptest: compared with the baseline");
    page.line("");
    write_table(&mut page, comparison);
    out.write_all(page.finish().as_bytes())
}

/// Writes the counts, the table of changes, and what holds for the comparison as a whole.
pub(super) fn write_table(page: &mut Bounded, comparison: &Comparison) {
    page.line(&format!("{}.", totals(comparison)));
    if !comparison.is_empty() {
        page.line("");
        page.table(&["test", "change", "verdict", "what"]);
        page.rows(comparison.cases.iter().map(row), "tests");
    }
    let notes = notes(comparison);
    if !notes.is_empty() {
        page.line("");
        let notes = notes.iter().map(|note| format!("- {}", code(note)));
        page.entries(notes, "notes");
    }
}

fn row(case: &CaseChange) -> Vec<String> {
    let name = match &case.id.model {
        Some(model) => format!("{} [{model}]", case.id.name),
        None => case.id.name.clone(),
    };
    let mut what: Vec<String> = case
        .figures
        .iter()
        .map(|delta| cell(&figure(delta)))
        .collect();
    for gate in &case.gates {
        let flag = gate
            .flip
            .map(|flip| format!(" **{}**", flip_word(flip)))
            .unwrap_or_default();
        what.push(format!(
            "{} {}{flag}",
            cell(&gate.block),
            verdicts(&gate.verdict)
        ));
        what.extend(gate.values.iter().map(|delta| cell(&figure(delta))));
        what.extend(gate.bounds.iter().map(|bound| {
            let text = format!("{} {}", bound.target, bound.matcher);
            format!("{} **{}**", cell(&text), flip_word(bound.flip))
        }));
    }
    vec![
        cell(&name),
        match case.nature {
            Some(kind) => format!("**{}** ({})", word(case.change), nature(kind)),
            None => format!("**{}**", word(case.change)),
        },
        verdicts(&case.verdict),
        what.join("<br>"),
    ]
}
