//! Reads a set of kernels, and believes none of it: every size is held against what is there or against a bound before memory is taken.

use std::collections::HashMap;
use std::io::Read as _;
use std::ops::Range;

use flate2::read::ZlibDecoder;

use super::layout::{FIELDS, FORMAT, Hash, MAGIC, hash};

/// Bytes of a head, at most.
const HEAD_MAX: usize = 512;
/// Bytes of a body, at most.
const BODY_MAX: u64 = 1 << 27;
/// Bytes of a name, at most.
const NAME_MAX: usize = 128;
/// The words with which SPIR-V begins, as bytes: its number, then version, generator, bound and schema.
const SPIRV_HEAD: usize = 20;
const SPIRV_MAGIC: [u8; 4] = 0x0723_0203_u32.to_le_bytes();

/// What the head says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Of what sources the set was made.
    pub(crate) sources: Hash,
    contents: Hash,
    modules: usize,
    bytes: usize,
    /// Where the packed body begins.
    body: usize,
}

/// Unpacked modules.
#[derive(Debug)]
pub(crate) struct Modules {
    body: Vec<u8>,
    places: HashMap<String, Range<usize>>,
}

impl Head {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let Some(rest) = bytes.strip_prefix(MAGIC.as_bytes()) else { return Err("it is no set of kernels".into()) };
        let number = rest.iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
        let format = whole(std::str::from_utf8(&rest[..number]).unwrap_or_default());
        match format {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => return Err(format!("it has format {format}, and this program reads format {FORMAT}")),
            None => return Err("its head is damaged".into()),
        }
        Self::fields(bytes).ok_or_else(|| "its head is damaged".into())
    }

    fn fields(bytes: &[u8]) -> Option<Self> {
        let begin = &bytes[..bytes.len().min(HEAD_MAX)];
        let end = begin.windows(2).position(|pair| pair == b"\n\n")?;
        let text = std::str::from_utf8(&begin[..end]).ok()?;
        let mut lines = text.split('\n').skip(1);
        let mut values = FIELDS.iter().map(|field| lines.next()?.strip_prefix(field)?.strip_prefix(' '));
        let mut next = || values.next().flatten();
        let (sources, contents) = (digits(next()?)?, digits(next()?)?);
        let (modules, bytes) = (whole(next()?)?, whole(next()?)?);
        let fits = lines.next().is_none() && bytes <= BODY_MAX && modules <= bytes / SPIRV_HEAD as u64;
        fits.then_some(Self { sources, contents, modules: modules as usize, bytes: bytes as usize, body: end + 2 })
    }
}

/// A decimal number as we write it.
fn whole(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

fn digits(text: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    if text.len() != 2 * hash.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in hash.iter_mut().zip((0..text.len()).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(hash)
}

impl Modules {
    /// Unpacks the set that begins with this head.
    pub(crate) fn unpack(head: &Head, bytes: &[u8]) -> Result<Self, String> {
        let mut body = Vec::new();
        body.try_reserve_exact(head.bytes).map_err(|_| format!("there is no memory for its {} bytes", head.bytes))?;
        // One byte more than it says would show that it says too little.
        let mut unpacker = ZlibDecoder::new(&bytes[head.body..]);
        let unpacked = unpacker.by_ref().take(head.bytes as u64 + 1).read_to_end(&mut body);
        unpacked.map_err(|error| format!("it is damaged and cannot be unpacked ({error})"))?;
        let is_all = unpacker.total_in() == (bytes.len() - head.body) as u64;
        if body.len() != head.bytes || !is_all || hash(&body) != head.contents {
            return Err("it is damaged: its contents are not what its head says".into());
        }
        let places = places(&body, head.modules).ok_or("its modules are not as they must be")?;
        Ok(Self { body, places })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        self.body.get(self.places.get(name)?.clone())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }
}

/// Where each module lies; `None` where something is not as [`super::layout`] says, a name is there twice, or a module is no SPIR-V.
fn places(body: &[u8], count: usize) -> Option<HashMap<String, Range<usize>>> {
    let mut places = HashMap::new();
    let mut at = 0;
    while at < body.len() {
        let length = |from: usize| Some(u32::from_le_bytes(body.get(from..from + 4)?.try_into().ok()?) as usize);
        let (name_len, spirv_len) = (length(at)?, length(at + 4)?);
        let start = (at + 8).checked_add(name_len).filter(|_| name_len <= NAME_MAX)?;
        let place = start..start.checked_add(spirv_len)?;
        let name = std::str::from_utf8(body.get(at + 8..start)?).ok()?;
        let spirv = body.get(place.clone())?;
        let is_spirv = spirv.len() >= SPIRV_HEAD && spirv.len() % 4 == 0 && spirv.starts_with(&SPIRV_MAGIC);
        at = place.end;
        if !is_spirv || places.insert(name.to_owned(), place).is_some() {
            return None;
        }
    }
    (places.len() == count).then_some(places)
}
