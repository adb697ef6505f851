// Numbers of a state's rows by fours, in either form.
#include "states.glsl"

layout(buffer_reference, std430, buffer_reference_align = 8) buffer Pairs { uvec2 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Quads { uvec4 at[]; };

// A number of a row that begins at a word of a page.
float row_number(uvec2 page, uint word, bool rounded, uint col) {
    if (rounded) {
        vec2 pair = unpackHalf2x16(Uints(page).at[word + col / 2]);
        return col % 2 == 0 ? pair.x : pair.y;
    }
    return uintBitsToFloat(Uints(page).at[word + col]);
}

// Four numbers from a column on. `left` of them exist, at least one; the others are 0.
vec4 row_quad(uvec2 page, uint word, bool rounded, uint col, uint left) {
    uint at = word + (rounded ? col / 2 : col);
    uint place = page.x | at << 2;
    if (left >= 4 && !rounded && (place & 15u) == 0) {
        return uintBitsToFloat(Quads(page).at[at / 4]);
    }
    if (left >= 4 && rounded && col % 2 == 0 && (place & 7u) == 0) {
        uvec2 words = Pairs(page).at[at / 2];
        return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
    }
    vec4 numbers = vec4(0.0);
    [[dont_unroll]] for (uint i = 0; i < min(left, 4); i++) {
        numbers[i] = row_number(page, word, rounded, col + i);
    }
    return numbers;
}
