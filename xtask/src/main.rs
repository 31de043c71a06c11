//! The project's tasks, in Rust, so that they run wherever the project builds. What each does: `cargo xtask --help`.
//!
//! Read next: `tree.rs`, what they look at; `tidy/mod.rs`; `suite/mod.rs`; `bench.rs`.

mod tree;
mod tidy;
mod suite;
mod bench;

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, io};

use tree::Tree;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> io::Result<bool> {
    let root = root()?;
    let tree = Tree::read(&root)?;
    // The programs of `bench` have a help of their own.
    let wants_help = arguments.iter().take_while(|argument| *argument != "bench").any(|argument| argument == "--help" || argument == "-h");
    let Some((task, rest)) = arguments.split_first().filter(|_| !wants_help) else {
        println!("{HELP}\nSteps: {}", suite::step_names(&tree).join(" "));
        return Ok(true);
    };
    match task.as_str() {
        "tidy" if rest.is_empty() => {
            let found = tidy::findings(&tree);
            found.iter().for_each(|finding| println!("{finding}"));
            Ok(found.is_empty())
        }
        "tidy" => Err(io::Error::other("`tidy` takes no arguments")),
        "test" => suite::run(&root, &tree, &test_options(rest)?),
        "bench" => bench::run(&root, &tree, rest),
        unknown => {
            let what = format!("there is no task `{unknown}`; there are `test`, `tidy` and `bench`, see `cargo xtask --help`");
            Err(io::Error::other(what))
        }
    }
}

fn test_options(arguments: &[String]) -> io::Result<suite::Options> {
    let (flags, only): (Vec<String>, Vec<String>) = arguments.iter().cloned().partition(|argument| argument.starts_with('-'));
    if let Some(unknown) = flags.iter().find(|flag| *flag != "--install") {
        return Err(io::Error::other(format!("`test` has no option `{unknown}`; it has `--install`")));
    }
    Ok(suite::Options { only, install: !flags.is_empty() })
}

/// The folder that holds this program's package, upwards from where we are.
fn root() -> io::Result<PathBuf> {
    let here = env::current_dir()?;
    let root = here.ancestors().find(|folder| folder.join("xtask/Cargo.toml").exists());
    root.map(PathBuf::from).ok_or_else(|| io::Error::other("run it inside the repository: there is no xtask/Cargo.toml here or above"))
}

const HELP: &str = "\
The project's tasks.

cargo xtask test [--install] [STEP..]
    Runs everything that a change must pass, or only the named steps, and ends with `N passed, N failed, N skipped`.
    The exit status is 0 when nothing failed and, with CI=true, nothing was skipped.
    --install   as root, install programs that tests need and that are missing (done anyway with CI=true)

cargo xtask tidy
    Checks the rules that compiler and clippy do not know: the order of files (layers.txt), where `unsafe` stands,
    lengths of files and lines, links in documents, names of files in comments.

cargo xtask bench [runtime | relay | charts] [ARGUMENT..]
    Measures miniloop beside other runtimes, relay beside other servers, and draws what was measured; all three without a name.
    What each can be given: cargo xtask bench runtime --help
";
