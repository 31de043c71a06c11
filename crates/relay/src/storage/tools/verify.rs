//! `relay verify`: looks at everything in a data folder and says what is not as relay left it.
//!
//! Nothing stops it but a system that does not let it look. Next: `new_folder.rs`.

use super::{
    check_history::{check_pages, check_segments, check_trees},
    check_log::{check_log, check_log_alone},
    report::{Finding, Report, Watch},
    source::Source,
    unfolded::Unfolded,
};
use crate::storage::{
    error::{OpenError, quoted},
    folder::refusals,
};
use std::path::Path;

/// Checks a data folder, also beside a running server.
///
/// # Errors
///
/// There is no data folder, or the operating system does not let us look.
pub fn verify_folder(data_dir: &Path, watch: &mut Watch<'_>) -> Result<Report, OpenError> {
    let source = Source::open(data_dir)?;
    let mut report = Report::new(data_dir);
    for refusal in refusals(data_dir)? {
        let command = match &refusal {
            OpenError::Exposed { path, .. } => format!("chmod 700 {}", quoted(path)),
            _ => format!("ls -la {}", quoted(data_dir)),
        };
        let path = data_dir.display().to_string();
        report.find(Finding { path, offset: None, row: None, meaning: refusal.to_string(), command });
    }
    verify_source(&source, &mut report, watch)?;
    Ok(report)
}

/// Checks what the folder holds.
pub(crate) fn verify_source(source: &Source, report: &mut Report, watch: &mut Watch<'_>) -> Result<(), OpenError> {
    let history = match source.history() {
        Err(OpenError::Unfinished { path, .. }) => {
            report.notes.push(format!(
                "a change of {} was cut off, as by a crash: the next start takes it back; what is said here is how it will be then",
                path.display()
            ));
            // Pages of the file may be of before and after, so they are not looked at one by one.
            source.history_rolled_back()
        }
        history => {
            check_pages(source, history.as_ref().ok().and_then(Option::as_ref), report, watch)?;
            history
        }
    };
    let mut history = match history {
        Ok(history) => history,
        Err(error) => {
            source.find(report, error)?;
            check_log_alone(source, report)?;
            return Ok(());
        }
    };
    let position = source.folded(&mut history);
    let mut unfolded = Unfolded::behind(position.as_ref().map_or(u64::MAX, |position| position.sequence));
    if let Some(history) = &mut history {
        check_trees(source, history, report, watch)?;
        check_segments(source, history, &mut unfolded, report, watch)?;
    }
    match position {
        Ok(_) => check_log(source, &mut history, &mut unfolded, report, watch)?,
        Err(error) => {
            source.find(report, error)?;
            check_log_alone(source, report)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
