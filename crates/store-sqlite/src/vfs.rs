//! The layer between SQLite and the operating system.
//!
//! It gives every page of a database file a checksum. SQLite checks nothing of the database file, and its write-ahead log only when it
//! recovers; a bit that flips inside a payload would be delivered as it is. So pages are sealed on their way into the file and compared
//! on their way out, and those in the log are compared with the checksums it has. A difference is an I/O error (`SQLITE_IOERR_DATA`, as
//! in SQLite's own `cksumvfs` extension, which this follows in shape). Files mapped into memory are not offered, as they would pass this by. And it gathers the writes into the
//! write-ahead log, see [`LogBuffer`], and marks how far that is durable, see [`Mark`]. Everything else goes straight to the system's layer.
//!
//! Deliberately knows nothing of what is in a page.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::{fs, ptr};

use rusqlite::ffi;

use crate::checksum;
use crate::log_buffer::LogBuffer;
use crate::log_check::{self, FRAME_HEADER_BYTES, HEADER_BYTES};
use crate::mark::{self, Durable, Mark};
use crate::page_cache;
#[cfg(test)]
use crate::power;
use crate::schema::{self, PAGE_BYTES};

/// The name under which SQLite knows this layer.
pub(crate) const VFS: &CStr = c"throng";

/// A database file or a write-ahead log as SQLite holds it: the system's own record of it follows in the same allocation.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    /// Of a database file; 0 for a log, whose pages carry no checksum of ours.
    page_bytes: c_int,
    /// Of a log; null for a database file.
    log: *mut Log,
}

/// What this layer keeps for a write-ahead log.
struct Log {
    buffer: LogBuffer,
    /// The same file once more, to sync what is in it without what is known about it (`fdatasync`): the log is written over and
    /// over in place, and SQLite, as it is usually compiled, would make the file system write its modification time too. No
    /// locks are on this file that closing it could lose. None until SQLite's first sync, which makes the file's name durable.
    again: Option<fs::File>,
    path: PathBuf,
    mark: Mark,
    /// The last frame of the commit that was written and not yet synced.
    written: Option<Durable>,
    /// Where the last header of a frame ended, until its page has followed.
    header_end: ffi::sqlite3_int64,
    /// Whether a page of the open transaction was written over. Checksums from there on are made right with the commit.
    rewritten: bool,
}

/// Room for [`File`] that keeps the record behind it aligned.
const FILE_BYTES: usize = size_of::<File>().next_multiple_of(16);

/// Makes the layer known to SQLite, once per process.
pub(crate) fn register() {
    static REGISTERED: OnceLock<()> = OnceLock::new();
    REGISTERED.get_or_init(|| {
        // Counting every allocation under a lock is of no use here. It may only be turned off before anything else was asked of SQLite,
        // and is left on if something was.
        // SAFETY: the argument is what this option takes.
        let _ = unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int) };
        page_cache::register();
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
        let mut code = open(below, name, real, flags, flags_out);
        let ours = &mut *file.cast::<File>();
        if code == ffi::SQLITE_OK && is_database {
            match page_bytes(real) {
                Ok(page_bytes) => ours.page_bytes = page_bytes,
                Err(refused) => code = refused,
            }
        }
        if code == ffi::SQLITE_OK {
            ours.page_bytes = if is_database { ours.page_bytes } else { 0 };
            ours.log = if is_log { Box::into_raw(Box::new(Log::new(name))) } else { ptr::null_mut() };
            (*file).pMethods = &METHODS;
        } else if !(*real).pMethods.is_null() {
            ((*(*real).pMethods).xClose.expect("every file can be closed"))(real);
        }
        code
    }
}

impl Log {
    unsafe fn new(name: ffi::sqlite3_filename) -> Log {
        // SAFETY: SQLite names the files it keeps with a C string.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        let database = name.strip_suffix(b"-wal").expect("SQLite calls its logs so");
        Log {
            buffer: LogBuffer::default(),
            again: None,
            path: PathBuf::from(OsStr::from_bytes(name)),
            mark: Mark::new(PathBuf::from(OsStr::from_bytes(database))),
            written: None,
            header_end: 0,
            rewritten: false,
        }
    }

