//! The group gets out through an outer variable, to be spawned into when it has ended.
//! error: lifetime may not live long enough

fn main() {
    let _ = miniloop::run(async {
        let mut outer = None;
        miniloop::task_group(async |g| {
            outer = Some(g);
        })
        .await;
        outer.unwrap().spawn(async {});
    });
}
