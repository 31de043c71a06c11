//! The names of log files: `00000001.log`, `00000002.log`, .. without gaps, and `00000003.log.new` while one is being made.
//!
//! What has another name in the folder is not ours and is left alone. Next: `window.rs`.

use crate::storage::{
    disk::Disk,
    error::{OpenError, open_error},
};

/// The name of log file `number`.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:08}.log")
}

/// The name that log file `number` has until it is complete.
pub(crate) fn new_file_name(number: u64) -> String {
    format!("{number:08}.log.new")
}

/// The numbers of the log files in the folder, ascending.
pub(crate) fn file_numbers(disk: &dyn Disk) -> Result<Vec<u64>, OpenError> {
    let names = disk.names().map_err(open_error("listing", disk.path()))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name, file_name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Removes what a process left that died while it made a file. Nobody may be making one.
pub(crate) fn remove_unfinished_files(disk: &dyn Disk) -> Result<(), OpenError> {
    let names = disk.names().map_err(open_error("listing", disk.path()))?;
    for name in names.iter().filter(|name| number_of(name, new_file_name).is_some()) {
        disk.remove(name).map_err(open_error("removing", disk.path().join(name)))?;
    }
    Ok(())
}

/// The number that `name_of` gives this very name to: `1.log` and `000000001.log` are nobody's.
fn number_of(name: &str, name_of: fn(u64) -> String) -> Option<u64> {
    let number = name.split('.').next()?.parse().ok()?;
    (number > 0 && name_of(number) == name).then_some(number)
}
