//! An allocator that knows what a play has allocated, on whichever thread it is freed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

struct Counting;

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
}

/// Allocations made on the counted thread and not freed yet.
static LIVE: AtomicIsize = AtomicIsize::new(0);

/// What this thread allocates from now on is counted. One thread at a time.
pub(crate) fn count_this_thread(is_counted: bool) {
    IS_COUNTED.set(is_counted);
}

pub(crate) fn live_allocations() -> isize {
    LIVE.load(Ordering::Relaxed)
}

/// With room in front for the mark that says whether the allocation is counted.
fn with_mark(layout: Layout) -> Option<(Layout, usize)> {
    let mark_len = layout.align().max(align_of::<usize>());
    Some((Layout::from_size_align(layout.size() + mark_len, mark_len).ok()?, mark_len))
}

// SAFETY: every call goes to the system's allocator, with a layout that has room for a mark in front of what the caller gets. The mark is
// as long as the caller's alignment, so what follows it is aligned, too. The counters neither allocate nor panic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((marked, mark_len)) = with_mark(layout) else { return std::ptr::null_mut() };
        // SAFETY: the layout is not empty: it has a mark.
        let place = unsafe { System.alloc(marked) };
        if place.is_null() {
            return place;
        }
        let is_counted = IS_COUNTED.get();
        LIVE.fetch_add(isize::from(is_counted), Ordering::Relaxed);
        // SAFETY: the place begins with the mark, at least a word long and aligned for one, and goes on behind it.
        unsafe {
            place.cast::<usize>().write(usize::from(is_counted));
            place.add(mark_len)
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some((marked, mark_len)) = with_mark(layout) else { return };
        // SAFETY: the pointer came from `alloc` above with this layout, so its mark stands in front of it.
        unsafe {
            let place = pointer.sub(mark_len);
            LIVE.fetch_sub(place.cast::<usize>().read().cast_signed(), Ordering::Relaxed);
            System.dealloc(place, marked);
        }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
