package runner

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

// api is the service's own API, used like any other client does.
type api struct {
	base   string
	jwt    string
	client *http.Client
}

func newAPI(base, jwt string) *api {
	return &api{base: base, jwt: jwt, client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{Proxy: nil}}}
}

// get reads a path into answer and returns the status. A status other than
// 200 leaves answer as it is.
func (a *api) get(ctx context.Context, path string, answer any) (int, error) {
	return a.call(ctx, http.MethodGet, path, nil, http.StatusOK, answer)
}

// create posts a body to a path and reads what was created into answer.
func (a *api) create(ctx context.Context, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	status, err := a.call(ctx, http.MethodPost, path, text, http.StatusCreated, answer)
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("POST %s: status %d", path, status)
	}
	return err
}

func (a *api) call(ctx context.Context, method, path string, body []byte, want int, answer any) (status int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s %s: %w", method, path, err)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if a.jwt != "" {
		req.Header.Set("Authorization", "Bearer "+a.jwt)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || answer == nil || resp.StatusCode != want {
		return resp.StatusCode, err
	}
	return resp.StatusCode, json.Unmarshal(text, answer)
}
