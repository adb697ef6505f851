//! Memory that fast kernels use again op after op.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::float_gemm::FloatPacked;
use super::gemm::Packed;
use super::{Acts, attend};

/// Memory of one thread.
#[derive(Debug, Default)]
pub struct ThreadScratch {
    /// Weight rows.
    pub packed: Packed,
    /// Weight rows that are floats.
    pub floats: FloatPacked,
    /// Attention's.
    pub attend: attend::Scratch,
    /// Results of a kernel, left dirty.
    pub product: Vec<f32>,
    /// Numbers, left dirty.
    pub numbers: Vec<f32>,
}

/// Memory of fast kernels: what all threads read, and what each thread has for itself.
#[derive(Debug)]
pub struct Scratch {
    acts: Mutex<[Acts; 2]>,
    numbers: Mutex<[Vec<f32>; 2]>,
    threads: Vec<Mutex<ThreadScratch>>,
}

impl Scratch {
    /// For so many threads.
    pub fn new(threads: usize) -> Self {
        let threads = (0..threads).map(|_| Mutex::default()).collect();
        Self { acts: Mutex::default(), numbers: Mutex::default(), threads }
    }

    /// Activations of the op that runs now.
    pub fn acts(&self) -> MutexGuard<'_, [Acts; 2]> {
        lock(&self.acts)
    }

    /// Numbers of the op that runs now, left dirty.
    pub fn numbers(&self) -> MutexGuard<'_, [Vec<f32>; 2]> {
        lock(&self.numbers)
    }

    /// Memory of the thread of this number.
    pub fn thread(&self, thread: usize) -> MutexGuard<'_, ThreadScratch> {
        lock(&self.threads[thread])
    }
}

/// Whoever panicked left nothing that the next op believes.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
