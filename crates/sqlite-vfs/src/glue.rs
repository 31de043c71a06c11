//! The C functions that SQLite calls, and the memory that it lends for them: the crate's only unsafe code.
//!
//! What SQLite promises (<https://sqlite.org/c3ref/vfs.html>) and each block below leans on: pointers it passes are valid for the call; a
//! `sqlite3_file` has `szOsFile` bytes, is given to no method before `xOpen` has set its methods nor after `xClose`, and is used by one
//! thread at a time. A panic does not unwind into C: it becomes an error of the call.

use crate::files::{Access, Error, File, Files, Kind, Lock};
use libsqlite3_sys as ffi;
use std::{
    error,
    ffi::{CStr, CString, c_char, c_int, c_void},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
};

/// Registers `files` with SQLite as the VFS of this name, for the rest of the process: SQLite may hold on to it at any time.
///
/// # Errors
///
/// The name holds a zero byte, or SQLite could not be initialised.
pub fn register(name: &str, files: impl Files) -> Result<(), RegisterError> {
    let name = CString::new(name).map_err(|_| RegisterError(ffi::SQLITE_MISUSE))?;
    let files: *mut Box<dyn Files> = Box::into_raw(Box::new(Box::new(files)));
    let vfs = Box::into_raw(Box::new(ffi::sqlite3_vfs {
        iVersion: 1,
        szOsFile: size_of::<OpenFile>() as c_int,
        mxPathname: NAME_BYTES_MAX,
        pNext: ptr::null_mut(),
        zName: name.into_raw(),
        pAppData: files.cast(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: Some(load_library),
        xDlError: Some(library_error),
        xDlSym: Some(library_symbol),
        xDlClose: Some(close_library),
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(last_error),
        xCurrentTimeInt64: None,
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    }));
    // SAFETY: `vfs` and everything it points to are leaked above, so they live as long as the process.
    match unsafe { ffi::sqlite3_vfs_register(vfs, 0) } {
        ffi::SQLITE_OK => Ok(()),
        code => Err(RegisterError(code)),
    }
}

/// SQLite did not take the files; the number is its result code.
#[derive(Debug)]
pub struct RegisterError(pub i32);

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SQLite took no new kind of files: its result code is {}", self.0)
    }
}

impl error::Error for RegisterError {}

/// The longest name; SQLite gives `xFullPathname` a buffer of one byte more.
const NAME_BYTES_MAX: c_int = 512;

/// What is in the memory that SQLite lends for each open file.
#[repr(C)]
struct OpenFile {
    /// SQLite's part: the table of methods.
    base: ffi::sqlite3_file,
    file: *mut Box<dyn File>,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
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
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let memory: *mut OpenFile = file.cast();
    // SAFETY: `file` has room for an `OpenFile`. Without methods SQLite does not close what was not opened.
    unsafe { (*memory).base.pMethods = ptr::null() };

    let kind = match flags {
        _ if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 => Kind::Database,
        _ if flags & ffi::SQLITE_OPEN_MAIN_JOURNAL != 0 => Kind::Journal,
        _ => return ffi::SQLITE_CANTOPEN,
    };
    let access = match flags {
        _ if flags & ffi::SQLITE_OPEN_READONLY != 0 => Access::Read,
        _ if flags & ffi::SQLITE_OPEN_CREATE != 0 => Access::Create,
        _ => Access::ReadWrite,
    };
    // SAFETY: `vfs` is the one that `register` made, and `name` is a string or null.
    let opened = unsafe { with_files(vfs, name, |files, name| files.open(name, kind, access)) };
    let Ok(opened) = opened else { return ffi::SQLITE_CANTOPEN };

