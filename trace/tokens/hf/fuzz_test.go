package hf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var smallNames = []string{"byte-bpe", "gpt2-bpe", "fallback-bpe", "unk-bpe", "removed-bpe", "unigram", "unigram-bytes"}

func FuzzLoad(f *testing.F) {
	for _, name := range smallNames {
		data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add(`{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]},"added_tokens":[{"content":"<x>","lstrip":true,"rstrip":true}]}`)
	f.Add(`{"model":{"type":"Unigram","unk_id":0,"vocab":[["u",0],["a",-1.5]]},"pre_tokenizer":{"type":"Metaspace","replacement":"▁","add_prefix_space":true}}`)
	f.Fuzz(func(t *testing.T, file string) {
		if strings.Contains(file, "Regex") && (strings.Contains(file, "*)") || strings.Contains(file, "+)")) {
			t.Skip("a nested repetition may take forever, in the Rust library too")
		}
		tok, err := Load(strings.NewReader(file))
		if err != nil {
			return
		}
		const text = "ab <x>  a\u0301 ▁ don't 12\n"
		if got, want := tok.Count(text), len(tok.Append(nil, text)); got != want {
			t.Errorf("%d tokens and %d ids", got, want)
		}
	})
}

// FuzzCount looks for texts that break a promise of any tokenizer.
func FuzzCount(f *testing.F) {
	var toks []*Tokenizer
	for _, name := range smallNames {
		toks = append(toks, load(f, filepath.Join("testdata", name+".json")))
	}
	var rows []textIDs
	readJSON(f, "testdata/byte-bpe.ids.json", &rows)
	for _, row := range rows {
		f.Add(row.text)
	}
	f.Add("a\xffb\xc3")
	f.Fuzz(func(t *testing.T, text string) {
		for i, tok := range toks {
			ids := tok.Append([]int32{-7}, text)
			if ids[0] != -7 || tok.Count(text) != len(ids)-1 {
				t.Errorf("%s: %d ids for %d tokens", smallNames[i], len(ids)-1, tok.Count(text))
			}
			for _, id := range ids[1:] {
				if id < 0 || int(id) >= tok.model.size()+len(tok.raw.tokens)+len(tok.normalized.tokens) {
					t.Errorf("%s: id %d", smallNames[i], id)
				}
			}
			if len(ids)-1 > 4*len(text)+4 {
				t.Errorf("%s: %d tokens for %d bytes", smallNames[i], len(ids)-1, len(text))
			}
		}
	})
}

func BenchmarkCount(b *testing.B) {
	text := strings.Repeat("The quick brown fox doesn't jump over 12 lazy dogs;\n\tit walks — naïvely. ", 100)
	for _, name := range smallNames {
		b.Run(name, func(b *testing.B) {
			tok := load(b, filepath.Join("testdata", name+".json"))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				tok.Count(text)
			}
		})
	}
}
