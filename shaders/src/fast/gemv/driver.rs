//! Kernels for single tokens with AVX2 and with AVX-512 VNNI: one text for both, which differ in the integer dot alone.
//!
//! A unit of 256 columns is eight vectors of 32 bytes; the sums of the first, third ... are lanes 0 to 7 of the signature, those of the
//! others lanes 8 to 15. With 512 bits a vector would have two scales, and spreading them costs more than the wider additions save.
//!
//! Two rows of weights, or four rows of activations, run together: their sums do not wait for one another. The scales of a strip of units
//! are ready before its bytes, for the same reason.

use crate::fast::acts::{ActUnits, Bytes, Groups};

/// Bytes ahead of what is read now that are asked for, into the second-level cache: asking for the first level, or for less, was slower
/// than not to ask.
pub(super) const AHEAD: usize = 8192;

/// Rows of activations that a pass takes.
pub(super) const BATCH: usize = 16;

/// Rows of weights that run together.
pub(super) const TOGETHER: usize = 2;

/// Units of a strip.
pub(super) const STRIP: usize = 16;

/// For each unit of a strip and each pair of rows, the products of scales.
pub(super) type Strip = [[[[f32; 8]; 2]; 4]; STRIP];

/// Where a row of activations lies: bytes, scales, and sums of 16 or 8 groups for each unit.
#[derive(Clone, Copy)]
pub(super) struct Act {
    pub(super) q: *const Bytes,
    pub(super) scales: *const Groups,
    pub(super) sums: *const f32,
}

impl Act {
    pub(super) fn new<const G: usize>(of: ActUnits<'_>) -> Self {
        let sums = if G == 16 { of.halves.as_ptr().cast() } else { of.sums.as_ptr().cast() };
        Self { q: of.q.as_ptr(), scales: of.scales.as_ptr(), sums }
    }
}

/// Where a row of weights lies: whole units, and what is left in a unit of its own.
#[derive(Clone, Copy)]
pub(super) struct Place<const B: usize, const S: usize> {
    pub(super) values: *const [u8; B],
    pub(super) scales: *const [u8; S],
    pub(super) tail: *const ([u8; B], [u8; S]),
}

