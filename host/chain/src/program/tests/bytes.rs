//! A segment's bytes: every refusal of the codec comes with the segment's name, and the segments are those of the description.

use super::*;

type Encoded = Vec<(SegmentName, Vec<u8>)>;

fn refusal(segments: &Encoded) -> String {
    let description = Parts::new(2).description;
    let built = Program::build(&description, segments, &OpTable::library(), &[]);
    built.err().map_or_else(|| panic!("accepted"), |error| error.text)
}

fn damaged(change: impl FnOnce(&mut Encoded)) -> String {
    let mut segments = Parts::new(2).encoded().unwrap();
    change(&mut segments);
    refusal(&segments)
}

/// Cut anywhere, with a header that agrees and with one that does not.
#[test]
fn every_truncation_of_every_segment_is_refused_by_its_name() {
    for index in 0..4 {
        let bytes = Parts::new(2).encoded().unwrap()[index].1.clone();
        for len in 0..bytes.len() {
            let mut cut = bytes[..len].to_vec();
            for agrees in [false, true] {
                if agrees && len >= 8 {
                    cut[4..8].copy_from_slice(&(len as u32).to_le_bytes());
                }
                let mut name = "";
                let text = damaged(|segments| {
                    segments[index].1.clone_from(&cut);
                    name = ["embed: ", "layer.0: ", "layer.1: ", "head: "][index];
                });
                assert!(text.starts_with(name), "{len} bytes: {text}");
            }
        }
    }
}

#[test]
fn bytes_left_over_are_refused() {
    let text = damaged(|segments| segments[1].1.push(0));
    assert!(text.starts_with("layer.0: its header says"), "{text}");
    let text = damaged(|segments| {
        let bytes = &mut segments[1].1;
        bytes.push(0);
        let len = bytes.len() as u32;
        bytes[4..8].copy_from_slice(&len.to_le_bytes());
    });
    assert_eq!(text, "layer.0: 1 bytes are left over after its ports");
}

#[test]
fn another_format_is_refused() {
    let text = damaged(|segments| segments[3].1[3] = b'2');
    assert!(text.starts_with("head: it does not start with CIR1"), "{text}");
}

#[test]
fn a_count_beyond_the_bytes_is_refused_before_anything_is_allocated() {
    let text = damaged(|segments| segments[0].1[8..12].fill(0xff));
    assert!(text.starts_with("embed: table `names` claims 4294967295 entries"), "{text}");
}

#[test]
fn the_recordings_are_those_of_the_description_in_its_order() {
    let text = "the recorded segments are not those of the description";
    assert_eq!(damaged(|segments| drop(segments.pop())), text);
    assert_eq!(damaged(Vec::clear), text);
    assert_eq!(damaged(|segments| segments.swap(1, 2)), text);
    assert_eq!(damaged(|segments| segments.push(segments[3].clone())), text);
    assert_eq!(damaged(|segments| segments[1].0 = SegmentName::Layer(7)), text);
}
