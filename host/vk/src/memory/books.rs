//! How much device memory is free. Pure: every budget and every fit reads the same books.

use super::types::Memory;

/// What `VK_EXT_memory_budget` says of a heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeapBudget {
    /// What this process may use in all.
    pub budget: u64,
    /// What it uses now.
    pub used: u64,
}

/// Whether a heap counts as device memory: the device's own, and every heap of a device that shares the CPU's memory.
pub fn counts(memory: &Memory, heap: usize, shares_memory: bool) -> bool {
    memory.heaps.get(heap).is_some_and(|heap| heap.device_local || shares_memory)
}

/// What is free: by the driver's budgets where it has any, else the largest device-local heap less what we hold; and never more than a
/// limit leaves. A budget above its heap's size is not believed: some drivers report one, and the difference would be negative.
pub fn free(memory: &Memory, budgets: Option<&[HeapBudget]>, held: u64, limit: Option<u64>) -> u64 {
    let largest =
        (0..memory.heaps.len()).filter(|&at| memory.heaps[at].device_local).max_by_key(|&at| (memory.heaps[at].bytes, usize::MAX - at));
    let heap = largest.map_or(0, |at| match budgets.and_then(|budgets| budgets.get(at)).filter(|said| said.budget > 0) {
        Some(said) => said.budget.min(memory.heaps[at].bytes).saturating_sub(said.used),
        None => memory.heaps[at].bytes.saturating_sub(held),
    });
    heap.min(limit.map_or(u64::MAX, |limit| limit.saturating_sub(held)))
}

#[cfg(test)]
mod tests {
    use super::super::samples::*;
    use super::super::{GIB, MIB};
    use super::*;

    #[test]
    fn budgets_are_believed_up_to_the_heap() {
        let memory = nvidia_without_rebar();
        let said = |budget, used| Some([HeapBudget { budget, used }, HeapBudget::default(), HeapBudget::default()]);
        let free = |budgets: Option<[HeapBudget; 3]>, held, limit| free(&memory, budgets.as_ref().map(<[_; 3]>::as_slice), held, limit);
        assert_eq!(free(said(6 * GIB, GIB), 0, None), 5 * GIB);
        assert_eq!(free(said(600 * GIB, GIB), 0, None), 7 * GIB, "more than the heap has");
        assert_eq!(free(said(GIB, 2 * GIB), 0, None), 0);
        assert_eq!(free(said(0, 0), GIB, None), 7 * GIB, "a budget of nothing is none");
        assert_eq!(free(None, 9 * GIB, None), 0);
        assert_eq!(free(None, GIB, Some(3 * GIB)), 2 * GIB);
        assert_eq!(free(None, 4 * GIB, Some(3 * GIB)), 0);
    }

    #[test]
    fn what_counts_as_device_memory() {
        let card = nvidia_without_rebar();
        assert!(counts(&card, 0, false) && !counts(&card, 1, false) && counts(&card, 2, false) && !counts(&card, 9, false));
        assert!(counts(&radv_integrated(), 0, true));
        assert_eq!(free(&software(), None, 48 * MIB, None), 2000 * MIB);
    }
}
