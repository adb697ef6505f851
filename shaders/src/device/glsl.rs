//! The texts of kernels, whole.

use std::collections::BTreeSet;

use crate::formats::Format;

/// How many modules a text makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// One.
    One,
    /// One for each weight format, whose decoder stands before it.
    Format,
    /// The same for kernels that multiply matrices by subgroups, which not every device can.
    FormatMatrix,
    /// One, of such a kernel.
    OneMatrix,
}

/// A kernel's own text, in its op's folder.
#[derive(Debug, Clone, Copy)]
pub struct KernelText {
    /// Its name.
    pub name: &'static str,
    /// What follows the common head.
    pub text: &'static str,
    /// How many modules it makes.
    pub per: Per,
}

/// A module to compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// `name`, or `name.format`.
    pub name: String,
    /// All of its text.
    pub text: String,
}

const HEAD: &str = "#version 460\n#extension GL_EXT_buffer_reference : require\n#extension GL_EXT_buffer_reference_uvec2 : require\n\
                    #extension GL_EXT_control_flow_attributes : require\n";
const MATRIX: &str = "#pragma use_vulkan_memory_model\n#extension GL_KHR_cooperative_matrix : require\n\
                      #extension GL_KHR_memory_scope_semantics : require\n\
                      #extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n\
                      #extension GL_EXT_shader_16bit_storage : require\n#extension GL_KHR_shader_subgroup_basic : require\n";

/// What kernels include, by the name in the text.
const INCLUDES: &[(&str, &str)] = &[
    ("step.glsl", include_str!("step.glsl")),
    ("sums.glsl", include_str!("sums.glsl")),
    ("wide.glsl", include_str!("../ops/sample/wide.glsl")),
    ("staged.glsl", include_str!("staged.glsl")),
    ("functions.glsl", include_str!("functions.glsl")),
    ("states.glsl", include_str!("states.glsl")),
    ("rows.glsl", include_str!("rows.glsl")),
    ("lanes.glsl", include_str!("lanes.glsl")),
    ("matrix.glsl", include_str!("matrix.glsl")),
    ("product.glsl", include_str!("../ops/matmul/product.glsl")),
];

/// Every module of every op, each once, by name.
pub fn modules() -> Vec<Module> {
    let mut modules = vec![];
    let mut names = BTreeSet::new();
    for kernel in crate::ops::all().iter().flat_map(|op| op.kernels.iter()).chain(super::own::KERNELS) {
        if !names.insert(kernel.name) {
            continue;
        }
        match kernel.per {
            Per::One | Per::OneMatrix => modules.push(Module { name: kernel.name.into(), text: text(kernel, None) }),
            Per::Format | Per::FormatMatrix => modules.extend(
                Format::ALL
                    .iter()
                    .map(|format| Module { name: format!("{}.{}", kernel.name, format.name()), text: text(kernel, Some(*format)) }),
            ),
        }
    }
    modules.sort_by(|a, b| a.name.cmp(&b.name));
    modules
}

fn text(kernel: &KernelText, format: Option<Format>) -> String {
    let matrix = matches!(kernel.per, Per::OneMatrix | Per::FormatMatrix);
    let mut whole = String::from(HEAD);
    if matrix {
        whole.push_str(MATRIX);
    }
    append(&mut whole, "#include \"step.glsl\"");
    if let Some(format) = format {
        // A kernel that fills the grid of a format has it in shared memory.
        if kernel.text.contains("fmt_grid_fill") {
            whole.push_str("#define FMT_GRID_SHARED\n");
        }
        whole.push_str(&format.glsl());
        append(&mut whole, "#include \"matrix.glsl\"");
    }
    append(&mut whole, kernel.text);
    whole
}

/// Appends a text, with the texts that it includes in the place of their lines; each once.
fn append(whole: &mut String, text: &str) {
    for line in text.lines() {
        match line.strip_prefix("#include \"").and_then(|line| line.strip_suffix('"')) {
            None => {
                whole.push_str(line);
                whole.push('\n');
            }
            Some(name) => {
                let included = INCLUDES.iter().find(|(included, _)| *included == name);
                let mark = format!("// {name}\n");
                if !whole.contains(&mark) {
                    whole.push_str(&mark);
                    append(whole, included.unwrap_or_else(|| panic!("no include {name}")).1);
                }
            }
        }
    }
}
