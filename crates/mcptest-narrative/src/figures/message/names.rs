//! Names and quotations of a message that the run contradicts.

use super::MessageFigures;
use crate::agreement::letters;
use crate::figures::near_miss::is_near_name;
use crate::provenance::is_site;
use crate::sentence_figures::WrongFigure;
use crate::sentences::sentences;
use crate::stated_values::all_stated;
use crate::values::{Stated, ValueKind};

impl MessageFigures<'_> {
    /// A number in a longer quotation that the run contradicts.
    pub(super) fn wrong_in_quote(&self, value: &Stated) -> Option<WrongFigure> {
        if value.text.split_whitespace().count() < 4
            || !value.text.contains(|c: char| c.is_ascii_digit())
        {
            return None;
        }
        let inside = sentences(&value.text);
        inside.iter().find_map(|sentence| {
            let values = all_stated(&sentence.tokens);
            let mut numbers = values
                .iter()
                .filter(|value| value.kind == ValueKind::Number);
            numbers.find_map(|value| self.wrong_number(sentence, value, false))
        })
    }

    /// A quotation that is a recorded string with one word changed.
    pub(super) fn wrong_quote(&self, value: &Stated) -> Option<WrongFigure> {
        let words = |text: &str| -> Vec<String> {
            text.split_whitespace()
                .map(letters)
                .filter(|word| !word.is_empty())
                .collect()
        };
        let stated = value.text.to_lowercase();
        let own = words(&stated);
        let plain = stated.trim_end_matches(['.', ',', '!', '?', ';', ':']);
        if !(3..=12).contains(&own.len()) || self.values.has_text(plain) {
            return None;
        }
        let figures = self.figures();
        let (recorded, call) = figures.strings.iter().find(|(text, _)| {
            let other = words(text);
            other.len() == own.len() && own.iter().zip(&other).filter(|(a, b)| a != b).count() == 1
        })?;
        Some(WrongFigure {
            call: call.unwrap_or_default(),
            kind: value.kind,
            stated: value.text.clone(),
            recorded: vec![recorded.clone()],
        })
    }

    pub(super) fn wrong_name(&self, value: &Stated, supposed: bool) -> Option<WrongFigure> {
        // The name of a site: "amazon.com".
        let site = value.kind == ValueKind::Path
            && !value.normal.contains(['/', '\\'])
            && !value.normal.starts_with("www.")
            && is_site(&value.normal);
        if site || !self.values.is_unknown_name(value) {
            return None;
        }
        let figures = self.figures();
        // "icon.svg is public", where the only file of a call is `logo.svg`
        let ending = |name: &str| name.rsplit_once('.').map(|(_, end)| end.to_owned());
        let other_file = |name: &str, call: &Option<usize>| {
            value.kind == ValueKind::Path
                && !supposed
                && !value.normal.contains('/')
                && !is_site(&value.normal)
                && ending(&value.normal).is_some()
                && ending(&value.normal) == ending(name)
                && call.is_some_and(|call| self.acts[call])
        };
        // "in /home/kim/Bills", where a call was given `/home/kim/Invoices`
        let folder = |path: &str| {
            let path = path.trim_end_matches('/');
            let (folder, _) = path.rsplit_once('/')?;
            (folder.matches('/').count() >= 2).then(|| folder.to_lowercase())
        };
        let other_folder = |name: &str, call: &Option<usize>| {
            value.kind == ValueKind::Path
                && !supposed
                && value.normal.starts_with('/')
                && !value.normal.contains('.')
                && folder(&value.normal).is_some()
                && folder(&value.normal) == folder(name)
                && call.is_some_and(|call| self.acts[call])
        };
        let (recorded, call) = figures.names.iter().find(|(name, call)| {
            is_near_name(value.kind, &value.normal, name)
                || other_file(name, call)
                || other_folder(name, call)
        })?;
        Some(WrongFigure {
            call: call.unwrap_or_default(),
            kind: value.kind,
            stated: value.text.clone(),
            recorded: vec![recorded.clone()],
        })
    }
}
