// Package tokens makes text whose token count is known without a tokenizer,
// so that a recorded length can be sent as a prompt of exactly that length.
//
// The text consists of listed English words, each of which is, with its leading
// space, one token in every common vocabulary: GPT-2, cl100k, o200k, Llama 2
// and 3, Mistral (SentencePiece and Tekken), Gemma 1 to 3, Qwen 2.5 and 3,
// DeepSeek V3. No vocabulary has a piece that runs over the space behind a
// word, so any words put together count to their number. gen/verify holds the
// list against the real tokenizers.
//
// What the text is not: it has the entropy of a random draw, not of language, so a
// server's speculative decoding accepts less of it, and a mixture of experts
// routes it otherwise, than it would for real prompts.
package tokens
