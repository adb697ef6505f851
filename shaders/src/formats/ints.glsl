// Numbers of formats that store small integers: `w = scale * int - minimum`, from the format's fmt_scale and fmt_ints4.

// The product is exact where there is a minimum: a driver that joins it to the difference in one rounding gives the same bits.
vec4 fmt_numbers4(uint ints, vec2 scale) {
    vec4 numbers = scale.x * signed4(ints);
#if FMT_MIN
    numbers -= scale.y;
#endif
    return numbers;
}

vec4 fmt_decode4(Row row, uint col) {
    return fmt_numbers4(fmt_ints4(row, col), fmt_scale(row, col));
}

#if FMT_TAIL
vec4 fmt_tail4(Row row, uint col, uint left) {
    return first_numbers(fmt_numbers4(fmt_ints_tail4(row, col, left), fmt_scale(row, col)), left);
}
#endif
