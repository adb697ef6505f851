//! Writes a set of kernels. Build scripts do, and tests; the program never.

use std::fmt::Write as _;
use std::io::Write as _;

use super::layout::{FIELDS, FORMAT, Hash, MAGIC, hash};

/// Packs modules, given in the order of their names, that were made of sources with this hash.
pub fn pack(sources: &Hash, modules: &[(&str, &[u8])]) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    for (name, spirv) in modules {
        body.extend((name.len() as u32).to_le_bytes());
        body.extend((spirv.len() as u32).to_le_bytes());
        body.extend(name.as_bytes());
        body.extend(*spirv);
    }
    pack_body(sources, modules.len(), &body)
}

/// The same for a body that is made already.
pub fn pack_body(sources: &Hash, modules: usize, body: &[u8]) -> std::io::Result<Vec<u8>> {
    let values = [hex(sources), hex(&hash(body)), modules.to_string(), body.len().to_string()];
    let mut head = format!("{MAGIC}{FORMAT}\n");
    for (field, value) in FIELDS.iter().zip(values) {
        head.push_str(&format!("{field} {value}\n"));
    }
    head.push('\n');
    let mut packer = flate2::write::ZlibEncoder::new(head.into_bytes(), flate2::Compression::best());
    packer.write_all(body)?;
    packer.finish()
}

fn hex(hash: &Hash) -> String {
    hash.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
