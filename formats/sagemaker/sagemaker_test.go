package sagemaker_test

import (
	"strings"
	"testing"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/sagemaker"
)

func imp() formats.Importer { return &sagemaker.Importer{} }

func TestGolden(t *testing.T) { importtest.Golden(t, imp(), "sagemaker", "sample.jsonl") }

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "sagemaker", "sample.jsonl") }

const good = `{"captureData":{"endpointInput":{"data":"{\"prompt\":\"x\"}","encoding":"JSON"}},"eventMetadata":{"inferenceTime":"2024-05-01T10:00:05Z"}}` + "\n"

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "a.jsonl", good, func(n int) string { return strings.Replace(good, ":\\\"x", ":\\\""+strings.Repeat("x", n), 1) })
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, sagemaker.Detect, map[string]bool{
		good:                               true,
		`{"captureData":{}}`:               false,
		`{"eventMetadata":{}}`:             false,
		"captureData,eventMetadata\n1,2\n": false,
	})
}

// The limit asked for is not the output.
func TestLimitIsNotOutput(t *testing.T) {
	r := importtest.Text(t, imp(), "x.jsonl", strings.Replace(good, `\"prompt\":\"x\"`, `\"prompt\":\"x\",\"max_tokens\":64`, 1))
	if row := r.Rows[0]; row.MaxOutputTokens.Value != 64 || row.OutputTokens.Known {
		t.Errorf("%+v", row)
	}
}
