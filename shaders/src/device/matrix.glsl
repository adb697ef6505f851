// Rows of a stored matrix, for kernels of a format.

// A reference moved by `count * bytes`, down to a multiple of 4; the bytes that are left stand in `rest`.
uvec2 moved(uvec2 reference, uint count, uint bytes, out uint rest) {
    uint high, low, carry;
    umulExtended(count, bytes, high, low);
    rest = low & 3u;
    uint sum = uaddCarry(reference.x, low & ~3u, carry);
    return uvec2(sum, reference.y + high + carry);
}

// Row `r` of a matrix of `rows` rows, whose rows of values and of scales have so many bytes; a row of scales serves `scale_rows` rows.
Row matrix_row(uvec2 matrix, uint rows, uint row_bytes, uint scale_bytes, uint scale_rows, uint r) {
    uint at, rest = 0, skipped = 0;
    uvec2 values = moved(matrix, r, row_bytes, at);
    uvec2 scales = values;
    if (scale_bytes != 0) {
        scales = moved(moved(matrix, rows, row_bytes, rest), r / scale_rows, scale_bytes, skipped);
    }
    // One return: SwiftShader breaks down where references come out of two.
    return Row(Words(values), at, Words(scales), rest + skipped);
}
