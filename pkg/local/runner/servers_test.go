package runner_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/commerce-integration/service/pkg/local/runner"
)

func TestASmallRequestDoesNotWaitForTheLargeOnes(t *testing.T) {
	const clients = 5
	sizes, free := make(chan int), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sizes <- len(body)
		if len(body) > 4<<10 {
			<-free
		}
	}))
	defer server.Close()
	client := runner.AWSConfig().HTTPClient
	post := func(size int) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(strings.Repeat("x", size)))
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := client.Do(request); err != nil {
			t.Error(err)
		}
	}
	var requests sync.WaitGroup
	for range clients {
		requests.Go(func() { post(4<<10 + 1) })
	}
	large := []int{<-sizes, <-sizes}
	requests.Go(func() { post(4 << 10) })
	if small := <-sizes; small != 4<<10 {
		t.Errorf("after large requests of %d bytes came one of %d, want the small one", large, small)
	}
	close(free)
	for range clients - len(large) {
		<-sizes
	}
	requests.Wait()
}
