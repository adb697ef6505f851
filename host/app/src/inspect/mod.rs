//! What a stored model is: geometry, types and bytes by role, who serves it, what is missing. Nothing here runs a model or opens a plugin.

mod geometry;
mod roles;

use std::collections::BTreeMap;

use coli_base::Result;
use coli_plugin_api::describe::Container;
use coli_plugins::Plugins;
use coli_store::{Survey, Tensor};
use serde::Serialize;

use crate::engine;
use geometry::Geometry;
use roles::Role;

/// What `coli inspect --json` prints.
#[derive(Debug, Serialize)]
pub struct Inspection {
    /// The folder or file.
    pub model: String,
    /// How it is stored.
    pub container: Container,
    /// `model_type`, or `general.architecture`.
    pub architecture: Option<String>,
    /// Its numbers, as its configuration gives them.
    pub geometry: Geometry,
    /// How many tensors there are.
    pub tensors: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of weights that one token reads; `None` where it is not known how many experts it uses.
    pub token_bytes: Option<u64>,
    /// Tensors by what they are for.
    pub roles: Vec<RoleFigures>,
    /// Types that no kernel reads.
    pub unread_types: Vec<String>,
    /// The plugin that serves it.
    pub plugin: Option<Served>,
    /// Why none does, and what is served.
    pub not_served: Option<String>,
    /// Files that are missing or damaged.
    pub missing: Vec<String>,
}

/// The plugin for a model.
#[derive(Debug, Serialize)]
pub struct Served {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
}

/// The tensors of a role.
#[derive(Debug, Serialize)]
pub struct RoleFigures {
    /// The role.
    pub role: Role,
    /// How many.
    pub tensors: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The same by stored type.
    pub types: BTreeMap<String, TypeFigures>,
}

/// The tensors of a type.
#[derive(Debug, Default, Serialize)]
pub struct TypeFigures {
    /// How many.
    pub tensors: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Looks at a model that is there, or partly there.
pub fn inspect(survey: Survey, plugins: &Plugins) -> Inspection {
    let Survey { checkpoint, missing } = survey;
    let tensors = checkpoint.tensors();
    let geometry = Geometry::of(&checkpoint);
    let served = engine::model_kind(&checkpoint).and_then(|kind| served(plugins, kind));
    let (plugin, not_served) = match served {
        Ok(plugin) => (Some(plugin), None),
        Err(error) => (None, Some(error.text)),
    };
    let mut unread_types: Vec<String> = tensors.iter().filter(|tensor| !tensor.is_served()).map(|tensor| tensor.kind.clone()).collect();
    unread_types.sort_unstable();
    unread_types.dedup();
    Inspection {
        model: checkpoint.path().display().to_string(),
        container: checkpoint.container(),
        architecture: checkpoint.model_type().ok().map(str::to_owned),
        tensors: tensors.len(),
        bytes: tensors.iter().map(|tensor| tensor.bytes).sum(),
        token_bytes: token_bytes(tensors, &geometry),
        roles: by_role(tensors),
        geometry,
        unread_types,
        plugin,
        not_served,
        missing,
    }
}

fn served(plugins: &Plugins, kind: coli_plugins::ModelKind<'_>) -> Result<Served> {
    let manifest = &plugins.select(kind)?.plugin.manifest;
    Ok(Served { id: manifest.id.clone(), version: manifest.version.clone() })
}

fn by_role(tensors: &[Tensor]) -> Vec<RoleFigures> {
    let mut roles: BTreeMap<Role, RoleFigures> = BTreeMap::new();
    for tensor in tensors {
        let role = Role::of(&tensor.name);
        let figures = roles.entry(role).or_insert_with(|| RoleFigures { role, tensors: 0, bytes: 0, types: BTreeMap::new() });
        figures.tensors += 1;
        figures.bytes += tensor.bytes;
        let kind = figures.types.entry(tensor.kind.clone()).or_default();
        kind.tensors += 1;
        kind.bytes += tensor.bytes;
    }
    roles.into_values().collect()
}

/// All but experts that a token does not use, rows of the embedding that are not its own, and parts that text does not pass.
fn token_bytes(tensors: &[Tensor], geometry: &Geometry) -> Option<u64> {
    let text = || tensors.iter().filter(|tensor| !roles::is_aside(&tensor.name));
    let has_head = text().any(|tensor| roles::is_head(&tensor.name));
    let mut bytes = 0;
    for tensor in text() {
        bytes += match Role::of(&tensor.name) {
            Role::RoutedExperts => {
                let (used, all) = (geometry.experts_used?, geometry.experts.filter(|all| *all > 0)?);
                // The product may be beyond 64 bits, the quotient is not.
                u64::try_from(u128::from(tensor.bytes) * u128::from(used.min(all)) / u128::from(all)).ok()?
            }
            Role::Embedding if has_head && !roles::is_head(&tensor.name) => {
                tensor.bytes / tensor.shape.first().copied().unwrap_or(1).max(1)
            }
            _ => tensor.bytes,
        };
    }
    Some(bytes)
}
