//! Packed tensors in safetensors: a tensor of values and one of scales, which are one tensor to everybody else.
//!
//! | container | values | scales | dimensions |
//! |---|---|---|---|
//! | ours and the source engine's | `name`, u8 or i8, any shape | `name.qs`, f32 or a byte each | stated, or for the model to say |
//! | compressed-tensors, MXFP4 | `name_packed`, u8, half as wide | `name_scale`, a byte each | of the values, twice as wide |
//! | FP8 | `name`, f8_e4m3 | `name_scale_inv`, `name_scale` | of the values |
//! | releases with plain names | `x.weight`, f8_e4m3, u8 or i8 | `x.scale` | as above |
//!
//! A byte may be a power of two (E8M0) whether its type says so or not. What a file's metadata states of a tensor must fit its bytes
//! ([`stated`]); what nothing states follows from counts of bytes ([`fit`]), and what they leave open is refused, not guessed.

mod fit;
mod stated;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use coli_base::{Error, Result};
use coli_shaders::formats::Format;
use safetensors::Dtype;

pub(crate) use fit::Asked;
pub(crate) use stated::Stated;

use crate::checkpoint::{Place, Tensor};
use crate::header::Entry;
use crate::quantization::Quantization;
use fit::Sizes;

/// A tensor as a file has it.
#[derive(Debug)]
pub(crate) struct Stored {
    /// Position in the checkpoint's files.
    pub(crate) file: usize,
    pub(crate) entry: Entry,
}

/// How a tensor's bytes become numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// The tensor's shape is that of its numbers.
    Known(Format),
    /// One of these, in the order in which they are preferred. How many numbers a row has decides; the tensor's shape is not that of its
    /// numbers. `dims` is what it has stored.
    OneOf { formats: Vec<Format>, dims: Vec<u64> },
    /// None that is read, with the reason where the type alone does not say it.
    Unread(Option<String>),
}

/// The tensors that all stored ones make, in the order of their values, and what is wrong with those whose scales or metadata do not fit.
pub(crate) fn tensors(stored: &[Stored], stated: &Stated, quantization: Quantization, twos: bool) -> (Vec<Tensor>, Vec<Error>) {
    let mut faults = Vec::new();
    let pairs = pairs(stored, &mut faults);
    let scales: HashSet<usize> = pairs.values().map(|pair| pair.scales).collect();
    let mut tensors = Vec::new();
    for (index, values) in stored.iter().enumerate().filter(|(index, _)| !scales.contains(index)) {
        let pair = pairs.get(&index);
        let packed =
            Packed { values, scales: pair.map(|pair| &stored[pair.scales]), name: pair.map_or(&values.entry.name, |pair| &pair.name) };
        let encoded = packed.encode(stated, quantization, twos).unwrap_or_else(|error| {
            let reason = error.text.clone();
            faults.push(error);
            packed.unread(Some(reason))
        });
        tensors.push(packed.tensor(encoded));
    }
    (tensors, faults)
}

/// Scales of a tensor of values, and the name that the two have together.
struct Pair {
    name: String,
    scales: usize,
}

/// Finds the scales of every tensor that may have some. No tensor is in two pairs, and no name is used twice.
fn pairs(stored: &[Stored], faults: &mut Vec<Error>) -> HashMap<usize, Pair> {
    let by_name: HashMap<&str, usize> = stored.iter().enumerate().map(|(index, stored)| (stored.entry.name.as_str(), index)).collect();
    let mut pairs: HashMap<usize, Pair> = HashMap::new();
    let mut taken: HashSet<usize> = HashSet::new();
    for (index, values) in stored.iter().enumerate().filter(|(_, stored)| is_packed(stored.entry.dtype)) {
        let name = &values.entry.name;
        let mut found = names(name).into_iter().filter_map(|(own, scales)| Some((own, *by_name.get(scales.as_str())?)));
        let Some((own, scales)) = found.next() else { continue };
        let refuse = |what: String| Error::refused(format!("tensor `{name}` {what}"));
        let scales_name = &stored[scales].entry.name;
        let fault = match found.next() {
            Some((_, other)) => Some(refuse(format!("has scales twice, in `{scales_name}` and in `{}`", stored[other].entry.name))),
            None if own != *name && by_name.contains_key(own.as_str()) => Some(refuse(format!("is stored as `{own}` too"))),
            None if !taken.insert(scales) || !taken.insert(index) => Some(refuse(format!("and `{scales_name}` are scales of each other"))),
            None => None,
        };
        match fault {
            Some(fault) => faults.push(fault),
            None => drop(pairs.insert(index, Pair { name: own, scales })),
        }
    }
    pairs
}

/// Types that values with scales are stored in.
fn is_packed(dtype: Dtype) -> bool {
    [Dtype::U8, Dtype::I8, Dtype::F8_E4M3].contains(&dtype)
}