    /// Looks at what is being written into the log (<https://www.sqlite.org/fileformat2.html>, section 4): its header, then for
    /// each page a header of 24 bytes and the page.
    fn note(&mut self, bytes: &[u8], offset: ffi::sqlite3_int64) -> Result<(), c_int> {
        if offset == 0 {
            return self.give_up();
        }
        if let Ok(header) = <&[u8; FRAME_HEADER_BYTES]>::try_from(bytes) {
            let ends_commit = header[4..8] != [0; 4];
            let salts = header[8..16].try_into().expect("eight bytes");
            self.written = ends_commit.then_some(Durable { salts, at: offset as u64 });
            self.header_end = offset + bytes.len() as ffi::sqlite3_int64;
        } else if std::mem::take(&mut self.header_end) != offset {
            self.rewritten = true;
        }
        Ok(())
    }

    /// Comes before the log is begun anew or cut off.
    fn give_up(&mut self) -> Result<(), c_int> {
        self.written = None;
        self.mark.take_back().map_err(|error| match mark::is_no_room(&error) {
            true => ffi::SQLITE_FULL,
            false => ffi::SQLITE_IOERR_WRITE,
        })
    }

    /// Comes after a sync: what was written is durable.
    fn synced(&mut self) -> Result<(), c_int> {
        self.rewritten = false;
        match self.written.take() {
            Some(durable) => self.mark.advance(durable).map_err(|_| ffi::SQLITE_IOERR_FSYNC),
            None => Ok(()),
        }
    }
}

/// The page size of a database file as its header says, or ours when the file is empty. Refuses what is not ours, before the missing
/// checksums of somebody else's database are taken for damage. It is done here because elsewhere it would take another descriptor, and
/// closing that would give up SQLite's locks on the file.
unsafe fn page_bytes(real: *mut ffi::sqlite3_file) -> Result<c_int, c_int> {
    let mut header = [0_u8; 100];
    // SAFETY: the file is open and the buffer as long as is said.
    let code = unsafe {
        let read = (*(*real).pMethods).xRead.expect("every file can be read");
        read(real, header.as_mut_ptr().cast(), header.len() as c_int, 0)
    };
    match code {
        ffi::SQLITE_OK => schema::recognise(&header),
        // What is missing was filled with zeros.
        ffi::SQLITE_IOERR_SHORT_READ if header == [0; 100] => Ok(PAGE_BYTES),
        ffi::SQLITE_IOERR_SHORT_READ => Err(ffi::SQLITE_NOTADB),
        code => Err(code),
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

/// What a file is to the tests of power cuts.
#[cfg(test)]
unsafe fn kind(file: *mut ffi::sqlite3_file) -> power::Kind {
    // SAFETY: `open` made it a `File`.
    let is_database = unsafe { (*file.cast::<File>()).log.is_null() };
    if is_database { power::Kind::Database } else { power::Kind::Log }
}

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
    #[cfg(test)]
    if code == ffi::SQLITE_OK {
        // SAFETY: `open` made it a `File`.
        power::wrote(unsafe { kind(file) }, bytes, offset as u64);
    }
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(code) }
}

/// Lets go out what was gathered for a file.
unsafe fn flush(file: *mut ffi::sqlite3_file) -> Result<(), c_int> {
    // SAFETY: `open` made it a `File`, and its buffer lives until `close`; SQLite uses a file from one thread at a time.
    unsafe {
        match (*file.cast::<File>()).log.as_mut() {
            Some(log) => {
                let flushed = log.buffer.flush(|bytes, offset| write_through(file, bytes, offset));
                if flushed.is_err() {
                    log.written = None;
                }
                flushed
            }
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
        let code = read_as_system(file, buffer, length, offset);
        if code != ffi::SQLITE_OK {
            return code;
        }
        let bytes = std::slice::from_raw_parts(buffer.cast::<u8>(), length as usize);
        let holds = match (*file.cast::<File>()).log.as_ref() {
            None => !is_page(file, length, offset) || checksum::holds(bytes, offset as u64),
            Some(log) if log.rewritten => true,
            Some(_) => match frame_of(length, offset) {
                Some(frame) => match frame_holds(file, frame, bytes) {
                    Ok(holds) => holds,
                    Err(code) => return code,
                },
                None => true,
            },
        };
        if holds { ffi::SQLITE_OK } else { ffi::SQLITE_IOERR_DATA }
    }
}

unsafe fn read_as_system(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    length: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let real = real(file);
        ((*(*real).pMethods).xRead.expect("every file can be read"))(real, buffer, length, offset)
    }
}

