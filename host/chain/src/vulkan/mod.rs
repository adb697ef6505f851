//! The Vulkan executor: a segment's ops as recorded commands.
//!
//! A *frame* is some consecutive segments, recorded once for a cap of rows and submitted for every step of so many rows: all that changes
//! from step to step lies in the step's words ([`words`]), which the host writes beforehand. From the top down: [`executor`] runs a step
//! frame by frame; [`frame`] plans and records a frame; [`hazards`] says where a barrier must stand; [`weights`] and [`pages`] hold what
//! kernels reach by address; [`own`] is the kernels that plugins bring; [`device`] is the device with its pipelines, shared by all
//! executors on it.
//!
//! What is tested against the CPU executor: every op's cases, every golden model.

mod bandwidth;
mod device;
mod executor;
mod fault;
mod frame;
mod hazards;
mod memory;
mod own;
mod pages;
mod planner;
mod ports;
mod step;
mod weights;
mod words;

pub use device::VulkanDevice;
pub(crate) use executor::Setup;
pub use executor::VulkanExecutor;
pub use own::try_form;
pub use planner::refusals;
pub use weights::DeviceWeights;
