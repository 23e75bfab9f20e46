//! Which unknown name is reported, and when none is because the answer is known to be empty.

use crate::world::{World, all_of, query, strings};
use projector::candidates::{NameError, Query, search};

fn world() -> World {
    let mut world = World::new();
    world.provider("h", None);
    world.has("h", &[("VCPU", 8)]);
    world.aggregates("h", &["a"]);
    world.commit();
    world
}

fn outcome(query: &Query) -> Result<usize, NameError> {
    search(&world().index, query).map(|found| found.len())
}

fn no_class(name: &str) -> Result<usize, NameError> {
    Err(NameError::UnknownClass(name.into()))
}

fn no_traits(names: &[&str]) -> Result<usize, NameError> {
    Err(NameError::UnknownTraits(strings(names)))
}

#[test]
fn names_are_reported_in_the_order_of_the_search() {
    let mut asked = query(&[("", "VCPU:1,FOO:1,BAR:1")]);
    assert_eq!(outcome(&asked), no_class("FOO"));
    asked.groups[0].required = vec![all_of(&["NO"])];
    assert_eq!(outcome(&asked), no_class("FOO"));
    asked.root_required.required = strings(&["ROOT_NO"]);
    assert_eq!(outcome(&asked), no_traits(&["ROOT_NO"]));
    asked.root_required.required = strings(&["T1"]);
    assert_eq!(outcome(&asked), Ok(0));
    let mut asked = query(&[("", "VCPU:1")]);
    asked.groups[0].required = vec![all_of(&["Z", "T1"]), all_of(&["B", "Z"])];
    asked.groups[0].forbidden = strings(&["M"]);
    assert_eq!(outcome(&asked), no_traits(&["B", "M", "Z"]));
}

#[test]
fn an_empty_answer_ends_the_work() {
    // A later group's name is looked up while there is something to find ...
    assert_eq!(outcome(&query(&[("1", "VCPU:1"), ("2", "FOO:1")])), no_class("FOO"));
    // ... and not once there is nothing: no room, no inventory, no member, no such tree.
    assert_eq!(outcome(&query(&[("1", "VCPU:9"), ("2", "FOO:1")])), Ok(0));
    assert_eq!(outcome(&query(&[("1", "DISK_GB:1"), ("2", "FOO:1")])), Ok(0));
    let mut asked = query(&[("1", "VCPU:1"), ("2", "FOO:1")]);
    asked.groups[0].member_of = vec![strings(&["unheard of"])];
    assert_eq!(outcome(&asked), Ok(0));
    asked.groups[0].member_of.clear();
    asked.groups[0].in_tree = Some("no uuid".into());
    assert_eq!(outcome(&asked), Ok(0));
    // Within a group: classes, aggregates, traits, tree.
    let mut asked = query(&[("", "VCPU:1")]);
    asked.groups[0].required = vec![all_of(&["NO"])];
    asked.groups[0].in_tree = Some("no uuid".into());
    assert_eq!(outcome(&asked), no_traits(&["NO"]));
    asked.groups[0].member_of = vec![strings(&["unheard of"])];
    assert_eq!(outcome(&asked), Ok(0));
}

#[test]
fn amounts_beyond_all_limits_fit_nowhere() {
    assert_eq!(outcome(&query(&[("", &format!("VCPU:{}", u64::MAX))])), Ok(0));
    let huge = format!("VCPU:{}", u64::MAX);
    assert_eq!(outcome(&query(&[("1", &huge), ("2", &huge)])), Ok(0));
    assert_eq!(outcome(&Query::default()), Ok(0));
}