/// Where the frame begins whose page is read from a log, if it is one that is read: recovery reads whole frames and compares by itself.
fn frame_of(length: c_int, offset: ffi::sqlite3_int64) -> Option<ffi::sqlite3_int64> {
    let (before, page) = ((HEADER_BYTES + FRAME_HEADER_BYTES) as i64, i64::from(length));
    let is_page = page >= 512 && (page as u64).is_power_of_two() && offset >= before;
    let is_frame = is_page && (offset - before) % (page + FRAME_HEADER_BYTES as i64) == 0;
    is_frame.then_some(offset - FRAME_HEADER_BYTES as i64)
}

/// Whether a page read from a log is what was written.
unsafe fn frame_holds(
    file: *mut ffi::sqlite3_file,
    frame: ffi::sqlite3_int64,
    page: &[u8],
) -> Result<bool, c_int> {
    let frame_bytes = (FRAME_HEADER_BYTES + page.len()) as i64;
    // The checksum is the last thing in the header of the log as of each frame.
    let header_end_before = match frame - frame_bytes {
        before if before < 0 => HEADER_BYTES as i64,
        before => before + FRAME_HEADER_BYTES as i64,
    };
    let (mut sum, mut header) = ([0_u8; 8], [0_u8; FRAME_HEADER_BYTES]);
    for (bytes, offset) in [(&mut sum[..], header_end_before - 8), (&mut header[..], frame)] {
        // SAFETY: the file is open and the buffer as long as is said.
        let code = unsafe { read_as_system(file, bytes.as_mut_ptr().cast(), bytes.len() as c_int, offset) };
        if code != ffi::SQLITE_OK {
            return Err(code);
        }
    }
    Ok(log_check::frame_holds(&sum, &header, page))
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
        match (*file.cast::<File>()).log.as_mut() {
            Some(log) => log.note(bytes, offset).and_then(|()| {
                let put = log.buffer.put(bytes, offset, |bytes, offset| write_through(file, bytes, offset));
                if put.is_err() {
                    log.written = None;
                }
                put
            }),
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
        let code = match (*file.cast::<File>()).log.as_mut() {
            None => sync_as_system(file, flags),
            Some(log) => sync_log(file, flags, log),
        };
        code.err().unwrap_or(ffi::SQLITE_OK)
    }
}

/// Syncs a log, then marks how far it is durable.
unsafe fn sync_log(file: *mut ffi::sqlite3_file, flags: c_int, log: &mut Log) -> Result<(), c_int> {
    #[cfg(test)]
    let changes = power::syncing(power::Kind::Log);
    match &log.again {
        Some(again) => again.sync_data().map_err(|_| ffi::SQLITE_IOERR_FSYNC)?,
        None => {
            // SAFETY: passed on as it came.
            unsafe { sync_as_system(file, flags)? };
            log.again = fs::OpenOptions::new().write(true).open(&log.path).ok();
        }
    }
    #[cfg(test)]
    power::synced(power::Kind::Log, changes);
    log.synced()
}

