//go:build nvml

package scrape

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// hasNVML says that this program can ask the GPUs of its own machine.
const hasNVML = true

// localGPUs answers nvml:// addresses with what NVIDIA's management library says of
// the GPUs of this machine, as a metrics page with the names and units of
// dcgm-exporter: power in W, use in %, memory in MiB.
func localGPUs() http.RoundTripper { return &gpus{nvml: nvml.New()} }

type gpus struct {
	nvml interface {
		Init() nvml.Return
		DeviceGetCount() (int, nvml.Return)
		DeviceGetHandleByIndex(int) (nvml.Device, nvml.Return)
	}
	begin sync.Once
	err   error
}

// RoundTrip reads all GPUs. What one of them does not say is left out.
func (g *gpus) RoundTrip(r *http.Request) (*http.Response, error) {
	g.begin.Do(func() {
		if code := g.nvml.Init(); code != nvml.SUCCESS {
			g.err = fmt.Errorf("NVML does not begin: %v", code)
		}
	})
	if g.err != nil {
		return nil, g.err
	}
	page, err := g.page()
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/plain; version=0.0.4"}}, Body: io.NopCloser(bytes.NewReader(page)), ContentLength: int64(len(page)),
	}, nil
}

func (g *gpus) page() ([]byte, error) {
	n, code := g.nvml.DeviceGetCount()
	if code != nvml.SUCCESS {
		return nil, fmt.Errorf("NVML does not count its GPUs: %v", code)
	}
	values := map[string][]string{}
	add := func(name string, gpu int, v float64) {
		values[name] = append(values[name], fmt.Sprintf("%s{gpu=\"%d\"} %g\n", name, gpu, v))
	}
	for i := range n {
		d, code := g.nvml.DeviceGetHandleByIndex(i)
		if code != nvml.SUCCESS {
			continue
		}
		if mw, code := d.GetPowerUsage(); code == nvml.SUCCESS {
			add("DCGM_FI_DEV_POWER_USAGE", i, float64(mw)/1000)
		}
		if use, code := d.GetUtilizationRates(); code == nvml.SUCCESS {
			add("DCGM_FI_DEV_GPU_UTIL", i, float64(use.Gpu))
		}
		if m, code := d.GetMemoryInfo(); code == nvml.SUCCESS {
			add("DCGM_FI_DEV_FB_USED", i, float64(m.Used)/(1<<20))
		}
	}
	var out bytes.Buffer
	for _, name := range []string{"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"} {
		if len(values[name]) > 0 {
			fmt.Fprintf(&out, "# TYPE %s gauge\n", name)
		}
		for _, line := range values[name] {
			out.WriteString(line)
		}
	}
	return out.Bytes(), nil
}
