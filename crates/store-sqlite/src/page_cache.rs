//! SQLite's page cache, without a walk over all of it after every commit.
//!
//! At the end of a transaction SQLite lets its cache drop the pages beyond the end of the file. There are none, but when the balancing
//! of a tree exchanges two pages it gives one of them, for a moment, the number of a page that never exists (the one with the lock
//! bytes, at 1 GiB). The cache then believes that it holds a page as high as that, and looks through all its pages to find those to drop.
//! With some ten thousand pages that takes longer than a small commit does, and leaves a core's own cache full of them.
//!
//! So a layer is put around SQLite's cache that remembers the highest page it really holds, and asks it to drop pages only when there may
//! be some. Deliberately knows nothing of what is in a page.

use std::ffi::{c_int, c_uint};
use std::ptr;
use std::sync::OnceLock;

use rusqlite::ffi;
use rusqlite::ffi::{sqlite3_pcache, sqlite3_pcache_page};

/// SQLite's own methods.
struct Below(ffi::sqlite3_pcache_methods2);

// SAFETY: functions, and an argument for them that is never written.
unsafe impl Send for Below {}
// SAFETY: as above.
unsafe impl Sync for Below {}

static BELOW: OnceLock<Below> = OnceLock::new();

/// A cache as SQLite holds it.
struct Cache {
    below: *mut sqlite3_pcache,
    numbers: Numbers,
}

/// Which page numbers a cache may hold.
#[derive(Debug, Default)]
struct Numbers {
    /// No page but the exchanged one has a higher number.
    highest: c_uint,
    /// The number of a page that was moved above all others; 0 when there is none, as pages are counted from 1.
    exchanged: c_uint,
}

impl Numbers {
    fn present(&mut self, number: c_uint) {
        self.highest = self.highest.max(number);
    }

    fn moved(&mut self, from: c_uint, to: c_uint) {
        if from == self.exchanged {
            self.exchanged = 0;
        }
        if to > self.highest && self.exchanged == 0 {
            self.exchanged = to;
        } else {
            self.present(to);
        }
    }

    /// All pages from `first` on are to go; says whether there may be any.
    fn drop_from(&mut self, first: c_uint) -> bool {
        let any = first <= self.highest || first <= self.exchanged;
        self.highest = self.highest.min(first - 1);
        if first <= self.exchanged {
            self.exchanged = 0;
        }
        any
    }
}

/// Puts the layer around SQLite's cache. To be called before anything else is asked of SQLite; nothing happens if something was.
pub(crate) fn register() {
    // SAFETY: `sqlite3_pcache_methods2` is plain data for which zero is a value; both operations take a pointer to one, and SQLite
    // copies it.
    unsafe {
        let mut below: ffi::sqlite3_pcache_methods2 = std::mem::zeroed();
        if ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETPCACHE2, &raw mut below) != ffi::SQLITE_OK {
            return;
        }
        let around = ffi::sqlite3_pcache_methods2 {
            xCreate: Some(create),
            xCachesize: Some(cachesize),
            xPagecount: Some(pagecount),
            xFetch: Some(fetch),
            xUnpin: Some(unpin),
            xRekey: Some(rekey),
            xTruncate: Some(truncate),
            xDestroy: Some(destroy),
            xShrink: Some(shrink),
            ..below
        };
        if BELOW.set(Below(below)).is_ok() {
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_PCACHE2, &raw const around);
        }
    }
}

/// A method of SQLite's cache.
macro_rules! below {
    ($method:ident) => {
        BELOW.get().and_then(|below| below.0.$method).expect("SQLite's cache has all methods")
    };
}

/// What `create` made.
unsafe fn cache<'a>(cache: *mut sqlite3_pcache) -> &'a mut Cache {
    // SAFETY: SQLite gives what `create` gave it, and uses a cache from one thread at a time.
    unsafe { &mut *cache.cast::<Cache>() }
}

unsafe extern "C" fn create(page_bytes: c_int, extra_bytes: c_int, purgeable: c_int) -> *mut sqlite3_pcache {
    // SAFETY: passed on as it came.
    let below = unsafe { below!(xCreate)(page_bytes, extra_bytes, purgeable) };
    if below.is_null() {
        return ptr::null_mut();
    }
    Box::into_raw(Box::new(Cache { below, numbers: Numbers::default() })).cast()
}

unsafe extern "C" fn fetch(
    this: *mut sqlite3_pcache,
    number: c_uint,
    create: c_int,
) -> *mut sqlite3_pcache_page {
    // SAFETY: passed on as it came.
    unsafe {
        let this = cache(this);
        let page = below!(xFetch)(this.below, number, create);
        if !page.is_null() {
            this.numbers.present(number);
        }
        page
    }
}

