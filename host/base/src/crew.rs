//! Threads that work on one step together.
//!
//! A step is one parallel region: the calling thread leads, the others of the crew wait in the region for parts to run. Between two parts
//! they spin for at most 50 microseconds and then sleep, so that short gaps cost no wake-up and long ones no processor. Outside a region
//! nothing spins.

#![allow(unsafe_code)]

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// How long a thread spins before it sleeps: longer than the serial work between two parts, shorter than anything a user notices.
const SPIN: Duration = Duration::from_micros(50);

/// Turns of the spinning loop between two looks at the clock.
const TURNS: u32 = 64;

/// What every thread of a crew runs, given its number.
type Part<'a> = dyn Fn(usize) + Sync + 'a;

/// A pool of threads. The calling thread is one of them.
pub struct Crew {
    /// `None` where the caller works alone.
    pool: Option<rayon::ThreadPool>,
    threads: usize,
}

impl Crew {
    /// A crew of `threads`, the caller included.
    pub fn new(threads: usize) -> Result<Self> {
        let threads = threads.max(1);
        let build = || rayon::ThreadPoolBuilder::new().num_threads(threads - 1).thread_name(|index| format!("coli-{}", index + 1)).build();
        let pool = (threads > 1).then(build).transpose();
        Ok(Self { pool: pool.map_err(|error| Error::run(format!("starting {threads} threads: {error}")))?, threads })
    }

    /// Threads, the caller included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work` on this thread, with the others ready for parts.
    pub fn lead<R>(&self, work: impl FnOnce(&Region) -> R) -> R {
        let region = Region::new(self.threads);
        let Some(pool) = &self.pool else { return work(&region) };
        pool.in_place_scope(|scope| {
            let region = &region;
            scope.spawn_broadcast(move |_, context| region.serve(context.index() + 1));
            // The others are let go however the work ends.
            let _end = End(region);
            work(region)
        })
    }
}

/// A parallel region.
pub struct Region {
    threads: usize,
    /// Counts the parts. Whoever sees it change, and the region not over, has a part to run.
    epoch: AtomicUsize,
    /// Threads that have not ended the present part.
    busy: AtomicUsize,
    over: AtomicBool,
    part: UnsafeCell<Option<*const Part<'static>>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Threads that sleep, and the lock under which they decide to.
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    bell: Condvar,
}

// SAFETY: `part` is the one field that is not Sync. The leader alone writes it, when no thread is busy; the others read it between the
// change of `epoch` that announces it and their own decrement of `busy`, and both are ordered by those atomics.
unsafe impl Sync for Region {}

struct End<'a>(&'a Region);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Release);
        self.0.announce();
    }
}

