// Package dynamotest gives tests a real table: one local table server per
// test binary, and in it a fresh table for each test, made as the template
// declares it.
package dynamotest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/sdkhttp"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/provision"
	"github.com/commerce-integration/service/pkg/local/tableserver"
	"github.com/commerce-integration/service/pkg/local/template"
)

// endpoint starts the server once, unless AWS_ENDPOINT_URL_DYNAMODB names
// another one. It ends with the test binary, whose child it is.
var endpoint = sync.OnceValues(func() (string, error) {
	if other := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"); other != "" {
		return other, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	binary, err := tableserver.InstallShared(ctx)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "table")
	if err != nil {
		return "", fmt.Errorf("make a folder for tables: %w", err)
	}
	server, err := tableserver.Start(ctx, binary, dir)
	if err != nil {
		return "", err
	}
	return server.Endpoint(), nil
})

// Client returns a client of the server and the name of a fresh table. With
// -short the test is skipped: it needs a server.
func Client(t testing.TB) (client *dynamodb.Client, table string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a table server")
	}
	url, err := endpoint()
	if err != nil {
		t.Fatal(err)
	}
	client = dynamodb.New(dynamodb.Options{
		HTTPClient:   sdkhttp.New(awshttp.NewBuildableClient().GetTransport()),
		BaseEndpoint: &url, Region: "us-east-1", Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("local", "local", "")),
	})
	table = "t-" + value.NewRandomID().String()
	if _, err := provision.Table(t.Context(), client, Model(t).Table, table); err != nil {
		t.Fatal(err)
	}
	return client, table
}

// NewTable returns a fresh table with the system's clock.
func NewTable(t testing.TB) *dynamo.Table {
	t.Helper()
	client, name := Client(t)
	return dynamo.New(client, name, time.Now)
}

// Model returns the resolved template of the repository, which is read once. No
// test may change it.
func Model(t testing.TB) *template.Model {
	t.Helper()
	m, err := model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var model = sync.OnceValues(func() (*template.Model, error) {
	file, err := templateFile()
	if err != nil {
		return nil, err
	}
	return template.Load(file, map[string]string{"JwtIssuer": "test", "JwtAudience": "test"})
})

// templateFile finds template.yaml in the folder of the running test or above.
func templateFile() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		file := filepath.Join(dir, "template.yaml")
		if _, err = os.Stat(file); err == nil {
			return file, nil
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir, err = parent, nil
		}
	}
	return "", err
}
