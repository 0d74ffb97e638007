//! The language of a message, as far as it matters here: English, or one without rules.
//!
//! Function words and scripts decide, not a model. A message that shows nothing of either, such as
//! "Done.", counts as English if it is short; a long one without any English function word does
//! not.

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::verbs::{Form, verb_of};

/// The reason why a message cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Another script, or the function words of another language.
    Language,
    /// Nothing outside of code blocks.
    OnlyCode,
}

impl Unread {
    /// The reason, for people.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Language => "a closing message is not in English, the only language with rules",
            Self::OnlyCode => "a closing message has nothing but code",
        }
    }
}

#[rustfmt::skip]
const ENGLISH: &[&str] = &[
    "the", "and", "of", "to", "is", "are", "was", "were", "been", "has", "have", "had", "for", "with", "that", "this",
    "your", "you", "it", "its", "not", "from", "by", "as", "at", "be", "will", "would", "can", "could", "if", "or",
    "but", "which", "what", "there", "here", "any", "all", "our", "we", "my", "let", "please", "thank", "thanks",
    "successfully", "done", "step", "status", "result", "action", "task", "i'm", "i've", "i'll", "you're", "it's", "how", "when", "than", "then", "also", "more", "now",
];

/// Function words of other languages that are no English words.
#[rustfmt::skip]
const OTHERS: &[&[&str]] = &[
    &["der", "das", "und", "ich", "habe", "wurde", "wurden", "ist", "nicht", "mit", "für", "auf", "ein", "eine", "einen",
      "sie", "ihre", "ihr", "ihnen", "dem", "den", "des", "zu", "sind", "haben", "wir", "auch", "bei", "nach", "wird",
      "im", "erstellt", "gelöscht"],
    &["le", "la", "les", "des", "une", "et", "est", "été", "j'ai", "vous", "votre", "vos", "pour", "dans", "avec", "que",
      "qui", "sur", "ne", "pas", "nous", "du", "au", "aux", "ont", "sont", "ce", "cette", "ai", "je", "sera"],
    &["el", "los", "las", "una", "y", "que", "su", "sus", "por", "para", "con", "del", "ha", "sido", "está", "usted", "se",
      "lo", "como", "pero", "muy", "más", "todo", "han", "hemos", "es", "un", "al"],
    &["il", "gli", "che", "di", "è", "stato", "stata", "sono", "ho", "per", "una", "della", "del", "nel", "con", "non",
      "suo", "sua", "questo", "anche", "ha", "tuo"],
    &["o", "os", "uma", "foi", "que", "não", "seu", "sua", "para", "com", "dos", "das", "está", "você", "em", "um", "eu",
      "mais", "ao", "foram", "pelo"],
    &["het", "een", "van", "en", "ik", "heb", "niet", "voor", "met", "zijn", "uw", "werd", "naar", "ook", "wordt", "deze",
      "dat", "aan", "je", "de"],
    &["i", "w", "na", "jest", "nie", "się", "został", "została", "dla", "przez", "oraz", "twoje", "zostały", "jak", "że",
      "do", "po", "zostało"],
    &["och", "jag", "har", "att", "det", "som", "är", "för", "inte", "med", "din", "ditt", "blivit", "av", "på", "ett"],
    &["ve", "bir", "bu", "için", "ile", "oldu", "edildi", "olarak", "sizin", "siz", "çok"],
    &["dan", "yang", "telah", "untuk", "dengan", "ini", "anda", "tidak", "saya", "sudah", "akan", "pada", "dari"],
];

static ENGLISH_WORDS: LazyLock<FxHashSet<&str>> =
    LazyLock::new(|| ENGLISH.iter().copied().collect());

/// By word, the languages that have it, one bit each.
static OTHER_WORDS: LazyLock<FxHashMap<&str, u32>> = LazyLock::new(|| {
    let mut words: FxHashMap<&str, u32> = FxHashMap::default();
    for (index, language) in OTHERS.iter().enumerate() {
        for word in language.iter().filter(|word| **word != "i") {
            *words.entry(word).or_default() |= 1 << index;
        }
    }
    words
});

/// The number of characters that decide.
const MAX_CHARACTERS: usize = 20_000;
/// A message with fewer words says too little about its language.
const SHORT: usize = 8;