/// The kernels of a level, which must have `dot`, the sums of products of four bytes.
macro_rules! kernels {
    ($level:expr, $features:literal) => {
        /// See [`super::gemv`].
        pub(crate) fn gemv<F: Registers<B, S, G>, const B: usize, const S: usize, const G: usize>(
            w: &WeightView<'_>,
            rows: Range<usize>,
            acts: &Acts,
            act_rows: Range<usize>,
            out: &mut [f32],
        ) {
            let (values, scales) = w.rows_of(rows.clone());
            of_bytes::<F, B, S, G>((values, scales), rows.len(), acts, act_rows, out);
        }

        /// The same of rows whose values and whose scales follow each other.
        pub(crate) fn of_bytes<F: Registers<B, S, G>, const B: usize, const S: usize, const G: usize>(
            weights: (&[u8], &[u8]),
            count: usize,
            acts: &Acts,
            act_rows: Range<usize>,
            out: &mut [f32],
        ) {
            assert!($level.is_here() && act_rows.end <= acts.rows());
            for (first, out) in act_rows.clone().step_by(BATCH).zip(out.chunks_mut(BATCH * count.max(1))) {
                let mut places = [Act::new::<G>(acts.units(first)); BATCH];
                let batch = BATCH.min(act_rows.end - first);
                for (place, row) in places.iter_mut().zip(first..act_rows.end) {
                    *place = Act::new::<G>(acts.units(row));
                }
                let units = acts.units(first).q.len();
                // SAFETY: the level is here, and the rows of activations have so many units.
                unsafe { pass::<F, B, S, G>(weights, count, units, &places[..batch], out) };
            }
        }

        /// Rows of weights with up to 16 rows of activations.
        ///
        /// # Safety
        /// Each row of activations has `units`.
        #[target_feature(enable = $features)]
        unsafe fn pass<F: Registers<B, S, G>, const B: usize, const S: usize, const G: usize>(
            (values, scales): (&[u8], &[u8]),
            count: usize,
            units: usize,
            acts: &[Act],
            out: &mut [f32],
        ) {
            let (width, scale_width) = (values.len() / count.max(1), scales.len() / count.max(1));
            let row = |at: usize| Row::<B, S>::new(&values[at * width..][..width], &scales[at * scale_width..][..scale_width], F::PER_ROW);
            let mut strip = [[[[0.0; 8]; 2]; 4]; STRIP];
            let mut tails = [([0; B], [0; S]); TOGETHER];
            let mut at = 0;
            while at < count {
                let left = count - at;
                // With several rows of activations there are sums enough.
                let some = if acts.len() >= 4 { 1 } else { left.min(TOGETHER) };
                let mut places = [Place { values: std::ptr::null(), scales: std::ptr::null(), tail: std::ptr::null() }; TOGETHER];
                let whole = row(at).values.len();
                assert!(whole >= units || whole + 1 == units, "{whole} of {units} units");
                for index in 0..some {
                    let row = row(at + index);
                    if whole < units {
                        tails[index] = row.tail(F::PER_ROW);
                    }
                    places[index] = Place { values: row.values.as_ptr(), scales: row.scales.as_ptr(), tail: &raw const tails[index] };
                }
                let [one, _] = places;
                let (fours, rest) = if some == 1 { acts.as_chunks::<4>() } else { (&[][..], acts) };
                let mut out = out.chunks_exact_mut(count);
                for four in fours {
                    // SAFETY: rows have as many units as the first, and a tail where that is fewer than `units`.
                    let y = unsafe { block::<F, B, S, G, 1, 4>(&mut strip, [one], *four, whole.min(units), units) };
                    y[0].iter().zip(&mut out).for_each(|(y, out)| out[at] = *y);
                }
                for (act, out) in rest.iter().zip(out) {
                    let (of, whole, out) = ([*act], whole.min(units), &mut out[at..][..some]);
                    if some == 1 {
                        // SAFETY: see above.
                        let y = unsafe { block::<F, B, S, G, 1, 1>(&mut strip, [one], of, whole, units) };
                        out.copy_from_slice(y.as_flattened());
                    } else {
                        // SAFETY: see above.
                        let y = unsafe { block::<F, B, S, G, TOGETHER, 1>(&mut strip, places, of, whole, units) };
                        out.copy_from_slice(y.as_flattened());
                    }
                }
                at += some;
            }
        }

        /// The products of some rows.
        ///
        /// # Safety
        /// Each row of weights has `whole` units and, where `units` is more by one, a tail; each row of activations has `units`.
        #[target_feature(enable = $features)]
        #[inline]
        unsafe fn block<F: Registers<B, S, G>, const B: usize, const S: usize, const G: usize, const R: usize, const N: usize>(
            strip: &mut Strip,
            rows: [Place<B, S>; R],
            acts: [Act; N],
            whole: usize,
            units: usize,
        ) -> [[f32; N]; R] {
            let (mut a, mut m) = ([[[_mm256_setzero_ps(); 2]; N]; R], [[[_mm256_setzero_ps(); 2]; N]; R]);
            let mut first = 0;
            while first < units {
                // A strip is of whole units or is the tail.
                let (count, tail) = if first < whole { (STRIP.min(whole - first), false) } else { (1, true) };
                let mut places = rows;
                for place in &mut places {
                    if tail {
                        // SAFETY: there is a tail.
                        (place.values, place.scales) = unsafe { (&raw const (*place.tail).0, &raw const (*place.tail).1) };
                    } else {
                        place.values = place.values.wrapping_add(first);
                        place.scales = place.scales.wrapping_add(if F::PER_ROW { 0 } else { first });
                    }
                }
                let ahead_of = acts.map(|act| Act {
                    q: act.q.wrapping_add(first),
                    scales: act.scales.wrapping_add(first),
                    sums: act.sums.wrapping_add(first * G),
                });
                // SAFETY: rows of weights and of activations have so many units from these places.
                unsafe { scaled::<F, B, S, G, R, N>(strip, &places, &ahead_of, count, &mut m) };
                // SAFETY: see above.
                unsafe { sums::<F, B, S, G, R, N>(strip, &places, &ahead_of, count, &mut a) };
                first += count;
            }
            let mut y = [[0.0; N]; R];
            for r in 0..R {
                for n in 0..N {
                    let m = if G == 8 && units % 2 == 1 { [m[r][n][1], m[r][n][0]] } else { m[r][n] };
                    y[r][n] = difference(_mm256_add_ps(a[r][n][0], a[r][n][1]), _mm256_add_ps(m[0], m[1]));
                }
            }
            y
        }

        /// The products of scales of a strip, and its minimums' sums.
        ///
        /// # Safety
        /// All rows have `count` units, at most those of a strip.
        #[target_feature(enable = $features)]
        #[inline]
        unsafe fn scaled<F: Registers<B, S, G>, const B: usize, const S: usize, const G: usize, const R: usize, const N: usize>(
            strip: &mut Strip,
            rows: &[Place<B, S>; R],
            acts: &[Act; N],
            count: usize,
            m: &mut [[[__m256; 2]; N]; R],
        ) {
            let mut sum = *m;
            for (unit, strip) in strip.iter_mut().enumerate().take(count) {
                for r in 0..R {
                    let scales = rows[r].scales.wrapping_add(if F::PER_ROW { 0 } else { unit });
                    // SAFETY: `unit` is one of `count`. Where there is one array of scales, it is that of all units.
                    let (values, scales) = unsafe { (&*rows[r].values.add(unit), &*scales) };
                    // SAFETY: the level has what they need.
                    let w = unsafe { F::scales(values, scales) };
                    for n in 0..N {
                        // SAFETY: `unit` is one of `count`.
                        let act = unsafe { eight(&(*acts[n].scales.add(unit)).0) };
                        // SAFETY: there are so many sums for each unit.
                        let t = unsafe { _mm256_loadu_ps(acts[n].sums.add(unit * G)) };
                        let [low, high] = &mut strip[r * N + n];
                        if G == 16 {
                            let twice = [_mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3), _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7)];
                            store(low, _mm256_mul_ps(w.s[0], _mm256_permutevar8x32_ps(act, twice[0])));
                            store(high, _mm256_mul_ps(w.s[1], _mm256_permutevar8x32_ps(act, twice[1])));
                            // SAFETY: see above.
                            let last = unsafe { _mm256_loadu_ps(acts[n].sums.add(unit * G + 8)) };
                            sum[r][n] = [_mm256_fmadd_ps(w.m[0], t, sum[r][n][0]), _mm256_fmadd_ps(w.m[1], last, sum[r][n][1])];
                        } else {
                            store(low, _mm256_mul_ps(w.s[0], act));
                            // Groups go to the lower and the upper lanes by turns.
                            sum[r][n] = [sum[r][n][1], _mm256_fmadd_ps(w.m[0], t, sum[r][n][0])];
                        }
                    }
                }
            }
            *m = sum;
        }

        /// The sums of a strip's products.
        ///
        /// # Safety
        /// All rows have `count` units, at most those of a strip.
        #[target_feature(enable = $features)]
        #[inline]
        unsafe fn sums<F: Registers<B, S, G>, const B: usize, const S: usize, const G: usize, const R: usize, const N: usize>(
            strip: &Strip,
            rows: &[Place<B, S>; R],
            acts: &[Act; N],
            count: usize,
            a: &mut [[[__m256; 2]; N]; R],
        ) {
            let mut sum = *a;
            for (unit, strip) in strip.iter().enumerate().take(count) {
                for r in 0..R {
                    // SAFETY: `unit` is one of `count`.
                    let values = unsafe { &*rows[r].values.add(unit) };
                    for line in 0..B.div_ceil(64) {
                        let address = values.as_ptr().wrapping_add(AHEAD + line * 64);
                        _mm_prefetch::<_MM_HINT_T1>(address.cast());
                    }
                    // SAFETY: the level has what they need.
                    let u = unsafe { F::codes(values) };
                    for n in 0..N {
                        // SAFETY: `unit` is one of `count`.
                        let q = unsafe { &(*acts[n].q.add(unit)).0 }.as_chunks::<32>().0;
                        for group in 0..8 {
                            let dot = if F::MOST > 127 {
                                dot::<true>(u[group], load32(&q[group]))
                            } else {
                                dot::<false>(u[group], load32(&q[group]))
                            };
                            let scale = scale::<G>(&strip[r * N + n], group);
                            sum[r][n][group % 2] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), scale, sum[r][n][group % 2]);
                        }
                    }
                }
            }
            *a = sum;
        }

        /// The scales of 32 columns.
        #[target_feature(enable = $features)]
        #[inline]
        fn scale<const G: usize>(scales: &[[f32; 8]; 2], group: usize) -> __m256 {
            if G == 8 {
                return _mm256_set1_ps(scales[0][group]);
            }
            let first = (group % 4 * 2) as i32;
            let which = _mm256_setr_epi32(first, first, first, first, first + 1, first + 1, first + 1, first + 1);
            _mm256_permutevar8x32_ps(eight(&scales[group / 4]), which)
        }

        /// The difference of two trees of the signature, whose lanes from 8 are joined already.
        #[target_feature(enable = $features)]
        #[inline]
        fn difference(a: __m256, m: __m256) -> f32 {
            let four = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, m), _mm256_permute2f128_ps::<0x31>(a, m));
            let two = _mm256_add_ps(four, _mm256_permute_ps::<0b1110>(four));
            let one = _mm256_add_ps(two, _mm256_permute_ps::<1>(two));
            _mm_cvtss_f32(_mm_sub_ss(_mm256_castps256_ps128(one), _mm256_extractf128_ps::<1>(one)))
        }
    };
}

pub(super) use kernels;
