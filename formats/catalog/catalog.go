// Package catalog knows where public traces are published, and fetches them: over
// HTTPS only, resumed where a transfer was cut, held against a size and a checksum
// where these are known, and kept in a cache.
package catalog

import (
	"fmt"
	"path"
	"strings"

	"reprise/trace"
)

// An Entry is one published trace.
type Entry struct {
	Name     string `json:"name"`
	About    string `json:"about"`
	Format   string `json:"format"` // that reads it
	URL      string `json:"url"`
	Page     string `json:"page"`             // where a person gets it by hand
	Bytes    int64  `json:"bytes,omitempty"`  // 0 = not known
	SHA256   string `json:"sha256,omitempty"` // "" = not pinned
	Licence  string `json:"licence"`
	Citation string `json:"citation"`
	Archive  bool   `json:"archive,omitempty"` // a tar file to be unpacked first
}

// File is the name of the file that the entry becomes.
func (e *Entry) File() string {
	if e.Archive {
		return e.Name + ".tar.gz"
	}
	return path.Base(e.URL)
}

const (
	mooncakeCite = "Qin et al., Mooncake, FAST 2025"
	azure23Cite  = "Patel et al., Splitwise, ISCA 2024"
	azure24Cite  = "Stojkovic et al., DynamoLLM, HPCA 2025"
	azure25Cite  = "Qiu et al., ModServe, SoCC 2025"
	burstCite    = "Wang et al., BurstGPT, KDD 2025"
	bailianCite  = "Wang et al., KVCache Cache in the Wild, USENIX ATC 2025"

	mooncakePage = "https://github.com/kvcache-ai/Mooncake/tree/main/FAST25-release"
	azurePage    = "https://github.com/Azure/AzurePublicDataset"
	burstPage    = "https://github.com/HPMLL/BurstGPT/releases"
	bailianPage  = "https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon"

	mooncakeRaw = "https://raw.githubusercontent.com/kvcache-ai/Mooncake/main/FAST25-release/"
	azureRaw    = "https://raw.githubusercontent.com/Azure/AzurePublicDataset/master/data/"
	azureBlob   = "https://azurepublicdatasettraces.blob.core.windows.net/azurellminfererencetrace/"
	burstRaw    = "https://github.com/HPMLL/BurstGPT/releases/download/v2.0/"
	bailianRaw  = "https://raw.githubusercontent.com/alibaba-edu/qwen-bailian-usagetraces-anon/main/"
)

