//! What a module declares, gathered in one pass: types and constants come before what uses them.

use std::collections::{HashMap, HashSet};

use super::words::Instruction;
use super::{Capability, PRIVATE_MAX, Wanted};

/// Numbers of instructions.
mod op {
    pub const UNDEF: u16 = 1;
    pub const EXTENSION: u16 = 10;
    pub const IMPORT: u16 = 11;
    pub const MEMORY_MODEL: u16 = 14;
    pub const ENTRY_POINT: u16 = 15;
    pub const EXECUTION_MODE: u16 = 16;
    pub const CAPABILITY: u16 = 17;
    pub const TYPE_BOOL: u16 = 20;
    pub const TYPE_INT: u16 = 21;
    pub const TYPE_FLOAT: u16 = 22;
    pub const TYPE_VECTOR: u16 = 23;
    pub const TYPE_MATRIX: u16 = 24;
    pub const TYPE_IMAGE: u16 = 25;
    pub const TYPE_SAMPLED_IMAGE: u16 = 27;
    pub const TYPE_ARRAY: u16 = 28;
    pub const TYPE_STRUCT: u16 = 30;
    pub const TYPE_OPAQUE: u16 = 31;
    pub const TYPE_POINTER: u16 = 32;
    pub const TYPE_FORWARD_POINTER: u16 = 39;
    pub const CONSTANT: u16 = 43;
    pub const CONSTANT_COMPOSITE: u16 = 44;
    pub const CONSTANT_NULL: u16 = 46;
    pub const SPEC_CONSTANT: u16 = 50;
    pub const SPEC_CONSTANT_COMPOSITE: u16 = 51;
    pub const FUNCTION: u16 = 54;
    pub const FUNCTION_PARAMETER: u16 = 55;
    pub const FUNCTION_CALL: u16 = 57;
    pub const VARIABLE: u16 = 59;
    pub const STORE: u16 = 62;
    pub const COPY_MEMORY: u16 = 63;
    pub const COPY_MEMORY_SIZED: u16 = 64;
    pub const ACCESS_CHAIN: u16 = 65;
    pub const IN_BOUNDS_ACCESS_CHAIN: u16 = 66;
    pub const PTR_ACCESS_CHAIN: u16 = 67;
    pub const IN_BOUNDS_PTR_ACCESS_CHAIN: u16 = 70;
    pub const DECORATE: u16 = 71;
    pub const DECORATION_GROUP: u16 = 73;
    pub const GROUP_MEMBER_DECORATE: u16 = 75;
    pub const COPY_OBJECT: u16 = 83;
    pub const BITCAST: u16 = 124;
    pub const SELECT: u16 = 169;
    pub const ATOMIC_STORE: u16 = 228;
    pub const ATOMIC_FIRST: u16 = 229;
    pub const ATOMIC_LAST: u16 = 242;
    pub const PHI: u16 = 245;
    pub const EXECUTION_MODE_ID: u16 = 331;
}

/// Storage classes that a variable may be in.
mod class {
    pub const INPUT: u32 = 1;
    pub const WORKGROUP: u32 = 4;
    pub const PRIVATE: u32 = 6;
    pub const FUNCTION: u32 = 7;
    pub const STORAGE_BUFFER: u32 = 12;
}

const SPEC_ID: u32 = 1;
const BUILT_IN: u32 = 11;
const BINDING: u32 = 33;
const DESCRIPTOR_SET: u32 = 34;
const WORKGROUP_SIZE: u32 = 25;
const LOCAL_SIZE: u32 = 17;
const GL_COMPUTE: u32 = 5;

/// Extensions that only let a module of an older version say what newer ones may say.
const EXTENSIONS: [&str; 3] = ["SPV_KHR_storage_buffer_storage_class", "SPV_KHR_16bit_storage", "SPV_KHR_8bit_storage"];

/// What was found.
pub(super) struct Found {
    pub capabilities: Vec<Capability>,
    pub workgroup: [u32; 3],
    pub shared_bytes: u64,
}

