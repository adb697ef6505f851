#!/usr/bin/env python3
"""Write small tokenizers twice, as tokenizer.json and as the metadata that a GGUF converter makes of it. See README.md.
Usage: make_tokenizers.py DEMO.gguf. Needs: tokenizers, sentencepiece, transformers, gguf."""
import gzip, io, json, os, sys
import sentencepiece as spm
from gguf import GGUFReader
from sentencepiece import sentencepiece_model_pb2 as spm_proto
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers.tokenization_utils_base import generate_merges

HERE = os.path.dirname(os.path.abspath(__file__))
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
TEXTS = """The quick brown fox jumps over the lazy dog, doesn't it? I'll say we've been there; you're RIGHT, THAT'S it.
In 2026 there were 365 days, 12 months and 52 weeks: 1234567 seconds, 3.14159, 0x1F and ١٢٣ or १२३.
def main(args):\n    for i in range(10):\n        print(f"{i}: {args[i]!r}")\n\treturn {"a": [1, 2], 'b': None}\n
#include <stdio.h>\nint main(void) { return printf("hello, world\\n") == 13 ? 0 : -1; } // done\r\n
Съешь же ещё этих мягких французских булок, да выпей чаю. Το γρήγορο καφέ ζώο πηδά.
我能吞下玻璃而不伤身体。今天天气很好,我们去公园吧! 私はガラスを食べられます。それは私を傷つけません。
키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. أنا قادر على أكل الزجاج و هذا لا يؤلمني.
मैं काँच खा सकता हूँ और मुझे उससे कोई चोट नहीं पहुंचती. ฉันกินกระจกได้ แต่มันไม่ทำให้ฉันเจ็บ
Grüße aus Köln, naïve café façade, cafe\u0301 e\u0302tre, Ångström; “quoted” ‘text’ — and… 👩‍👩‍👧 🚀🚀 😀👍🏽 🇩🇪
    indented   runs  of     spaces\t\ttabs\n\n\n\nand lines   \n  \n end  """.split("\n")
CORPUS = [text + "\n" for text in TEXTS] * 20 + ["\n".join(TEXTS)] * 5

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
CASED = ("[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+",
         "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*")
KIMI = [case.replace("\\p{M}]", "\\p{M}&&[^\\p{Han}]]") + CONTRACTIONS + "?" for case in CASED]
DEEPSEEK_LETTERS = (
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ"
    "\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ"
    "𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+")
EAST_ASIAN = "[一-龥ࠀ-一가-퟿]+"


def split(*patterns):
    return [pre_tokenizers.Split(Regex(pattern), "isolated", invert=False) for pattern in patterns]


def words():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def cl100k(letters, digits, symbols):
    return split(f"{CONTRACTIONS}|[^\\r\\n\\p{{L}}\\p{{N}}]?{letters}|{digits}| ?{symbols}[\\r\\n]*|{REST}")


def gpt2_like():
    return cl100k("\\p{L}+", "\\p{N}{1,3}", "[^\\s\\p{L}\\p{N}]+")


def o200k(contractions, digits):
    first, second = (case + contractions for case in CASED)
    return split(f"{first}|{second}|{digits}| ?[^\\s\\p{{L}}\\p{{N}}]+[\\r\\n/]*|{REST}")


