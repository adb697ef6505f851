//! Rust text as tokens and comments: enough to tell code from what stands in strings and comments.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An identifier, keyword or number.
    Word,
    /// `::`, or one other character.
    Mark,
    /// A string literal of any kind, with its quotes.
    Text,
    /// A character, byte or lifetime.
    Quote,
}

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its text.
    pub text: &'a str,
    /// The line that it begins in, from 1.
    pub line: usize,
    /// The line that it ends in.
    pub end_line: usize,
}

/// A comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment<'a> {
    /// Its text, with its marks.
    pub text: &'a str,
    /// The line that it begins in, from 1.
    pub line: usize,
    /// The line that it ends in.
    pub end_line: usize,
}

/// A file's tokens and comments, in order.
#[derive(Debug, Default)]
pub struct Source<'a> {
    /// Everything but comments and space.
    pub tokens: Vec<Token<'a>>,
    /// The comments.
    pub comments: Vec<Comment<'a>>,
}

impl<'a> Source<'a> {
    /// Reads a text. A text that is not Rust gives some tokens, and no panic.
    pub fn new(text: &'a str) -> Self {
        let mut reader = Reader { text, at: 0, line: 1, source: Self::default() };
        while reader.at < text.len() {
            reader.next();
        }
        reader.source
    }

    /// Whether the tokens from `index` on have these texts.
    pub fn reads(&self, index: usize, texts: &[&str]) -> bool {
        self.tokens.get(index..index + texts.len()).is_some_and(|found| found.iter().zip(texts).all(|(token, text)| token.text == *text))
    }

    /// The indices at which the tokens have these texts.
    pub fn find<'s>(&'s self, texts: &'s [&str]) -> impl Iterator<Item = usize> + 's {
        (0..self.tokens.len()).filter(|&index| self.reads(index, texts))
    }

    /// The text of the token at `index`, or nothing behind the end.
    pub fn text(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| token.text)
    }

    /// Behind the bracket that closes the one at `index`; the end where none does.
    pub fn behind_bracket(&self, index: usize) -> usize {
        let mut depth = 0usize;
        for (offset, token) in self.tokens[index..].iter().enumerate() {
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return index + offset + 1;
            }
        }
        self.tokens.len()
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    source: Source<'a>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&mut self) {
        let rest = self.rest();
        let first = rest.chars().next().unwrap_or(' ');
        if first.is_whitespace() {
            self.take(first.len_utf8());
        } else if rest.starts_with("//") {
            self.comment(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.comment(block_comment(rest));
        } else if let Some(length) = literal(rest) {
            self.token(Kind::Text, length);
        } else if let Some(length) = quote(rest) {
            self.token(Kind::Quote, length);
        } else if is_word(first) {
            let raw = if rest.starts_with("r#") { 2 } else { 0 };
            self.token(Kind::Word, raw + word(&rest[raw..]));
        } else {
            self.token(Kind::Mark, if rest.starts_with("::") { 2 } else { first.len_utf8() });
        }
    }

    /// Passes `length` bytes, and gives them with the lines they begin and end in.
    fn take(&mut self, length: usize) -> (&'a str, usize, usize) {
        let text = &self.rest()[..length];
        let line = self.line;
        self.line += text.matches('\n').count();
        self.at += length;
        (text, line, self.line)
    }

    fn comment(&mut self, length: usize) {
        let (text, line, end_line) = self.take(length);
        self.source.comments.push(Comment { text, line, end_line });
    }

    fn token(&mut self, kind: Kind, length: usize) {
        let (text, line, end_line) = self.take(length);
        self.source.tokens.push(Token { kind, text, line, end_line });
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The bytes of the word at the start.
fn word(rest: &str) -> usize {
    rest.find(|c| !is_word(c)).unwrap_or(rest.len())
}

/// The bytes of the block comment at the start; such comments nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < rest.len() {
        let step = match rest.as_bytes()[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The bytes of the string literal at the start, if there is one.
fn literal(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c"].into_iter().find(|prefix| rest.starts_with(prefix)).unwrap_or_default();
    let body = &rest[prefix.len()..];
    let hashes = body.bytes().take_while(|&byte| byte == b'#').count();
    if !body[hashes..].starts_with('"') {
        return None;
    }
    if prefix.ends_with('r') {
        let close = format!("\"{}", "#".repeat(hashes));
        let inner = &body[hashes + 1..];
        return Some(inner.find(&close).map_or(rest.len(), |end| prefix.len() + hashes + 1 + end + close.len()));
    }
    (hashes == 0).then(|| prefix.len() + closed(body, b'"'))
}

/// The bytes of the character or lifetime at the start, if there is one.
fn quote(rest: &str) -> Option<usize> {
    let prefix = usize::from(rest.starts_with("b'"));
    let body = rest[prefix..].strip_prefix('\'')?;
    let first = body.chars().next()?;
    if first == '\\' || body[first.len_utf8()..].starts_with('\'') {
        return Some(prefix + closed(&rest[prefix..], b'\''));
    }
    Some(prefix + 1 + word(body))
}

/// The bytes up to and with the mark that closes the one at the start; a backslash hides the byte behind it.
fn closed(rest: &str, mark: u8) -> usize {
    let mut hidden = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if hidden => hidden = false,
            b'\\' => hidden = true,
            _ if byte == mark => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        Source::new(text).tokens.iter().map(|token| token.text).collect()
    }

    #[test]
    fn strings_and_comments_are_not_code() {
        assert_eq!(words("a // b \" {\n/* c /* d */ \" */ e"), ["a", "e"]);
        assert_eq!(
            words(r#"f("{ \" //", 'x', '"', '\'', b'{')"#),
            ["f", "(", r#""{ \" //""#, ",", "'x'", ",", "'\"'", ",", "'\\''", ",", "b'{'", ")"]
        );
        assert_eq!(words(r###"r#"a"b"# + br"\" + c"x" r#fn"###), ["r#\"a\"b\"#", "+", "br\"\\\"", "+", "c\"x\"", "r#fn"]);
        assert_eq!(
            words("fn f<'a>(x: &'a str) -> b::C"),
            ["fn", "f", "<", "'a", ">", "(", "x", ":", "&", "'a", "str", ")", "-", ">", "b", "::", "C"]
        );
        assert_eq!(words("'é' '\\u{7b}' 'static barn brrr"), ["'é'", "'\\u{7b}'", "'static", "barn", "brrr"]);
    }

    #[test]
    fn lines_are_counted_through_everything() {
        let source = Source::new("\"a\nb\"\n/* c\nd */ e // f\ng");
        let lines: Vec<_> = source.tokens.iter().map(|token| (token.line, token.end_line)).collect();
        assert_eq!(lines, [(1, 2), (4, 4), (5, 5)]);
        let lines: Vec<_> = source.comments.iter().map(|comment| (comment.line, comment.end_line)).collect();
        assert_eq!(lines, [(3, 4), (4, 4)]);
    }

    #[test]
    fn what_does_not_end_ends_with_the_text() {
        for text in ["\"abc", "r##\"abc\"#", "/* /* */", "'", "b'", "'\\", "r#", "x('"] {
            let source = Source::new(text);
            let covered: usize = source.tokens.iter().map(|token| token.text.len()).sum();
            assert!(covered <= text.len());
        }
    }
}
