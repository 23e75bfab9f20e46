//! Answers that are cut off (cases D10, L8, L10): which candidates they hold, and what an operator sets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::cloud::Cloud;

/// Trees of a root and some children with one unit each; their roots by their children.
fn trees(cloud: &Cloud, roots: usize, children: usize) -> BTreeMap<String, String> {
    cloud.accept(&json!({"create_resource_class": {"name": "CUSTOM_X"}}));
    let mut root_of = BTreeMap::new();
    for number in 0..roots {
        let root = cloud.provider(&format!("r{number}"), None, &json!({}));
        for child in 0..children {
            let unit = json!({"CUSTOM_X": {"total": 1}});
            let child = cloud.provider(&format!("r{number}-{child}"), Some(&root), &unit);
            root_of.insert(child, root.clone());
        }
    }
    root_of
}

/// The roots of an answer's candidates, one for each.
fn roots(cloud: &Cloud, root_of: &BTreeMap<String, String>, query: &str) -> Vec<String> {
    let answer = cloud.client.read(&format!("/allocation_candidates?{query}"));
    let requests = answer["allocation_requests"].as_array().unwrap();
    let root = |request: &Value| {
        let providers = request["allocations"].as_object().unwrap();
        let roots: BTreeSet<&String> =
            providers.keys().map(|provider| &root_of[provider]).collect();
        assert_eq!(roots.len(), 1, "a candidate is of one tree");
        roots.into_iter().next().unwrap().clone()
    };
    requests.iter().map(root).collect()
}

/// How many candidates each root has, most first.
fn counts(roots: &[String]) -> Vec<usize> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for root in roots {
        *counts.entry(root).or_default() += 1;
    }
    let mut counts: Vec<usize> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

/// Case D10 (bug 2070257): a cap on what is generated is all of the first host, or of each in turn.
#[test]
fn a_cap_is_spread_over_hosts_if_the_operator_says_so() {
    const QUERY: &str = "resources1=CUSTOM_X:1&resources2=CUSTOM_X:1&group_policy=isolate";
    const BREADTH: &str = "--allocation-candidates-generation-strategy=breadth-first";
    let cases: [(&[&str], &[usize]); 4] = [
        (&[], &[12, 12, 12]),
        (&["--max-allocation-candidates=-1"], &[12, 12, 12]),
        (&["--max-allocation-candidates", "4"], &[4]),
        (&["--max-allocation-candidates=4", BREADTH], &[2, 1, 1]),
    ];
    for (arguments, expected) in cases {
        let cloud = Cloud::with(arguments);
        let root_of = trees(&cloud, 3, 4);
        assert_eq!(counts(&roots(&cloud, &root_of, QUERY)), expected, "{arguments:?}");
    }
}

/// Case L10 (bug 2126751 and its kin): ten candidates of ten hosts are one of each, so that a retry
/// tries another host. That is so with a query's own limit, and with a cap that goes by breadth.
#[test]
fn a_limited_granular_answer_has_each_host_once() {
    const QUERY: &str = "resources1=CUSTOM_X:1&resources2=CUSTOM_X:1&resources3=CUSTOM_X:1\
                         &resources4=CUSTOM_X:1&group_policy=none";
    let cloud = Cloud::with(&[
        "--max-allocation-candidates=10",
        "--allocation-candidates-generation-strategy=breadth-first",
    ]);
    let root_of = trees(&cloud, 10, 8);
    for query in [QUERY.to_owned(), format!("{QUERY}&limit=10"), format!("{QUERY}&limit=1000")] {
        assert_eq!(counts(&roots(&cloud, &root_of, &query)), [1; 10], "{query}");
    }
    let answer = cloud.client.get(&format!("/allocation_candidates?{QUERY}")).unwrap();
    assert_eq!(
        answer.header("ledger-candidates-cut-off"),
        Some("true"),
        "it says that there is more"
    );
}

/// Case L8: three hosts alike, answers of two. Without the option they are the same two each time; with
/// it each host comes first at times.
#[test]
fn a_limited_answer_differs_from_request_to_request() {
    let first = |arguments: &[&str]| {
        let cloud = Cloud::with(arguments);
        let hosts = cloud.fleet(3, &json!({"VCPU": {"total": 8}}));
        let root_of: BTreeMap<_, _> =
            hosts.iter().map(|host| (host.clone(), host.clone())).collect();
        let mut first = BTreeSet::new();
        // By chance: that one of three never comes first in 100 requests has a probability of 10^-17.
        for _ in 0..100 {
            let roots = roots(&cloud, &root_of, "resources=VCPU:1&limit=2");
            assert_eq!(counts(&roots), [1, 1]);
            first.insert(roots[0].clone());
        }
        first.len()
    };
    assert_eq!(first(&[]), 1);
    assert_eq!(first(&["--randomize-allocation-candidates"]), 3);
}