DIGIT = pre_tokenizers.Digits(individual_digits=True)
# name: normalizer, pre-tokenizers before the bytes, ignore_merges, whether bos is added where the file says nothing
FAMILIES = {
    "gpt-2": (None, [words()], False, False),
    "olmo": (normalizers.NFC(), [words()], False, False),
    "starcoder": (None, [DIGIT, words()], False, False),
    "command-r": (normalizers.NFC(), [DIGIT, words()], False, False),
    "qwen2": (normalizers.NFC(), cl100k("\\p{L}+", "\\p{N}", "[^\\s\\p{L}\\p{N}]+"), False, False),
    "qwen35": (normalizers.NFC(), cl100k("[\\p{L}\\p{M}]+", "\\p{N}", "[^\\s\\p{L}\\p{M}\\p{N}]+"), False, False),
    "dbrx": (None, gpt2_like(), False, False),
    "glm4": (None, gpt2_like(), True, False),
    "llama-bpe": (None, gpt2_like(), True, True),
    "gpt-4o": (None, o200k(CONTRACTIONS + "?", "\\p{N}{1,3}"), True, False),
    "tekken": (None, o200k("", "\\p{N}"), True, True),
    "kimi-k2": (None, split("|".join(["[\\p{Han}]+", *KIMI, "\\p{N}{1,3}", " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*", REST])), True, False),
    "deepseek-v3": (None, split(
        "\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
        "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"), False, False),
    "deepseek-llm": (None, split("[\r\n]", DEEPSEEK_LETTERS, "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$", EAST_ASIAN) + [DIGIT], False, False),
    "deepseek-coder": (None, split("[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", EAST_ASIAN) + [DIGIT], False, False),
    "falcon": (None, [pre_tokenizers.Punctuation("contiguous"), words(), pre_tokenizers.Digits(individual_digits=False)]
               + split("[0-9][0-9][0-9]"), False, False),
}
FIXED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<｜end▁of▁sentence｜>"]
FREE = ["<tool_call>", "   ", "été"]


def write(name, tokenizer, gguf):
    text = json.dumps({"tokenizer": tokenizer, "gguf": gguf}, ensure_ascii=False, separators=(",", ":")) + "\n"
    with open(os.path.join(HERE, name + ".json.gz"), "wb") as file:
        file.write(gzip.compress(text.encode(), mtime=0))


def bos_template(tokenizer, first=(), last=()):
    pieces = [*first, "$A", *last]
    used = [(token, tokenizer.token_to_id(token)) for token in {*first, *last}]
    tokenizer.post_processor = processors.TemplateProcessing(single=pieces, pair=["$A", "$B"], special_tokens=used)


def byte_level(name):
    normalizer, cuts, ignore, bos = FAMILIES[name]
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore))
    if normalizer:
        tokenizer.normalizer = normalizer
    last = [] if any(isinstance(cut, pre_tokenizers.ByteLevel) for cut in cuts) else [pre_tokenizers.ByteLevel(False, use_regex=False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cuts + last)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, show_progress=False))
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in FIXED])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in FREE])
    if bos:
        bos_template(tokenizer, first=["<|im_start|>"])
    published = json.loads(tokenizer.to_str())
    texts = {id: token for token, id in tokenizer.get_vocab(True).items()}
    count = len(texts)
    gguf = {
        "model": "gpt2", "pre": name, "tokens": [texts[id] for id in range(count)] + [f"[PAD{count + k}]" for k in range(5)],
        "token_types": [CONTROL if texts[id] in FIXED else USER if texts[id] in FREE else NORMAL for id in range(count)] + [UNUSED] * 5,
        "merges": [" ".join(pair) for pair in published["model"]["merges"]],
        "bos": tokenizer.token_to_id("<|im_start|>"), "eos": tokenizer.token_to_id("<|endoftext|>"),
    }
    write(name, published, gguf)


def train_pieces(model_type, **options):
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=out, model_type=model_type, num_threads=1,
                                   hard_vocab_limit=False, minloglevel=2, **options)
    proto = spm_proto.ModelProto()
    proto.ParseFromString(out.getvalue())
    return proto


def pieces_gguf(model, proto, pads):
    pieces = proto.pieces
    return {
        "model": model, "pre": "default", "tokens": [piece.piece for piece in pieces] + [f"[PAD{len(pieces) + k}]" for k in range(pads)],
        "scores": [piece.score for piece in pieces] + [-10000.0] * pads, "token_types": [piece.type for piece in pieces] + [UNUSED] * pads,
        "unk": proto.trainer_spec.unk_id, "bos": max(proto.trainer_spec.bos_id, 0), "eos": proto.trainer_spec.eos_id,
    }


def add_pieces(tokenizer, proto):
    kinds = {CONTROL: True, UNKNOWN: True, USER: False}
    for piece in proto.pieces:
        if piece.type in kinds:
            tokenizer.add_tokens([AddedToken(piece.piece, normalized=False, special=kinds[piece.type])])


