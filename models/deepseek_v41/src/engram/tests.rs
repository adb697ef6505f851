//! Rows against the reference: mlx-vlm 0.7.10, `NgramHashState(config, EngramLayout.from_config(config), ...)` on `mlx[cpu]` 0.32.4, called
//! with one conversation of tokens from position 0 and, for pictures, a mask that is false at the image token.

use super::*;

fn fixture() -> EngramConfig {
    EngramConfig { layers: vec![1, 4], max_ngram: 3, vocab: 20, heads: 4, pad_token: 2, compressed_vocab: 227, image_token: None }
}

/// The fixture's tokenizer: one byte a token, in the order of the byte-level alphabet.
fn fixture_texts() -> Vec<Option<String>> {
    let printable: Vec<u8> = (33..=126).chain(161..=172).chain(174..=255).collect();
    let rest = (0..=255).filter(|byte| !printable.contains(byte));
    let text = |byte: &u8| byte.is_ascii().then(|| char::from(*byte).to_string());
    printable.iter().copied().chain(rest).collect::<Vec<u8>>().iter().map(text).collect()
}

fn release() -> EngramConfig {
    let layers = vec![1, 14];
    EngramConfig { layers, max_ngram: 4, vocab: 16_000_000, heads: 8, pad_token: 2, compressed_vocab: 99092, image_token: None }
}

/// As many texts as the release has compressed ids, no two alike.
fn release_texts() -> Vec<Option<String>> {
    (0..99092).map(|number| Some(number.to_string())).collect()
}

fn refusal(config: &EngramConfig) -> String {
    Engram::new(config, &fixture_texts()).err().unwrap()
}

#[test]
fn the_fixtures_rows() {
    let engram = Engram::new(&fixture(), &fixture_texts()).unwrap();
    assert_eq!([engram.rows(0), engram.rows(1), engram.rows(2)], [304, 582, 0], "engram_num_embeddings");
    for (window, first, second) in [
        (&[36][..], [5, 35, 57, 85, 140, 200, 225, 293], [0, 59, 185, 215, 279, 398, 485, 579]),
        (&[36, 220][..], [16, 45, 71, 115, 130, 197, 214, 273], [28, 84, 186, 233, 278, 388, 451, 544]),
        (&[36, 220, 69][..], [14, 41, 82, 98, 157, 173, 216, 290], [28, 69, 139, 204, 287, 373, 414, 562]),
        (&[220, 69, 4][..], [3, 39, 67, 107, 124, 196, 213, 254], [34, 77, 179, 250, 314, 373, 456, 571]),
        (&[69, 4, 254][..], [21, 46, 74, 101, 140, 185, 241, 275], [22, 87, 161, 192, 287, 345, 463, 511]),
        (&[4, 254, 32][..], [9, 40, 70, 88, 139, 161, 221, 295], [12, 72, 137, 224, 295, 376, 464, 576]),
        (&[254, 32, 68][..], [22, 49, 71, 100, 144, 200, 206, 300], [37, 112, 144, 240, 305, 331, 438, 570]),
        (&[32, 68, 255][..], [21, 45, 56, 86, 124, 187, 209, 255], [38, 89, 166, 220, 278, 385, 470, 542]),
        (&[68, 255, 0][..], [15, 42, 75, 92, 156, 167, 242, 280], [3, 104, 165, 198, 321, 373, 491, 517]),
    ] {
        assert_eq!(engram.ids(0, window).unwrap(), first, "{window:?}");
        assert_eq!(engram.ids(1, window).unwrap(), second, "{window:?}");
    }
    assert_eq!(engram.ids(0, &[7, 7, 7, 220, 69, 4]), engram.ids(0, &[220, 69, 4]));
}

