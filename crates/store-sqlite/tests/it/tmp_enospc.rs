use crate::traffic::*;
use store::{Reply, Request};
use model::Seq;
#[test]
fn enospc() {
    let directory = std::path::Path::new("/mnt/small/data");
    let _ = std::fs::remove_dir_all(directory);
    std::fs::write("/mnt/small/ballast", vec![1u8; 400_000]).unwrap();
    let mut store = open(directory);
    begin(&mut store, 2);
    let mut taken = 0u32;
    let mut number = 0;
    loop {
        number += 1;
        match &commit(&mut store, &[message(conversation(1), number, 2_000)])[..] {
            [Reply::Appended { .. }] => taken += 1,
            [Reply::ReadOnly] => break,
            other => panic!("{other:?}"),
        }
    }
    println!("taken {taken}, {:?}", store.gauges().read());
    for _ in 0..50 {
        number += 1;
        match &commit(&mut store, &[message(conversation(1), number, 2_000)])[..] {
            [Reply::Appended { .. }] => taken += 1,
            [Reply::ReadOnly] => {},
            other => panic!("{other:?}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    println!("taken after more {taken}, {:?}", store.gauges().read());
    let head = Seq(u64::from(taken) + 1);
    let settle = Request::Settle { conversation: conversation(1), acknowledged: vec![(SENDER, head), (RECEIVER, head)], unmark: vec![SENDER, RECEIVER], trim: head };
    for i in 0..50 {
        let r = commit(&mut store, &[settle.clone()]);
        if r == [Reply::Done] { println!("settled after {i}"); break; }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut more = 0;
    for _ in 0..50 {
        number += 1;
        if matches!(&commit(&mut store, &[message(conversation(1), number, 2_000)])[..], [Reply::Appended { .. }]) { more += 1; }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    println!("more {more} {:?}", store.gauges().read());
    std::fs::remove_file("/mnt/small/ballast").unwrap();
    let mut freed = 0;
    for _ in 0..100 {
        number += 1;
        if matches!(&commit(&mut store, &[message(conversation(1), number, 2_000)])[..], [Reply::Appended { .. }]) { freed += 1; }
    }
    println!("freed {freed}");
    println!("{:?}", store_sqlite::check(directory));
    assert_eq!(freed, 100);
    drop(store);
    println!("{:?}", store_sqlite::check(directory));
}
