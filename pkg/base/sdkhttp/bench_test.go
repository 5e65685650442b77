package sdkhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/sdkhttp"
	"github.com/commerce-integration/service/pkg/testkit/cputime"
)

// TestMain lets the test binary stand in for a table: a process of its own, so
// that the benchmark measures the client alone.
func TestMain(m *testing.M) {
	if os.Getenv("SDKHTTP_TEST") != "table" {
		os.Exit(m.Run())
	}
	table := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, `{"Item":{"pk":{"S":"ORG#1"},"sk":{"S":"PRODUCT#2"},"name":{"S":"`+strings.Repeat("x", 500)+`"}}}`)
	}))
	fmt.Println(table.URL)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the benchmark ends
}

// BenchmarkGetItem gets an item with the SDK, at once again or 3 ms later, and
// reports the processor time of the calling process:
//
//	go test -run '^$' -bench GetItem -benchmem ./pkg/base/sdkhttp
func BenchmarkGetItem(b *testing.B) {
	table := exec.Command(os.Args[0])
	table.Env = append(os.Environ(), "SDKHTTP_TEST=table")
	stdin, err := table.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := table.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := table.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = stdin.Close()
		_ = table.Wait()
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	in := &dynamodb.GetItemInput{TableName: aws.String("commerce"), Key: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "ORG#1"}, "sk": &types.AttributeValueMemberS{Value: "PRODUCT#2"},
	}}
	for name, client := range map[string]aws.HTTPClient{
		"sdkhttp":  sdkhttp.New(awshttp.NewBuildableClient().GetTransport()),
		"net-http": awshttp.NewBuildableClient(),
	} {
		db := dynamodb.New(dynamodb.Options{
			HTTPClient: client, BaseEndpoint: aws.String(strings.TrimSpace(line)), Region: "us-east-1",
			Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("local", "local", "")),
		})
		for _, pause := range []time.Duration{0, 3 * time.Millisecond} {
			b.Run(fmt.Sprintf("%s/pause=%s", name, pause), func(b *testing.B) {
				b.ReportAllocs()
				begun := cputime.Used()
				for b.Loop() {
					if _, err := db.GetItem(b.Context(), in); err != nil {
						b.Fatal(err)
					}
					time.Sleep(pause)
				}
				b.ReportMetric(float64((cputime.Used()-begun).Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
