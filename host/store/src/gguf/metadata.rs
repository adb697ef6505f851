//! The metadata of a GGUF file: keys and typed values.

use std::collections::BTreeMap;
use std::fmt;

use coli_base::{Error, Result};
use serde_json::{Map, Value as Json};

use super::reader::Reader;

/// What ggml allows.
const KEY_BYTES_MAX: usize = u16::MAX as usize;
/// Lists within lists; published files have none.
const DEPTH_MAX: usize = 8;
/// A key, the number of its type, and the least value.
const ENTRY_BYTES_MIN: u64 = 8 + 4 + 1;

/// The tokenizer's lists, which are no configuration: they are as long as the vocabulary, and the tokenizer's own reader asks for them.
const TOKENIZER_LISTS: [&str; 5] = [
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.precompiled_charsmap",
];
/// Values that the metadata may have besides: they become JSON, where each takes many times its bytes.
const CONFIG_VALUES_MAX: usize = 1 << 20;

/// A value. Whole numbers of all widths are kept in the widest.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `u8`, `u16`, `u32` or `u64`.
    Unsigned(u64),
    /// `i8`, `i16`, `i32` or `i64`.
    Signed(i64),
    /// `f32`.
    F32(f32),
    /// `f64`.
    F64(f64),
    /// `bool`.
    Bool(bool),
    /// `string`.
    Text(String),
    /// `array`.
    List(List),
}

/// A list of values of one type.
#[derive(Debug, Clone, PartialEq)]
pub enum List {
    /// `u8`.
    Bytes(Vec<u8>),
    /// `u16`, `u32` or `u64`.
    Unsigned(Vec<u64>),
    /// `i8`, `i16`, `i32` or `i64`.
    Signed(Vec<i64>),
    /// `f32`.
    F32(Vec<f32>),
    /// `f64`.
    F64(Vec<f64>),
    /// `bool`.
    Bool(Vec<bool>),
    /// `string`.
    Text(Vec<String>),
    /// `array`.
    Lists(Vec<List>),
}

/// Types by their numbers in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    List,
    U64,
    I64,
    F64,
}

impl Type {
    const ALL: [Self; 13] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::Bool,
        Self::Text,
        Self::List,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let number = reader.u32()?;
        let known = usize::try_from(number).ok().and_then(|number| Self::ALL.get(number).copied());
        known.ok_or_else(|| Error::refused(format!("{number} at byte {} is no type of a value", reader.at() - 4)))
    }

    /// The least bytes of a value in a list.
    fn bytes_min(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::Text => 8,
            Self::List => 12,
        }
    }
}

impl Value {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match Type::read(reader)? {
            Type::U8 => Self::Unsigned(reader.u8()?.into()),
            Type::U16 => Self::Unsigned(reader.u16()?.into()),
            Type::U32 => Self::Unsigned(reader.u32()?.into()),
            Type::U64 => Self::Unsigned(reader.u64()?),
            Type::I8 => Self::Signed(reader.array().map(i8::from_le_bytes)?.into()),
            Type::I16 => Self::Signed(reader.array().map(i16::from_le_bytes)?.into()),
            Type::I32 => Self::Signed(reader.array().map(i32::from_le_bytes)?.into()),
            Type::I64 => Self::Signed(reader.array().map(i64::from_le_bytes)?),
            Type::F32 => Self::F32(reader.array().map(f32::from_le_bytes)?),
            Type::F64 => Self::F64(reader.array().map(f64::from_le_bytes)?),
            Type::Bool => Self::Bool(reader.bool()?),
            Type::Text => Self::Text(reader.text()?),
            Type::List => Self::List(List::read(reader, 1)?),
        })
    }

    /// A whole number that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Unsigned(number) => Some(*number),
            Self::Signed(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// A truth value.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// A text.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// A list of texts.
    pub fn as_texts(&self) -> Option<&[String]> {
        if let Self::List(List::Text(texts)) = self { Some(texts) } else { None }
    }

    /// A list of `f32`.
    pub fn as_f32s(&self) -> Option<&[f32]> {
        if let Self::List(List::F32(numbers)) = self { Some(numbers) } else { None }
    }

    /// A list of signed whole numbers.
    pub fn as_signed(&self) -> Option<&[i64]> {
        if let Self::List(List::Signed(numbers)) = self { Some(numbers) } else { None }
    }

    /// A list of bytes; converters store one as signed too.
    pub fn as_bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::List(List::Bytes(bytes)) => Some(bytes.clone()),
            Self::List(List::Signed(numbers)) => numbers.iter().map(|number| i8::try_from(*number).ok().map(|byte| byte as u8)).collect(),
            _ => None,
        }
    }

    /// How many values there are in it.
    fn count(&self) -> usize {
        if let Self::List(list) = self { 1 + list.count() } else { 1 }
    }

    fn json(&self) -> Json {
        match self {
            Self::Unsigned(number) => (*number).into(),
            Self::Signed(number) => (*number).into(),
            Self::F32(number) => json_f32(*number),
            Self::F64(number) => (*number).into(),
            Self::Bool(value) => (*value).into(),
            Self::Text(text) => text.as_str().into(),
            Self::List(list) => list.json(),
        }
    }
}

/// The decimal number that the `f32` was most likely made of, which is that of the published configuration: 1e-5, not 9.99999974e-6.
fn json_f32(number: f32) -> Json {
    number.to_string().parse::<f64>().unwrap_or(f64::NAN).into()
}

