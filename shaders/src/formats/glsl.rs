//! Decoders in GLSL: the texts of the folders, joined to what they include. `README.md` beside this file says what a decoder defines.

use super::Format;

/// What decoders include, by the name in the text.
const INCLUDES: &[(&str, &str)] = &[
    ("words.glsl", include_str!("words.glsl")),
    ("blocks.glsl", include_str!("blocks.glsl")),
    ("scales.glsl", include_str!("scales.glsl")),
    ("ints.glsl", include_str!("ints.glsl")),
    ("kquant.glsl", include_str!("kquant.glsl")),
    ("fp4.glsl", include_str!("fp4.glsl")),
    ("iq.glsl", include_str!("iq.glsl")),
    ("iq1.glsl", include_str!("iq1.glsl")),
    ("iq4.glsl", include_str!("iq4.glsl")),
    ("iq1_grid.glsl", include_str!("iq1_grid.glsl")),
    ("iq2_xxs/grid.glsl", include_str!("iq2_xxs/grid.glsl")),
    ("iq2_xs/grid.glsl", include_str!("iq2_xs/grid.glsl")),
    ("iq2_s/grid.glsl", include_str!("iq2_s/grid.glsl")),
    ("iq3_xxs/grid.glsl", include_str!("iq3_xxs/grid.glsl")),
    ("iq3_s/grid.glsl", include_str!("iq3_s/grid.glsl")),
];

impl Format {
    /// Its decoder in GLSL, whole: a kernel is `#version`, extensions, this text, and what it does with it.
    ///
    /// # Panics
    /// When a decoder includes what there is not, which a test rules out.
    pub fn glsl(self) -> String {
        let mut text = String::new();
        append(&mut text, self.0.glsl);
        text
    }
}

/// Appends a text, with the texts that it includes in the place of their lines.
fn append(whole: &mut String, text: &str) {
    for line in text.lines() {
        match line.strip_prefix("#include \"").and_then(|line| line.strip_suffix('"')) {
            None => {
                whole.push_str(line);
                whole.push('\n');
            }
            Some(name) => {
                let included = INCLUDES.iter().find(|(included, _)| *included == name);
                append(whole, included.unwrap_or_else(|| panic!("no include {name}")).1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::iq_tables;

    /// A constant that the text defines once.
    fn constant(text: &str, name: &str) -> usize {
        let values: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' ')).collect();
        assert_eq!(values.len(), 1, "{name}");
        values[0].parse().unwrap()
    }

    /// The sizes of rows and of rows of scales that follow from the text's constants are those of the format.
    #[test]
    fn constants_are_those_of_the_format() {
        for format in Format::ALL {
            let text = format.glsl();
            let [block, bytes, group, scale, tail] =
                ["BLOCK", "BYTES", "GROUP", "SCALE_BYTES", "TAIL"].map(|name| constant(&text, &format!("FMT_{name}")));
            for cols in 1..=2 * block + 130 {
                let stored = tail == 1 || cols.is_multiple_of(block);
                assert_eq!(format.row_bytes(cols), stored.then(|| cols.div_ceil(block) * bytes), "{format:?} of {cols}");
                let groups = if group == 0 { 1 } else { cols.div_ceil(group) };
                let scales = format.scale_bytes(cols).filter(|_| stored);
                assert_eq!(scales, stored.then_some(groups * scale), "{format:?}: scales of {cols}");
            }
            assert!(group == 0 || group.is_multiple_of(4), "{format:?}: four columns have one scale");
        }
    }

    /// What a kernel may call: as the constants say, each of them once.
    #[test]
    fn functions_are_as_the_constants_say() {
        for format in Format::ALL {
            let text = format.glsl();
            let [tail, ints] = ["FMT_TAIL", "FMT_INTS"].map(|name| constant(&text, name) == 1);
            let functions = [
                ("vec4 fmt_decode4(Row row, uint col) {", true),
                ("vec4 fmt_tail4(Row row, uint col, uint left) {", tail),
                ("vec2 fmt_scale(Row row, uint col) {", ints),
                ("uint fmt_ints4(Row row, uint col) {", ints),
                ("uint fmt_ints_tail4(Row row, uint col, uint left) {", ints && tail),
            ];
            for (head, wanted) in functions {
                // Among those without a tail, ints.glsl has its text behind a condition.
                if wanted || !head.contains("fmt_tail4") {
                    assert_eq!(text.lines().filter(|line| *line == head).count(), usize::from(wanted), "{format:?}: {head}");
                }
            }
            if ints {
                assert!(constant(&text, "FMT_MIN") <= 1, "{format:?}");
            }
        }
    }

    /// Words of the common subset: no types of 8, 16 or 64 bits, which drivers may lack.
    #[test]
    fn texts_need_no_optional_types() {
        for format in Format::ALL {
            let text = format.glsl();
            for line in text.lines().map(|line| line.split("//").next().unwrap_or_default()) {
                let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
                let banned =
                    words.find(|word| word.contains("int8_t") || word.contains("int16_t") || word.contains("int64_t") || *word == "double");
                assert_eq!(banned, None, "{format:?}: {line}");
            }
        }
    }

    /// The words of an array's text are the table's entries, two a word.
    #[test]
    fn grids_are_the_tables() {
        let grids: [(&str, &[u16]); 6] = [
            ("iq1_grid.glsl", &iq_tables::IQ1),
            ("iq2_xxs/grid.glsl", &iq_tables::IQ2_XXS),
            ("iq2_xs/grid.glsl", &iq_tables::IQ2_XS),
            ("iq2_s/grid.glsl", &iq_tables::IQ2_S),
            ("iq3_xxs/grid.glsl", &iq_tables::IQ3_XXS),
            ("iq3_s/grid.glsl", &iq_tables::IQ3_S),
        ];
        for (name, table) in grids {
            let text = INCLUDES.iter().find(|(included, _)| *included == name).unwrap().1;
            let array = text.split_once("uint[](").unwrap().1;
            let digits = array.split("0x").skip(1).map(|word| u32::from_str_radix(&word[..8], 16).unwrap());
            let entries: Vec<u16> = digits.flat_map(|word| [word as u16, (word >> 16) as u16]).collect();
            assert_eq!((entries.as_slice(), constant(text, "FMT_GRID")), (table, table.len() / 2), "{name}");
        }
    }
}
