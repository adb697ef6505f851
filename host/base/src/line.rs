//! Making text from outside fit for one line of a terminal or a log.

/// The most characters of an error's line. Paths and lists of names are well below it.
pub const LINE_CHARS_MAX: usize = 2000;

/// The text with control characters and runs of white space as one space each, cut to `chars_max` characters.
pub fn one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    // The cut comes before the joining of words, so that a text of megabytes is not walked whole.
    let cleaned: String = text.chars().take(4 * chars_max).map(|c| if c.is_control() { ' ' } else { c }).collect();
    for word in cleaned.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn text_is_cleaned_and_cut() {
        assert_eq!(one_line("a\n\tb \u{1b}[31mc\u{7f}", 50), "a b [31mc");
        assert_eq!(one_line("ééééé", 3), "ééé…");
        assert_eq!(one_line("abc", 3), "abc");
        assert_eq!(one_line(&"x ".repeat(1 << 20), 500).chars().count(), 501);
        assert_eq!(one_line("\0\r\n", 5), "");
    }
}