// All are the traces of the catalogue. Checksums are those of files that were read
// here or that many published works name; a file whose checksum nobody knows is
// said to be not pinned.
var All = []Entry{
	{Name: "mooncake-conversation", About: "Mooncake FAST'25, conversation: 12,031 requests of an hour, blocks", Format: "mooncake", URL: mooncakeRaw + "traces/conversation_trace.jsonl", Page: mooncakePage,
		Bytes: 3029533, SHA256: "b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df", Licence: "Apache-2.0", Citation: mooncakeCite},
	{Name: "mooncake-synthetic", About: "Mooncake FAST'25, synthetic: 3,993 requests, blocks", Format: "mooncake", URL: mooncakeRaw + "traces/synthetic_trace.jsonl", Page: mooncakePage,
		Bytes: 1136313, SHA256: "bd070915a98fc0ed264d7cfef2ce746002eb3076a695ec31ba2674c0111ec131", Licence: "Apache-2.0", Citation: mooncakeCite},
	{Name: "mooncake-toolagent", About: "Mooncake FAST'25, tools and agents: 23,608 requests, blocks", Format: "mooncake", URL: mooncakeRaw + "traces/toolagent_trace.jsonl", Page: mooncakePage, Licence: "Apache-2.0", Citation: mooncakeCite},
	{Name: "mooncake-arxiv", About: "Mooncake, the single trace of the first paper: 23,608 requests, blocks", Format: "mooncake", URL: mooncakeRaw + "arxiv-trace/mooncake_trace.jsonl", Page: mooncakePage, Licence: "Apache-2.0", Citation: mooncakeCite},
	{Name: "azure-2023-code", About: "Azure 2023, code: 8,819 requests of an hour", Format: "azure", URL: azureRaw + "AzureLLMInferenceTrace_code.csv", Page: azurePage,
		Bytes: 320117, SHA256: "54e9a6d2a4bd06ba1e060304b900abbc74cbea53de96506e60fe5bb4f2277fb6", Licence: "CC-BY-4.0", Citation: azure23Cite},
	{Name: "azure-2023-conv", About: "Azure 2023, conversation: 19,366 requests of an hour", Format: "azure", URL: azureRaw + "AzureLLMInferenceTrace_conv.csv", Page: azurePage, Licence: "CC-BY-4.0", Citation: azure23Cite},
	{Name: "azure-2024-code", About: "Azure 2024, code: 16.8 million requests of a week", Format: "azure", URL: azureBlob + "AzureLLMInferenceTrace_code_1week.csv", Page: azurePage, Licence: "CC-BY-4.0", Citation: azure24Cite},
	{Name: "azure-2024-conv", About: "Azure 2024, conversation: 27.3 million requests of a week", Format: "azure", URL: azureBlob + "AzureLLMInferenceTrace_conv_1week.csv", Page: azurePage, Licence: "CC-BY-4.0", Citation: azure24Cite},
	{Name: "azure-multimodal", About: "Azure 2024, with images: 1 million requests of a week", Format: "azure", URL: azureRaw + "AzureLMMInferenceTrace_multimodal.csv.gz", Page: azurePage, Licence: "CC-BY-4.0", Citation: azure25Cite},
	{Name: "burstgpt-1", About: "BurstGPT, days 1 to 61: 1.4 million requests, with failures", Format: "burstgpt", URL: burstRaw + "BurstGPT_1.csv", Page: burstPage, Licence: "CC-BY-4.0", Citation: burstCite},
	{Name: "burstgpt-2", About: "BurstGPT, second part: 3.9 million requests, with failures", Format: "burstgpt", URL: burstRaw + "BurstGPT_2.csv", Page: burstPage, Licence: "CC-BY-4.0", Citation: burstCite},
	{Name: "burstgpt-3", About: "BurstGPT, third part: 5.3 million requests, sessions and elapsed time", Format: "burstgpt", URL: burstRaw + "BurstGPT_3.csv", Page: burstPage, Licence: "CC-BY-4.0", Citation: burstCite},
	{Name: "bailian-a", About: "Bailian (Qwen), consumer chat: two hours, trees, 16-token blocks", Format: "bailian", URL: bailianRaw + "qwen_traceA_blksz_16.jsonl", Page: bailianPage, Licence: "Apache-2.0", Citation: bailianCite},
	{Name: "bailian-b", About: "Bailian (Qwen), API calls: two hours, 16-token blocks", Format: "bailian", URL: bailianRaw + "qwen_traceB_blksz_16.jsonl", Page: bailianPage, Licence: "Apache-2.0", Citation: bailianCite},
	{Name: "bailian-thinking", About: "Bailian (Qwen), thinking models: two hours, 16-token blocks", Format: "bailian", URL: bailianRaw + "qwen_thinking_blksz_16.jsonl", Page: bailianPage, Licence: "Apache-2.0", Citation: bailianCite},
	{Name: "bailian-coder", About: "Bailian (Qwen), coding: two hours, 16-token blocks", Format: "bailian", URL: bailianRaw + "qwen_coder_blksz_16.jsonl", Page: bailianPage, Bytes: 132054902, Licence: "Apache-2.0", Citation: bailianCite},
	{Name: "ragpulse", About: "RAGPulse: 7,106 requests of a service with retrieval, a week", Format: "ragpulse", URL: "https://raw.githubusercontent.com/flashserve/RAGPulse/main/data/0_trace.jsonl", Page: "https://github.com/flashserve/RAGPulse",
		Bytes: 1923473, SHA256: "cd371571bef3320907147f8901729e37f412aafb067ec8eb153e2828e1801e65", Licence: "MIT", Citation: "RAGPulse, flashserve, 2025"},
	{Name: "servegen", About: "ServeGen: rates, gaps and lengths of 422 clients, per client and window", Format: "servegen", URL: "https://codeload.github.com/alibaba/ServeGen/tar.gz/refs/heads/main", Page: "https://github.com/alibaba/ServeGen", Licence: "Apache-2.0", Citation: "Xiang et al., ServeGen, arXiv 2505.09999", Archive: true},
	{Name: "weka-kv-cache-tester", About: "WEKA kv-cache-tester: sessions of coding agents, 64-token blocks", Format: "weka", URL: "https://codeload.github.com/callanjfox/kv-cache-tester/tar.gz/refs/heads/main", Page: "https://github.com/callanjfox/kv-cache-tester", Licence: "Apache-2.0", Citation: "kv-cache-tester, WEKA, 2025", Archive: true},
	{Name: "sharegpt-v3", About: "ShareGPT V3, unfiltered, cleaned, split: conversations without times", Format: "sharegpt", URL: "https://huggingface.co/datasets/anon8231489123/ShareGPT_Vicuna_unfiltered/resolve/main/ShareGPT_V3_unfiltered_cleaned_split.json", Page: "https://huggingface.co/datasets/anon8231489123/ShareGPT_Vicuna_unfiltered",
		Bytes: 672837942, SHA256: "35f0e213ce091ed9b9af2a1f0755e9d39f9ccec34ab281cd4ca60d70f6479ba4", Licence: "Apache-2.0, as published", Citation: "ShareGPT_Vicuna_unfiltered, anon8231489123, 2023"},
}

// ByName returns the entry called name.
func ByName(name string) (Entry, error) {
	var close []string
	for _, e := range All {
		if e.Name == name {
			return e, nil
		}
		if strings.Contains(e.Name, name) || strings.HasPrefix(name, e.Format) && e.Format != "" {
			close = append(close, e.Name)
		}
	}
	fix := "list them with: reprise trace fetch --list"
	if len(close) > 0 {
		fix = "did you mean " + strings.Join(close, ", ") + "? " + fix
	}
	return Entry{}, trace.WithFix(fmt.Errorf("no trace %q in the catalogue", name), fix)
}
