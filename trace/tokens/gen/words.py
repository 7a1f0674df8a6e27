"""Prints the word list: the 4,096 commonest English words that are one token in every vocabulary.

Usage: words.py NODE_MODULES
"""

import os
import re
import sys

import vocabs
from wordfreq import zipf_frequency

SIZE = 4096  # a power of two: a word carries 12 bits
SHORTEST, LONGEST = 3, 14  # with its space and its length a word fills 16 bytes


def candidates(vocabulary):
    """Words of the smallest vocabulary, where a leading space is spelled U+2581."""
    shape = re.compile("▁[a-z]{%d,%d}" % (SHORTEST, LONGEST))
    return {p[1:] for p in vocabulary.pieces if shape.fullmatch(p)}


def single(vocabulary, words):
    """Those words that are one token after a word and a space."""
    before = len(vocabulary.encode("the"))
    return {w for w in words if len(vocabulary.encode("the " + w)) == before + 1}


def main():
    found = vocabs.load(sys.argv[1])
    words = candidates(found["llama-2"])
    for vocabulary in found.values():
        words = single(vocabulary, words)
    with open(os.path.join(os.path.dirname(__file__), "deny.txt"), encoding="ascii") as f:
        words -= set(f.read().split())
    commonest = sorted(words, key=lambda w: (-zipf_frequency(w, "en"), w))[:SIZE]
    if len(commonest) < SIZE:
        sys.exit(f"only {len(commonest)} words are one token in every vocabulary, {SIZE} are needed")
    print("\n".join(sorted(commonest)))


main()