#[test]
fn an_n_gram_ends_at_a_picture() {
    let engram = Engram::new(&EngramConfig { image_token: Some(254), ..fixture() }, &fixture_texts()).unwrap();
    for (window, first, second) in [
        (&[69, 4, 254][..], [12, 32, 55, 114, 137, 202, 224, 265], [9, 93, 122, 233, 268, 398, 478, 536]),
        (&[4, 254, 32][..], [14, 46, 67, 112, 143, 189, 223, 255], [34, 106, 186, 255, 328, 337, 432, 578]),
        (&[254, 32, 68][..], [22, 49, 71, 100, 158, 180, 237, 261], [37, 112, 144, 240, 320, 399, 469, 512]),
        (&[32, 68, 255][..], [21, 45, 56, 86, 124, 187, 209, 255], [38, 89, 166, 220, 278, 385, 470, 542]),
    ] {
        assert_eq!(engram.ids(0, window).unwrap(), first, "{window:?}");
        assert_eq!(engram.ids(1, window).unwrap(), second, "{window:?}");
    }
}

#[test]
fn tokens_that_read_alike_have_the_same_rows() {
    let engram = Engram::new(&fixture(), &fixture_texts()).unwrap();
    assert_eq!(engram.ids(0, &[32, 33]), engram.ids(0, &[64, 65]), "AB and ab");
    assert_ne!(engram.ids(0, &[32, 33]), engram.ids(0, &[33, 32]));
}

/// The token map is given to the reference as `list(range(99092))`.
#[test]
fn the_releases_rows() {
    let engram = Engram::new(&EngramConfig { image_token: Some(77777), ..release() }, &release_texts()).unwrap();
    assert_eq!([engram.rows(0), engram.rows(1)], [384_006_168, 384_016_682]);
    for (window, layer, expected) in [
        (
            &[99091, 5][..],
            0,
            [
                12391924, 30601786, 32347082, 62848667, 70397898, 94727027, 98981383, 125214817, 133173899, 156013378, 175475984,
                191447939, 201254580, 214966827, 228546041, 254168901, 264924096, 282329451, 293086763, 314667952, 323796813, 345602608,
                364165550, 371914340,
            ],
        ),
        (
            &[99091, 5][..],
            1,
            [
                743092, 18408009, 41668928, 49698968, 70671423, 85309510, 103753309, 124352426, 128235922, 151727601, 174056320, 177343795,
                201874108, 210608800, 237873191, 249601975, 265774994, 281672800, 295857104, 318043256, 331668213, 350493986, 362833212,
                378918865,
            ],
        ),
        (
            &[99091, 5, 77777][..],
            0,
            [
                4299726, 29253038, 43157972, 58397134, 65256332, 88876378, 100686433, 112312540, 129401291, 144510675, 170979806,
                184903880, 199719089, 215127204, 230239700, 250883315, 264341430, 275127613, 298781502, 318608685, 331826823, 351654054,
                365224186, 370096053,
            ],
        ),
        (
            &[99091, 5, 77777][..],
            1,
            [
                6788701, 28249242, 44401659, 55169969, 76554643, 88007614, 104465141, 120694389, 131862336, 159654072, 173141644,
                180723153, 199258128, 209374005, 226234010, 253188427, 261869729, 284532797, 296826308, 304380858, 321414036, 350742427,
                363928019, 381853422,
            ],
        ),
        (
            &[5, 77777, 99090, 12345][..],
            0,
            [
                2382011, 17724211, 41092998, 52976915, 65917726, 81728741, 97790065, 115315869, 139215274, 157821215, 174686038, 190033804,
                203944012, 212300944, 226588624, 255155331, 269659481, 283481175, 300962170, 318053384, 334910817, 336391092, 367193052,
                376229380,
            ],
        ),
        (
            &[5, 77777, 99090, 12345][..],
            1,
            [
                8567218, 29380012, 37698291, 52058278, 68282817, 80777938, 99237135, 121613045, 140415061, 146084218, 163686738, 179724216,
                193335628, 221081223, 229314829, 251428587, 270836098, 280222636, 291936197, 317853616, 324947064, 339795937, 359164105,
                378611210,
            ],
        ),
    ] {
        assert_eq!(engram.ids(layer, window).unwrap(), expected, "{window:?}");
    }
}