/// Reads a module's instructions, in order.
pub(super) struct Reader<'a> {
    wanted: &'a Wanted<'a>,
    capabilities: Vec<Capability>,
    models: u32,
    entry: Option<u32>,
    functions: HashSet<u32>,
    local_size: Option<[u32; 3]>,
    /// By the id that is decorated.
    decorations: HashMap<(u32, u32), u32>,
    /// Bytes of the types whose size is known.
    sizes: HashMap<u32, u64>,
    structs: HashSet<u32>,
    /// Storage class and type of each pointer type.
    pointers: HashMap<u32, (u32, u32)>,
    /// Bits of constants of one word, with what was given for them.
    constants: HashMap<u32, u32>,
    workgroup: Option<[u32; 3]>,
    /// The binding that a pointer leads to.
    roots: HashMap<u32, u32>,
    bindings: HashSet<u32>,
    shared_bytes: u64,
    private_bytes: u64,
}

impl<'a> Reader<'a> {
    pub fn new(wanted: &'a Wanted<'a>) -> Self {
        Self {
            wanted,
            capabilities: Vec::new(),
            models: 0,
            entry: None,
            functions: HashSet::new(),
            local_size: None,
            decorations: HashMap::new(),
            sizes: HashMap::new(),
            structs: HashSet::new(),
            pointers: HashMap::new(),
            constants: HashMap::new(),
            workgroup: None,
            roots: HashMap::new(),
            bindings: HashSet::new(),
            shared_bytes: 0,
            private_bytes: 0,
        }
    }

    pub fn take(&mut self, one: &Instruction<'_>) -> Result<(), String> {
        match one.op {
            op::CAPABILITY | op::EXTENSION | op::IMPORT | op::MEMORY_MODEL => self.head(one),
            op::ENTRY_POINT | op::EXECUTION_MODE | op::EXECUTION_MODE_ID => self.entry(one),
            op::DECORATE => {
                // A decoration without a value has nothing that is asked for here.
                let value = one.operands.get(2).copied().unwrap_or(0);
                self.decorations.insert((one.word(0)?, one.word(1)?), value);
                Ok(())
            }
            op::DECORATION_GROUP..=op::GROUP_MEMBER_DECORATE => Err("groups of decorations are not taken".into()),
            op::TYPE_BOOL..=op::TYPE_POINTER | op::TYPE_FORWARD_POINTER => self.kind(one),
            op::CONSTANT | op::SPEC_CONSTANT | op::CONSTANT_COMPOSITE | op::SPEC_CONSTANT_COMPOSITE => self.constant(one),
            op::VARIABLE => self.variable(one),
            op::FUNCTION => {
                self.functions.insert(one.word(1)?);
                Ok(())
            }
            _ => self.body(one),
        }
    }

    fn head(&mut self, one: &Instruction<'_>) -> Result<(), String> {
        match one.op {
            op::CAPABILITY => {
                let number = one.word(0)?;
                let capability = Capability::of(number).ok_or_else(|| format!("capability {}: not one of the list", capability(number)))?;
                self.capabilities.push(capability);
            }
            op::EXTENSION => {
                let name = one.text(0);
                if !EXTENSIONS.contains(&name.as_str()) {
                    return Err(format!("extension `{}`: not one of the list", name.escape_debug()));
                }
            }
            op::IMPORT => {
                let name = one.text(1);
                if name != "GLSL.std.450" {
                    return Err(format!("instructions of `{}`: only those of GLSL.std.450 are taken", name.escape_debug()));
                }
            }
            _ => {
                let model = (one.word(0)?, one.word(1)?);
                if model != (0, 1) {
                    return Err(format!("memory model {model:?}: only logical addresses and GLSL450 are taken"));
                }
                self.models += 1;
            }
        }
        Ok(())
    }

    fn entry(&mut self, one: &Instruction<'_>) -> Result<(), String> {
        if one.op == op::ENTRY_POINT {
            let (model, name) = (one.word(0)?, one.text(2));
            if model != GL_COMPUTE || name != "main" || self.entry.is_some() {
                return Err("its entry points are other than one compute shader `main`".into());
            }
            self.entry = Some(one.word(1)?);
            return Ok(());
        }
        let mode = one.word(1)?;
        if one.op != op::EXECUTION_MODE || mode != LOCAL_SIZE {
            return Err(format!("execution mode {mode}: only LocalSize is taken"));
        }
        self.local_size = Some([one.word(2)?, one.word(3)?, one.word(4)?]);
        Ok(())
    }

