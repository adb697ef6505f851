//! Functions of one number, as every op applies them: f32 throughout, `exp`, `tanh` and `ln_1p` of the system, `erf` of the crate `libm`.

/// `1 / (1 + exp(-x))`.
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// `x / (1 + exp(-x))`.
pub(crate) fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

/// `x * (1 + erf(x / sqrt 2)) / 2`.
pub(crate) fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// `x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2`.
pub(crate) fn gelu_tanh(x: f32) -> f32 {
    const ROOT: f32 = 0.797_884_6;
    0.5 * x * (1.0 + (ROOT * (x + 0.044_715 * x * x * x)).tanh())
}

/// `max(x, 0)`.
pub(crate) fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// The root of `ln(1 + exp(x))`.
pub(crate) fn sqrt_softplus(x: f32) -> f32 {
    (x.max(0.0) + (-x.abs()).exp().ln_1p()).sqrt()
}

/// `sigmoid(sign(x) * sqrt(max(|x|, 1e-6)))`, where the sign of 0 is 0.
pub(crate) fn signsqrt_sigmoid(x: f32) -> f32 {
    let root = x.abs().max(1e-6).sqrt();
    sigmoid(if x > 0.0 {
        root
    } else if x < 0.0 {
        -root
    } else {
        x
    })
}
