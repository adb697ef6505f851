//! Fast mode on the CPU: quantized weights against int8 activations, with integer dots.
//!
//! Weights stay as they are stored. Activations are quantized row by row, in groups of 32 ([`Acts`]). Every format whose numbers are small
//! integers decodes to one common form, the panel ([`panel`]): `w = s * u - m` with a byte `u` and, for each group of 16 or 32 numbers,
//! two f32 numbers `s` and `m`. Kernels for one format skip the panel, never its numbers.
//!
//! # Order of sums
//!
//! Integer sums are exact, so only the f32 additions have an order. There are two, one for each row class; every kernel of a class has
//! the order of its class, on every machine, so that a chooser may take any of them. `q` are the activations' bytes, `a` their scale,
//! `t` the sum `a * sum(q)` over a group; `fma` rounds once.
//!
//! - **Steps** (`gemv`): 16 lanes. For each 64 columns in order, lane `l` adds the four columns from `4 l`:
//!   `A[l] = fma(f32(sum u q), s * a, A[l])`. For each group `g` of the format, in order, `M[g % 16] = fma(m, t, M[g % 16])`.
//!   The result is `tree(A) - tree(M)`, where a tree joins lane `l` with `l + 8`, then `+ 4`, `+ 2`, `+ 1`.
//! - **Prompts** (`gemm`): one accumulator. For each group `g` of the format, in order, `y = fma(f32(sum u q), s * a, y)`, then
//!   `y = fma(-m, t, y)`.
//!
//! Formats of floats (f32, f16, bf16, fp8) keep f32 activations. Steps: 16 lanes, lane `l` takes the columns `l`, `l + 16`, ... by `fma`,
//! joined by the same tree. Prompts: one accumulator, column after column by `fma`.
//!
//! Columns beyond the row's end are zeros of `q`, up to a multiple of 64, and of 256 in steps; those of floats in steps, up to a multiple
//! of 16, are zeros too.

mod acts;
pub mod attend;
mod attend_dots;
mod attend_rows;
pub mod attend_step;
mod attend_sums;
#[cfg(test)]
mod attend_tests;
pub mod expf;
pub mod float_gemm;
#[cfg(test)]
mod float_gemm_tests;
mod float_gemm_tile;
pub mod gemm;
#[cfg(target_arch = "x86_64")]
mod gemm_avx2;
#[cfg(target_arch = "x86_64")]
mod gemm_avx512;
mod gemm_pane;
#[cfg(test)]
mod gemm_tests;
mod gemm_words;
pub mod gemv;
pub mod gemv_float;
mod level;
pub mod panel;
#[cfg(test)]
mod panel_tests;
pub mod product;
mod scratch;

pub use acts::{ActRow, Acts};
pub use gemm_pane::Pane;
pub use level::Level;
pub use scratch::{Scratch, ThreadScratch};

/// Columns that a kernel takes together; rows of bytes are padded to a multiple.
pub const CHUNK: usize = 64;

/// Activations that share a scale.
pub const GROUP: usize = 32;

/// A row's length with its padding.
pub fn padded(cols: usize) -> usize {
    cols.next_multiple_of(CHUNK)
}
