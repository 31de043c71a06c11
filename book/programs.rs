//! The book's programs: each Rust block of each chapter is compiled and run as a test of this crate.
//!
//! `cargo test -p miniloop-book --doc`. The chapters are plain Markdown under `src`, in the order of `src/SUMMARY.md`; mdBook can build
//! them (`mdbook build book`) and is not needed to read or to test them.

/// A chapter, as the documentation of a module of its name: that makes its blocks tests.
macro_rules! chapters {
    ($($name:ident = $file:literal),* $(,)?) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!("src/", $file))]
            pub mod $name {}
        )*

        #[cfg(test)]
        const CHAPTERS: &[&str] = &[$($file),*];
    };
}

chapters! {
    about = "about.md",
    event_loop = "event-loop.md",
    callbacks = "callbacks.md",
    timers = "timers.md",
    promises = "promises.md",
    tasks = "tasks.md",
    readiness = "readiness.md",
    line_server = "line-server.md",
    blocking = "blocking.md",
    fairness = "fairness.md",
    cancellation = "cancellation.md",
    structured = "structured.md",
    sharing = "sharing.md",
    testing = "testing.md",
    embedding = "embedding.md",
    looking_inside = "looking-inside.md",
    speed = "speed.md",
    from_asyncio = "from-asyncio.md",
    from_tokio = "from-tokio.md",
    from_trio = "from-trio.md",
}

#[cfg(test)]
mod tests {
    use super::CHAPTERS;

    #[test]
    fn every_chapter_of_the_summary_is_tested() {
        let summary = include_str!("src/SUMMARY.md");
        let listed: Vec<_> = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert_eq!(listed, CHAPTERS);
    }
}
