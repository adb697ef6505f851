//! An op's parameters: one struct, from which the byte layout, the exact length and the range checks follow.
//!
//! Write the struct with [`params!`](crate::params!) and its choices with [`choice!`](crate::choice!). The layout is the fields in order,
//! little-endian and packed. A layout never changes for a `name@version`.

/// A field that has a fixed little-endian form.
pub trait Wire: Sized {
    /// Its bytes.
    const LEN: usize;
    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads it from exactly [`Wire::LEN`] bytes.
    fn get(bytes: &[u8]) -> Result<Self, String>;
}

macro_rules! wire_int {
    ($($ty:ty),*) => {$(
        impl Wire for $ty {
            const LEN: usize = size_of::<$ty>();
            fn put(&self, out: &mut Vec<u8>) { out.extend_from_slice(&self.to_le_bytes()); }
            fn get(bytes: &[u8]) -> Result<Self, String> {
                let bytes = bytes.try_into().map_err(|_| format!("{} bytes", bytes.len()))?;
                Ok(<$ty>::from_le_bytes(bytes))
            }
        }
    )*};
}
wire_int!(u8, u16, u32, i32);

macro_rules! wire_float {
    ($($ty:ty),*) => {$(
        impl Wire for $ty {
            const LEN: usize = size_of::<$ty>();
            fn put(&self, out: &mut Vec<u8>) { out.extend_from_slice(&self.to_le_bytes()); }
            fn get(bytes: &[u8]) -> Result<Self, String> {
                let bytes = bytes.try_into().map_err(|_| format!("{} bytes", bytes.len()))?;
                let value = <$ty>::from_le_bytes(bytes);
                if value.is_finite() { Ok(value) } else { Err(format!("{value} is not a finite number")) }
            }
        }
    )*};
}
wire_float!(f32, f64);

impl Wire for bool {
    const LEN: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn get(bytes: &[u8]) -> Result<Self, String> {
        match bytes {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(format!("{bytes:?} is neither 0 nor 1")),
        }
    }
}

/// A whole parameter struct.
pub trait Params: Sized + Clone {
    /// The exact length of its bytes.
    const LEN: usize;
    /// Its bytes.
    fn encode(&self) -> Vec<u8>;
    /// Reads and checks it; an error names the field.
    fn decode(bytes: &[u8]) -> Result<Self, String>;
}

/// Declares a parameter struct. `field: type in low..=high` adds a range check.
#[macro_export]
macro_rules! params {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $( $(#[$fmeta:meta])* $field:ident : $ty:ty $(= $($range:literal ..= $range_end:literal)+)? ),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name { $( $(#[$fmeta])* pub $field: $ty, )* }

        impl $crate::params::Params for $name {
            const LEN: usize = 0 $( + <$ty as $crate::params::Wire>::LEN )*;

            fn encode(&self) -> Vec<u8> {
                #[allow(unused_mut)]
                let mut out = Vec::with_capacity(<Self as $crate::params::Params>::LEN);
                $( $crate::params::Wire::put(&self.$field, &mut out); )*
                out
            }

            fn decode(bytes: &[u8]) -> ::core::result::Result<Self, ::std::string::String> {
                let len = <Self as $crate::params::Params>::LEN;
                if bytes.len() != len {
                    return Err(format!("parameters are {} bytes, this version has {len}", bytes.len()));
                }
                #[allow(unused_mut, unused_variables)]
                let mut rest = bytes;
                $(
                    let (head, tail) = rest.split_at(<$ty as $crate::params::Wire>::LEN);
                    let $field = <$ty as $crate::params::Wire>::get(head)
                        .map_err(|error| format!("parameter `{}`: {error}", stringify!($field)))?;
                    $($(
                        if !($range ..= $range_end).contains(&$field) {
                            return Err(format!(
                                "parameter `{}`: {} is outside {}..={}", stringify!($field), $field, $range, $range_end
                            ));
                        }
                    )+)?
                    rest = tail;
                )*
                let _ = rest;
                Ok(Self { $($field),* })
            }
        }

        /// As a field of other parameters.
        impl $crate::params::Wire for $name {
            const LEN: usize = <Self as $crate::params::Params>::LEN;
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&$crate::params::Params::encode(self));
            }
            fn get(bytes: &[u8]) -> ::core::result::Result<Self, ::std::string::String> {
                $crate::params::Params::decode(bytes)
            }
        }
    };
}

/// Declares a choice of one byte, with the text that messages use for each of its values.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $code:literal, $text:literal );* $(;)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name { $( $(#[$vmeta])* $variant = $code ),* }

        impl $name {
            /// The word that messages use.
            pub fn text(self) -> &'static str {
                match self { $( Self::$variant => $text ),* }
            }
        }

        impl $crate::params::Wire for $name {
            const LEN: usize = 1;
            fn put(&self, out: &mut Vec<u8>) { out.push(*self as u8); }
            fn get(bytes: &[u8]) -> ::core::result::Result<Self, ::std::string::String> {
                match bytes {
                    $( [$code] => Ok(Self::$variant), )*
                    _ => Err(format!("{bytes:?} is not a known {}", stringify!($name))),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::Params;

    choice! {
        /// Two ways.
        pub enum Way { /// Left.
            Left = 0, "left"; /// Right.
            Right = 3, "right" }
    }
    params! {
        /// All kinds of field.
        pub struct Sample {
            /// A count.
            count: u32 = 1..=64,
            /// A way.
            way: Way,
            /// A number.
            eps: f32 = 0.0..=1.0,
            /// A switch.
            on: bool,
            /// A large number.
            theta: f64
        }
    }

    const SAMPLE: Sample = Sample { count: 7, way: Way::Right, eps: 0.5, on: true, theta: 1e4 };

    #[test]
    fn the_layout_is_packed_little_endian_in_field_order() {
        let mut expected = vec![7, 0, 0, 0, 3, 0, 0, 0, 0x3f, 1];
        expected.extend_from_slice(&1e4f64.to_le_bytes());
        assert_eq!(SAMPLE.encode(), expected);
        assert_eq!(Sample::LEN, 18);
        assert_eq!(Sample::decode(&expected), Ok(SAMPLE));
        assert_eq!((Way::Left.text(), Way::Right.text()), ("left", "right"));
    }

    #[test]
    fn a_wrong_length_range_choice_or_number_names_its_field() {
        let refused = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = SAMPLE.encode();
            change(&mut bytes);
            Sample::decode(&bytes).unwrap_err()
        };
        assert!(refused(&|bytes| bytes.push(0)).contains("19 bytes"));
        assert!(refused(&|bytes| {
            bytes.pop();
        })
        .contains("17 bytes"));
        assert!(refused(&|bytes| bytes[0] = 65).contains("`count`: 65 is outside 1..=64"));
        assert!(refused(&|bytes| bytes[4] = 1).contains("`way`"));
        assert!(refused(&|bytes| bytes[5..9].copy_from_slice(&f32::NAN.to_le_bytes())).contains("`eps`"));
        assert!(refused(&|bytes| bytes[9] = 2).contains("`on`"));
        assert!(refused(&|bytes| bytes[10..18].copy_from_slice(&f64::INFINITY.to_le_bytes())).contains("`theta`"));
    }
}