    // SAFETY: as above; `out_flags` is null or valid.
    unsafe {
        (*memory).file = Box::into_raw(Box::new(opened));
        (*memory).base.pMethods = &raw const METHODS;
        if !out_flags.is_null() {
            *out_flags = flags;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync_folder: c_int) -> c_int {
    // SAFETY: `vfs` is the one that `register` made, and `name` is a string.
    match unsafe { with_files(vfs, name, |files, name| files.remove(name, sync_folder != 0)) } {
        Ok(()) => ffi::SQLITE_OK,
        Err(Error::NotFound) => ffi::SQLITE_IOERR_DELETE_NOENT,
        Err(_) => ffi::SQLITE_IOERR_DELETE,
    }
}

unsafe extern "C" fn access(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, _flags: c_int, out: *mut c_int) -> c_int {
    // SAFETY: `vfs` is the one that `register` made, `name` is a string, and `out` is valid.
    unsafe {
        match with_files(vfs, name, |files, name| files.exists(name)) {
            Ok(exists) => {
                *out = c_int::from(exists);
                ffi::SQLITE_OK
            }
            Err(_) => ffi::SQLITE_IOERR_ACCESS,
        }
    }
}

/// Names are complete as they are.
unsafe extern "C" fn full_pathname(_vfs: *mut ffi::sqlite3_vfs, name: *const c_char, out_bytes: c_int, out: *mut c_char) -> c_int {
    // SAFETY: `name` is a string.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
    if name.len() > out_bytes as usize {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: `out` has `out_bytes` bytes, which are at least as many, and is not part of `name`.
    unsafe { ptr::copy_nonoverlapping(name.as_ptr().cast(), out, name.len()) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let memory: *mut OpenFile = file.cast();
    // SAFETY: `open` made the box; the methods go, so nothing reaches it a second time.
    let file = unsafe {
        (*memory).base.pMethods = ptr::null();
        Box::from_raw((*memory).file)
    };
    let closed = guarded(|| {
        drop(file);
        Ok(())
    });
    code(closed, ffi::SQLITE_IOERR_CLOSE)
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, out: *mut c_void, out_bytes: c_int, offset: i64) -> c_int {
    // SAFETY: `out` has `out_bytes` bytes. SQLite need not have written them before, so they are set first.
    let out = unsafe {
        ptr::write_bytes(out.cast::<u8>(), 0, out_bytes as usize);
        slice::from_raw_parts_mut(out.cast::<u8>(), out_bytes as usize)
    };
    // SAFETY: `file` is open.
    let count = unsafe { with_file(file, |file| file.read_at(out, unsigned(offset)?)) };
    match count {
        Ok(count) if count == out.len() => ffi::SQLITE_OK,
        // The rest must be zeros, whatever the implementation used it for.
        Ok(count) => {
            out[count.min(out_bytes as usize)..].fill(0);
            ffi::SQLITE_IOERR_SHORT_READ
        }
        Err(error) => code(Err(error), ffi::SQLITE_IOERR_READ),
    }
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, bytes: *const c_void, byte_count: c_int, offset: i64) -> c_int {
    // SAFETY: `bytes` has `byte_count` bytes, which nobody changes during the call.
    let bytes = unsafe { slice::from_raw_parts(bytes.cast::<u8>(), byte_count as usize) };
    // SAFETY: `file` is open.
    code(unsafe { with_file(file, |file| file.write_at(bytes, unsigned(offset)?)) }, ffi::SQLITE_IOERR_WRITE)
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, byte_count: i64) -> c_int {
    // SAFETY: `file` is open.
    code(unsafe { with_file(file, |file| file.truncate(unsigned(byte_count)?)) }, ffi::SQLITE_IOERR_TRUNCATE)
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: `file` is open.
    code(unsafe { with_file(file, |file| file.sync()) }, ffi::SQLITE_IOERR_FSYNC)
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, out: *mut i64) -> c_int {
    // SAFETY: `file` is open, `out` is valid.
    unsafe {
        let byte_count = with_file(file, |file| i64::try_from(file.byte_count()?).map_err(|_| Error::Io));
        code(byte_count.map(|byte_count| *out = byte_count), ffi::SQLITE_IOERR_FSTAT)
    }
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: `file` is open.
    code(unsafe { with_file(file, |file| file.lock(lock_of(level))) }, ffi::SQLITE_IOERR_LOCK)
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: `file` is open.
    code(unsafe { with_file(file, |file| file.unlock(lock_of(level))) }, ffi::SQLITE_IOERR_UNLOCK)
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: `file` is open, `out` is valid.
    unsafe {
        let is_reserved = with_file(file, |file| file.is_reserved());
        code(is_reserved.map(|is_reserved| *out = c_int::from(is_reserved)), ffi::SQLITE_IOERR_CHECKRESERVEDLOCK)
    }
}

unsafe extern "C" fn file_control(_file: *mut ffi::sqlite3_file, _operation: c_int, _argument: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

/// What SQLite takes to be written whole or not at all: a journal's header fills it.
unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    512
}

/// A write touches no bytes but its own, even when the power goes: what SQLite supposes of every Unix. It does not say that parts of pages
/// may be read, nor that open files cannot be removed.
unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

// Extensions are never loaded. SQLite wants to be told so by functions.

unsafe extern "C" fn load_library(_vfs: *mut ffi::sqlite3_vfs, _name: *const c_char) -> *mut c_void {
    ptr::null_mut()
}

unsafe extern "C" fn library_error(_vfs: *mut ffi::sqlite3_vfs, _out_bytes: c_int, _out: *mut c_char) {}

unsafe extern "C" fn library_symbol(
    _vfs: *mut ffi::sqlite3_vfs,
    _library: *mut c_void,
    _name: *const c_char,
) -> Option<unsafe extern "C" fn(*mut ffi::sqlite3_vfs, *mut c_void, *const c_char)> {
    None
}

unsafe extern "C" fn close_library(_vfs: *mut ffi::sqlite3_vfs, _library: *mut c_void) {}

// Chance, time and waiting are SQLite's own: its default VFS has them, which is never this one.

unsafe extern "C" fn randomness(_vfs: *mut ffi::sqlite3_vfs, out_bytes: c_int, out: *mut c_char) -> c_int {
    // SAFETY: the default VFS lives as long as the process; `out` has `out_bytes` bytes.
    unsafe { default_vfs().and_then(|vfs| Some((*vfs).xRandomness?(vfs, out_bytes, out))).unwrap_or(0) }
}

unsafe extern "C" fn sleep(_vfs: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    // SAFETY: the default VFS lives as long as the process.
    unsafe { default_vfs().and_then(|vfs| Some((*vfs).xSleep?(vfs, microseconds))).unwrap_or(0) }
}

unsafe extern "C" fn current_time(_vfs: *mut ffi::sqlite3_vfs, out: *mut f64) -> c_int {
    // SAFETY: the default VFS lives as long as the process; `out` is valid.
    unsafe { default_vfs().and_then(|vfs| Some((*vfs).xCurrentTime?(vfs, out))).unwrap_or(ffi::SQLITE_ERROR) }
}

unsafe extern "C" fn last_error(_vfs: *mut ffi::sqlite3_vfs, _out_bytes: c_int, _out: *mut c_char) -> c_int {
    0
}

fn default_vfs() -> Option<*mut ffi::sqlite3_vfs> {
    // SAFETY: SQLite is initialised, since it has called us. Null asks for the default.
    let vfs = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
    (!vfs.is_null()).then_some(vfs)
}

/// # Safety
///
/// `vfs` is one that [`register`] made; `name` is null, as for temporary files, or a string.
unsafe fn with_files<T>(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    call: impl FnOnce(&dyn Files, &str) -> Result<T, Error>,
) -> Result<T, Error> {
    if name.is_null() {
        return Err(Error::Io);
    }
    // SAFETY: `register` put the leaked box there, and any number of threads may share it.
    let files: &dyn Files = unsafe { &**(*vfs).pAppData.cast::<Box<dyn Files>>() };
    // SAFETY: it is a string.
    let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Error::Io)?;
    guarded(|| call(files, name))
}

/// # Safety
///
/// `file` is open.
unsafe fn with_file<T>(file: *mut ffi::sqlite3_file, call: impl FnOnce(&mut dyn File) -> Result<T, Error>) -> Result<T, Error> {
    // SAFETY: `open` put the box there, `close` has not taken it, and no other call on this file is going on.
    let file: &mut dyn File = unsafe { &mut **(*file.cast::<OpenFile>()).file };
    guarded(|| call(file))
}

/// What the implementation leaves half done when it panics is its own; SQLite sees an error of the file.
fn guarded<T>(call: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(Error::Io))
}

/// The result code; `io` is the one of the call for a failure of no special kind.
fn code(result: Result<(), Error>, io: c_int) -> c_int {
    match result {
        Ok(()) => ffi::SQLITE_OK,
        Err(Error::Busy) => ffi::SQLITE_BUSY,
        Err(Error::Full) => ffi::SQLITE_FULL,
        // SQLite's own name for a page whose checksum a VFS found wrong.
        Err(Error::Damaged) => ffi::SQLITE_IOERR_DATA,
        Err(Error::NotFound | Error::Io) => io,
    }
}

fn lock_of(level: c_int) -> Lock {
    match level {
        ffi::SQLITE_LOCK_NONE => Lock::None,
        ffi::SQLITE_LOCK_SHARED => Lock::Shared,
        ffi::SQLITE_LOCK_RESERVED => Lock::Reserved,
        ffi::SQLITE_LOCK_PENDING => Lock::Pending,
        _ => Lock::Exclusive,
    }
}

fn unsigned(offset: i64) -> Result<u64, Error> {
    u64::try_from(offset).map_err(|_| Error::Io)
}