/// Returns the reason if a message has no rules.
pub(crate) fn unread(text: &str) -> Option<Unread> {
    let prose = without_code(text);
    if prose.trim().is_empty() {
        return (!text.trim().is_empty()).then_some(Unread::OnlyCode);
    }
    let mut latin = 0_usize;
    let mut foreign = 0_usize;
    for c in prose
        .chars()
        .take(MAX_CHARACTERS)
        .filter(|c| c.is_alphabetic())
    {
        if (c as u32) < 0x0250 {
            latin += 1;
        } else {
            // A letter of a script without spaces is more than a Latin one.
            foreign += if (c as u32) >= 0x2e80 { 3 } else { 1 };
        }
    }
    let mut english = 0_usize;
    let mut others = [0_usize; OTHERS.len()];
    let mut count = 0_usize;
    let mut low = String::new();
    let mut left = MAX_CHARACTERS;
    for word in prose.split(|c: char| !(c.is_alphabetic() || c == '\'' || c == '’')) {
        left = left.saturating_sub(word.len() + 1);
        if left == 0 {
            break;
        }
        if word.is_empty() {
            continue;
        }
        count += 1;
        low.clear();
        low.extend(
            word.chars()
                .map(|c| if c == '’' { '\'' } else { c })
                .flat_map(char::to_lowercase),
        );
        english += usize::from(is_english(&low));
        let languages = OTHER_WORDS.get(low.as_str()).copied().unwrap_or_default();
        for (index, other) in others.iter_mut().enumerate().filter(|_| languages != 0) {
            *other += usize::from(languages & (1 << index) != 0);
        }
    }
    if foreign > latin && english * 4 < count.max(4) {
        return Some(Unread::Language);
    }
    let other = others.into_iter().max().unwrap_or_default();
    let is_other = other >= 2 && other > english || other >= 1 && english == 0 && count >= 3;
    let is_unknown = count >= SHORT && english == 0;
    (is_other || is_unknown).then_some(Unread::Language)
}

fn is_english(word: &str) -> bool {
    ENGLISH_WORDS.contains(word)
        || word == "i"
        || verb_of(word).is_some_and(|(_, form)| matches!(form, Form::Past | Form::PastOnly))
}

/// The message without its code blocks.
fn without_code(text: &str) -> String {
    let mut prose = String::new();
    let mut inside = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            inside = !inside;
        } else if !inside {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_is_read() {
        for text in [
            "Done.",
            "Issue created.",
            "I've created the issue.",
            "- **Deleted**: 3 branches\n- **Merged**: 2 pull requests",
            "The café on Rue de la Paix is closed.",
            "Your order to São Paulo has been cancelled.",
            "Here are places near the Forbidden City (故宫博物院) that you can visit.",
            "Bonjour means hello in French; le, la and les are its articles.",
            "OK",
            "",
            "All set!",
            "$50",
        ] {
            assert_eq!(unread(text), None, "{text}");
        }
    }

    #[test]
    fn other_languages_are_not() {
        for text in [
            "Ich habe das Ticket erstellt und den Branch gelöscht.",
            "Der Auftrag wurde storniert.",
            "J'ai supprimé les trois branches et fusionné la demande.",
            "Votre commande a été annulée.",
            "He cancelado su pedido y el reembolso ha sido enviado.",
            "Ho eliminato il file e la richiesta è stata chiusa.",
            "O pedido foi cancelado e o reembolso foi enviado para você.",
            "Ik heb de bestelling geannuleerd en het bedrag teruggestort.",
            "我已经删除了三个分支。",
            "注文をキャンセルしました。",
            "Я удалил три ветки и закрыл задачу.",
            "تم إلغاء طلبك بنجاح.",
            "Zamówienie zostało anulowane.",
            "Siparişiniz iptal edildi ve iade için talep oluşturuldu.",
            "Nimefuta matawi matatu na kufunga tiketi yako leo asubuhi kabisa",
        ] {
            assert_eq!(unread(text), Some(Unread::Language), "{text}");
        }
        assert_eq!(
            unread("```python\nprint('I deleted the file')\n```"),
            Some(Unread::OnlyCode)
        );
    }
}