    /// A type. Sizes are what its parts take at most, without what lies between them being known to the byte.
    fn kind(&mut self, one: &Instruction<'_>) -> Result<(), String> {
        let id = one.word(0)?;
        let of = |at: usize| Ok::<_, String>(self.sizes.get(&one.word(at)?).copied());
        let size = match one.op {
            op::TYPE_BOOL => Some(4),
            op::TYPE_INT | op::TYPE_FLOAT => Some(u64::from(one.word(1)?.div_ceil(8))),
            op::TYPE_VECTOR | op::TYPE_MATRIX => {
                let count = u64::from(one.word(2)?.min(16).next_multiple_of(2));
                of(1)?.map(|size| size.saturating_mul(count))
            }
            op::TYPE_IMAGE..=op::TYPE_SAMPLED_IMAGE => return Err("images and samplers are not taken".into()),
            op::TYPE_OPAQUE | op::TYPE_FORWARD_POINTER => return Err("types without a content are not taken".into()),
            op::TYPE_ARRAY => {
                let len = self.constants.get(&one.word(2)?).copied();
                of(1)?.zip(len).map(|(size, len)| size.saturating_mul(len.into()))
            }
            op::TYPE_STRUCT => {
                let mut members = one.operands.iter().skip(1).map(|member| self.sizes.get(member));
                members.try_fold(0u64, |sum, size| size.map(|size| sum.saturating_add(size.saturating_add(15) / 16 * 16)))
            }
            op::TYPE_POINTER => {
                self.pointers.insert(id, (one.word(1)?, one.word(2)?));
                None
            }
            _ => None,
        };
        if one.op == op::TYPE_STRUCT {
            self.structs.insert(id);
        }
        if let Some(size) = size {
            self.sizes.insert(id, size);
        }
        Ok(())
    }

    fn constant(&mut self, one: &Instruction<'_>) -> Result<(), String> {
        let (id, first) = (one.word(1)?, one.operands.get(2).copied());
        match one.op {
            op::CONSTANT => self.constants.extend(first.map(|bits| (id, bits))),
            op::SPEC_CONSTANT => {
                let number = self.decorations.get(&(id, SPEC_ID));
                let given = self.wanted.constants.iter().find(|(listed, _)| Some(listed) == number);
                self.constants.extend(given.map(|(_, bits)| *bits).or(first).map(|bits| (id, bits)));
            }
            _ if self.decorations.get(&(id, BUILT_IN)) == Some(&WORKGROUP_SIZE) => {
                let part = |at| {
                    let bits = self.constants.get(&one.word(at)?).copied();
                    bits.ok_or_else(|| "its workgroup has a size that is no constant".to_string())
                };
                self.workgroup = Some([part(2)?, part(3)?, part(4)?]);
            }
            _ => {}
        }
        Ok(())
    }

    fn variable(&mut self, one: &Instruction<'_>) -> Result<(), String> {
        let (kind, id, class) = (one.word(0)?, one.word(1)?, one.word(2)?);
        let Some((of, content)) = self.pointers.get(&kind).copied().filter(|(of, _)| *of == class) else {
            return Err(format!("its variable {id} is of no pointer type"));
        };
        let size = self.sizes.get(&content).copied();
        let sized = || size.ok_or_else(|| format!("its variable {id} has a size that is no constant"));
        match of {
            class::STORAGE_BUFFER => self.buffer(id, content)?,
            class::INPUT if self.decorations.contains_key(&(id, BUILT_IN)) => {}
            class::WORKGROUP => self.shared_bytes = self.shared_bytes.saturating_add(sized()?),
            class::PRIVATE | class::FUNCTION => self.private_bytes = self.private_bytes.saturating_add(sized()?),
            other => return Err(format!("storage class {}: not one of the list", storage(other))),
        }
        Ok(())
    }

