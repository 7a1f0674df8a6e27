"""Writes small tokenizers of our own making, with the ids that the Rust library gives to some texts.

Usage: small.py WORDS DIR; for each name, DIR/name.json is the tokenizer and DIR/name.ids.json holds
[text, ids] pairs, special tokens left out.
"""

import json
import os
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

TEXTS = [
    "", " ", "  ", "\n", " \n \n", "a", "Hello world", " Hello  world ", "don't DON'T I'LL we've", "x=1;\n\ty=22;\n\n\nz==333",
    "naïve café — “quoted”… 中文字符 ひらがな 한국어 العربية", "🙂👩‍👩‍👧 e\u0301 \u212b \ufb01 ½", "12345678901234567890", "a\u00a0b\u2003c\u3000d\u0085e",
    "<s>Hello</s> <mask> x<mask>y  <mask>  z", "<word> a<word> <word>b <word>, _<word> é<word>", "[left]  [left]x y[right] [right]  z",
    "▁ ▁▁ a▁b", "ſ K 'ſ 'S\u0307", "\x00\x1f\x7f\x80", "over the river and through the table", "<unk> unk <0x41>", "NORM norm ＮＯＲＭ",
]


def corpus(words):
    rng = random.Random(1)
    for _ in range(2000):
        line = rng.choices(words, k=12)
        yield " ".join(line).capitalize() + rng.choice([".", "!", "?", ", 42", "\n", " — é", " 中文"])


def byte_bpe(words):
    t = Tokenizer(models.BPE())
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    train(t, words, trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<s>", "</s>"]))
    t.add_tokens([AddedToken("NORM", normalized=True), AddedToken("Å", normalized=True)])
    t.post_processor = processors.Sequence(
        [processors.ByteLevel(), processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])]
    )
    return t


def gpt2_bpe(words):
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    train(t, words, trainers.BpeTrainer(vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("[left]", lstrip=True), AddedToken("[right]", rstrip=True)])
    t.add_tokens([AddedToken("<word>", single_word=True), AddedToken("NORM", normalized=True)])
    return t


def fallback_bpe(words):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    train(t, words, trainers.BpeTrainer(vocab_size=600, special_tokens=special, limit_alphabet=60))
    return fewer_special(t)


def unk_bpe(words):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    t.normalizer = normalizers.Replace(Regex(r"\d+"), "#")
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"[.,;]"), "merged_with_previous"),
            pre_tokenizers.Split("=", "merged_with_next"),
            pre_tokenizers.Split(Regex(r"\s"), "contiguous"),
            pre_tokenizers.Split("x", "removed"),
        ]
    )
    train(t, words, trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>"], limit_alphabet=40))
    return t


def removed_bpe(words):
    t = byte_bpe(words)
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r"\p{L}+|\p{N}"), "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return t


def unigram(words, scheme, split, byte_fallback):
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256) if byte_fallback]
    train(t, words, trainers.UnigramTrainer(vocab_size=800, special_tokens=special, unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    file = json.loads(t.to_str())
    file["model"]["byte_fallback"] = byte_fallback
    return fewer_special(Tokenizer.from_str(json.dumps(file)))


def train(t, words, trainer):
    trainer.show_progress = False
    t.train_from_iterator(corpus(words), trainer)


def fewer_special(t):
    """Byte pieces belong to the model; the trainer made them added tokens as well."""
    file = json.loads(t.to_str())
    file["added_tokens"] = [a for a in file["added_tokens"] if not a["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(file))


def main():
    with open(sys.argv[1], encoding="ascii") as f:
        words = f.read().split()
    made = {
        "byte-bpe": byte_bpe(words),
        "gpt2-bpe": gpt2_bpe(words),
        "fallback-bpe": fallback_bpe(words),
        "unk-bpe": unk_bpe(words),
        "removed-bpe": removed_bpe(words),
        "unigram": unigram(words, "always", True, False),
        "unigram-bytes": unigram(words, "first", False, True),
    }
    for name, t in made.items():
        with open(os.path.join(sys.argv[2], name + ".json"), "w", encoding="utf-8") as f:
            json.dump(json.loads(t.to_str()), f, ensure_ascii=False, separators=(",", ":"))
            f.write("\n")
        with open(os.path.join(sys.argv[2], name + ".ids.json"), "w", encoding="utf-8") as f:
            rows = [json.dumps([x, t.encode(x, add_special_tokens=False).ids], ensure_ascii=True) for x in TEXTS]
            f.write("[\n" + ",\n".join(rows) + "\n]\n")


main()
