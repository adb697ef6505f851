// Rows and accumulators of conversations. `README.md` says what the tables hold.

// Whether a conversation has a row that may be read.
bool has_row(Uints step_words, State state, uint conv, uint index) {
    uint entry = state.table + 4 * conv;
    uint gone = step_words.at[entry + 1];
    return index >= step_words.at[entry] && index >= gone && (index - gone) / state.page_rows < step_words.at[entry + 3];
}

// The page of a row that there is.
Uints page_of(Uints step_words, State state, uint conv, uint index) {
    uint entry = state.table + 4 * conv;
    uint at = step_words.at[entry + 2] + 2 * ((index - step_words.at[entry + 1]) / state.page_rows);
    return Uints(uvec2(step_words.at[at], step_words.at[at + 1]));
}

bool is_half(State state) {
    return (state.form >> 31) == 1;
}

// The word of a page where a row begins: of f32, or of two binary16.
uint row_word(State state, uint index) {
    uint words = is_half(state) ? state.width / 2 : state.width;
    return (state.form & 0x7fffffffu) + index % state.page_rows * words;
}

// A number of a row that there is.
float state_number(Uints step_words, State state, uint conv, uint index, uint col) {
    Uints page = page_of(step_words, state, conv, index);
    uint row = row_word(state, index);
    if (is_half(state)) {
        vec2 pair = unpackHalf2x16(page.at[row + col / 2]);
        return col % 2 == 0 ? pair.x : pair.y;
    }
    return uintBitsToFloat(page.at[row + col]);
}

// The nearest binary16, ties to even, by integers: the built-in function truncates on some drivers.
uint half_bits(float number) {
    uint bits = floatBitsToUint(number);
    uint sign = bits >> 16 & 0x8000u;
    uint rest = bits & 0x7fffffffu;
    if (rest >= 0x47800000u) {
        return sign | (rest > 0x7f800000u ? 0x7e00u : 0x7c00u);
    }
    if (rest < 0x38800000u) {
        // Subnormal: the significand, shifted to units of 2^-24.
        uint shift = 126 - (rest >> 23);
        if (shift > 24) {
            return sign;
        }
        uint significand = (rest & 0x7fffffu) | 0x800000u;
        uint whole = significand >> shift;
        uint part = significand & ((1u << shift) - 1);
        uint middle = 1u << (shift - 1);
        return sign | (whole + (part > middle || (part == middle && (whole & 1) == 1) ? 1 : 0));
    }
    uint rounded = rest + 0xfffu + (rest >> 13 & 1);
    return sign | (rounded - 0x38000000u) >> 13;
}
