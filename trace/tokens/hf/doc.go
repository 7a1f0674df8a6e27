// Package hf counts tokens as a served model does, from the tokenizer.json
// that comes with the model.
//
// It follows the Rust library tokenizers 0.23: added tokens, normalizers,
// pre-tokenizers, BPE (byte-level, and with byte fallback as converted from SentencePiece),
// Unigram and template post-processing. A file with a component that is not known
// here is refused by the component's name: a wrong count is worse than none.
// Not known are WordPiece and WordLevel models, BPE dropout, the charsmap of
// SentencePiece (Precompiled) and the BERT family.
//
// Characters that the Unicode tables of Go and Rust class differently, which are those of the
// newest Unicode versions, may give other ids.
package hf
