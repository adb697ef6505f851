//! A module from a compiler, what is refused of it when it is changed, and any bytes.

use proptest::prelude::*;

use super::*;

/// The kernel of the driver tests: it reads bindings 0 and 2, and writes binding 1.
const SPIRV: &[u8] = include_bytes!("../../tests/probe/bound.spv");

fn wanted(constants: &[(u32, u32)]) -> Wanted<'_> {
    Wanted { buffers: 3, written: 1..2, constants }
}

fn words() -> Vec<u32> {
    words::read(SPIRV).unwrap()
}

/// Where each instruction begins, and its number.
fn starts(words: &[u32]) -> Vec<(usize, u16)> {
    let mut at = 5;
    let mut found = Vec::new();
    while at < words.len() {
        found.push((at, (words[at] & 0xffff) as u16));
        at += (words[at] >> 16) as usize;
    }
    found
}

fn refused(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    check(&bytes, &wanted(&[])).expect_err("it is refused")
}

/// The module with instructions put before the first one of this number.
fn with(before: u16, more: &[u32]) -> Vec<u32> {
    let mut words = words();
    let at = starts(&words).into_iter().find(|(_, op)| *op == before).unwrap().0;
    words.splice(at..at, more.iter().copied());
    words
}

#[test]
fn a_compilers_module_is_taken_with_its_constants() {
    let checked = check(SPIRV, &wanted(&[(0, 96), (1, 8)])).unwrap();
    assert_eq!(checked.capabilities, [Capability::Shader]);
    assert_eq!((checked.workgroup, checked.shared_bytes), ([96, 1, 1], 0));
    assert_eq!(checked.words, words());
    assert_eq!(check(SPIRV, &wanted(&[])).unwrap().workgroup, [1, 1, 1], "what the module says by itself");
}

#[test]
fn capabilities_and_extensions_beyond_the_list_are_named() {
    for (number, name) in [(5347, "PhysicalStorageBufferAddresses"), (5, "Linkage"), (6, "Kernel"), (11, "Int64"), (99_999, "99999")] {
        let text = refused(&with(17, &[0x0002_0011, number]));
        assert_eq!(text, format!("capability {name}: not one of the list"));
    }
    for (capability, number, name) in Capability::LIST {
        let words = with(17, &[0x0002_0011, number]);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert!(check(&bytes, &wanted(&[])).unwrap().capabilities.contains(&capability), "{name}");
        assert_eq!(capability.to_string(), name);
    }
    let extension = |name: &[u8; 8]| {
        [0x0003_000a, u32::from_le_bytes(name[..4].try_into().unwrap()), u32::from_le_bytes(name[4..].try_into().unwrap())]
    };
    assert_eq!(refused(&with(14, &extension(b"SPV_X\n\0\0"))), "extension `SPV_X\\n`: not one of the list");
}

#[test]
fn models_entries_and_modes_are_the_one_kind() {
    let changed = |op: u16, operand: usize, value: u32| {
        let mut words = words();
        let at = starts(&words).into_iter().find(|(_, found)| *found == op).unwrap().0;
        words[at + operand] = value;
        refused(&words)
    };
    assert!(changed(14, 1, 5348).starts_with("memory model (5348, 1)"));
    assert!(changed(14, 2, 3).starts_with("memory model (0, 3)"));
    assert!(changed(15, 1, 6).contains("entry points"), "a kernel of OpenCL");
    assert!(changed(15, 3, 0x6e69_616c).contains("entry points"), "another name");
    assert!(changed(15, 2, 40_000).contains("no entry point"), "an entry that is no function");
    assert!(changed(16, 2, 38).starts_with("execution mode 38"));
    let entry = starts(&words()).into_iter().find(|(_, op)| *op == 15).unwrap().0;
    let (words, len) = (words(), (words()[entry] >> 16) as usize);
    assert!(refused(&with(15, &words[entry..entry + len])).contains("entry points"), "two of them");
    assert!(refused(&words[..entry]).contains("no entry point"));
}

