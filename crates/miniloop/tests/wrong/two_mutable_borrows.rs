//! Two members change the same variable.
//! error[E0499]

fn main() {
    let _ = miniloop::run(async {
        let mut count = 0;
        miniloop::task_group(async |g| {
            g.spawn(async { count += 1 });
            g.spawn(async { count += 1 });
        })
        .await;
    });
}
