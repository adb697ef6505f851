//! The byte format of a recording, number 1 (`CIR1`): little-endian, unaligned, its length exact. `docs/ABI.md` is its table.
//!
//! Decoding believes nothing: every count is held against the bytes that are left before anything is allocated, every code against its
//! list, every index against its table, and bytes left over are an error. What the ops mean is checked by `host/chain`.

use crate::program::{
    Access, Builtin, Direction, Domain, DomainId, GroupId, Input, InputId, InputSource, OpRecord, OperandRef, Port, Recording, Source,
    StateId, Ty, ValueDef, ValueId, WeightId,
};

/// The first four bytes: the letters and the format's number.
pub const MAGIC: [u8; 4] = *b"CIR1";
/// The format's number, for `coli --version`.
pub const FORMAT: u32 = 1;
/// The longest recording that is read, in bytes. The largest known model's layer takes under 16 KB.
pub const LEN_MAX: usize = 16 << 20;

/// Writes a recording. Fails where a count or a name does not fit its field.
pub fn encode(recording: &Recording) -> Result<Vec<u8>, String> {
    let mut writer = Writer::default();
    writer.bytes.extend_from_slice(&MAGIC);
    writer.u32(0); // the length, known at the end
    let names = Names::of(recording);
    writer.table(&names.list, |w, name| w.name(name))?;
    writer.table(&recording.domains, |w, domain| put_domain(w, domain, &names))?;
    writer.table(&recording.inputs, |w, input| put_input(w, input, &names))?;
    writer.table(&recording.values, |w, value| {
        w.u16(value.domain.0);
        w.u8(value.ty as u8);
        w.u32(value.width);
        Ok(())
    })?;
    writer.table(&recording.ops, |w, op| put_op(w, op, &names))?;
    writer.table(&recording.ports, |w, port| {
        w.u8(port.direction as u8);
        w.u16(names.index(&port.name)?);
        w.u32(port.value.0);
        Ok(())
    })?;
    if writer.bytes.len() > LEN_MAX {
        return Err(format!("the recording is {} bytes, at most {LEN_MAX} are read", writer.bytes.len()));
    }
    let len = writer.bytes.len() as u32;
    writer.bytes[4..8].copy_from_slice(&len.to_le_bytes());
    Ok(writer.bytes)
}

/// Reads a recording. An error says which table and entry is wrong.
pub fn decode(bytes: &[u8]) -> Result<Recording, String> {
    if bytes.len() > LEN_MAX {
        return Err(format!("{} bytes, at most {LEN_MAX} are read", bytes.len()));
    }
    let mut reader = Reader { bytes, at: 0 };
    if reader.take(4, "header")? != MAGIC {
        return Err("it does not start with CIR1, the only format that this host reads".into());
    }
    let len = reader.u32("header")? as usize;
    if len != bytes.len() {
        return Err(format!("its header says {len} bytes, there are {}", bytes.len()));
    }
    let names = reader.table("names", 1, |r| r.name())?;
    let domains = reader.table("domains", 7, |r| get_domain(r, &names))?;
    let inputs = reader.table("inputs", 12, |r| get_input(r, &names))?;
    let values = reader.table("values", 7, |r| {
        let domain = DomainId(r.u16("domain")?);
        let ty = get_ty(r)?;
        let width = r.u32("width")?;
        Ok(ValueDef { domain, ty, width })
    })?;
    let ops = reader.table("ops", 9, |r| get_op(r, &names))?;
    let ports = reader.table("ports", 7, |r| {
        let direction = match r.u8("direction")? {
            0 => Direction::In,
            1 => Direction::Out,
            code => return Err(format!("direction {code} is unknown")),
        };
        let name = named(r, &names)?;
        Ok(Port { direction, name, value: ValueId(r.u32("value")?) })
    })?;
    match bytes.len() - reader.at {
        0 => Ok(Recording { domains, inputs, values, ops, ports }),
        left => Err(format!("{left} bytes are left over after its ports")),
    }
}

/// The name table: each text once, in order of first use.
struct Names<'a> {
    list: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn of(recording: &'a Recording) -> Self {
        let domains = recording.domains.iter().filter_map(|domain| match domain {
            Domain::Host { name, .. } => Some(name.as_str()),
            _ => None,
        });
        let inputs = recording.inputs.iter().map(|input| input.name.as_str());
        let ops = recording.ops.iter().map(|op| op.name.as_str());
        let ports = recording.ports.iter().map(|port| port.name.as_str());
        let mut list: Vec<&str> = Vec::new();
        for name in domains.chain(inputs).chain(ops).chain(ports) {
            if !list.contains(&name) {
                list.push(name);
            }
        }
        Self { list }
    }

    fn index(&self, name: &str) -> Result<u16, String> {
        let index = self.list.iter().position(|known| *known == name).ok_or_else(|| format!("name `{name}` is not in the table"))?;
        u16::try_from(index).map_err(|_| "more than 65536 names".into())
    }
}