unsafe extern "C" fn rekey(
    this: *mut sqlite3_pcache,
    page: *mut sqlite3_pcache_page,
    from: c_uint,
    to: c_uint,
) {
    // SAFETY: passed on as it came.
    unsafe {
        let this = cache(this);
        this.numbers.moved(from, to);
        below!(xRekey)(this.below, page, from, to);
    }
}

unsafe extern "C" fn truncate(this: *mut sqlite3_pcache, first: c_uint) {
    // SAFETY: passed on as it came.
    unsafe {
        let this = cache(this);
        if this.numbers.drop_from(first) {
            below!(xTruncate)(this.below, first);
        }
    }
}

unsafe extern "C" fn unpin(this: *mut sqlite3_pcache, page: *mut sqlite3_pcache_page, discard: c_int) {
    // SAFETY: passed on as it came.
    unsafe { below!(xUnpin)(cache(this).below, page, discard) }
}

unsafe extern "C" fn cachesize(this: *mut sqlite3_pcache, pages: c_int) {
    // SAFETY: passed on as it came.
    unsafe { below!(xCachesize)(cache(this).below, pages) }
}

unsafe extern "C" fn pagecount(this: *mut sqlite3_pcache) -> c_int {
    // SAFETY: passed on as it came.
    unsafe { below!(xPagecount)(cache(this).below) }
}

unsafe extern "C" fn shrink(this: *mut sqlite3_pcache) {
    // SAFETY: passed on as it came.
    unsafe { below!(xShrink)(cache(this).below) }
}

unsafe extern "C" fn destroy(this: *mut sqlite3_pcache) {
    // SAFETY: `create` made it, and this is its last use.
    unsafe {
        let this = Box::from_raw(this.cast::<Cache>());
        below!(xDestroy)(this.below);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// SQLite's cache under the layer, with pages 1 to 10 in it.
    fn ten() -> *mut sqlite3_pcache {
        crate::vfs::register();
        // SAFETY: it may be called at any time.
        assert_eq!(unsafe { ffi::sqlite3_initialize() }, ffi::SQLITE_OK);
        assert!(BELOW.get().is_some(), "nothing was asked of SQLite before");
        // SAFETY: as SQLite calls them.
        unsafe {
            let cache = create(512, 64, 1);
            cachesize(cache, 100);
            for number in 1..=10 {
                let page = fetch(cache, number, 2);
                assert!(!page.is_null());
            }
            cache
        }
    }

    /// The pages that are there of those that may be.
    fn there(cache: *mut sqlite3_pcache) -> Vec<c_uint> {
        // SAFETY: as SQLite calls it.
        (1..2_000).filter(|number| !unsafe { fetch(cache, *number, 0) }.is_null()).collect()
    }

    #[test]
    fn pages_go_when_the_file_ends_before_them_and_only_then() {
        let cache = ten();
        // SAFETY: as SQLite calls them.
        unsafe {
            let page = fetch(cache, 5, 0);
            rekey(cache, page, 5, 1_000);
            rekey(cache, fetch(cache, 7, 0), 7, 5);
            rekey(cache, page, 1_000, 7);
            truncate(cache, 11);
            assert_eq!(there(cache), (1..=10).collect::<Vec<_>>());
            truncate(cache, 8);
            assert_eq!(there(cache), (1..=7).collect::<Vec<_>>());
            // One that stays where it was moved goes too.
            rekey(cache, page, 7, 1_000);
            truncate(cache, 8);
            assert_eq!(there(cache), (1..=6).collect::<Vec<_>>());
            destroy(cache);
        }
    }

    #[test]
    fn pages_are_only_left_alone_when_none_is_to_go() {
        let seed: u64 = std::env::var("THRONG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
        println!("THRONG_SEED={seed}");
        let mut state = seed;
        let mut below = move |most: u32| {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) % u64::from(most)) as u32
        };
        let mut numbers = Numbers::default();
        let mut held = BTreeSet::new();
        let mut left_alone = 0;
        for _ in 0..100_000 {
            let number = 1 + below(60);
            match below(4) {
                0 | 1 => {
                    numbers.present(number);
                    held.insert(number);
                }
                2 => {
                    let to = 1 + below(120);
                    if held.contains(&number) && !held.contains(&to) {
                        numbers.moved(number, to);
                        held.remove(&number);
                        held.insert(to);
                    }
                }
                _ => {
                    let any = held.split_off(&number);
                    let asked = numbers.drop_from(number);
                    assert!(asked || any.is_empty(), "{any:?} stayed behind {number}");
                    left_alone += u32::from(!asked);
                }
            }
        }
        assert!(left_alone > 100, "{left_alone}");
    }
}
