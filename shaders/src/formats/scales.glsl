// The scales of formats that keep them in rows of their own.

// 2^(code - 127), where 255 is NaN (E8M0). The least, of code 0, is a subnormal, which a driver may take for 0.
float ue8m0(uint code) {
    return uintBitsToFloat(code == 0 ? 0x00400000u : code == 255 ? 0x7fc00000u : code << 23);
}

// Scale `index` of the row. An f32 may lie at any byte: the scales follow the values, and rows of bytes have any width.
float row_scale(Row row, uint index) {
    uint at = row.scale_at + index * FMT_SCALE_BYTES;
    if (FMT_SCALE_BYTES == 4) {
        return uintBitsToFloat(get32(row.scales, at));
    }
    if (FMT_SCALE_BYTES == 2) {
        return uintBitsToFloat(get16(row.scales, at) << 16);
    }
    return ue8m0(get8(row.scales, at));
}

// The scale of a column; FMT_GROUP is 0 where a row has one.
float column_scale(Row row, uint col) {
    return row_scale(row, FMT_GROUP == 0 ? 0u : col / max(FMT_GROUP, 1));
}
