// Functions of one number, as the CPU twins apply them.

float sigmoid(float x) {
    precise float share = 1.0 / (1.0 + exp(-x));
    return share;
}

float silu(float x) {
    precise float product = x / (1.0 + exp(-x));
    return product;
}

// `ln(1 + x)` for x of 0 and more. Drivers' logarithms have few digits near 1, so that a small x has a series of its own:
// `ln(1 + x) = 2 artanh(s)` with `s = x / (2 + x)`.
float log_plus_one(float x) {
    if (x > 1.0) {
        return log(1.0 + x);
    }
    float s = x / (2.0 + x);
    precise float square = s * s;
    precise float series = 0.13993782;
    series = series * square + 0.14003791;
    series = series * square + 0.20010549;
    series = series * square + 0.33333212;
    precise float sum = 2.0 * s + 2.0 * s * (square * series);
    return sum;
}

// `ln(1 + e^x)`, without its overflow.
float softplus(float x) {
    return max(x, 0.0) + log_plus_one(exp(-abs(x)));
}

float relu(float x) {
    return x < 0.0 ? 0.0 : x;
}

float sqrt_softplus(float x) {
    return sqrt(softplus(x));
}

// `sigmoid(sign(x) * sqrt(max(|x|, 1e-6)))`, where the sign of 0 is 0.
float signsqrt_sigmoid(float x) {
    float root = sqrt(max(abs(x), 1e-6));
    return sigmoid(x > 0.0 ? root : x < 0.0 ? -root : x);
}

// `2^n`, for n of -126 to 127.
float two_to(int n) {
    return uintBitsToFloat(uint(n + 127) << 23);
}

// `e^x` within one unit of the last digit, by sums and products alone, so that it has the same bits on every device.
// `x = n ln 2 + rest` with `|rest| <= ln 2 / 2`; ln 2 is split so that n times its first part is exact.
float exponential(float x) {
    if (x < -104.0) {
        return 0.0;
    }
    if (x > 88.8) {
        return uintBitsToFloat(0x7f800000u);
    }
    precise float n = floor(x * 1.442695 + 0.5);
    precise float rest = (x - n * 0.693359375) - n * -0.00021219444;
    precise float series = 0.0013941143;
    series = series * rest + 0.008363193;
    series = series * rest + 0.041666374;
    series = series * rest + 0.16666576;
    series = series * rest + 0.5;
    precise float power = 1.0 + (rest + rest * rest * series);
    // In two steps, since the smallest powers are no normal numbers.
    int first = int(n) / 2;
    return power * two_to(first) * two_to(int(n) - first);
}

// The error function within two units of the last digit: `x + x p(x^2)`, and `1 - exp(-q(x))` further out.
float error_function(float x) {
    float size = abs(x);
    if (size < 0.9) {
        precise float square = x * x;
        precise float near = 8.538842e-5;
        near = near * square + -0.0008181928;
        near = near * square + 0.005204436;
        near = near * square + -0.026860753;
        near = near * square + 0.1128372;
        near = near * square + -0.37612635;
        near = near * square + 0.12837917;
        precise float small = x + x * near;
        return small;
    }
    precise float far = -0.00019821961;
    far = far * size + 0.0030654899;
    far = far * size + -0.0223152115;
    far = far * size + 0.10411368;
    far = far * size + 0.63697606;
    far = far * size + 1.1277972;
    far = far * size + 0.00016644805;
    float large = size > 4.0 ? 1.0 : 1.0 - exponential(-far);
    return x < 0.0 ? -large : large;
}

// The hyperbolic tangent within a few units of the last digit: `x + x^3 p(x^2)`, and `1 - 2 / (e^2x + 1)` further out.
float hyperbolic_tangent(float x) {
    float size = abs(x);
    if (size < 0.6) {
        precise float square = x * x;
        precise float near = -0.0059106257;
        near = near * square + 0.020809814;
        near = near * square + -0.053788137;
        near = near * square + 0.13331978;
        near = near * square + -0.333333015;
        precise float small = x + x * (square * near);
        return small;
    }
    float large = size > 10.0 ? 1.0 : 1.0 - 2.0 / (exponential(2.0 * size) + 1.0);
    return x < 0.0 ? -large : large;
}

// `x * (1 + erf(x / sqrt 2)) / 2`.
float gelu(float x) {
    return 0.5 * x * (1.0 + error_function(x * 0.70710678));
}

// `x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2`.
float gelu_tanh(float x) {
    precise float cubic = 0.7978846 * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1.0 + hyperbolic_tangent(cubic));
}

// Whether the number with these bits is one: neither infinite nor NaN, which comparisons of floats need not tell.
bool is_finite(uint bits) {
    return (bits & 0x7f800000u) != 0x7f800000u;
}

// Whole numbers in the order of the floats with these bits; zeros of both signs are equal. No finite number gives 0.
uint ordered(uint bits) {
    return bits == 0x80000000u ? 0x80000000u : bits >> 31 == 1 ? ~bits : bits | 0x80000000u;
}

// The float that has this place in the order.
float of_ordered(uint key) {
    return uintBitsToFloat(key >> 31 == 1 ? key & 0x7fffffffu : ~key);
}

// A gate's function times a number, as `glu` and experts have it: 0 silu, 1 silu of clamped numbers, 2 gelu.
float glu(uint kind, float limit, float gate, float up) {
    // Precise, since several kernels have it, and bits must not depend on which one runs.
    if (kind == 1) {
        precise float clamped = silu(min(gate, limit)) * clamp(up, -limit, limit);
        return clamped;
    }
    precise float product = (kind == 2 ? gelu(gate) : silu(gate)) * up;
    return product;
}