/// Syncs as the system's layer does; but a sync that a signal interrupted has neither succeeded nor failed, and is made again.
unsafe fn sync_as_system(file: *mut ffi::sqlite3_file, flags: c_int) -> Result<(), c_int> {
    // SAFETY: passed on as it came; the system's layer writes a number where it is told to.
    unsafe {
        #[cfg(test)]
        let (kind, changes) = (kind(file), power::syncing(kind(file)));
        let real = real(file);
        let methods = &*(*real).pMethods;
        loop {
            let code = (methods.xSync.expect("every file can be synced"))(real, flags);
            let mut system: c_int = 0;
            if code == ffi::SQLITE_OK {
                #[cfg(test)]
                power::synced(kind, changes);
                return Ok(());
            }
            (methods.xFileControl.expect("the unix layer has it"))(
                real,
                ffi::SQLITE_FCNTL_LAST_ERRNO,
                (&raw mut system).cast(),
            );
            if code != ffi::SQLITE_IOERR_FSYNC || system != rustix::io::Errno::INTR.raw_os_error() {
                return Err(code);
            }
        }
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: nothing uses the file after this, and the buffer came from a box.
    unsafe {
        // What was not synced was not committed, so nobody misses it.
        let _ = flush(file);
        let log = (*file.cast::<File>()).log;
        if !log.is_null() {
            drop(Box::from_raw(log));
        }
        let real = real(file);
        ((*(*real).pMethods).xClose.expect("every file can be closed"))(real)
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    // SAFETY: `open` made it a `File`; passed on as it came.
    unsafe {
        if let Some(log) = (*file.cast::<File>()).log.as_mut()
            && let Err(code) = log.give_up()
        {
            return code;
        }
        let code = cut(file, size);
        #[cfg(test)]
        if code == ffi::SQLITE_OK {
            power::cut(kind(file), size as u64);
        }
        code
    }
}

/// Without leave to read parts of pages: SQLite reads long payloads past its page cache otherwise, and past the checksums.
unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let real = real(file);
        let all = ((*(*real).pMethods).xDeviceCharacteristics.expect("the unix layer has it"))(real);
        all & !ffi::SQLITE_IOCAP_SUBPAGE_READ
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

pass_on!(flushed cut, xTruncate, (size: ffi::sqlite3_int64) -> c_int);
pass_on!(flushed file_size, xFileSize, (size: *mut ffi::sqlite3_int64) -> c_int);
pass_on!(lock, xLock, (level: c_int) -> c_int);
pass_on!(unlock, xUnlock, (level: c_int) -> c_int);
pass_on!(check_reserved_lock, xCheckReservedLock, (reserved: *mut c_int) -> c_int);
pass_on!(file_control, xFileControl, (operation: c_int, argument: *mut c_void) -> c_int);
pass_on!(sector_size, xSectorSize, () -> c_int);
pass_on!(shm_map, xShmMap, (page: c_int, size: c_int, extend: c_int, at: *mut *mut c_void) -> c_int);
pass_on!(shm_lock, xShmLock, (offset: c_int, count: c_int, flags: c_int) -> c_int);
pass_on!(shm_barrier, xShmBarrier, () -> ());
pass_on!(shm_unmap, xShmUnmap, (delete: c_int) -> c_int);

/// Failures of the disk for the tests of this crate. There is one disk, so a test that opens a database takes it first.
#[cfg(test)]
pub(crate) mod faults {
    use std::ffi::c_int;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    static DISK: Mutex<()> = Mutex::new(());
    static PLAN: Mutex<Plan> = Mutex::new(Plan { syncs: None, writes: None });

    /// How many calls go well before one fails, or all later ones with a code.
    #[derive(Clone, Copy)]
    struct Plan {
        syncs: Option<u32>,
        writes: Option<(u32, c_int)>,
    }

    /// A disk of one's own.
    pub(crate) struct Disk {
        _alone: MutexGuard<'static, ()>,
    }

    impl Disk {
        pub(crate) fn take() -> Disk {
            let disk = Disk { _alone: DISK.lock().unwrap_or_else(PoisonError::into_inner) };
            disk.works();
            disk
        }

        pub(crate) fn works(&self) {
            set(Plan { syncs: None, writes: None });
        }

        /// After so many syncs of database files and logs one fails; later ones succeed, as they do on Linux.
        pub(crate) fn fails_to_sync_after(&self, syncs: u32) {
            set(Plan { syncs: Some(syncs), writes: None });
        }

        /// After so many writes into database files and logs all fail, with a code of SQLite.
        pub(crate) fn fails_to_write_after(&self, writes: u32, code: c_int) {
            set(Plan { syncs: None, writes: Some((writes, code)) });
        }

        /// Whether the sync that was to fail has failed.
        pub(crate) fn has_failed_to_sync(&self) -> bool {
            PLAN.lock().unwrap_or_else(PoisonError::into_inner).syncs.is_none()
        }
    }

    fn set(plan: Plan) {
        *PLAN.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    pub(super) fn sync_fails() -> bool {
        let mut plan = PLAN.lock().unwrap_or_else(PoisonError::into_inner);
        let left = plan.syncs;
        plan.syncs = left.and_then(|left| left.checked_sub(1));
        left == Some(0)
    }

    pub(super) fn write_fails() -> Option<c_int> {
        let mut plan = PLAN.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, code) = plan.writes?;
        plan.writes = Some((left.saturating_sub(1), code));
        (left == 0).then_some(code)
    }
}
