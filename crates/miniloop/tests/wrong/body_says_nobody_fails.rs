//! The body ends with `()`, which says that nobody fails, and a member does. The compiler says so, and what to do.
//! error[E0277]
//! error[E0277]

async fn fetch() -> Result<(), std::io::Error> {
    Ok(())
}

fn main() {
    let _ = miniloop::run(async {
        miniloop::task_group(async |g| {
            g.spawn(fetch());
        })
        .await;
    });
}
