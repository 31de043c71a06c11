//! The steps of `cargo xtask test`, in order: what each runs. It starts nothing, but asks rustc where its libraries are.
//!
//! Steps share the development build, so each crate is compiled once for all of them. Only what changes the compiler's flags gets a target
//! folder of its own, else each run would throw the other's work away.
//! Read next: `mod.rs`, which runs them.

use std::fmt;

use crate::tree::Tree;

pub(crate) struct Step {
    /// What one types to run it alone: `cargo xtask test NAME`.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) work: Work,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Work {
    Tidy,
    /// Passes or fails as a whole.
    Check(Invocation),
    /// Its tests are counted one by one.
    Tests(Invocation),
    /// What the step needs is not there.
    Absent(&'static str),
}

/// One call of cargo.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Invocation {
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    pub(crate) arguments: Vec<String>,
}

impl Invocation {
    fn new(arguments: &str) -> Self {
        Self { environment: Vec::new(), arguments: arguments.split(' ').map(str::to_owned).collect() }
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// `arguments` without those of libtest. The rest prints what passed tests said, where a skip may stand.
    fn tests(arguments: &str, libtest_arguments: &[&str]) -> Self {
        let mut invocation = Self::new(arguments);
        invocation.arguments.extend(["--no-fail-fast", "--", "--show-output"].map(str::to_owned));
        invocation.arguments.extend(libtest_arguments.iter().map(|argument| (*argument).to_owned()));
        invocation
    }
}

/// As one would type it.
impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}='{value}' ")?;
        }
        write!(f, "cargo {}", self.arguments.join(" "))
    }
}

/// The crate whose integration tests start the real server: they measure, fill and kill things, so one at a time.
const ONE_AT_A_TIME: &str = "crates/relay";
const MUTANTS: &str = "crates/miniloop/tests/mutants.rs";

/// The tests of miniloop in which futures and wakers are made, moved and dropped in every way. All of them would take minutes to compile.
const SANITIZED: [&str; 4] = ["destructors", "every_poll", "groups", "tasks"];
const SANITIZED_TARGET: &str = "x86_64-unknown-linux-gnu";

/// All steps for this repository.
pub(crate) fn steps(tree: &Tree) -> Vec<Step> {
    let end_to_end = test_names(tree, &[ONE_AT_A_TIME]);
    let mut integration = test_names(tree, &["crates/miniloop", "crates/relay-core", "crates/relay-bench", "xtask"]);
    // With a flag of its own, or, where two crates use one name (cargo knows tests by name only), one at a time.
    integration.retain(|name| name != "mutants" && !end_to_end.contains(name));

    vec![
        step("format", "the code is formatted", Work::Check(Invocation::new("fmt --all --check"))),
        step(
            "clippy",
            "no warnings from rustc or clippy",
            Work::Check(Invocation::new("clippy --workspace --all-features --all-targets -- -D warnings")),
        ),
        step("tidy", "layers, unsafe, lengths, links", Work::Tidy),
        step(
            "build",
            "programs and examples, which tests start",
            Work::Check(Invocation::new("build --workspace --all-features --bins --examples")),
        ),
        step("unit", "unit and property tests", Work::Tests(Invocation::tests("test --workspace --all-features --lib --bins", &[]))),
        step("integration", "public API, models, regressions", named(&integration, "crates/miniloop/tests", &[])),
        step("end-to-end", "the real relay, one test at a time", named(&end_to_end, "crates/relay/tests", &["--test-threads=1"])),
        step(
            "instructions",
            "hot paths cost what is written down",
            named(&test_names(tree, &["crates/instructions"]), "crates/instructions/tests", &[]),
        ),
        step(
            "doc-tests",
            "the examples in the documentation",
            Work::Tests(Invocation::tests("test --workspace --all-features --doc", &[])),
        ),
        step("mutants", "each broken rule of the loop is noticed", if_there(tree, MUTANTS, mutants())),
        step("sanitizer", "no bad access to memory, no leak", sanitizer(tree, SanitizerRuntime::is_there())),
        step(
            "docs",
            "rustdoc without warnings",
            Work::Check(Invocation::new("doc --workspace --all-features --no-deps").with("RUSTDOCFLAGS", "-D warnings")),
        ),
    ]
}

fn step(name: &'static str, about: &'static str, work: Work) -> Step {
    Step { name, about, work }
}

fn mutants() -> Invocation {
    Invocation::tests("test -p miniloop --test mutants --target-dir target/mutants", &[]).with("RUSTFLAGS", "--cfg miniloop_mutants")
}

