//! The clouds that are searched, as commands that make them.

use ledger::amounts::Inventory;
use ledger::command::{
    ChangeInventories, Command, CreateProvider, InventoryChange, Named, SetAggregates, SetTraits,
};
use ledger::ids::ProviderUuid;
use uuid::Uuid;

const AVX2: &str = "HW_CPU_X86_AVX2";
const GIB: u32 = 1024;
/// Nodes that share one disk.
const SHARERS: u128 = 20;

/// A cloud and the query that is asked of it.
pub struct Cloud {
    pub name: String,
    pub commands: Vec<Command>,
    pub query: String,
}

impl Cloud {
    /// Hosts that have everything themselves.
    pub fn flat(hosts: u128) -> Self {
        let mut cloud = Self::new(&format!("flat:{hosts}"));
        for n in 0..hosts {
            cloud.provider(n, None, &node(true), &[AVX2], Some(0));
        }
        cloud.ask(&format!(
            "resources=VCPU:1,DISK_GB:10,MEMORY_MB:256&member_of={}&required={AVX2}",
            aggregate(0)
        ))
    }

    /// Trees of seven: a node with disk, two NUMA nodes below it, and devices below these.
    pub fn nested(trees: u128) -> Self {
        let mut cloud = Self::new(&format!("nested:{trees}"));
        cloud.commands.push(Command::CreateTrait(Named { name: "CUSTOM_FOO".into() }));
        for n in (0..trees).map(|n| n * 7) {
            let memory = |min_unit, max_unit, step_size| Inventory {
                min_unit,
                max_unit,
                step_size,
                ..Inventory::of(2048)
            };
            let disk = [("DISK_GB", Inventory::of(20480))];
            cloud.provider(n, None, &disk, &["COMPUTE_VOLUME_MULTI_ATTACH"], Some(0));
            let vcpu = Inventory { reserved: 2, ..Inventory::of(4) };
            let numa0 = [("VCPU", vcpu), ("MEMORY_MB", memory(512, 2048, 256))];
            cloud.provider(n + 1, Some(n), &numa0, &["HW_NUMA_ROOT"], None);
            let numa1 = [("VCPU", Inventory::of(4)), ("MEMORY_MB", memory(256, 1024, 1))];
            cloud.provider(n + 2, Some(n), &numa1, &["CUSTOM_FOO", "HW_NUMA_ROOT"], None);
            for (number, parent, class, total) in
                [(3, 1, "FPGA", 1), (4, 1, "VGPU", 8), (5, 2, "FPGA", 1), (6, 2, "FPGA", 1)]
            {
                let device = [(class, Inventory::of(total))];
                cloud.provider(n + number, Some(n + parent), &device, &[], None);
            }
        }
        cloud.ask(
            "resources=DISK_GB:10&required=COMPUTE_VOLUME_MULTI_ATTACH\
             &resources_COMPUTE=VCPU:1,MEMORY_MB:256&required_COMPUTE=CUSTOM_FOO\
             &resources_FPGA=FPGA:1&group_policy=none&same_subtree=_COMPUTE,_FPGA",
        )
    }

    /// Nodes without disk, twenty to a shared one.
    pub fn shared(nodes: u128) -> Self {
        let mut cloud = Self::new(&format!("shared:{nodes}"));
        for n in 0..nodes {
            cloud.provider(n, None, &node(false), &[AVX2], Some(n / SHARERS));
        }
        for pool in 0..nodes.div_ceil(SHARERS) {
            let disk = [("DISK_GB", Inventory::of(2_000_000))];
            let sharing = ["MISC_SHARES_VIA_AGGREGATE"];
            cloud.provider(nodes + pool, None, &disk, &sharing, Some(pool));
        }
        cloud.ask(&format!("resources=VCPU:1,MEMORY_MB:256,DISK_GB:10&required={AVX2}"))
    }

    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), commands: Vec::new(), query: String::new() }
    }

    fn ask(mut self, query: &str) -> Self {
        self.query = format!("/allocation_candidates?{query}");
        self
    }

    fn provider(
        &mut self,
        number: u128,
        parent: Option<u128>,
        inventories: &[(&str, Inventory)],
        traits: &[&str],
        in_aggregate: Option<u128>,
    ) {
        let uuid = provider(number);
        let parent = parent.map(provider);
        let name = format!("p{number}");
        self.commands.push(Command::CreateProvider(CreateProvider { uuid, name, parent }));
        let all = inventories.iter().map(|&(class, inventory)| (class.to_owned(), inventory));
        self.commands.push(Command::ChangeInventories(ChangeInventories {
            provider: uuid,
            generation: None,
            change: InventoryChange::ReplaceAll(all.collect()),
            may_reserve_all: true,
        }));
        if !traits.is_empty() {
            let traits = traits.iter().map(ToString::to_string).collect();
            let provider = uuid;
            self.commands.push(Command::SetTraits(SetTraits {
                provider,
                generation: None,
                traits,
            }));
        }
        let aggregates: Vec<String> = in_aggregate.map(aggregate).into_iter().collect();
        if !aggregates.is_empty() {
            let provider = uuid;
            self.commands.push(Command::SetAggregates(SetAggregates {
                provider,
                generation: None,
                aggregates,
            }));
        }
    }
}

fn node(with_disk: bool) -> Vec<(&'static str, Inventory)> {
    let vcpu = Inventory { allocation_ratio: 16.0, ..Inventory::of(128) };
    let memory = Inventory { reserved: 512, ..Inventory::of(1024 * GIB) };
    let mut all = vec![("VCPU", vcpu), ("MEMORY_MB", memory)];
    if with_disk {
        all.push(("DISK_GB", Inventory::of(40960)));
    }
    all
}

fn provider(number: u128) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128((1 << 120) + number))
}

fn aggregate(number: u128) -> String {
    Uuid::from_u128((2 << 120) + number).to_string()
}