fn put_domain(w: &mut Writer, domain: &Domain, names: &Names<'_>) -> Result<(), String> {
    let (kind, name, n) = match domain {
        Domain::Tokens => (0, 0, 0),
        Domain::Outs => (1, 0, 0),
        Domain::Host { name, max } => (2, names.index(name)?, *max),
        Domain::Block { rows } => (3, 0, *rows),
        Domain::Fixed { rows } => (4, 0, *rows),
    };
    w.u8(kind);
    w.u16(name);
    w.u32(n);
    Ok(())
}

fn get_domain(r: &mut Reader<'_>, names: &[String]) -> Result<Domain, String> {
    let kind = r.u8("kind")?;
    let name = r.u16("name")?;
    let n = r.u32("count")?;
    // One form for each domain, so that a recording has one spelling.
    let plain = |domain: Domain| if name == 0 && n == 0 { Ok(domain) } else { Err("a name or count where there is none".to_string()) };
    match kind {
        0 => plain(Domain::Tokens),
        1 => plain(Domain::Outs),
        2 => Ok(Domain::Host { name: lookup(names, name)?, max: n }),
        3 if name == 0 => Ok(Domain::Block { rows: n }),
        4 if name == 0 => Ok(Domain::Fixed { rows: n }),
        3 | 4 => Err("a name where there is none".into()),
        code => Err(format!("kind {code} is unknown")),
    }
}

fn put_input(w: &mut Writer, input: &Input, names: &Names<'_>) -> Result<(), String> {
    w.u16(names.index(&input.name)?);
    w.u16(input.domain.0);
    w.u8(input.ty as u8);
    w.u32(input.width);
    let (source, arg) = match input.source {
        InputSource::Host => (0, 0),
        InputSource::Builtin(kind) => (1, kind as u16),
        InputSource::Ids { window } => (2, window),
    };
    w.u8(source);
    w.u16(arg);
    Ok(())
}

fn get_input(r: &mut Reader<'_>, names: &[String]) -> Result<Input, String> {
    let name = named(r, names)?;
    let domain = DomainId(r.u16("domain")?);
    let ty = get_ty(r)?;
    let width = r.u32("width")?;
    let source = r.u8("source")?;
    let arg = r.u16("argument")?;
    let source = match (source, arg) {
        (0, 0) => InputSource::Host,
        (1, code) => {
            let kind = Builtin::ALL.get(usize::from(code)).ok_or_else(|| format!("built-in input {code} is unknown"))?;
            InputSource::Builtin(*kind)
        }
        (2, window) => InputSource::Ids { window },
        (source, arg) => return Err(format!("source {source} with argument {arg} is unknown")),
    };
    Ok(Input { name, domain, ty, width, source })
}

fn put_op(w: &mut Writer, op: &OpRecord, names: &Names<'_>) -> Result<(), String> {
    w.u16(names.index(&op.name)?);
    for (what, count) in [
        ("inputs", op.ins.len()),
        ("outputs", op.outs.len()),
        ("weights", op.weights.len()),
        ("states", op.states.len()),
        ("groups", op.groups.len()),
    ] {
        w.u8(u8::try_from(count).map_err(|_| format!("{}: {count} {what}, at most 255", op.name))?);
    }
    for operand in &op.ins {
        let (kind, id) = match operand.source {
            Source::Value(id) => (0, id.0),
            Source::Input(id) => (1, id.0),
        };
        w.u8(kind);
        w.u32(id);
        w.u32(operand.col0);
        w.u32(operand.ncols);
    }
    op.outs.iter().for_each(|id| w.u32(id.0));
    op.weights.iter().for_each(|id| w.u32(id.0));
    for (state, access) in &op.states {
        w.u32(state.0);
        w.u8(*access as u8);
    }
    op.groups.iter().for_each(|id| w.u32(id.0));
    let len = u16::try_from(op.params.len()).map_err(|_| format!("{}: {} bytes of parameters", op.name, op.params.len()))?;
    w.u16(len);
    w.bytes.extend_from_slice(&op.params);
    Ok(())
}

