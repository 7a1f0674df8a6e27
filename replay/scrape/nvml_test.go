//go:build nvml

package scrape

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// machine is two GPUs; the second says nothing of its power.
func machine() *mock.Interface {
	return &mock.Interface{
		InitFunc:           func() nvml.Return { return nvml.SUCCESS },
		DeviceGetCountFunc: func() (int, nvml.Return) { return 2, nvml.SUCCESS },
		DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) {
			return &mock.Device{
				GetPowerUsageFunc: func() (uint32, nvml.Return) {
					if i == 1 {
						return 0, nvml.ERROR_NOT_SUPPORTED
					}
					return 312_500, nvml.SUCCESS
				},
				GetUtilizationRatesFunc: func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: uint32(90 - 50*i)}, nvml.SUCCESS },
				GetMemoryInfoFunc:       func() (nvml.Memory, nvml.Return) { return nvml.Memory{Used: 2 << 30}, nvml.SUCCESS },
			}, nvml.SUCCESS
		},
	}
}

func TestLocalGPUs(t *testing.T) {
	request, _ := http.NewRequest(http.MethodGet, "nvml://local/metrics", nil)
	answer, err := (&gpus{nvml: machine()}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	want := `# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu="0"} 312.5
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0"} 90
DCGM_FI_DEV_GPU_UTIL{gpu="1"} 40
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0"} 2048
DCGM_FI_DEV_FB_USED{gpu="1"} 2048
`
	if string(text) != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
}

// A machine without the library is a page that fails, not a run that does.
func TestNoGPUs(t *testing.T) {
	none := machine()
	none.InitFunc = func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }
	g := &gpus{nvml: none}
	for range 2 {
		if _, err := g.RoundTrip(nil); err == nil || !strings.Contains(err.Error(), "NVML does not begin") {
			t.Errorf("%v", err)
		}
	}
	c := Config{URLs: []string{"nvml://local"}}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
