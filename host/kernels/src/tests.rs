//! Sets that are whole, damaged, foreign, and in the wrong place.

use std::path::Path;

use coli_base::Kind;

use super::layout::{FORMAT, Hash, hash};
use super::pack::{pack, pack_body};
use super::*;

/// Bytes that pass for SPIR-V.
fn spirv(words: u32) -> Vec<u8> {
    [0x0723_0203, 0x0001_0500, 0, 1, 0].into_iter().chain(0..words).flat_map(u32::to_le_bytes).collect()
}

fn set(sources: &Hash) -> Vec<u8> {
    pack(sources, &[("act", &spirv(3)), ("gemv.q4_k", &spirv(2000))]).unwrap()
}

fn read(bytes: &[u8]) -> std::result::Result<Kernels, String> {
    Kernels::from_bytes(bytes, "here")
}

#[track_caller]
fn fault(bytes: &[u8], words: &str) {
    let fault = read(bytes).unwrap_err();
    assert!(fault.contains(words), "{fault}");
    assert!(!fault.contains('\n'), "{fault}");
}

#[test]
fn a_whole_set_gives_its_modules() {
    let kernels = read(&set(&SOURCES)).unwrap();
    assert_eq!((kernels.get("act"), kernels.get("gemv.q4_k")), (Some(&spirv(3)[..]), Some(&spirv(2000)[..])));
    assert_eq!((kernels.get("gemv"), kernels.get(""), kernels.origin()), (None, None, "here"));
    let mut names: Vec<&str> = kernels.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["act", "gemv.q4_k"]);
    assert_eq!(read(&pack(&SOURCES, &[]).unwrap()).unwrap().names().count(), 0);
}

#[test]
fn the_head_is_text_that_a_person_can_read() {
    let bytes = set(&[0xab; 32]);
    let head = String::from_utf8_lossy(&bytes[..bytes.windows(2).position(|pair| pair == b"\n\n").unwrap()]).into_owned();
    let lines: Vec<&str> = head.lines().collect();
    assert_eq!((lines[0], lines[1], lines[3]), ("coli kernels 1", &*format!("sources {}", "ab".repeat(32)), "modules 2"));
    assert_eq!(lines[4], format!("bytes {}", 16 + 3 + 9 + spirv(3).len() + spirv(2000).len()));
    assert!(lines[2].starts_with("contents ") && lines.len() == 5, "{head}");
}

#[test]
fn another_version_s_set_is_refused_before_it_is_unpacked() {
    let mut other = *SOURCES;
    other[31] ^= 1;
    fault(&set(&other), "made of other sources");
    let later = String::from("coli kernels 2\nwhatever");
    fault(later.as_bytes(), &format!("format 2, and this program reads format {FORMAT}"));
}

#[test]
fn what_is_no_set_is_refused() {
    for bytes in [&b""[..], b"\x7fELF", b"coli kernels", &spirv(5)] {
        fault(bytes, "no set of kernels");
    }
    for bytes in
        ["coli kernels ", "coli kernels x", "coli kernels 01\n", "coli kernels 99999999999999999999\n", "coli kernels 1\nsources\n\n"]
    {
        assert!(read(bytes.as_bytes()).is_err(), "{bytes}");
    }
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed() {
    let bytes = set(&SOURCES);
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length]).is_err(), "{length}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    fault(&longer, "damaged");
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            // A hash's digits mean the same in upper and lower case, and zlib's header says in two bits how hard the packer tried: neither
            // changes what is unpacked.
            if let Ok(kernels) = read(&flipped) {
                assert_eq!(kernels.get("act"), Some(&spirv(3)[..]), "byte {at}, bit {bit}");
                assert_eq!(kernels.get("gemv.q4_k"), Some(&spirv(2000)[..]), "byte {at}, bit {bit}");
            }
        }
    }
}

/// A head with these numbers before a packed body.
fn with_head(modules: &str, bytes: &str, body: &[u8]) -> Vec<u8> {
    let whole = pack_body(&SOURCES, 0, body).unwrap();
    let end = whole.windows(2).position(|pair| pair == b"\n\n").unwrap();
    let head = String::from_utf8(whole[..end].to_vec()).unwrap();
    let head =
        head.replace("modules 0", &format!("modules {modules}")).replace(&format!("bytes {}", body.len()), &format!("bytes {bytes}"));
    [head.as_bytes(), &whole[end..]].concat()
}

#[test]
fn numbers_that_cannot_be_are_refused_before_memory_is_taken() {
    let body = vec![0; 4096];
    for bytes in ["18446744073709551615", "18446744073709551616", "134217729", "-1", "4096 ", "+4096", ""] {
        fault(&with_head("0", bytes, &body), "head is damaged");
    }
    fault(&with_head("9999999", "4096", &body), "head is damaged");
    // Less and more than there is.
    fault(&with_head("0", "4095", &body), "damaged");
    fault(&with_head("0", "4097", &body), "damaged");
}

#[test]
fn a_small_file_that_unpacks_to_much_stops_where_its_head_says() {
    let bomb = pack_body(&SOURCES, 0, &vec![0; 50_000_000]).unwrap();
    assert!(bomb.len() < 100_000);
    let end = bomb.windows(2).position(|pair| pair == b"\n\n").unwrap();
    let head = String::from_utf8(bomb[..end].to_vec()).unwrap().replace("bytes 50000000", "bytes 1000");
    fault(&[head.as_bytes(), &bomb[end..]].concat(), "contents are not what its head says");
}

