//! Candidate queries from socket to socket, and as their limit the time in which the same server
//! sends the same bytes ready-made.
//!
//!     cargo bench --workspace --profile dev --bench candidates [-- FILTER]
//!
//! The clouds are those of `tests/bench`: flat hosts (perfload's query), trees of seven
//! (nested-perfload's) and hosts that share disks. One client asks over one connection.

mod cloud;
mod serving;

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use std::time::Duration;

use cloud::Cloud;
use serving::Serving;

const LIMITS: [Option<u32>; 3] = [Some(1), Some(1_000), None];

fn candidates(criterion: &mut Criterion) {
    for cloud in [
        Cloud::flat(1_000),
        Cloud::flat(10_000),
        Cloud::flat(100_000),
        Cloud::nested(1_000),
        Cloud::shared(1_000),
    ] {
        let serving = Serving::start(&cloud);
        for limit in LIMITS {
            measure(criterion, &cloud, &serving, limit);
        }
    }
}

fn measure(criterion: &mut Criterion, cloud: &Cloud, serving: &Serving, limit: Option<u32>) {
    let told = limit.map_or_else(|| "all".to_owned(), |limit| limit.to_string());
    let path = match limit {
        Some(limit) => format!("{}&limit={limit}", cloud.query),
        None => cloud.query.clone(),
    };
    let mut client = serving.client();
    let body = client.get(&path);
    serving.keep(body.clone());
    println!("{} limit={told}: {} bytes", cloud.name, body.len());
    let mut group = criterion.benchmark_group(format!("{}/limit={told}", cloud.name));
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Bytes(body.len() as u64));
    let kinds = [("answer", path.as_str()), ("ready-made", serving::READY)];
    for (kind, path) in kinds {
        group.bench_function(BenchmarkId::from_parameter(kind), |bencher| {
            bencher.iter(|| assert_eq!(client.count(path), body.len()));
        });
    }
    group.finish();
}

criterion_group!(benches, candidates);
criterion_main!(benches);
