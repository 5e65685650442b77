package runner_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

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
	post := func(size int) { post(t, client, server.URL, size) }
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

func TestAfterAHugeRequestTheNextWaitsAsLong(t *testing.T) {
	const takes = 100 * time.Millisecond
	var began, ended []time.Time
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		began = append(began, time.Now())
		time.Sleep(takes)
		ended = append(ended, time.Now())
	}))
	defer server.Close()
	client := runner.AWSConfig().HTTPClient
	var requests sync.WaitGroup
	for range 3 {
		requests.Go(func() { post(t, client, server.URL, 300<<10+1) })
	}
	requests.Wait()
	for i := range 2 {
		if pause := began[i+1].Sub(ended[i]); pause < takes {
			t.Errorf("request %d came %s after the end of the one before, which took %s", i+1, pause, takes)
		}
	}
}

func post(t *testing.T, client aws.HTTPClient, url string, size int) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(strings.Repeat("x", size)))
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := client.Do(request); err != nil {
		t.Error(err)
	}
}