fn get_op(r: &mut Reader<'_>, names: &[String]) -> Result<OpRecord, String> {
    let name = named(r, names)?;
    let [ins, outs, weights, states, groups] = r.array::<5>("counts")?;
    let ins = r.list(ins, |r| {
        let kind = r.u8("operand kind")?;
        let id = r.u32("operand")?;
        let source = match kind {
            0 => Source::Value(ValueId(id)),
            1 => Source::Input(InputId(id)),
            code => return Err(format!("operand kind {code} is unknown")),
        };
        Ok(OperandRef { source, col0: r.u32("first column")?, ncols: r.u32("columns")? })
    })?;
    let outs = r.list(outs, |r| r.u32("output").map(ValueId))?;
    let weights = r.list(weights, |r| r.u32("weight").map(WeightId))?;
    let states = r.list(states, |r| {
        let id = StateId(r.u32("state")?);
        let access = match r.u8("access")? {
            0 => Access::Read,
            1 => Access::Append,
            2 => Access::Update,
            code => return Err(format!("access {code} is unknown")),
        };
        Ok((id, access))
    })?;
    let groups = r.list(groups, |r| r.u32("group").map(GroupId))?;
    let len = usize::from(r.u16("parameter length")?);
    let params = r.take(len, "parameters")?.to_vec();
    Ok(OpRecord { name, ins, outs, weights, states, groups, params })
}

fn get_ty(r: &mut Reader<'_>) -> Result<Ty, String> {
    match r.u8("type")? {
        0 => Ok(Ty::F32),
        1 => Ok(Ty::I32),
        code => Err(format!("type {code} is unknown")),
    }
}

fn named(r: &mut Reader<'_>, names: &[String]) -> Result<String, String> {
    let index = r.u16("name")?;
    lookup(names, index)
}

fn lookup(names: &[String], index: u16) -> Result<String, String> {
    names.get(usize::from(index)).cloned().ok_or_else(|| format!("name {index} of {}", names.len()))
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }
    fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }
    fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }
    fn name(&mut self, name: &str) -> Result<(), String> {
        check_name(name)?;
        self.u8(name.len() as u8);
        self.bytes.extend_from_slice(name.as_bytes());
        Ok(())
    }
    fn table<T>(&mut self, entries: &[T], mut put: impl FnMut(&mut Self, &T) -> Result<(), String>) -> Result<(), String> {
        self.u32(u32::try_from(entries.len()).map_err(|_| "a table with too many entries".to_string())?);
        entries.iter().try_for_each(|entry| put(self, entry))
    }
}

/// Names are 1 to 255 printable ASCII characters without spaces.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > 255 || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("{name:?} is not a name: 1 to 255 printable ASCII characters"));
    }
    Ok(())
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8], String> {
        let left = self.bytes.len() - self.at;
        if len > left {
            return Err(format!("it ends within {what}: {len} bytes are needed, {left} are left"));
        }
        let taken = &self.bytes[self.at..self.at + len];
        self.at += len;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], String> {
        let bytes = self.take(N, what)?;
        bytes.try_into().map_err(|_| what.to_string())
    }
    fn u8(&mut self, what: &str) -> Result<u8, String> {
        self.array::<1>(what).map(|[byte]| byte)
    }
    fn u16(&mut self, what: &str) -> Result<u16, String> {
        self.array(what).map(u16::from_le_bytes)
    }
    fn u32(&mut self, what: &str) -> Result<u32, String> {
        self.array(what).map(u32::from_le_bytes)
    }
    fn name(&mut self) -> Result<String, String> {
        let len = usize::from(self.u8("a name")?);
        let bytes = self.take(len, "a name")?;
        let name = std::str::from_utf8(bytes).map_err(|_| "a name is not ASCII".to_string())?;
        check_name(name)?;
        Ok(name.into())
    }
    fn list<T>(&mut self, count: u8, mut get: impl FnMut(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        (0..count).map(|_| get(self)).collect()
    }
    /// A table of entries of at least `entry_len_min` bytes each.
    fn table<T>(
        &mut self,
        table: &str,
        entry_len_min: usize,
        mut get: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let count = self.u32(table)? as usize;
        let left = self.bytes.len() - self.at;
        if count > left / entry_len_min {
            return Err(format!("table `{table}` claims {count} entries, {left} bytes are left"));
        }
        let mut entries = Vec::with_capacity(count);
        for index in 0..count {
            entries.push(get(self).map_err(|error| format!("{table} {index}: {error}"))?);
        }
        Ok(entries)
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
