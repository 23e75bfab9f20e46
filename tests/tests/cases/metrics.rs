//! What a monitoring system reads (case K5).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::json;
use system_tests::binaries;
use system_tests::http::Client;
use system_tests::stop::StopOnDrop;

use crate::cloud::{Cloud, claim, consumer, to_migration, vcpu};

/// Providers of the large cloud.
const PROVIDERS: u32 = 10_000;

/// Claims that are made while others scrape.
const CLAIMS: usize = 200;

/// The five figures of a row.
const FIGURES: [&str; 5] = ["total", "reserved", "allocation_ratio", "used", "held_by_moves"];

fn scrape(client: &Client) -> String {
    client.get("/metrics").expect("the server answers").expect(200).text()
}

/// The samples of a scrape: each name with its labels, and its value.
fn samples(text: &str) -> BTreeMap<&str, &str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').expect("a sample has a value")).collect()
}

/// Case K5 (openstack-exporter 249, 204): one scrape has every provider's figures by class, with
/// what moves hold.
#[test]
fn one_scrape_has_all_figures_of_ten_thousand_providers() {
    let cloud = Cloud::new();
    let inventories = json!({
        "VCPU": {"total": 8, "reserved": 2, "allocation_ratio": 4.0}, "DISK_GB": {"total": 100},
    });
    let hosts = cloud.fleet(PROVIDERS, &inventories);
    let (i1, m1) = (consumer("I1"), consumer("M1"));
    cloud.accept(&claim(&i1, &vcpu(&hosts[0], 3)));
    cloud.accept(&to_migration(&i1, &m1, "resize"));
    cloud.accept(&claim(&i1, &vcpu(&hosts[1], 5)));
    let begun = Instant::now();
    let text = scrape(&cloud.client);
    println!("{} bytes of {PROVIDERS} providers in {:?}", text.len(), begun.elapsed());
    let samples = samples(&text);
    for (number, host) in (1..).zip(&hosts) {
        let used = match number {
            1 => ["3", "3"],
            2 => ["5", "0"],
            _ => ["0", "0"],
        };
        for (class, figures) in
            [("VCPU", ["8", "2", "4", used[0], used[1]]), ("DISK_GB", ["100", "0", "1", "0", "0"])]
        {
            for (figure, expected) in FIGURES.into_iter().zip(figures) {
                let sample = format!(
                    "allocd_provider_{figure}{{provider=\"{host}\",name=\"host{number}\",class=\"{class}\"}}"
                );
                assert_eq!(samples.get(sample.as_str()), Some(&expected), "{sample}");
            }
        }
    }
    let rows = samples.keys().filter(|name| name.starts_with("allocd_provider_total{")).count();
    assert_eq!(rows, 2 * hosts.len());
    assert_eq!(samples["allocd_provider_rows_left_out"], "0");
    assert_eq!(samples["allocd_providers"], "10000");
    // The list says the same.
    let row = &cloud.client.read("/ledger/v1/providers?limit=1")["providers"][0];
    let vcpus = &row["inventories"]["VCPU"];
    assert_eq!((&vcpus["held"], &vcpus["held_by_moves"]), (&json!(3), &json!(3)), "{row}");
}

/// Case K5: claims go on while others scrape without a pause.
#[test]
fn claims_go_on_while_others_scrape() {
    let cloud = Cloud::new();
    let hosts = cloud.fleet(2_000, &json!({"VCPU": {"total": 8}}));
    let done = AtomicBool::new(false);
    let scrapes = thread::scope(|scope| {
        let scrapers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let client = cloud.server.client();
                    let mut scrapes: u64 = 0;
                    loop {
                        let text = scrape(&client);
                        // Each is whole: as many rows of each figure.
                        for figure in FIGURES {
                            let rows =
                                text.matches(&format!("\nallocd_provider_{figure}{{")).count();
                            assert_eq!(rows, hosts.len(), "{figure}");
                        }
                        scrapes += 1;
                        if done.load(Ordering::Relaxed) {
                            return scrapes;
                        }
                    }
                })
            })
            .collect();
        let stop = StopOnDrop(&done);
        for (number, host) in hosts.iter().take(CLAIMS).enumerate() {
            cloud.accept(&claim(&consumer(&format!("C{number}")), &vcpu(host, 1)));
        }
        drop(stop);
        scrapers.into_iter().map(|scraper| scraper.join().unwrap()).sum::<u64>()
    });
    println!("{scrapes} scrapes meanwhile");
}

/// Every metric is in docs/metrics.md, and has a help text and a type.
#[test]
fn every_metric_is_documented() {
    let cloud = Cloud::new();
    let host = cloud.host("H1", &[("VCPU", 8)]);
    cloud.send(&claim(&consumer("C1"), &vcpu(&host, 9))).expect(409);
    let text = scrape(&cloud.client);
    let after = |prefix: &str| -> BTreeSet<&str> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
        lines.filter_map(|line| line.split(' ').next()).collect()
    };
    let (typed, helped) = (after("# TYPE "), after("# HELP "));
    assert_eq!(typed, helped);
    for sample in samples(&text).keys() {
        let name = sample.split('{').next().unwrap();
        let parts = ["_bucket", "_sum", "_count"];
        let whole = parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
        assert!(typed.contains(name) || typed.contains(whole), "{name} has no type");
    }
    let page = fs::read_to_string(binaries::root().join("docs/metrics.md")).unwrap();
    // Other tables of the page have values of labels in their first column.
    let documented: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .filter(|name| name.starts_with("allocd_") || name.starts_with("process_"))
        .collect();
    let of_nats = ["allocd_nats_", "allocd_buckets_"];
    let nats: BTreeSet<&str> = documented
        .iter()
        .copied()
        .filter(|name| of_nats.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    assert_eq!(documented.difference(&nats).copied().collect::<BTreeSet<_>>(), typed);
}
