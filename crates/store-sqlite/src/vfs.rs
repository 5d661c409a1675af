//! The layer between SQLite and the operating system.
//!
//! It gives every page of a database file a checksum. SQLite checks its write-ahead log by itself and nothing of the database file; a
//! bit that flips inside a payload would be delivered as it is. So pages are sealed on their way into the file and compared on their
//! way out, and a difference is an I/O error (`SQLITE_IOERR_DATA`, as in SQLite's own `cksumvfs` extension, which this follows in
//! shape). Files mapped into memory are not offered, as they would pass this by. And it gathers the writes into the
//! write-ahead log, see [`LogBuffer`]. Everything else goes straight to the system's layer.
//!
//! Deliberately knows nothing of what is in a page.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use rusqlite::ffi;

use crate::checksum;
use crate::log_buffer::LogBuffer;
use crate::schema::PAGE_BYTES;

/// The name under which SQLite knows this layer.
pub(crate) const VFS: &CStr = c"throng";

/// A database file or a write-ahead log as SQLite holds it: the system's own record of it follows in the same allocation.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    /// Of a database file; 0 for a log, whose pages carry no checksum of ours.
    page_bytes: c_int,
    /// Of a log; null for a database file.
    buffer: *mut LogBuffer,
}

/// Room for [`File`] that keeps the record behind it aligned.
const FILE_BYTES: usize = size_of::<File>().next_multiple_of(16);

/// Makes the layer known to SQLite, once per process.
pub(crate) fn register() {
    static REGISTERED: OnceLock<()> = OnceLock::new();
    REGISTERED.get_or_init(|| {
        // SAFETY: the default layer exists for as long as the process does; the new one is leaked and does too.
        unsafe {
            let below = ffi::sqlite3_vfs_find(ptr::null());
            assert!(!below.is_null(), "SQLite has a layer for this system");
            let vfs = Box::leak(Box::new(ffi::sqlite3_vfs {
                iVersion: 2,
                szOsFile: FILE_BYTES as c_int + (*below).szOsFile,
                pNext: ptr::null_mut(),
                zName: VFS.as_ptr(),
                pAppData: below.cast(),
                xOpen: Some(open),
                xGetLastError: Some(last_error),
                ..*below
            }));
            assert_eq!(ffi::sqlite3_vfs_register(vfs, 0), ffi::SQLITE_OK);
        }
    });
}

/// The system's layer. All functions but [`open`] and [`last_error`] are its own: those of the unix layer do not look at the
/// layer they are called through.
unsafe fn below(vfs: *mut ffi::sqlite3_vfs) -> *mut ffi::sqlite3_vfs {
    // SAFETY: `register` put it there.
    unsafe { (*vfs).pAppData.cast() }
}

unsafe extern "C" fn last_error(vfs: *mut ffi::sqlite3_vfs, length: c_int, text: *mut c_char) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let below = below(vfs);
        (*below).xGetLastError.map_or(0, |last_error| last_error(below, length, text))
    }
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite hands over `szOsFile` bytes at `file`; the part behind FILE_BYTES is the system layer's.
    unsafe {
        let below = below(vfs);
        let open = (*below).xOpen.expect("every layer opens files");
        let (is_database, is_log) =
            (flags & ffi::SQLITE_OPEN_MAIN_DB != 0, flags & ffi::SQLITE_OPEN_WAL != 0);
        if !is_database && !is_log {
            return open(below, name, file, flags, flags_out);
        }
        (*file).pMethods = ptr::null();
        let real = real(file);
        let code = open(below, name, real, flags, flags_out);
        if code == ffi::SQLITE_OK {
            let ours = &mut *file.cast::<File>();
            ours.page_bytes = if is_database { page_bytes(real) } else { 0 };
            ours.buffer = if is_log { Box::into_raw(Box::default()) } else { ptr::null_mut() };
            (*file).pMethods = &METHODS;
        } else if !(*real).pMethods.is_null() {
            ((*(*real).pMethods).xClose.expect("every file can be closed"))(real);
        }
        code
    }
}

/// The page size a file says it has (bytes 16 and 17 of its header, big-endian, 1 for 65536), or ours when it is empty.
unsafe fn page_bytes(real: *mut ffi::sqlite3_file) -> c_int {
    let mut header = [0_u8; 100];
    // SAFETY: the file is open and the buffer as long as is said.
    let code = unsafe {
        let read = (*(*real).pMethods).xRead.expect("every file can be read");
        read(real, header.as_mut_ptr().cast(), header.len() as c_int, 0)
    };
    match u16::from_be_bytes([header[16], header[17]]) {
        _ if code != ffi::SQLITE_OK => PAGE_BYTES,
        1 => 65_536,
        bytes => c_int::from(bytes),
    }
}

/// The system's record of a file.
unsafe fn real(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: it lies behind ours, see `open`.
    unsafe { file.byte_add(FILE_BYTES) }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // Version 2 has shared memory, which the write-ahead log needs, and not yet mapped files.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Whether a transfer is exactly one page, the only kind that carries a checksum (the others are looks at the header).
unsafe fn is_page(file: *mut ffi::sqlite3_file, length: c_int, offset: ffi::sqlite3_int64) -> bool {
    // SAFETY: `open` made it a `File`.
    let page_bytes = unsafe { (*file.cast::<File>()).page_bytes };
    length == page_bytes && page_bytes >= 512 && offset % ffi::sqlite3_int64::from(page_bytes) == 0
}

/// Writes as the system does.
unsafe fn write_through(
    file: *mut ffi::sqlite3_file,
    bytes: &[u8],
    offset: ffi::sqlite3_int64,
) -> Result<(), c_int> {
    #[cfg(test)]
    if let Some(code) = faults::write_fails() {
        return Err(code);
    }
    // SAFETY: the file is open and the bytes are there.
    let code = unsafe {
        let real = real(file);
        let write = (*(*real).pMethods).xWrite.expect("every file can be written");
        write(real, bytes.as_ptr().cast(), bytes.len() as c_int, offset)
    };
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(code) }
}

