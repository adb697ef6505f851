//! What `coli --version` says.

use std::sync::LazyLock;

use coli_config::COMMIT;
use coli_plugin_api::{abi, codec};

/// What this build can do: `vulkan` where kernels are built in.
fn features() -> &'static str {
    if coli_kernels::Kernels::are_built() { "cpu vulkan" } else { "cpu" }
}

/// Version, commit, features, and the numbers that decide which plugins and recordings it takes.
pub(crate) fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let commit = Some(COMMIT).filter(|commit| !commit.is_empty()).unwrap_or("unknown");
        format!(
            "{}\ncommit {commit}\nfeatures {}\nplugin ABI {}\nrecording format {}",
            env!("CARGO_PKG_VERSION"),
            features(),
            abi::ABI_VERSION,
            codec::FORMAT
        )
    });
    &TEXT
}
