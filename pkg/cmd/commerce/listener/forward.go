package listener

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"
)

// forwardTimeout is what an endpoint's attempt takes at most by default.
const forwardTimeout = 15 * time.Second

// Forward posts a webhook with its headers to a URL, once, and returns the status
// of the answer within 15 s. It follows no redirect, as the service does not.
func Forward(ctx context.Context, target string, header http.Header, body []byte) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("forward to %s: %w", target, err)
	}
	request.Header = header.Clone()
	for _, name := range []string{"Accept-Encoding", "Connection", "Content-Length", "Transfer-Encoding"} {
		request.Header.Del(name) // of the connection by which it came
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	answer.Body.Close()
	return answer.StatusCode, nil
}
