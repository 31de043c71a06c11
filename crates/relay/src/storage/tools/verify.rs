//! `relay verify`: looks at everything in a data folder and says what is not as relay left it.
//!
//! Nothing stops it but a system that does not let it look. Next: `target.rs`.

use super::{
    check_history::{check_pages, check_segments, check_trees},
    check_log::{check_log, check_log_alone},
    finding::{Finding, Report},
    progress::Watch,
    source::{Source, folded},
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
    let refusals = refusals(data_dir)?;
    let Some(source) = Source::open(data_dir)? else { return Err(OpenError::NoData { path: data_dir.to_owned() }) };
    let mut report = verify_source(&source, watch)?;
    // They come first, where they are not cut off.
    let findings = std::mem::take(&mut report.findings);
    report.finding_count = report.finding_count.saturating_sub(findings.len() as u64);
    for refusal in refusals {
        let command = match &refusal {
            OpenError::Exposed { path, .. } => format!("chmod 700 {}", quoted(path)),
            _ => format!("ls -la {}", quoted(data_dir)),
        };
        let path = data_dir.display().to_string();
        report.find(Finding { path, offset: None, row: None, meaning: refusal.to_string(), command });
    }
    findings.into_iter().for_each(|finding| report.find(finding));
    Ok(report)
}

pub(crate) fn verify_source(source: &Source, watch: &mut Watch<'_>) -> Result<Report, OpenError> {
    let mut report = Report::new(&source.data_dir);
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
            check_pages(source, history.as_ref().ok().and_then(Option::as_ref), &mut report, watch)?;
            history
        }
    };
    let history = match history {
        Ok(history) => history,
        Err(error) => {
            source.find(&mut report, error)?;
            check_log_alone(source, &mut report)?;
            return Ok(report);
        }
    };
    let position = folded(history.as_ref());
    let mut unfolded = Unfolded::behind(position.as_ref().map_or(u64::MAX, |position| position.sequence));
    if let Some(history) = &history {
        check_trees(source, history, &mut report)?;
        check_segments(source, history, &mut unfolded, &mut report, watch)?;
    }
    match position {
        Ok(_) => check_log(source, history.as_ref(), &mut unfolded, &mut report, watch)?,
        Err(error) => {
            source.find(&mut report, error)?;
            check_log_alone(source, &mut report)?;
        }
    }
    Ok(report)
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