impl Region {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            epoch: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            part: UnsafeCell::new(None),
            panic: Mutex::new(None),
            sleepers: AtomicUsize::new(0),
            lock: Mutex::new(()),
            bell: Condvar::new(),
        }
    }

    /// Threads of the region, the leader included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `part` on every thread, with the thread's number, and returns when all have ended. For the leader alone, and not within a part.
    pub fn run(&self, part: &Part<'_>) {
        if self.threads == 1 {
            return part(0);
        }
        assert_eq!(self.busy.swap(self.threads - 1, Ordering::AcqRel), 0, "a part is running");
        // SAFETY: only the lifetime changes. This call returns, or unwinds, after every thread has ended the part (`join` below runs even
        // when this thread's own share panics), so no thread uses the reference later.
        let erased = unsafe { std::mem::transmute::<*const Part<'_>, *const Part<'static>>(std::ptr::from_ref(part)) };
        // SAFETY: no thread is busy, so none reads.
        unsafe { *self.part.get() = Some(erased) };
        self.announce();
        let own = catch_unwind(AssertUnwindSafe(|| part(0)));
        self.wait(|| self.busy.load(Ordering::Acquire) == 0);
        let others = lock(&self.panic).take();
        if let Some(panic) = own.err().or(others) {
            resume_unwind(panic);
        }
    }

    /// What every other thread does until the region is over.
    fn serve(&self, thread: usize) {
        let mut seen = 0;
        loop {
            self.wait(|| self.epoch.load(Ordering::Acquire) != seen);
            if self.over.load(Ordering::Acquire) {
                return;
            }
            seen = self.epoch.load(Ordering::Acquire);
            // SAFETY: `epoch` has changed and the region is not over, so the leader has written the part, and writes no other one before
            // this thread has ended it.
            let part = unsafe { *self.part.get() };
            // SAFETY: the leader waits for this thread before the reference that the pointer was made from ends.
            if let Some(part) = part.map(|part| unsafe { &*part })
                && let Err(panic) = catch_unwind(AssertUnwindSafe(|| part(thread)))
            {
                lock(&self.panic).get_or_insert(panic);
            }
            if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.ring();
            }
        }
    }

    fn announce(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.ring();
    }

    /// Wakes all that sleep.
    fn ring(&self) {
        // Pairs with the fence in `wait`: either the sleeper sees what was changed before this call, or its count is seen here.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            drop(lock(&self.lock));
            self.bell.notify_all();
        }
    }

    fn wait(&self, ready: impl Fn() -> bool) {
        let start = Instant::now();
        loop {
            for _ in 0..TURNS {
                if ready() {
                    return;
                }
                std::hint::spin_loop();
            }
            if start.elapsed() > SPIN {
                break;
            }
        }
        let mut guard = lock(&self.lock);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        std::sync::atomic::fence(Ordering::SeqCst);
        while !ready() {
            guard = self.bell.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Nothing is left half done under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_runs_every_part_once() {
        for threads in [1, 2, 5] {
            let crew = Crew::new(threads).unwrap();
            let counts: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            for _ in 0..20 {
                crew.lead(|region| {
                    assert_eq!(region.threads(), threads);
                    for _ in 0..50 {
                        region.run(&|thread| {
                            counts[thread].fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1000), "{counts:?}");
        }
    }

    /// The leader sees what the others wrote, and they what it wrote, also after they have gone to sleep.
    #[test]
    fn parts_are_ordered() {
        let crew = Crew::new(3).unwrap();
        let cells: Vec<AtomicUsize> = (0..3).map(|_| AtomicUsize::new(0)).collect();
        crew.lead(|region| {
            for round in 0..30usize {
                if round % 10 == 3 {
                    std::thread::sleep(Duration::from_millis(2));
                }
                region.run(&|thread| cells[thread].store(round * 10 + thread, Ordering::Relaxed));
                let read: Vec<usize> = cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
                assert_eq!(read, [round * 10, round * 10 + 1, round * 10 + 2]);
            }
        });
    }

    #[test]
    fn a_panic_of_any_thread_reaches_the_caller_and_the_crew_goes_on() {
        let crew = Crew::new(3).unwrap();
        for bad in 0..3 {
            let result = catch_unwind(AssertUnwindSafe(|| {
                crew.lead(|region| region.run(&|thread| assert!(thread != bad, "part of thread {thread}")));
            }));
            let text = *result.unwrap_err().downcast::<String>().unwrap();
            assert_eq!(text, format!("part of thread {bad}"));
            let result = catch_unwind(AssertUnwindSafe(|| crew.lead(|_| panic!("the leader"))));
            assert!(result.is_err());
            let ran = AtomicUsize::new(0);
            crew.lead(|region| {
                region.run(&|_| {
                    let _ = ran.fetch_add(1, Ordering::Relaxed);
                })
            });
            assert_eq!(ran.into_inner(), 3);
        }
    }

    #[test]
    fn results_come_back_from_the_leader() {
        let crew = Crew::new(2).unwrap();
        let mut own = vec![1];
        let len = crew.lead(|_| {
            own.push(2);
            own.len()
        });
        assert_eq!((len, own), (2, vec![1, 2]));
    }
}