impl List {
    fn read(reader: &mut Reader<'_>, depth: usize) -> Result<Self> {
        if depth > DEPTH_MAX {
            return Err(Error::refused(format!("lists are nested more than {DEPTH_MAX} deep")));
        }
        let kind = Type::read(reader)?;
        let count = reader.u64()?;
        reader.check(count, kind.bytes_min(), format_args!("the {count} values of a list"))?;
        Ok(match kind {
            Type::U8 => Self::Bytes(numbers(reader, count, Reader::u8)?),
            Type::U16 => Self::Unsigned(numbers(reader, count, |reader| Ok(reader.u16()?.into()))?),
            Type::U32 => Self::Unsigned(numbers(reader, count, |reader| Ok(reader.u32()?.into()))?),
            Type::U64 => Self::Unsigned(numbers(reader, count, Reader::u64)?),
            Type::I8 => Self::Signed(numbers(reader, count, |reader| Ok(i8::from_le_bytes(reader.array()?).into()))?),
            Type::I16 => Self::Signed(numbers(reader, count, |reader| Ok(i16::from_le_bytes(reader.array()?).into()))?),
            Type::I32 => Self::Signed(numbers(reader, count, |reader| Ok(i32::from_le_bytes(reader.array()?).into()))?),
            Type::I64 => Self::Signed(numbers(reader, count, |reader| Ok(i64::from_le_bytes(reader.array()?)))?),
            Type::F32 => Self::F32(numbers(reader, count, |reader| Ok(f32::from_le_bytes(reader.array()?)))?),
            Type::F64 => Self::F64(numbers(reader, count, |reader| Ok(f64::from_le_bytes(reader.array()?)))?),
            Type::Bool => Self::Bool(numbers(reader, count, Reader::bool)?),
            Type::Text => Self::Text(each(reader, count, Reader::text)?),
            Type::List => Self::Lists(each(reader, count, |reader| Self::read(reader, depth + 1))?),
        })
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(list) => list.len(),
            Self::Unsigned(list) => list.len(),
            Self::Signed(list) => list.len(),
            Self::F32(list) => list.len(),
            Self::F64(list) => list.len(),
            Self::Bool(list) => list.len(),
            Self::Text(list) => list.len(),
            Self::Lists(list) => list.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn count(&self) -> usize {
        if let Self::Lists(lists) = self { lists.iter().map(|list| 1 + list.count()).sum() } else { self.len() }
    }

    fn json(&self) -> Json {
        match self {
            Self::Bytes(list) => list.iter().copied().map(Json::from).collect(),
            Self::Unsigned(list) => list.iter().copied().map(Json::from).collect(),
            Self::Signed(list) => list.iter().copied().map(Json::from).collect(),
            Self::F32(list) => list.iter().copied().map(json_f32).collect(),
            Self::F64(list) => list.iter().copied().map(Json::from).collect(),
            Self::Bool(list) => list.iter().copied().map(Json::from).collect(),
            Self::Text(list) => list.iter().map(String::as_str).map(Json::from).collect(),
            Self::Lists(list) => list.iter().map(Self::json).collect(),
        }
    }
}

/// Values of a fixed size, all of which are in the file.
fn numbers<'f, T>(reader: &mut Reader<'f>, count: u64, read: impl Fn(&mut Reader<'f>) -> Result<T>) -> Result<Vec<T>> {
    let mut list = Vec::with_capacity(count as usize);
    for _ in 0..count {
        list.push(read(reader)?);
    }
    Ok(list)
}

/// Values of any size: memory is taken as they come, since each may be smaller in the file than in memory.
fn each<'f, T>(reader: &mut Reader<'f>, count: u64, read: impl Fn(&mut Reader<'f>) -> Result<T>) -> Result<Vec<T>> {
    (0..count).map(|_| read(reader)).collect::<Result<Vec<T>>>()
}

/// The values of a file, by key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata(BTreeMap<String, Value>);

impl Metadata {
    pub(super) fn read(reader: &mut Reader<'_>, count: u64) -> Result<Self> {
        reader.check(count, ENTRY_BYTES_MIN, format_args!("{count} keys"))?;
        let mut values = BTreeMap::new();
        for _ in 0..count {
            let key = reader.text().map_err(|error| error.within("a key"))?;
            if key.is_empty() || key.len() > KEY_BYTES_MAX {
                return Err(Error::refused(format!("a key of {} bytes", key.len())));
            }
            let value = Value::read(reader).map_err(|error| error.within(Quoted(&key)))?;
            if values.contains_key(&key) {
                return Err(Error::refused(format!("{} is there twice", Quoted(&key))));
            }
            values.insert(key, value);
        }
        Ok(Self(values))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// A whole number that the file must not give as something else.
    pub(super) fn whole(&self, key: &str) -> Result<Option<u64>> {
        let number = |value: &Value| value.as_u64().ok_or_else(|| Error::refused(format!("{} is no whole number", Quoted(key))));
        self.get(key).map(number).transpose()
    }

    /// What a plugin is told: everything but the tokenizer's lists, by key.
    pub(crate) fn config(&self) -> Result<Json> {
        let own = || self.0.iter().filter(|(key, _)| !TOKENIZER_LISTS.contains(&key.as_str()));
        let count: usize = own().map(|(_, value)| value.count()).sum();
        if count > CONFIG_VALUES_MAX {
            return Err(Error::refused(format!(
                "its metadata has {count} values besides the tokenizer's, at most {CONFIG_VALUES_MAX} are read"
            )));
        }
        Ok(Json::Object(own().map(|(key, value)| (key.clone(), value.json())).collect::<Map<_, _>>()))
    }
}

/// A name from a file.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", coli_base::line::one_line(self.0, 128))
    }
}