#[test]
fn buffers_are_those_that_were_declared_and_only_some_are_written() {
    let text = |buffers, written| check(SPIRV, &Wanted { buffers, written, constants: &[] }).expect_err("it is refused");
    assert_eq!(text(2, 1..2), "binding 2: it is given 2 buffers");
    assert_eq!(text(3, 2..3), "it writes to binding 1, which it may only read");
    let changed = |decoration: u32, value: u32| {
        let mut words = words();
        let found = starts(&words).into_iter().find(|(at, op)| *op == 71 && words[at + 2] == decoration).unwrap().0;
        words[found + 3] = value;
        refused(&words)
    };
    assert!(changed(34, 1).contains("expected set 0 and a binding"));
    assert!(changed(33, 1).contains("declared twice"));
    assert!(changed(33, 7).contains("binding 7: it is given 3 buffers"));
    let mut pushed = words();
    for (at, op) in starts(&words()) {
        // Both the pointer types and the variables.
        let class = at + if op == 32 { 2 } else { 3 };
        if (op == 32 || op == 59) && pushed[class] == 12 {
            pushed[class] = 9;
        }
    }
    assert_eq!(refused(&pushed), "storage class PushConstant: not one of the list");
}

#[test]
fn sizes_are_bounded() {
    // An array of floats in shared memory: its length is a constant that is given.
    let float = starts(&words()).into_iter().find(|(_, op)| *op == 22).map(|(at, _)| words()[at + 1]).unwrap();
    let uint = starts(&words()).into_iter().find(|(_, op)| *op == 21).map(|(at, _)| words()[at + 1]).unwrap();
    let array = |class: u32, len: u32| {
        let types = [0x0004_002b, uint, 900, len, 0x0004_001c, 901, float, 900, 0x0004_0020, 902, class, 901];
        let mut words = with(54, &[&types[..], &[0x0004_003b, 902, 903, class]].concat());
        words[3] = 1000;
        words
    };
    let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    assert_eq!(check(&bytes(&array(4, 300)), &wanted(&[])).unwrap().shared_bytes, 1200);
    assert_eq!(check(&bytes(&array(4, u32::MAX)), &wanted(&[])).unwrap().shared_bytes, 4 * u64::from(u32::MAX));
    assert!(refused(&array(6, 100_000)).starts_with("its variables take 400"));
    let mut unknown = array(4, 300);
    let at = unknown.iter().position(|word| *word == 900).unwrap();
    unknown[at] = 904;
    assert!(refused(&unknown).contains("a size that is no constant"));
}

#[test]
fn headers_are_looked_at() {
    let changed = |at: usize, value: u32| {
        let mut words = words();
        words[at] = value;
        refused(&words)
    };
    assert!(changed(0, 0x0302_2307).contains("does not begin"));
    assert!(changed(1, 0x0001_0600).contains("version 1.6"));
    assert!(changed(1, 0x0001_0501).contains("version 1.5"));
    assert!(changed(3, 0).contains("0 ids"));
    assert!(changed(3, u32::MAX).contains("4294967295 ids"));
    assert!(changed(5, 0x0000_0011).contains("at word 5 has 0 words"));
    assert!(changed(5, 0xffff_0011).contains("at word 5 has 65535 words"));
    let text = |bytes: &[u8]| check(bytes, &wanted(&[])).expect_err("it is refused");
    assert!(text(&SPIRV[1..]).contains("multiple of 4"));
    assert!(text(&vec![0; BYTES_MAX + 4]).contains("at most"));
    assert!(text(&[]).contains("does not begin"));
}

#[test]
fn a_module_that_ends_early_is_refused_or_whole() {
    for len in 0..SPIRV.len() {
        // The last words are the function's body, which no look at declarations misses.
        let _ = check(&SPIRV[..len], &wanted(&[(0, 64)]));
    }
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(check(&bytes, &wanted(&[])).is_err());
    }

    #[test]
    fn any_instructions_give_an_answer(parts in proptest::collection::vec((0u16..260, proptest::collection::vec(0u32..12, 0..6)), 0..60)) {
        let mut words = vec![0x0723_0203, 0x0001_0500, 0, 100, 0];
        for (op, operands) in parts {
            words.push((operands.len() as u32 + 1) << 16 | u32::from(op));
            words.extend(operands);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let _ = check(&bytes, &wanted(&[(0, u32::MAX)]));
    }

    #[test]
    fn a_damaged_module_gives_an_answer(at in 0usize..370, value in prop_oneof![any::<u32>(), 0u32..70]) {
        let mut words = words();
        let at = at % words.len();
        words[at] = value;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let _ = check(&bytes, &wanted(&[]));
    }
}
