package tableserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const table = "commerce"

func start(t testing.TB, dir string) *Server {
	t.Helper()
	server, err := Start(t.Context(), pinned(t), dir)
	if err != nil {
		t.Fatalf("Start in %s: %v", dir, err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return server
}

func client(s *Server) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "eu-central-1",
		BaseEndpoint: aws.String(s.Endpoint()),
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
}

func createTable(t testing.TB, db *dynamodb.Client) string {
	t.Helper()
	made, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:   aws.String(table),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("PK"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("SK"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("SK"), KeyType: types.KeyTypeRange},
		},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatalf("creating the table: %v", err)
	}
	return aws.ToString(made.TableDescription.LatestStreamArn)
}

func key(pk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: pk},
		"SK": &types.AttributeValueMemberS{Value: "-"},
	}
}

func put(ctx context.Context, db *dynamodb.Client, pk string, more map[string]types.AttributeValue) error {
	item := key(pk)
	for name, value := range more {
		item[name] = value
	}
	_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(table), Item: item})
	return err
}

func exists(t *testing.T, db *dynamodb.Client, pk string) bool {
	t.Helper()
	got, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: key(pk), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatalf("getting %s: %v", pk, err)
	}
	return got.Item != nil
}

func TestCloseDoesNotWaitForIdleConnections(t *testing.T) {
	server := start(t, t.TempDir())
	createTable(t, client(server))
	begin := time.Now()
	if err := server.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if took := time.Since(begin); took > stopGrace {
		t.Errorf("Close took %v with an idle connection open, want less than the %v after which it kills", took, stopGrace)
	}
}

func TestAnAcknowledgedWriteSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	server := start(t, dir)
	createTable(t, client(server))

	const writers, enough = 4, 200
	acknowledged := make(chan string, 1<<16)
	var running sync.WaitGroup
	for w := range writers {
		db := dynamodb.New(client(server).Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
		running.Go(func() {
			for i := 0; ; i++ {
				pk := fmt.Sprintf("w%d-%d", w, i)
				if put(t.Context(), db, pk, nil) != nil {
					return
				}
				acknowledged <- pk
			}
		})
	}
	waitUntil(t, "enough writes", func() bool { return len(acknowledged) >= enough })
	if err := server.child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	<-server.Done()
	if err := server.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Err after a kill = %v, want it to say so", err)
	}
	if err := server.Close(); err != nil {
		t.Fatalf("Close after a kill: %v", err)
	}

	again := client(start(t, dir))
	for close(acknowledged); len(acknowledged) > 0; {
		if pk := <-acknowledged; !exists(t, again, pk) {
			t.Errorf("item %s was acknowledged before the kill and is gone", pk)
		}
	}
}

func TestADamagedFileIsNamed(t *testing.T) {
	whole := t.TempDir()
	server := start(t, whole)
	createTable(t, client(server))
	for i := range 200 {
		if err := put(t.Context(), client(server), strconv.Itoa(i), map[string]types.AttributeValue{"v": &types.AttributeValueMemberS{Value: strings.Repeat("x", 1000)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(whole, "tables.db"))
	if err != nil {
		t.Fatal(err)
	}
	middle := append([]byte(nil), good...)
	for i := len(middle) / 2; i < len(middle)/2+20_000; i++ {
		middle[i] = 0xAA
	}
	for name, content := range map[string][]byte{"not a database": []byte(strings.Repeat("junk", 4096)), "cut off": good[:len(good)/2], "overwritten": middle} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "tables.db")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			server, err := Start(t.Context(), pinned(t), dir)
			if err == nil {
				t.Fatalf("Start on a damaged file works: %v", server.Close())
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "damaged") {
				t.Errorf("Start: got %q, want it to name %s and call it damaged", err, path)
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != string(content) {
				t.Errorf("Start changed the damaged file (%v)", err)
			}
		})
	}
}

func TestABinaryThatDoesNotServeIsAnError(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\necho no such option >&2\nexit 2\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Program{Dynoxide, binary}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "no such option") {
		t.Fatalf("Start of another binary: got %v, want the end of its output", err)
	}
}

// waitUntil polls a condition of a real process.
func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestTablesOutliveTheServerInAnyDirectoryAndNothingElseIsLeft(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"relative", "a b%20c?d=e#f&ü", filepath.Join(t.TempDir(), "not", "yet", "there")} {
		first := start(t, dir)
		createTable(t, client(first))
		if err := put(t.Context(), client(first), "a", nil); err != nil {
			t.Fatalf("put in %q: %v", dir, err)
		}
		if err := first.Trim(t.Context(), table, "1"); err != nil {
			t.Errorf("Trim in %q: %v", dir, err)
		}
		if err := first.Close(); err != nil {
			t.Fatalf("Close in %q: %v", dir, err)
		}
		if _, err := net.Dial("tcp", strings.TrimPrefix(first.Endpoint(), "http://")); err == nil {
			t.Errorf("%s still answers after Close", first.Endpoint())
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "tables.db" {
			t.Errorf("Close left %v in %q, %v; want the table file alone", left, dir, err)
		}
		if second := start(t, dir); !exists(t, client(second), "a") {
			t.Errorf("in %q the item is gone after a restart", dir)
		}
	}
}

func TestAnInterruptOfTheTerminalLeavesTheServerToItsCaller(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can block a signal in a child")
	}
	server := start(t, t.TempDir())
	createTable(t, client(server))
	for range 3 {
		if err := server.child.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := put(t.Context(), client(server), "a", nil); err != nil {
			t.Fatalf("put after an interrupt: %v", err)
		}
	}
	if err := server.Err(); err != nil {
		t.Errorf("Err after an interrupt: %v", err)
	}
}
