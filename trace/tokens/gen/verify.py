"""Checks that text of listed words counts one token a word in every vocabulary.

Usage: verify.py NODE_MODULES WORDS [FILE]; FILE has lines COUNT<tab>TEXT.
"""

import random
import re
import sys

import vocabs

OPENING = "Here"  # tokens.Opening
BEFORE = ["", " ", "\n", "\n\n", "\t", ">", "|>", "]", "] ", ": "]  # what templates put before a prompt
AFTER = ["\n", "\n\n", "</s>", "<|im_end|>", " [/INST]", "<end_of_turn>", " "]  # and behind it
JOINED = re.compile("[a-z][▁Ġ ]")  # a piece that runs over the space behind a word


def faults(vocabulary, words, lines):
    encode = vocabulary.encode
    # A merge over a space would leave its result in the vocabulary; without one, each " word" is tokenised alone,
    # whatever its neighbours.
    yield from (f"piece {p!r} joins words" for p in vocabulary.pieces if not p.startswith("<") and JOINED.search(p))
    yield from opening_faults(encode)
    for w in words:
        ids = encode(f"{OPENING} {w}")
        if len(ids) != 2:
            yield f"{w!r} is {len(ids) - 1} tokens"
        for tail in AFTER:
            if encode(f"{OPENING} {w}{tail}")[:2] != ids:
                yield f"{w!r} merges with {tail!r}"
    rng = random.Random(1)
    for n in [*range(1, 200), 20_000]:
        got = len(encode(" ".join([OPENING, *rng.choices(words, k=n)])))
        if got != n + 1:
            yield f"{n + 1} random words are {got} tokens"
    for number, (count, text) in enumerate(lines, 1):
        got = len(encode(text))
        if got != count:
            yield f"line {number}: {count} words are {got} tokens"


def opening_faults(encode):
    """The opening word is one token with and without a space, and stays apart from what a template puts before it."""
    forms = {encode(OPENING)[-1], encode("the " + OPENING)[-1], encode("\n" + OPENING)[-1]}
    if len(encode(OPENING)) != 1 or len(encode("the " + OPENING)) != 2:
        yield "the opening word is not one token"
    for before in BEFORE:
        if encode(f"x{before}{OPENING}")[-1] not in forms and before:
            yield f"the opening word merges with {before!r}"


def main():
    with open(sys.argv[2], encoding="ascii") as f:
        words = f.read().split()
    lines = []
    if len(sys.argv) > 3:
        with open(sys.argv[3], encoding="ascii") as f:
            lines = [(int(count), text) for count, text in (line.rstrip("\n").split("\t") for line in f)]
    bad = 0
    for name, vocabulary in vocabs.load(sys.argv[1]).items():
        found = list(faults(vocabulary, words, lines))
        bad += len(found)
        print(f"{name}: {len(words)} words, {len(lines)} lines, {len(found)} faults")
        print("".join(f"  {fault}\n" for fault in found[:10]), end="")
    sys.exit(bad > 0)


main()