#[test]
fn modules_that_are_not_as_they_must_be() {
    let module = |name: &str, spirv: &[u8]| {
        let lengths = [(name.len() as u32).to_le_bytes(), (spirv.len() as u32).to_le_bytes()].concat();
        [&lengths[..], name.as_bytes(), spirv].concat()
    };
    let good = module("a", &spirv(1));
    assert!(read(&pack_body(&SOURCES, 1, &good).unwrap()).is_ok());
    let mut long = good.clone();
    long[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut large = good.clone();
    large[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    let swapped: Vec<u8> = spirv(1).chunks(4).flat_map(|word| word.iter().rev().copied().collect::<Vec<_>>()).collect();
    let bodies = [
        (1, long),
        (1, large),
        (2, good.clone()),
        (0, good.clone()),
        (2, [good.clone(), good.clone()].concat()),
        (1, good[..good.len() - 1].to_vec()),
        (1, [&good[..], &[0; 7]].concat()),
        (1, module("a", &spirv(1)[..19])),
        (1, module("a", &[])),
        (1, module("a", &[&spirv(1)[..], &[0]].concat())),
        (1, module("a", &swapped)),
        (1, module(&"a".repeat(129), &spirv(1))),
    ];
    for (index, (count, body)) in bodies.iter().enumerate() {
        let error = read(&pack_body(&SOURCES, *count, body).unwrap()).err();
        assert!(error.as_ref().is_some_and(|error| !error.contains('\n')), "body {index}: {error:?}");
    }
    let mut bad_name = good;
    bad_name[8] = 0xff;
    fault(&pack_body(&SOURCES, 1, &bad_name).unwrap(), "not as they must be");
}

/// Writes a set of one module of this name.
fn place(path: &Path, module: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, pack(&SOURCES, &[(module, &spirv(1))]).unwrap()).unwrap();
}

#[test]
fn a_named_set_counts_more_than_one_beside_the_program_and_that_more_than_the_built_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let (home, named) = (folder.path().join("home"), folder.path().join("named"));
    let built_in = |result: Result<Kernels>| match result {
        Ok(kernels) => assert!(Kernels::are_built() && kernels.origin() == "built in"),
        Err(error) => assert!(!Kernels::are_built() && error.kind == Kind::Unmet && error.text.contains("build --vulkan"), "{error}"),
    };
    built_in(Kernels::open(None, None));
    built_in(Kernels::open(None, Some(&home)));
    // A folder of that name with other things in it, such as a source tree has, is none of ours.
    std::fs::create_dir_all(home.join(FOLDER)).unwrap();
    built_in(Kernels::open(None, Some(&home)));

    place(&home.join(FOLDER).join(FILE), "beside");
    place(&named.join(FILE), "in.folder");
    place(&named.join("x.bin"), "in.file");
    let has = |named: Option<&Path>, module: &str| {
        let kernels = Kernels::open(named, Some(&home)).unwrap();
        assert!(kernels.get(module).is_some() && kernels.names().count() == 1, "{kernels:?}");
    };
    has(None, "beside");
    has(Some(&named), "in.folder");
    has(Some(&named.join("x.bin")), "in.file");
}

#[test]
fn a_set_that_does_not_fit_is_an_error_and_no_other_one_takes_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(FOLDER).join(FILE);
    place(&file, "beside");
    let refused = |named: Option<&Path>, kind: Kind, words: &str| {
        let error = Kernels::open(named, Some(folder.path())).unwrap_err();
        assert!(error.kind == kind && error.text.contains(words), "{error:?}");
    };
    let nowhere = folder.path().join("nowhere");
    refused(Some(&nowhere), Kind::Usage, "vk_shaders (COLI_VK_SHADERS) names");
    refused(Some(folder.path()), Kind::Usage, "kernels.bin` is not there");
    std::fs::write(&file, "text").unwrap();
    refused(None, Kind::Refused, "no set of kernels; take the file from this program's own release");
    std::fs::write(&file, set(&[7; 32])).unwrap();
    refused(None, Kind::Refused, "other sources");
    refused(Some(&file), Kind::Refused, "other sources");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    refused(None, Kind::Refused, "not a regular file");
    let large = folder.path().join("large");
    std::fs::File::create(&large).unwrap().set_len(PACKED_MAX + 1).unwrap();
    refused(Some(&large), Kind::Refused, "more than 12000000 bytes");
}

/// Every module that a plan may name is in the built-in set, and the hash of its sources is that of the texts in this program.
#[cfg(feature = "spirv")]
#[test]
fn the_built_in_set_is_that_of_the_op_library() {
    let kernels = Kernels::embedded().unwrap();
    let modules = coli_shaders::device::modules();
    modules.iter().for_each(|module| assert!(kernels.get(&module.name).is_some(), "{}", module.name));
    assert_eq!(kernels.names().count(), modules.len());
    assert_eq!(layout::hash_of_sources(&modules), *SOURCES);
    assert!(Kernels::archive().len() as u64 <= PACKED_MAX);
}

#[test]
fn the_hash_of_sources_tells_where_a_name_ends() {
    let module = |name: &str, text: &str| coli_shaders::device::Module { name: name.into(), text: text.into() };
    let of = |modules: &[coli_shaders::device::Module]| layout::hash_of_sources(modules);
    let base = of(&[module("a", "bc"), module("d", "e")]);
    assert_ne!(base, of(&[module("ab", "c"), module("d", "e")]));
    assert_ne!(base, of(&[module("a", "bc"), module("d", "f")]));
    assert_ne!(base, of(&[module("a", "bc")]));
    assert_eq!(hash(b"abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
}
