//! Wrong candidates (cases D1 to D15, E9): what was offered and could not be had, and what could
//! be had and was not offered.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use system_tests::topology;

use crate::cloud::Cloud;

/// A provider that lends to all in its aggregates.
const SHARES: &str = "MISC_SHARES_VIA_AGGREGATE";

const A1: &str = "30000000-0000-4000-8000-000000000001";
const A2: &str = "30000000-0000-4000-8000-000000000002";

/// What one candidate takes, spelled `provider class amount`.
type Candidate = BTreeSet<String>;

/// Names of providers that tests know by name.
struct Names(BTreeMap<String, &'static str>);

impl Names {
    fn of(names: &[&'static str]) -> Names {
        Names(names.iter().map(|&name| (topology::uuid(name).to_string(), name)).collect())
    }

    fn candidate(&self, request: &Value) -> Candidate {
        let allocations = request["allocations"].as_object().unwrap();
        let parts = allocations.iter().flat_map(|(provider, taken)| {
            let name = self.0[provider];
            let resources = taken["resources"].as_object().unwrap();
            resources.iter().map(move |(class, amount)| format!("{name} {class} {amount}"))
        });
        parts.collect()
    }

    /// All candidates, in no order, each as often as it comes.
    fn found(&self, cloud: &Cloud, query: &str) -> Vec<Candidate> {
        let requests = requests(cloud, query);
        let mut found: Vec<Candidate> =
            requests.iter().map(|request| self.candidate(request)).collect();
        found.sort_unstable();
        found
    }
}

fn requests(cloud: &Cloud, query: &str) -> Vec<Value> {
    let answer = cloud.client.read(&format!("/allocation_candidates?{query}"));
    answer["allocation_requests"].as_array().unwrap().clone()
}

fn candidates(expected: &[&[&str]]) -> Vec<Candidate> {
    let mut all: Vec<Candidate> =
        expected.iter().map(|parts| parts.iter().map(|&part| part.to_owned()).collect()).collect();
    all.sort_unstable();
    all
}

fn traits(cloud: &Cloud, provider: &str, traits: &[&str]) {
    cloud.accept(&json!({"set_traits": {"provider": provider, "traits": traits}}));
}

fn aggregates(cloud: &Cloud, provider: &str, aggregates: &[&str]) {
    cloud.accept(&json!({"set_aggregates": {"provider": provider, "aggregates": aggregates}}));
}

/// A root without inventory, and two devices below it; the first has a trait.
fn two_devices(cloud: &Cloud) -> Names {
    cloud.accept(&json!({"create_trait": {"name": "CUSTOM_FOO"}}));
    let root = cloud.provider("root", None, &json!({}));
    let devices = json!({"SRIOV_NET_VF": {"total": 8}});
    let a = cloud.provider("a", Some(&root), &devices);
    cloud.provider("b", Some(&root), &devices);
    traits(cloud, &a, &["CUSTOM_FOO"]);
    Names::of(&["root", "a", "b"])
}

/// Case D1 (bugs 1724613, 1731072): a host's own disk and the pool's are both offered.
#[test]
fn a_hosts_own_disk_and_a_shared_one_are_both_offered() {
    let cloud = Cloud::new();
    let host =
        cloud.provider("CN", None, &json!({"VCPU": {"total": 8}, "DISK_GB": {"total": 100}}));
    let pool = cloud.provider("SH", None, &json!({"DISK_GB": {"total": 1000}}));
    traits(&cloud, &pool, &[SHARES]);
    aggregates(&cloud, &host, &[A1]);
    aggregates(&cloud, &pool, &[A1]);
    assert_eq!(
        Names::of(&["CN", "SH"]).found(&cloud, "resources=VCPU:1,DISK_GB:10"),
        candidates(&[&["CN VCPU 1", "CN DISK_GB 10"], &["CN VCPU 1", "SH DISK_GB 10"]])
    );
}

/// Case D4 (bug 1763907): a pool reaches only who shares an aggregate with it.
#[test]
fn a_pool_of_another_aggregate_is_not_offered() {
    let cloud = Cloud::new();
    let host = cloud.provider("CN", None, &json!({"VCPU": {"total": 8}}));
    aggregates(&cloud, &host, &[A1]);
    for (name, of) in [("S1", &[A1, A2][..]), ("S2", &[A2])] {
        let pool = cloud.provider(name, None, &json!({"DISK_GB": {"total": 1000}}));
        traits(&cloud, &pool, &[SHARES]);
        aggregates(&cloud, &pool, of);
    }
    assert_eq!(
        Names::of(&["CN", "S1", "S2"])
            .found(&cloud, &format!("resources=VCPU:1,DISK_GB:10&member_of={A1}")),
        candidates(&[&["CN VCPU 1", "S1 DISK_GB 10"]])
    );
}

/// Case D5 (bug 1792503): a child's own aggregates count for it, and for it alone.
#[test]
fn an_aggregate_of_a_child_counts_for_the_child() {
    let cloud = Cloud::new();
    let root = cloud.provider("ROOT", None, &json!({"VCPU": {"total": 4}}));
    let child = cloud.provider("CH", Some(&root), &json!({"SRIOV_NET_VF": {"total": 8}}));
    aggregates(&cloud, &child, &[A1]);
    let found = |query: &str| Names::of(&["ROOT", "CH"]).found(&cloud, query);
    assert_eq!(
        found(&format!("resources=SRIOV_NET_VF:1&member_of={A1}")),
        candidates(&[&["CH SRIOV_NET_VF 1"]])
    );
    assert_eq!(found(&format!("resources=VCPU:1,SRIOV_NET_VF:1&member_of={A1}")), candidates(&[]));
    assert_eq!(
        found(&format!(
            "resources_A=VCPU:1&resources_B=SRIOV_NET_VF:1&member_of_B={A1}&group_policy=none"
        )),
        candidates(&[&["ROOT VCPU 1", "CH SRIOV_NET_VF 1"]])
    );
}

/// Case D6 (bug 1771707): the provider that gives the resource has to have the trait.
#[test]
fn a_trait_of_one_device_does_not_let_the_other_through() {
    let cloud = Cloud::new();
    let names = two_devices(&cloud);
    assert_eq!(
        names.found(&cloud, "resources=SRIOV_NET_VF:1&required=CUSTOM_FOO"),
        candidates(&[&["a SRIOV_NET_VF 1"]])
    );
}

/// Case D7 (story 2006068): mappings name each group, also where one provider serves both.
#[test]
fn mappings_name_every_group() {
    let cloud = Cloud::new();
    let names = two_devices(&cloud);
    let query = "resources1=SRIOV_NET_VF:1&resources2=SRIOV_NET_VF:1&group_policy=";
    let of_each = |policy: &str| {
        let mut of_each: Vec<[&str; 2]> = Vec::new();
        for request in requests(&cloud, &format!("{query}{policy}")) {
            let mappings = request["mappings"].as_object().unwrap();
            assert_eq!(mappings.len(), 2, "{request}");
            of_each.push(["1", "2"].map(|group| {
                let served = mappings[group].as_array().unwrap();
                assert_eq!(served.len(), 1, "{request}");
                names.0[served[0].as_str().unwrap()]
            }));
        }
        of_each.sort_unstable();
        of_each
    };
    assert_eq!(of_each("none"), [["a", "a"], ["a", "b"], ["b", "a"], ["b", "b"]]);
    assert_eq!(of_each("isolate"), [["a", "b"], ["b", "a"]]);
}

/// Case D10 (bug 2070257): a limited answer is spread over the hosts.
#[test]
fn a_limited_answer_is_spread_over_hosts() {
    let cloud = Cloud::new();
    cloud.accept(&json!({"create_resource_class": {"name": "CUSTOM_X"}}));
    let mut host_of = BTreeMap::new();
    for host in ["r1", "r2", "r3"] {
        let root = cloud.provider(host, None, &json!({}));
        for child in 0..4 {
            let name = format!("{host} {child}");
            host_of.insert(
                cloud.provider(&name, Some(&root), &json!({"CUSTOM_X": {"total": 1}})),
                host,
            );
        }
    }
    let per_host = |limit: &str| {
        let query =
            format!("resources1=CUSTOM_X:1&resources2=CUSTOM_X:1&group_policy=isolate{limit}");
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for request in requests(&cloud, &query) {
            let (device, _) = request["allocations"].as_object().unwrap().iter().next().unwrap();
            *counts.entry(host_of[device]).or_default() += 1;
        }
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable();
        counts
    };
    assert_eq!(per_host(""), [12, 12, 12]);
    assert_eq!(per_host("&limit=4"), [1, 1, 2]);
}

/// Case D15: groups that fit one by one must fit together, in room and in `max_unit`.
#[test]
fn groups_on_one_provider_are_added_up() {
    let cloud = Cloud::new();
    cloud.provider("X", None, &json!({"VCPU": {"total": 3}}));
    cloud.provider("Y", None, &json!({"PCPU": {"total": 8, "max_unit": 2}}));
    let names = Names::of(&["X", "Y"]);
    let found = |class: &str, amounts: [u64; 2]| {
        let query = format!(
            "resources1={class}:{}&resources2={class}:{}&group_policy=none",
            amounts[0], amounts[1]
        );
        names.found(&cloud, &query)
    };
    assert_eq!(found("VCPU", [2, 2]), candidates(&[]));
    assert_eq!(found("VCPU", [2, 1]), candidates(&[&["X VCPU 3"]]));
    assert_eq!(found("PCPU", [2, 2]), candidates(&[]));
    assert_eq!(found("PCPU", [1, 1]), candidates(&[&["Y PCPU 2"]]));
}

/// Case E9: hosts that are disabled do not take up the limit.
#[test]
fn disabled_hosts_do_not_take_up_the_limit() {
    let cloud = Cloud::new();
    let hosts = cloud.fleet(3_000, &json!({"VCPU": {"total": 8}}));
    let (enabled, disabled): (Vec<_>, Vec<_>) =
        hosts.iter().enumerate().partition(|(number, _)| number % 6 == 0);
    let disabling: Vec<Value> = disabled
        .iter()
        .map(|(_, host)| json!({"set_traits": {"provider": host, "traits": ["COMPUTE_STATUS_DISABLED"]}}))
        .collect();
    for list in disabling.chunks(crate::cloud::BULK) {
        cloud.accept(&list.into());
    }
    let found = requests(&cloud, "resources=VCPU:1&required=!COMPUTE_STATUS_DISABLED&limit=1000");
    let offered: BTreeSet<&String> = found
        .iter()
        .flat_map(|request| request["allocations"].as_object().unwrap().keys())
        .collect();
    assert_eq!(found.len(), 500);
    assert_eq!(offered, enabled.into_iter().map(|(_, host)| host).collect());
}
