package hf

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestLoadRefuses(t *testing.T) {
	const bpe = `"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}`
	for _, c := range []struct{ file, want string }{
		{``, "read tokenizer: unexpected end of JSON input"},
		{`{}`, "model: the file has none"},
		{`{"model":{"vocab":{}}}`, "model: component without a type"},
		{`{"model":{"type":"WordPiece"}}`, "model: WordPiece is not supported"},
		{`{"model":{"type":"BPE","dropout":0.1}}`, "model: BPE with dropout is not supported"},
		{`{"model":{"type":"BPE","continuing_subword_prefix":"##"}}`, "model: BPE with continuing_subword_prefix is not supported"},
		{`{"model":{"type":"BPE","end_of_word_suffix":"</w>"}}`, "model: BPE with end_of_word_suffix is not supported"},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}`, `model: BPE: merge 1 of "a" and "b": not all in the vocabulary`},
		{`{"model":{"type":"BPE","vocab":{},"merges":["a b c"]}}`, `merges: "a b c", number 1, is not two parts`},
		{`{"model":{"type":"BPE","vocab":{},"unk_token":"<unk>"}}`, `model: BPE: unk_token "<unk>" is not in the vocabulary`},
		{`{"model":{"type":"Unigram","vocab":[["a",-1]]}}`, "model: unigram: unk_id -1 is not in the vocabulary"},
		{`{"model":{"type":"Unigram","unk_id":0,"vocab":[["",0]]}}`, "model: unigram: piece 0 is empty"},
		{`{"model":{"type":"Unigram","unk_id":0,"vocab":[[1,0]]}}`, "vocabulary entry is not a string and a score"},
		{`{"normalizer":{"type":"Precompiled"},` + bpe + `}`, "normalizer: Precompiled is not supported"},
		{`{"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Lowercase"}]},` + bpe + `}`, "normalizer: Lowercase is not supported"},
		{`{"normalizer":{"type":"Replace","pattern":{"Regex":"("},"content":""},` + bpe + `}`, `normalizer: pattern "("`},
		{`{"normalizer":{"type":"Replace","content":""},` + bpe + `}`, "normalizer: Replace without a pattern is not supported"},
		{`{"pre_tokenizer":{"type":"BertPreTokenizer"},` + bpe + `}`, "pre_tokenizer: BertPreTokenizer is not supported"},
		{`{"pre_tokenizer":{"type":"Split","pattern":{"String":"x"},"behavior":"Sideways"},` + bpe + `}`, "pre_tokenizer: Split with behavior Sideways is not supported"},
		{`{"pre_tokenizer":{"type":"Metaspace","replacement":"ab"},` + bpe + `}`, `pre_tokenizer: Metaspace with replacement "ab" is not supported`},
		{`{"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"last"},` + bpe + `}`, "pre_tokenizer: Metaspace with prepend_scheme last is not supported"},
		{`{"post_processor":{"type":"RobertaProcessing"},` + bpe + `}`, "post_processor: RobertaProcessing is not supported"},
		{`{"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}}]},` + bpe + `}`, `post_processor: TemplateProcessing: token "<s>" is not among special_tokens`},
	} {
		if _, err := Load(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got: %v\nwant: %s", c.file, err, c.want)
		}
	}
}

func TestSpecial(t *testing.T) {
	before, after := load(t, "testdata/byte-bpe.json").Special()
	if !slices.Equal(before, []int32{0}) || !slices.Equal(after, []int32{1}) {
		t.Errorf("before %v and after %v, want [0] and [1]", before, after)
	}
	if before, after = load(t, "testdata/unigram.json").Special(); before != nil || after != nil {
		t.Errorf("before %v and after %v where the file has no post-processor", before, after)
	}
}

func TestInvalidUTF8CountsAsReplacement(t *testing.T) {
	tok := load(t, "testdata/byte-bpe.json")
	if got, want := tok.Append(nil, "a\xff\xfeb"), tok.Append(nil, "a\uFFFDb"); !slices.Equal(got, want) {
		t.Errorf("ids %v, want %v", got, want)
	}
}

func TestTokenizerIsSafeForConcurrentUse(t *testing.T) {
	tok := load(t, "testdata/fallback-bpe.json")
	texts := []string{"over the river", "and through the table — é", "x", strings.Repeat("again and ", 200)}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				for _, text := range texts {
					if got, want := tok.Count(text), len(tok.Append(nil, text)); got != want {
						t.Errorf("%.20q: %d tokens and %d ids", text, got, want)
					}
				}
			}
		})
	}
	wg.Wait()
}