/// Lets go out what was gathered for a file.
unsafe fn flush(file: *mut ffi::sqlite3_file) -> Result<(), c_int> {
    // SAFETY: `open` made it a `File`, and its buffer lives until `close`; SQLite uses a file from one thread at a time.
    unsafe {
        match (*file.cast::<File>()).buffer.as_mut() {
            Some(buffer) => buffer.flush(|bytes, offset| write_through(file, bytes, offset)),
            None => Ok(()),
        }
    }
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    length: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: passed on as it came; after a success the buffer holds `length` bytes.
    unsafe {
        if let Err(code) = flush(file) {
            return code;
        }
        let real = real(file);
        let code = ((*(*real).pMethods).xRead.expect("every file can be read"))(real, buffer, length, offset);
        if code == ffi::SQLITE_OK && is_page(file, length, offset) {
            let page = std::slice::from_raw_parts(buffer.cast::<u8>(), length as usize);
            if !checksum::holds(page, offset as u64) {
                return ffi::SQLITE_IOERR_DATA;
            }
        }
        code
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite hands over `length` bytes. A page's buffer belongs to its page cache or is its scratch page, both writable,
    // and nobody reads its reserved bytes; `cksumvfs` does the same.
    let written = unsafe {
        if is_page(file, length, offset) {
            let page = std::slice::from_raw_parts_mut(bytes.cast_mut().cast::<u8>(), length as usize);
            checksum::seal(page, offset as u64);
        }
        let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), length as usize);
        match (*file.cast::<File>()).buffer.as_mut() {
            Some(buffer) => buffer.put(bytes, offset, |bytes, offset| write_through(file, bytes, offset)),
            None => write_through(file, bytes, offset),
        }
    };
    written.err().unwrap_or(ffi::SQLITE_OK)
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        if let Err(code) = flush(file) {
            return code;
        }
        #[cfg(test)]
        if faults::sync_fails() {
            return ffi::SQLITE_IOERR_FSYNC;
        }
        let real = real(file);
        ((*(*real).pMethods).xSync.expect("every file can be synced"))(real, flags)
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: nothing uses the file after this, and the buffer came from a box.
    unsafe {
        // What was not synced was not committed, so nobody misses it.
        let _ = flush(file);
        let buffer = (*file.cast::<File>()).buffer;
        if !buffer.is_null() {
            drop(Box::from_raw(buffer));
        }
        let real = real(file);
        ((*(*real).pMethods).xClose.expect("every file can be closed"))(real)
    }
}

/// A method that passes on what it was given; a flushed one after what was gathered.
macro_rules! pass_on {
    ($name:ident, $method:ident, ($($argument:ident: $type:ty),*) -> $result:ty) => {
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file, $($argument: $type),*) -> $result {
            // SAFETY: passed on as it came.
            unsafe {
                let real = real(file);
                ((*(*real).pMethods).$method.expect("the unix layer has all of them"))(real, $($argument),*)
            }
        }
    };
    (flushed $name:ident, $method:ident, ($($argument:ident: $type:ty),*) -> c_int) => {
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file, $($argument: $type),*) -> c_int {
            // SAFETY: passed on as it came.
            unsafe {
                if let Err(code) = flush(file) {
                    return code;
                }
                let real = real(file);
                ((*(*real).pMethods).$method.expect("the unix layer has all of them"))(real, $($argument),*)
            }
        }
    };
}

pass_on!(flushed truncate, xTruncate, (size: ffi::sqlite3_int64) -> c_int);
pass_on!(flushed file_size, xFileSize, (size: *mut ffi::sqlite3_int64) -> c_int);
pass_on!(lock, xLock, (level: c_int) -> c_int);
pass_on!(unlock, xUnlock, (level: c_int) -> c_int);
pass_on!(check_reserved_lock, xCheckReservedLock, (reserved: *mut c_int) -> c_int);
pass_on!(file_control, xFileControl, (operation: c_int, argument: *mut c_void) -> c_int);
pass_on!(sector_size, xSectorSize, () -> c_int);
pass_on!(device_characteristics, xDeviceCharacteristics, () -> c_int);
pass_on!(shm_map, xShmMap, (page: c_int, size: c_int, extend: c_int, at: *mut *mut c_void) -> c_int);
pass_on!(shm_lock, xShmLock, (offset: c_int, count: c_int, flags: c_int) -> c_int);
pass_on!(shm_barrier, xShmBarrier, () -> ());
pass_on!(shm_unmap, xShmUnmap, (delete: c_int) -> c_int);

/// Failures of the disk for the tests of this crate; each thread has its own disk.
#[cfg(test)]
pub(crate) mod faults {
    use std::cell::Cell;
    use std::ffi::c_int;

    thread_local! {
        /// How many syncs of database files and logs go well before one fails.
        pub(crate) static SYNCS: Cell<Option<u32>> = const { Cell::new(None) };
        /// How many writes into them go well, and with which code all later ones fail.
        pub(crate) static WRITES: Cell<Option<(u32, c_int)>> = const { Cell::new(None) };
    }

    pub(super) fn sync_fails() -> bool {
        let left = SYNCS.get();
        SYNCS.set(left.and_then(|left| left.checked_sub(1)));
        left == Some(0)
    }

    pub(super) fn write_fails() -> Option<c_int> {
        let (left, code) = WRITES.get()?;
        WRITES.set(Some((left.saturating_sub(1), code)));
        (left == 0).then_some(code)
    }
}