def score_merges(name, prefix, byte_fallback):
    """As transformers makes it of a SentencePiece BPE model in the manner of Llama 2."""
    proto = train_pieces("bpe", vocab_size=700, byte_fallback=byte_fallback, normalization_rule_name="identity",
                         remove_extra_whitespaces=False, add_dummy_prefix=prefix, user_defined_symbols=["<tool>", "<|end|>"],
                         character_coverage=0.9995 if byte_fallback else 0.98)
    vocab = {piece.piece: id for id, piece in enumerate(proto.pieces)}
    frozen = [piece.piece for piece in proto.pieces if piece.type != NORMAL]
    merges = generate_merges(vocab, skip_tokens=frozen)
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=byte_fallback))
    steps = [normalizers.Prepend("▁")] if prefix else []
    tokenizer.normalizer = normalizers.Sequence(steps + [normalizers.Replace(" ", "▁")])
    strip = [decoders.Strip(content=" ", left=1)] if prefix else []
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip])
    add_pieces(tokenizer, proto)
    bos_template(tokenizer, first=["<s>"])
    gguf = pieces_gguf("llama", proto, 3)
    if not prefix:
        gguf["add_space_prefix"] = False
    write(name, json.loads(tokenizer.to_str()), gguf)


def unigram(name, tidy):
    """As transformers makes it of T5's model; without tidying, of one that keeps every space."""
    rule = "nmt_nfkc" if tidy else "identity"
    proto = train_pieces("unigram", vocab_size=600, normalization_rule_name=rule, remove_extra_whitespaces=tidy, byte_fallback=not tidy,
                         allow_whitespace_only_pieces=not tidy, user_defined_symbols=["<extra_id_0>", "<extra_id_1>"],
                         pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=0.98)
    fixed = {CONTROL, UNKNOWN, USER}
    scores = [(piece.piece, 0.0 if piece.type in fixed else piece.score) for piece in proto.pieces]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=2, byte_fallback=not tidy))
    spaces = dict(replacement="▁", prepend_scheme="always", split=tidy)
    charsmap = proto.normalizer_spec.precompiled_charsmap
    if charsmap:
        tokenizer.normalizer = normalizers.Precompiled(charsmap)
    cuts = [pre_tokenizers.WhitespaceSplit()] if tidy else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cuts + [pre_tokenizers.Metaspace(**spaces)])
    bytes_decoder = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(content=" ", left=1)]
    tokenizer.decoder = decoders.Metaspace(**spaces) if tidy else decoders.Sequence(bytes_decoder)
    add_pieces(tokenizer, proto)
    bos_template(tokenizer, last=["</s>"])
    gguf = pieces_gguf("t5", proto, 4)
    gguf |= {"add_space_prefix": True, "remove_extra_whitespaces": tidy}
    # A converter gives added tokens a score that no trained piece has.
    gguf["scores"] = [-1000.0 if kind == USER else score for kind, score in zip(gguf["token_types"], gguf["scores"])]
    write(name, json.loads(tokenizer.to_str()), gguf)


def demo(path):
    fields = GGUFReader(path).fields
    value = lambda key: fields["tokenizer.ggml." + key].contents() if "tokenizer.ggml." + key in fields else None
    keys = {"tokens": "tokens", "merges": "merges", "token_types": "token_type", "bos": "bos_token_id", "eos": "eos_token_id",
            "pad": "padding_token_id", "add_bos": "add_bos_token", "model": "model", "pre": "pre"}
    gguf = {name: value(key) for name, key in keys.items()}
    write("demo", None, {name: value for name, value in gguf.items() if value is not None})


if __name__ == "__main__":
    demo(sys.argv[1])
    for family in FAMILIES:
        byte_level(family)
    score_merges("pieces-prefix", True, True)
    score_merges("pieces-plain", False, True)
    score_merges("pieces-unknown", True, False)
    unigram("unigram-tidy", True)
    unigram("unigram-spaces", False)