/// What values of this name and their scales may be called: the name of both, and that of the scales.
fn names(values: &str) -> Vec<(String, String)> {
    let mut names: Vec<(String, String)> = [".qs", "_scale_inv", "_scale"].map(|end| (values.to_owned(), format!("{values}{end}"))).into();
    names.extend(values.strip_suffix(PACKED).map(|name| (name.to_owned(), format!("{name}_scale"))));
    names.extend(values.strip_suffix(".weight").map(|module| (values.to_owned(), format!("{module}.scale"))));
    names
}

/// The end of the name of MXFP4 values in the form of compressed-tensors.
const PACKED: &str = "_packed";

/// Values, with scales where there are any.
struct Packed<'a> {
    values: &'a Stored,
    scales: Option<&'a Stored>,
    name: &'a str,
}

/// What a tensor turned out to be.
struct Encoded {
    encoding: Encoding,
    kind: String,
    shape: Vec<u64>,
}

impl Packed<'_> {
    fn encode(&self, stated: &Stated, quantization: Quantization, twos: bool) -> Result<Encoded> {
        let (entry, statement) = (&self.values.entry, stated.get(self.name));
        let formats = statement.and_then(|statement| statement.formats.as_ref());
        if let Some(format) = plain(entry.dtype) {
            if formats.is_some_and(|claim| !claim.formats.contains(&format)) {
                return Err(
                    self.refuse(&format!("is stored as {format:?}, its file's metadata states {}", formats.map_or("", |c| &c.word)))
                );
            }
            if let Some(shape) = statement.and_then(|statement| statement.shape.as_ref()).filter(|shape| **shape != entry.shape) {
                return Err(self.refuse(&format!("is {:?}, its file's metadata states {shape:?}", entry.shape)));
            }
            return Ok(Encoded { encoding: Encoding::Known(format), kind: format.name().into(), shape: entry.shape.clone() });
        }
        if let Some(claim) = formats.filter(|claim| claim.formats.is_empty()) {
            return Ok(self.unread(Some(format!("tensor `{}` is stored as {}, which coli does not read", self.name, claim.word))));
        }
        if !is_packed(entry.dtype) || (self.scales.is_none() && formats.is_none()) {
            return match formats {
                Some(claim) => Err(self.refuse(&format!("is stored as {}, its file's metadata states {}", self.types(), claim.word))),
                None => Ok(self.unread(None)),
            };
        }
        let candidates = self.candidates(formats, quantization, twos);
        if candidates.is_empty() {
            return match formats {
                Some(claim) => Err(self.refuse(&format!("is {}, its file's metadata states {}", self.types(), claim.word))),
                None => Ok(self.unread(None)),
            };
        }
        match self.dims(statement.and_then(|statement| statement.shape.as_deref())) {
            Some(dims) => self.known(&candidates, dims, statement.is_some()),
            None => Ok(self.open(candidates)),
        }
    }

    /// The formats that types of values and scales, names and settings leave, in the order in which they are preferred.
    fn candidates(&self, claim: Option<&stated::Claim>, quantization: Quantization, twos: bool) -> Vec<Format> {
        let dtype = self.values.entry.dtype;
        let Some(width) = self.scale_width() else { return vec![] };
        let mut formats = match claim {
            Some(claim) => claim.formats.clone(),
            None if self.is_named_packed() => vec![Format::MXFP4],
            None if dtype == Dtype::F8_E4M3 => fit::fp8(quantization.block),
            None => fit::container(),
        };
        let exact = claim.is_some_and(|claim| claim.exact);
        formats.retain(|format| {
            let goes_with_values = match dtype {
                Dtype::F8_E4M3 => fit::is_fp8(*format),
                Dtype::I8 => !fit::is_fp8(*format),
                _ => true,
            };
            goes_with_values && fit::scale_width(*format) == Some(width) && (exact || fit::is_of_convention(*format, twos))
        });
        formats
    }

    /// The dimensions of the numbers, where they do not depend on the format.
    fn dims(&self, stated: Option<&[u64]>) -> Option<Vec<u64>> {
        let stored = &self.values.entry.shape;
        match stored[..] {
            _ if stated.is_some() => stated.map(<[u64]>::to_vec),
            [ref outer @ .., last] if self.is_named_packed() => Some(outer.iter().copied().chain([last.checked_mul(2)?]).collect()),
            _ if self.values.entry.dtype == Dtype::F8_E4M3 => Some(stored.clone()),
            _ => None,
        }
    }

    /// A tensor of these dimensions. Where metadata states something, what does not fit is a fault; else the tensor is only not read.
    fn known(&self, candidates: &[Format], dims: Vec<u64>, stated: bool) -> Result<Encoded> {
        let sizes = self.sizes();
        let mut fitting = fit::fitting(candidates, &dims, sizes);
        if (self.values.entry.dtype == Dtype::F8_E4M3 || self.is_named_packed()) && !stated {
            fitting.retain(|format| self.scales.is_some_and(|scales| fit::is_grid(*format, &dims, &scales.entry.shape)));
        }
        match fit::choose(&fitting) {
            Ok(format) => Ok(Encoded { encoding: Encoding::Known(format), kind: format.name().into(), shape: dims }),
            Err(choices) => {
                let fault = self.misfit(&format!("{dims:?}"), candidates, &choices);
                if stated { Err(fault) } else { Ok(self.unread(Some(fault.text))) }
            }
        }
    }

    /// A tensor whose rows a model knows. What is shown of it is what the bytes leave no other choice for.
    fn open(&self, formats: Vec<Format>) -> Encoded {
        let dims = self.values.entry.shape.clone();
        let (kind, shape) = match fit::guess(&formats, &dims, self.sizes()) {
            Some((format, shape)) => (format.name().to_owned(), shape),
            None => (self.types(), dims.clone()),
        };
        Encoded { encoding: Encoding::OneOf { formats, dims }, kind, shape }
    }

    fn unread(&self, reason: Option<String>) -> Encoded {
        Encoded { encoding: Encoding::Unread(reason), kind: self.types(), shape: self.values.entry.shape.clone() }
    }

    fn tensor(&self, Encoded { encoding, kind, shape }: Encoded) -> Tensor {
        let place = |stored: &Stored| Place { file: stored.file, offset: stored.entry.offset, bytes: stored.entry.bytes };
        let (values, scales) = (place(self.values), self.scales.map(place));
        // Neither is longer than its file.
        let bytes = values.bytes.saturating_add(scales.map_or(0, |scales| scales.bytes));
        Tensor { name: self.name.to_owned(), kind, shape, bytes, encoding, values, scales }
    }

    fn is_named_packed(&self) -> bool {
        self.values.entry.name != self.name
    }

    fn sizes(&self) -> Sizes {
        Sizes { values: self.values.entry.bytes, scales: self.scales.map_or(0, |scales| scales.entry.bytes) }
    }

    /// Bytes of a scale; `None` for a type that none has.
    fn scale_width(&self) -> Option<usize> {
        match self.scales.map(|scales| scales.entry.dtype) {
            None => Some(0),
            Some(Dtype::F32) => Some(4),
            Some(Dtype::BF16) => Some(2),
            Some(Dtype::U8 | Dtype::F8_E8M0) => Some(1),
            Some(_) => None,
        }
    }

    /// `u8`, or `u8+f32` with scales.
    fn types(&self) -> String {
        let kind = |stored: &Stored| stored.entry.dtype.to_string().to_lowercase();
        self.scales.map_or(kind(self.values), |scales| format!("{}+{}", kind(self.values), kind(scales)))
    }

    fn misfit(&self, what: &str, candidates: &[Format], choices: &[Format]) -> Error {
        Error::refused(misfit(self.name, self.sizes(), &self.values.entry.shape, what, candidates, choices))
    }

    fn refuse(&self, what: &str) -> Error {
        Error::refused(format!("tensor `{}` {what}", self.name))
    }
}

