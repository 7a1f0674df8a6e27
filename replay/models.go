package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"reprise/trace"
)

// served asks the first endpoint which models it offers, if a model has yet to
// be found. An endpoint that cannot be reached is an error now, not in the run;
// one that does not list its models gives nil.
func (c *Config) served(ctx context.Context, recorded map[string]int64) ([]string, error) {
	open := false
	for name := range recorded {
		if _, ok := c.model(name); !ok {
			open = true
		}
	}
	if !open {
		return nil, nil
	}
	u, err := endpoint(c.URLs[0], "/v1/models")
	if err != nil {
		return nil, err
	}
	if at := strings.Index(u.Path, c.protocol().Path()); at >= 0 { // --url named the whole path
		u.Path = u.Path[:at] + "/v1/models"
	}
	stopped := ctx
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.ask(req, u)
	if stopped.Err() != nil {
		return nil, context.Cause(stopped)
	}
	if err != nil {
		return nil, unreachable(publicURL(u), err)
	}
	defer resp.Body.Close()
	return readModels(publicURL(u), resp)
}

func readModels(from string, resp *http.Response) ([]string, error) {
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, trace.WithFix(fmt.Errorf("%s: %s", from, resp.Status), "name the variable that holds the key with --api-key-env")
	default:
		return nil, nil
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&list); err != nil {
		return nil, nil // not an OpenAI-like list
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names, nil
}

// unreachable puts the cause first and says what to change.
func unreachable(url string, err error) error {
	text := err.Error()
	if _, rest, ok := strings.Cut(text, url+`": `); ok {
		text = rest
	}
	fix := "check that the server runs and that --url is right"
	if strings.Contains(text, "x509") || strings.Contains(text, "certificate") {
		fix = "name the authority with --ca-file, or use --insecure for a test server"
	}
	if strings.Contains(text, "HTTP response to HTTPS") {
		fix = "the server speaks plain HTTP: write http:// in --url"
	}
	return trace.WithFix(fmt.Errorf("cannot ask %s for its models: %s", url, text), fix)
}