    fn buffer(&mut self, id: u32, content: u32) -> Result<(), String> {
        let of = |decoration| self.decorations.get(&(id, decoration)).copied();
        let (set, binding) = (of(DESCRIPTOR_SET), of(BINDING));
        let (Some(0), Some(binding)) = (set, binding) else {
            return Err(format!("its buffer {id} has set {set:?} and binding {binding:?}, expected set 0 and a binding"));
        };
        if binding >= self.wanted.buffers {
            return Err(format!("binding {binding}: it is given {} buffers", self.wanted.buffers));
        }
        if !self.structs.contains(&content) {
            return Err(format!("binding {binding} is no block of its own"));
        }
        if !self.bindings.insert(binding) {
            return Err(format!("binding {binding} is declared twice"));
        }
        self.roots.insert(id, binding);
        Ok(())
    }

    /// What a function does: where its pointers lead, and what it writes.
    fn body(&mut self, one: &Instruction<'_>) -> Result<(), String> {
        match one.op {
            op::ACCESS_CHAIN | op::IN_BOUNDS_ACCESS_CHAIN | op::COPY_OBJECT => {
                if let Some(binding) = self.roots.get(&one.word(2)?).copied() {
                    self.roots.insert(one.word(1)?, binding);
                }
                Ok(())
            }
            op::PTR_ACCESS_CHAIN | op::IN_BOUNDS_PTR_ACCESS_CHAIN => Err("pointers are not computed with".into()),
            op::UNDEF | op::CONSTANT_NULL | op::SELECT | op::PHI | op::FUNCTION_PARAMETER | op::FUNCTION_CALL | op::BITCAST => {
                match self.pointers.get(&one.word(0)?) {
                    Some((class::STORAGE_BUFFER, _)) => Err(format!("its instruction {} gives a pointer to a buffer", one.op)),
                    _ => Ok(()),
                }
            }
            op::STORE | op::COPY_MEMORY | op::COPY_MEMORY_SIZED | op::ATOMIC_STORE => self.writes(one.word(0)?),
            op::ATOMIC_FIRST..=op::ATOMIC_LAST => self.writes(one.word(2)?),
            _ => Ok(()),
        }
    }

    fn writes(&self, pointer: u32) -> Result<(), String> {
        match self.roots.get(&pointer) {
            Some(binding) if !self.wanted.written.contains(binding) => {
                Err(format!("it writes to binding {binding}, which it may only read"))
            }
            _ => Ok(()),
        }
    }

    pub fn finish(self) -> Result<Found, String> {
        if !self.capabilities.contains(&Capability::Shader) || self.models != 1 {
            return Err("it is no shader".into());
        }
        if !self.entry.is_some_and(|entry| self.functions.contains(&entry)) {
            return Err("it has no entry point".into());
        }
        if self.private_bytes > PRIVATE_MAX {
            return Err(format!("its variables take {} bytes, and at most {PRIVATE_MAX} are taken", self.private_bytes));
        }
        let workgroup = self.workgroup.or(self.local_size).ok_or("it does not say how large a workgroup is")?;
        Ok(Found { capabilities: self.capabilities, workgroup, shared_bytes: self.shared_bytes })
    }
}

/// Names of what is refused most.
fn capability(number: u32) -> String {
    let name = match number {
        0 => "Matrix",
        4 => "Addresses",
        5 => "Linkage",
        6 => "Kernel",
        10 => "Float64",
        11 => "Int64",
        50 => "ImageQuery",
        66 => "GroupNonUniformShuffleRelative",
        67 => "GroupNonUniformClustered",
        4441 => "VariablePointersStorageBuffer",
        4442 => "VariablePointers",
        5302 => "RuntimeDescriptorArray",
        5345 => "VulkanMemoryModel",
        5347 => "PhysicalStorageBufferAddresses",
        6022 => "CooperativeMatrixKHR",
        other => return other.to_string(),
    };
    name.into()
}

fn storage(class: u32) -> String {
    let name = match class {
        0 => "UniformConstant",
        1 => "Input without a built-in",
        2 => "Uniform",
        3 => "Output",
        8 => "Generic",
        9 => "PushConstant",
        5349 => "PhysicalStorageBuffer",
        other => return other.to_string(),
    };
    name.into()
}