/// The format of a type that has no scales.
fn plain(dtype: Dtype) -> Option<Format> {
    match dtype {
        Dtype::F32 => Some(Format::F32),
        Dtype::F16 => Some(Format::F16),
        Dtype::BF16 => Some(Format::BF16),
        _ => None,
    }
}

/// Says that bytes are `what` in none of `candidates`, or in more than one.
fn misfit(name: &str, sizes: Sizes, stored: &[u64], what: &str, candidates: &[Format], choices: &[Format]) -> String {
    let names = |formats: &[Format]| formats.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
    let Sizes { values, scales } = sizes;
    let bytes = format!("tensor `{name}`, {stored:?} of {values} bytes with {scales} bytes of scales, is");
    match choices.is_empty() {
        true => format!("{bytes} not {what} in {}", names(candidates)),
        false => format!("{bytes} {what} in more than one format: {}; `coli.formats` in its file's metadata can say which", names(choices)),
    }
}

impl Tensor {
    /// Its format and the dimensions of its numbers, where a model says what it expects.
    pub(crate) fn numbers(&self, asked: Option<Asked>) -> Result<(Format, Vec<u64>)> {
        match &self.encoding {
            Encoding::Known(format) => Ok((*format, self.shape.clone())),
            Encoding::Unread(Some(reason)) => Err(Error::refused(reason.clone())),
            Encoding::Unread(None) => Err(Error::refused(format!(
                "tensor `{}` is stored as {}, which coli does not read; use bf16, f16, f32 or a GGUF file",
                self.name, self.kind
            ))),
            Encoding::OneOf { formats, dims } => {
                let unknown = || Error::refused(format!("tensor `{}` is packed, and nothing says how long its rows are", self.name));
                let asked = asked.filter(|asked| asked.cols > 0).ok_or_else(unknown)?;
                let sizes = Sizes { values: self.values.bytes, scales: self.scales.map_or(0, |scales| scales.bytes) };
                let what = asked.rows.map_or(format!("rows of {}", asked.cols), |rows| format!("{:?}", [rows, asked.cols]));
                fit::of_rows(formats, dims, asked, sizes)
                    .map_err(|choices| Error::refused(misfit(&self.name, sizes, dims, &what, formats, &choices)))
            }
        }
    }
}
