"""Serves a language model of random weights with llama.cpp's own HTTP server.

The model is made on the spot: two layers, and a byte-level BPE vocabulary that
holds the words of trace/tokens/words.txt, so that planned prompts are one token
a word here as in published vocabularies. What it says has no sense; that its
tokens are counted by a real tokenizer is the point.

	llamacpp_server.py WORDS MODEL.gguf ADDR_FILE
"""

import json
import os
import sys
import threading

import gguf
import numpy as np
import xllamacpp

EMBD, FFN, LAYERS, HEADS, CONTEXT = 64, 128, 2, 4, 16384
# How Llama 3 splits text before it looks pieces up.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = ["<|begin|>", "<|end|>", "<|role|>"]
TEMPLATE = (
    "{{ '<|begin|>' }}{% for m in messages %}{{ '<|role|>' + m['role'] + '\n' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|role|>assistant\n' }}{% endif %}"
)


def byte_letters():
    """The letter that byte-level BPE writes for each byte (GPT-2's encoder.py)."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(rest)}


def vocabulary(words):
    """All pieces, and the set of those that the model says: words with their space."""
    letters = byte_letters()
    spaced = [letters[ord(" ")] + word for word in words]
    return list(dict.fromkeys([*letters.values(), *words, *spaced])), set(spaced)


def write_tokenizer(path, pieces):
    model = {"type": "BPE", "ignore_merges": True, "merges": [], "vocab": {p: i for i, p in enumerate(pieces)}}
    added = [
        {"id": len(pieces) + i, "content": p, "special": True, "single_word": False,
         "lstrip": False, "rstrip": False, "normalized": False}
        for i, p in enumerate(SPECIAL)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}
    with open(path, "w") as f:
        json.dump({
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
            "post_processor": None, "decoder": byte_level, "model": model,
        }, f)


def write_model(path, pieces, said):
    types = [gguf.TokenType.NORMAL] * len(pieces) + [gguf.TokenType.CONTROL] * len(SPECIAL)
    pieces = pieces + SPECIAL
    w = gguf.GGUFWriter(path, "llama")
    w.add_name("random")
    w.add_context_length(CONTEXT)
    w.add_embedding_length(EMBD)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(HEADS)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(EMBD // HEADS)
    w.add_vocab_size(len(pieces))
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("llama-bpe")  # looks a whole word up before it merges
    w.add_token_list(pieces)
    w.add_token_types(types)
    w.add_token_merges(["t h"])
    w.add_bos_token_id(pieces.index("<|begin|>"))
    w.add_eos_token_id(pieces.index("<|end|>"))
    w.add_add_bos_token(False)
    w.add_chat_template(TEMPLATE)

    rng = np.random.default_rng(1)

    def random(rows, columns):
        return rng.normal(0, columns**-0.5, (rows, columns)).astype(np.float32)

    def add(name, tensor):
        w.add_tensor(name + ".weight", tensor)

    # The last dimension of the stream is the same for all tokens, and no layer
    # writes to it: the output weighs what is not to be said against it.
    embedding, output = random(len(pieces), EMBD), random(len(pieces), EMBD)
    embedding[:, -1] = 1
    output[:, -1] = [0 if p in said else -100 for p in pieces]
    add("token_embd", embedding)
    add("output", output)
    add("output_norm", np.ones(EMBD, np.float32))
    for i in range(LAYERS):
        for part in ("attn_norm", "ffn_norm"):
            add(f"blk.{i}.{part}", np.ones(EMBD, np.float32))
        for part in ("attn_q", "attn_k", "attn_v"):
            add(f"blk.{i}.{part}", random(EMBD, EMBD))
        for part, columns in (("attn_output", EMBD), ("ffn_down", FFN)):
            writes = random(EMBD, columns)
            writes[-1] = 0
            add(f"blk.{i}.{part}", writes)
        for part in ("ffn_gate", "ffn_up"):
            add(f"blk.{i}.{part}", random(FFN, EMBD))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    words, model, tokenizer, addr_file = sys.argv[1:]
    with open(words) as f:
        pieces, said = vocabulary(f.read().split())
    write_tokenizer(tokenizer, pieces)
    write_model(model, pieces, said)
    p = xllamacpp.CommonParams()
    p.model.path = model
    p.model_alias = {"random"}
    p.hostnames, p.port = ["127.0.0.1"], 0
    p.n_parallel = 4
    p.n_ctx = 4 * CONTEXT
    p.use_jinja = True
    server = xllamacpp.Server(p)
    with open(addr_file + ".tmp", "w") as f:
        f.write(server.listening_address.removeprefix("http://"))
    os.rename(addr_file + ".tmp", addr_file)
    threading.Event().wait()


if __name__ == "__main__":
    main()
