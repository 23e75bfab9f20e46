//! speed
#[path = "../candidates/world.rs"]
mod world;
use ledger::amounts::Inventory;
use projector::candidates::*;
use std::time::Instant;
use world::*;

fn flat(n: usize) -> World {
    let mut w = World::new();
    for i in 0..n {
        let name = format!("flat-{i:06}");
        w.provider(&name, None);
        w.inventory(
            &name,
            "VCPU",
            Some(Inventory { allocation_ratio: 16.0, max_unit: 128, ..Inventory::of(128) }),
        );
        w.inventory(
            &name,
            "MEMORY_MB",
            Some(Inventory { reserved: 512, ..Inventory::of(1024 * 1024) }),
        );
        w.has(&name, &[("DISK_GB", 40960)]);
        w.traits(&name, &["T1"]);
        w.aggregates(&name, &["a"]);
    }
    w.commit();
    w
}
fn nested(n: usize) -> World {
    let mut w = World::new();
    for i in 0..n {
        let node = format!("nested-{i:06}");
        w.provider(&node, None);
        w.has(&node, &[("DISK_GB", 20480)]);
        w.traits(&node, &["T1"]);
        w.aggregates(&node, &["a"]);
        for k in 0..2 {
            let numa = format!("{node}-numa{k}");
            w.provider(&numa, Some(&node));
            w.has(&numa, &[("VCPU", 4), ("MEMORY_MB", 2048)]);
            let devs: &[(&str, &str, u32)] = if k == 0 {
                &[("f0", "FPGA", 1), ("g", "VGPU", 8)]
            } else {
                &[("f1", "FPGA", 1), ("f2", "FPGA", 1)]
            };
            for (d, c, t) in devs {
                let d = format!("{numa}-{d}");
                w.provider(&d, Some(&numa));
                w.has(&d, &[(c, *t)]);
            }
            if k == 1 {
                w.traits(&numa, &["CUSTOM_FOO", "T2"]);
            } else {
                w.traits(&numa, &["T2"]);
            }
        }
    }
    w.commit();
    w
}
fn shared(n: usize) -> World {
    let mut w = World::new();
    for g in 0..n.div_ceil(20) {
        let d = format!("disk{g}");
        w.provider(&d, None);
        w.has(&d, &[("DISK_GB", 2000000)]);
        w.traits(&d, &[SHARES]);
        let a = format!("agg{g}");
        w.aggregates(&d, &[&a]);
        for i in g * 20..(g + 1) * 20 {
            let name = format!("shared-{i}");
            w.provider(&name, None);
            w.has(&name, &[("VCPU", 128), ("MEMORY_MB", 1 << 20)]);
            w.traits(&name, &["T1"]);
            w.aggregates(&name, &[&a]);
        }
    }
    w.commit();
    w
}
fn time(label: &str, w: &World, q: &Query) {
    let mut best = f64::MAX;
    let mut len = 0;
    for _ in 0..15 {
        let t = Instant::now();
        let f = search(&w.index, q).unwrap();
        best = best.min(t.elapsed().as_secs_f64());
        len = f.len();
    }
    eprintln!("{label:40} {len:7} candidates {:10.1} us", best * 1e6);
}
fn cpu() -> u64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap()
}
fn main_q() -> Query {
    let mut q = query(&[("", "VCPU:1,DISK_GB:10,MEMORY_MB:256")]);
    q.groups[0].member_of = vec![strings(&["a"])];
    q.groups[0].required = vec![all_of(&["T1"])];
    q
}
#[test]
fn speed() {
    for n in [1000, 10_000, 100_000] {
        let t = Instant::now();
        let mut w = flat(n);
        eprintln!("load {n}: {:?}", t.elapsed());
        let mut q = main_q();
        if n <= 10000 {
            time(&format!("flat {n}"), &w, &q);
        }
        q.limit = Some(1000);
        time(&format!("flat {n} limit 1000"), &w, &q);
        q.limit = Some(1);
        time(&format!("flat {n} limit 1"), &w, &q);
        let t = Instant::now();
        let i2 = CandidateIndex::from_state(&w.state);
        eprintln!("from_state {:?} {}", t.elapsed(), i2.sequence());
        // a batch of 256 claims with a snapshot before
        let mut best = f64::MAX;
        for r in 0..10 {
            for k in 0..256 {
                let name = format!("flat-{:06}", (k * 7919 + r * 31) % n);
                w.hold(&name, "VCPU", 1);
            }
            let snap = w.index.clone();
            let t = Instant::now();
            w.commit();
            best = best.min(t.elapsed().as_secs_f64());
            drop(snap);
        }
        eprintln!("follow 256 claims {:.1} us", best * 1e6);
        w.provider("kid", Some("flat-000000"));
        w.commit();
        q.limit = None;
        if n <= 10000 {
            time(&format!("flat {n} + 1 nested"), &w, &q);
        }
        q.limit = Some(1000);
        time(&format!("flat {n} + 1 nested limit 1000"), &w, &q);
        if n > 10000 {
            continue;
        }
        let w = nested(n);
        let mut q =
            query(&[("", "DISK_GB:10"), ("_COMPUTE", "VCPU:1,MEMORY_MB:256"), ("_FPGA", "FPGA:1")]);
        q.groups[0].required = vec![all_of(&["T1"])];
        q.groups[1].required = vec![all_of(&["CUSTOM_FOO"])];
        q.same_subtree = vec![strings(&["_COMPUTE", "_FPGA"])];
        time(&format!("nested {n}"), &w, &q);
        q.limit = Some(1000);
        time(&format!("nested {n} limit 1000"), &w, &q);
        let w = shared(n);
        let mut q = query(&[("", "VCPU:1,MEMORY_MB:256,DISK_GB:10")]);
        q.groups[0].required = vec![all_of(&["T1"])];
        time(&format!("shared {n}"), &w, &q);
        q.limit = Some(1000);
        time(&format!("shared {n} limit 1000"), &w, &q);
    }
}