/// AddressSanitizer, and LeakSanitizer with it. It works on stable Rust with the key that opens the unstable flags; it needs the target
/// spelled out, so that build scripts and macros are built without.
fn sanitizer(tree: &Tree, is_runtime_there: bool) -> Work {
    if !is_runtime_there {
        return Work::Absent("the runtime of AddressSanitizer, which comes with rustc for x86_64 Linux,");
    }
    let tests: Vec<String> = SANITIZED.iter().map(|name| format!(" --test {name}")).collect();
    let arguments =
        format!("test -p miniloop -p relay-core --lib{} --target {SANITIZED_TARGET} --target-dir target/sanitizer", tests.concat());
    let invocation = Invocation::tests(&arguments, &[]).with("RUSTC_BOOTSTRAP", "1").with("RUSTFLAGS", "-Zsanitizer=address");
    if_there(tree, "crates/miniloop/tests/every_poll/main.rs", invocation.with("ASAN_OPTIONS", "detect_leaks=1"))
}

/// What comes with rustc on some targets only.
struct SanitizerRuntime;

impl SanitizerRuntime {
    fn is_there() -> bool {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let printed = std::process::Command::new(rustc).args(["--print", "target-libdir", "--target", SANITIZED_TARGET]).output();
        let Ok(printed) = printed else { return false };
        let files = std::fs::read_dir(String::from_utf8_lossy(&printed.stdout).trim());
        files.is_ok_and(|mut files| files.any(|file| file.is_ok_and(|file| file.file_name().to_string_lossy().contains("_rt.asan"))))
    }
}

fn if_there(tree: &Tree, file: &'static str, invocation: Invocation) -> Work {
    if tree.exists(file) { Work::Tests(invocation) } else { Work::Absent(file) }
}

fn named(names: &[String], folder: &'static str, libtest_arguments: &[&str]) -> Work {
    if names.is_empty() {
        return Work::Absent(folder);
    }
    // Not `--package`: another selection of packages is another selection of features, which would compile everything again.
    let names: Vec<String> = names.iter().map(|name| format!("--test {name}")).collect();
    Work::Tests(Invocation::tests(&format!("test --workspace --all-features {}", names.join(" ")), libtest_arguments))
}

/// What cargo finds in the `tests` folders of these packages: files, and folders with a `main.rs`.
fn test_names(tree: &Tree, packages: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    for (path, _) in tree.ending(".rs") {
        let below = packages.iter().find_map(|package| path.strip_prefix(package)?.strip_prefix("/tests/"));
        let name = below.map(|below| below.strip_suffix("/main.rs").unwrap_or(below.trim_end_matches(".rs")));
        names.extend(name.filter(|name| !name.contains('/')).map(str::to_owned));
    }
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[&str], step: &str, expected: &str) {
        let files: Vec<(&str, &str)> = files.iter().map(|path| (*path, "")).collect();
        let step = steps(&Tree::of(&files)).into_iter().find(|candidate| candidate.name == step).expect("a step of this name");
        let work = match step.work {
            Work::Check(invocation) | Work::Tests(invocation) => invocation.to_string(),
            other => format!("{other:?}"),
        };
        assert!(work.starts_with(expected), "{work}");
    }

    #[test]
    fn each_test_file_runs_in_one_step_and_those_of_relay_one_at_a_time() {
        let files = [
            "crates/instructions/tests/bounds.rs",
            "crates/miniloop/tests/limits.rs",
            "crates/miniloop/tests/mutants.rs",
            "crates/miniloop/tests/order.rs",
            "crates/relay-core/tests/scenarios/main.rs",
            "crates/relay/tests/chat.rs",
            "crates/relay/tests/limits.rs",
            "crates/relay/tests/support/mod.rs",
        ];
        check(&files, "integration", "cargo test --workspace --all-features --test order --test scenarios --no-fail-fast -- --show-output");
        let one_at_a_time =
            "cargo test --workspace --all-features --test chat --test limits --no-fail-fast -- --show-output --test-threads=1";
        check(&files, "end-to-end", one_at_a_time);
        check(&files, "instructions", "cargo test --workspace --all-features --test bounds --no-fail-fast");
        check(&files, "mutants", "RUSTFLAGS='--cfg miniloop_mutants' cargo test -p miniloop --test mutants");
    }

    #[test]
    fn without_its_runtime_the_sanitizer_is_skipped_and_says_so() {
        let tree = Tree::of(&[("crates/miniloop/tests/every_poll/main.rs", "")]);
        assert!(matches!(sanitizer(&tree, false), Work::Absent(missing) if missing.contains("runtime")));
        let Work::Tests(invocation) = sanitizer(&tree, true) else { panic!("it should run") };
        let expected = "RUSTC_BOOTSTRAP='1' RUSTFLAGS='-Zsanitizer=address' ASAN_OPTIONS='detect_leaks=1' cargo test -p miniloop";
        assert!(invocation.to_string().starts_with(expected), "{invocation}");
    }

    #[test]
    fn a_step_without_its_files_is_absent_not_passed() {
        for step in ["integration", "end-to-end", "instructions", "mutants", "sanitizer"] {
            check(&["README.md"], step, "Absent");
        }
    }
}
