//! What a model does with each stored tensor, from the description that its plugin gives.

use std::collections::HashMap;

use coli_plugin_api::describe::{Description, ExpertGroup, ExpertView, View, Weight};
use coli_plugin_api::program::WeightId;

use crate::checkpoint::Checkpoint;
use crate::plan::HOLE;

/// What a model does with a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It holds matrices of experts.
    Expert,
    /// It is, or is cut into, matrices that rows are multiplied with, or rows that are looked up.
    Dense,
    /// It is used in another way, and stays as it is.
    Kept,
}

/// The roles of all tensors that a model uses, by name.
#[derive(Debug, Clone, Default)]
pub struct Roles(HashMap<String, Role>);

impl Roles {
    /// `encodable` says of which weights a lower precision is harmless: those of matrix products and tables, but not those of routers,
    /// norms or convolutions. Only whoever knows the recordings can tell.
    ///
    /// A tensor with two uses has the more careful role, and so have tensors that one weight joins: its rows have one format.
    pub fn of(checkpoint: &Checkpoint, description: &Description, encodable: impl Fn(WeightId) -> bool) -> Self {
        let mut roles = Self::default();
        for group in &description.groups {
            roles.group(checkpoint, group);
        }
        let mut joined: Vec<Vec<&str>> = Vec::new();
        for (id, weight) in (0..).zip(&description.weights) {
            let names = tensors(&weight.view);
            let encodable = encodable(WeightId(id)) && is_matrix(weight);
            for name in &names {
                let whole_rows = weight.shape.last().is_some_and(|cols| has_rows_of(checkpoint, name, *cols));
                roles.claim(name, if encodable && whole_rows { Role::Dense } else { Role::Kept });
            }
            joined.push(names);
        }
        roles.join(&joined);
        roles
    }

    /// The role of a tensor; `None` where the model does not use it.
    pub fn get(&self, name: &str) -> Option<Role> {
        self.0.get(name).copied()
    }

    fn group(&mut self, checkpoint: &Checkpoint, group: &ExpertGroup) {
        for layer in &group.layers {
            for (view, cols) in [(&layer.gate, group.width), (&layer.up, group.width), (&layer.down, group.hidden)] {
                let names = match view {
                    ExpertView::PerExpert(pattern) => (0..group.count).map(|expert| pattern.replace(HOLE, &expert.to_string())).collect(),
                    ExpertView::Fused { tensor, .. } => vec![tensor.clone()],
                };
                for name in names {
                    let role = if has_rows_of(checkpoint, &name, cols) { Role::Expert } else { Role::Kept };
                    self.claim(&name, role);
                }
            }
        }
    }

    fn claim(&mut self, name: &str, role: Role) {
        let known = self.0.entry(name.to_owned()).or_insert(role);
        if *known != role {
            *known = Role::Kept;
        }
    }

    /// Keeps what is joined with something kept, until nothing changes any more.
    fn join(&mut self, joined: &[Vec<&str>]) {
        loop {
            let mut changed = false;
            for names in joined {
                if names.iter().any(|name| self.get(name) == Some(Role::Kept)) {
                    for name in names {
                        changed |= self.0.insert((*name).to_owned(), Role::Kept) != Some(Role::Kept);
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }
}

/// Whether a weight is a matrix of stored rows; a view of single numbers would cut groups with one scale apart.
fn is_matrix(weight: &Weight) -> bool {
    weight.shape.len() == 2 && !takes_numbers(&weight.view)
}

fn takes_numbers(view: &View) -> bool {
    match view {
        View::Flat(_) => true,
        View::Tensor(_) => false,
        View::Rows { of, .. } | View::Blocks { of, .. } | View::Stacked(of) => takes_numbers(of),
        View::Concat(parts) => parts.iter().any(takes_numbers),
    }
}

/// Whether a tensor is stored in rows of so many numbers. A vector has none: it stays as it is.
fn has_rows_of(checkpoint: &Checkpoint, name: &str, cols: u32) -> bool {
    let Some(tensor) = checkpoint.find(name).map(|at| &checkpoint.tensors()[at]) else { return false };
    tensor.shape.len() > 1 && tensor.shape.last() == Some(&u64::from(cols))
}

/// The stored tensors that a view is cut from.
fn tensors(view: &View) -> Vec<&str> {
    match view {
        View::Tensor(name) => vec![name],
        View::Rows { of, .. } | View::Blocks { of, .. } | View::Flat(of) | View::Stacked(of) => tensors(of),
        View::Concat(parts) => parts.iter().flat_map(tensors).collect(),
    }
}