#[test]
fn what_is_out_of_reach_is_an_error() {
    let engram = Engram::new(&EngramConfig { image_token: Some(4000), ..fixture() }, &fixture_texts()).unwrap();
    assert!(engram.ids(2, &[1]).unwrap_err().contains("engram_layer_ids"));
    assert!(engram.ids(0, &[]).unwrap_err().contains("empty"));
    assert!(engram.ids(0, &[1, 256]).unwrap_err().contains("256"));
    assert!(engram.ids(0, &[256, 4000, 1]).is_ok(), "what is behind a picture is not read");
}

#[test]
fn absurd_configurations_are_refused_by_the_key() {
    let base = fixture();
    for (key, config) in [
        ("engram_max_ngram_size", EngramConfig { max_ngram: 0, ..base.clone() }),
        ("engram_max_ngram_size", EngramConfig { max_ngram: 1, ..base.clone() }),
        ("engram_max_ngram_size", EngramConfig { max_ngram: u32::MAX, ..base.clone() }),
        ("engram_n_heads", EngramConfig { heads: 0, ..base.clone() }),
        ("engram_n_heads", EngramConfig { heads: u32::MAX, ..base.clone() }),
        ("engram_n_heads", EngramConfig { heads: u32::MAX, max_ngram: u32::MAX, ..base.clone() }),
        ("engram_layer_ids", EngramConfig { layers: vec![], ..base.clone() }),
        ("engram_layer_ids", EngramConfig { layers: vec![0; 8193], ..base.clone() }),
        ("engram_vocab_size", EngramConfig { vocab: 0, ..base.clone() }),
        ("engram_vocab_size", EngramConfig { vocab: i64::MAX as u64, ..base.clone() }),
        ("engram_vocab_size", EngramConfig { vocab: u64::MAX, ..base.clone() }),
        ("engram_pad_token_id", EngramConfig { pad_token: 256, ..base.clone() }),
        ("engram_compressed_vocab_size", EngramConfig { compressed_vocab: 0, ..base.clone() }),
        ("engram_compressed_vocab_size", EngramConfig { compressed_vocab: 228, ..base.clone() }),
        ("engram_compressed_vocab_size", EngramConfig { compressed_vocab: u64::MAX, ..base.clone() }),
    ] {
        let error = refusal(&config);
        assert!(error.starts_with("config.json: ") && error.contains(key), "{error}");
    }
    assert!(Engram::new(&base, &[]).is_err_and(|error| error.contains("engram_pad_token_id")));
}

#[test]
fn a_tokenizer_has_a_text_for_each_id_that_the_model_may_give() {
    assert_eq!(check_texts(256, 255).unwrap_err(), "config.json: `vocab_size` is 256, the tokenizer has 255 tokens");
    assert!(check_texts(256, 256).is_ok() && check_texts(256, 300).is_ok());
}

#[test]
fn the_limits_themselves_are_served() {
    let vocab = primes::HIGHEST_START;
    let wide = EngramConfig { layers: vec![u32::MAX], max_ngram: 2, heads: primes::MOST as u32, vocab, ..fixture() };
    let engram = Engram::new(&wide, &fixture_texts()).unwrap();
    assert_eq!(engram.ids(0, &[1, 2]).unwrap().len(), primes::MOST);
    let long = EngramConfig { layers: vec![0], max_ngram: primes::MOST as u32 + 1, heads: 1, vocab: 1, ..fixture() };
    let ids = Engram::new(&long, &fixture_texts()).unwrap().ids(0, &[1, 2]).unwrap();
    assert_eq!((ids.len(), ids[0] < 2), (primes::MOST, true));
    let smallest = EngramConfig { compressed_vocab: 1, pad_token: 0, ..fixture() };
    assert!(Engram::new(&smallest, &[Some("a".into())]).is_ok());
}
