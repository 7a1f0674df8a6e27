"""Prints the token ids that the Rust library gives to texts, as JSON.

Usage: encode.py TOKENIZER.json < TEXTS > IDS, where TEXTS is a JSON array of
strings and IDS one of arrays.
"""

import json
import sys

from tokenizers import Tokenizer

t = Tokenizer.from_file(sys.argv[1])
json.dump([t.encode(text, add_special_tokens=False).ids for text in json.load(sys.stdin)], sys.stdout)
