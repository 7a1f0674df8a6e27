package hf_test

import (
	"fmt"
	"log"
	"os"

	"reprise/trace/tokens/hf"
)

func ExampleLoad() {
	f, err := os.Open("testdata/byte-bpe.json")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	tok, err := hf.Load(f)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tok.Count("over the river"), tok.Append(nil, "over the river"))
	fmt.Println(tok.Special())
	// Output:
	// 7 [80 363 326 70 222 306 363]
	// [0] [1]
}
