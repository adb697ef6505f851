//! Odd strings, the same ones on every run.

/// A generator of numbers that is the same everywhere (Steele, Lea and Flood's split-mix).
pub(super) struct Odd {
    state: u64,
    /// Tokens of the tokenizer at hand, to be spelled out.
    spelled: Vec<String>,
}

const SPACES: &[char] = &[
    ' ', ' ', ' ', ' ', '\t', '\n', '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{a0}', '\u{1680}', '\u{2003}', '\u{200b}', '\u{2028}',
    '\u{2029}', '\u{202f}', '\u{3000}', '\u{feff}', '\u{2581}',
];
const EMOJI: &[&str] = &[
    "👩\u{200d}👩\u{200d}👧",
    "👍🏽",
    "🇩🇪",
    "🇩",
    "❤\u{fe0f}",
    "😶\u{200d}🌫\u{fe0f}",
    "1\u{fe0f}\u{20e3}",
    "🚀🚀",
    "🏴\u{e0067}\u{e007f}",
    "☃",
];
const DIGITS: &[char] = &['0', '1', '2', '3', '9', '٣', '३', '３', '²', '½', 'Ⅷ', '①', '𝟗', '.', ','];
const CONTRACTED: &[&str] = &["'s", "'S", "'t", "'RE", "'Ve", "'m", "'lL", "'d", "'", "’s", "''", "'x", "'\u{17f}"];
const CODE: &[&str] = &[
    "fn main() {\n    println!(\"{}\", a[0] != b);\n}",
    "x+=1;//no",
    "<div class='a'>&amp;</div>",
    "#!/bin/sh\r\n",
    "a->b::c<d>",
    "\t\treturn -1\n",
    "{\"k\": [1,2,null]}",
    "SELECT * FROM t WHERE a='b';",
    "https://example.org/a?b=c&d=%20#e",
    "C:\\dir\\file.txt",
    "$x_1=@{}^~|`",
];
const WORDS: &[&str] = &[
    "the",
    " The",
    "HELLO",
    "camelCaseWord",
    "éte\u{301}",
    "naïve",
    "Ångström",
    "\u{212b}",
    "ﬁne",
    "straße",
    "ΣΊΣΥΦΟΣ",
    "ǅ",
    "ʰª",
    "Съешь",
    "我能吞下",
    "今天天气很好",
    "カﾞラス",
    "ひらがな",
    "키스의",
    "\u{1100}\u{1161}",
    "זכוכית",
    "الزجاج",
    "काँच",
    "ฉันกินกระจก",
    "កាន់តែ",
    "𐐀𐐨",
    "㐀𠀀",
    "々〆",
    "＜unk＞",
];
const MARKS: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¿«»“”‘’…—、。！？《》€₿∑→■\u{ad}";
const SEEDS: &[&str] =
    &["", " ", "\n", "\r\n", "\0", "\u{10ffff}", "\u{fffd}", "a", "  a  ", "\u{301}", "'s", "▁", "▁▁a", "<0x0A>", "<0xFF>"];

impl Odd {
    pub(super) fn new(seed: u64, spelled: Vec<String>) -> Self {
        Self { state: seed, spelled }
    }

    /// This many strings.
    pub(super) fn strings(mut self, count: usize) -> impl Iterator<Item = String> {
        (0..count).map(move |at| match SEEDS.get(at) {
            Some(seed) => (*seed).to_owned(),
            None => (0..=self.below(5)).map(|_| self.fragment()).collect(),
        })
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn run(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> char) -> String {
        (0..=self.below(most)).map(|_| one(self)).collect()
    }

    fn fragment(&mut self) -> String {
        match self.below(14) {
            0 => self.run(8, Self::any),
            1 => self.run(4, |odd| char::from_u32(odd.below(0x20) as u32).unwrap_or(' ')),
            2 => self.run(12, |odd| odd.of(SPACES)),
            3 => " ".repeat(self.below(40)),
            4 => self.of(EMOJI).into(),
            5 => self.run(30, |odd| odd.of(DIGITS)),
            6 => self.run(12, |odd| char::from(b'0' + odd.below(10) as u8)),
            7 => format!("{}{}", self.of(WORDS), self.of(CONTRACTED)),
            8 => self.of(CODE).into(),
            9 => format!("{}{}", self.of(WORDS), self.run(3, |odd| char::from_u32(0x300 + odd.below(0x70) as u32).unwrap_or('a'))),
            10 => self.run(6, |odd| {
                let marks: Vec<char> = MARKS.chars().collect();
                odd.of(&marks)
            }),
            11 if !self.spelled.is_empty() => {
                let at = self.below(self.spelled.len());
                self.spelled[at].clone()
            }
            12 => format!("{} {}", self.of(WORDS), self.of(WORDS)),
            _ => self.of(WORDS).into(),
        }
    }

    /// A character of any plane; the first ones more often.
    fn any(&mut self) -> char {
        let bound = self.of(&[0x250, 0x3000, 0x1_0000, 0x2_0000, 0x11_0000]);
        char::from_u32(self.below(bound) as u32).unwrap_or('\u{e000}')
    }
}
