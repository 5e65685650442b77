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
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/local/provision"
	"github.com/commerce-integration/service/pkg/local/template"
)

const table = "commerce"

// start starts a server that ends with the test.
func start(t testing.TB, dir string) (*Server, *dynamodb.Client) {
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
	return server, server.client()
}

// newTable starts a server with the service's table.
func newTable(t testing.TB) (*Server, *dynamodb.Client) {
	t.Helper()
	server, db := start(t, t.TempDir())
	createTable(t, db)
	return server, db
}

// templateFile is absolute, since a test changes the folder.
var templateFile, _ = filepath.Abs("../../../template.yaml")

func createTable(t testing.TB, db *dynamodb.Client) {
	t.Helper()
	model, err := template.Load(templateFile, map[string]string{"JwtIssuer": "i", "JwtAudience": "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provision.Table(t.Context(), db, model.Table, table); err != nil {
		t.Fatal(err)
	}
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

func TestAnAcknowledgedWriteSurvivesAKillAndTrimsBesideIt(t *testing.T) {
	dir := t.TempDir()
	server, db := start(t, dir)
	createTable(t, db)
	const writers, enough = 4, 200
	acknowledged := make(chan string, 1<<16)
	var running sync.WaitGroup
	for w := range writers {
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
	for len(acknowledged) < enough {
		if err := server.Trim(t.Context(), table, "1000000"); err != nil {
			t.Fatalf("Trim beside writes: %v", err)
		}
	}
	if err := server.child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	<-server.Done()
	if err := server.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Err after a kill = %v, want it to say so", err)
	}
	_, again := start(t, dir) // which checks the file
	for close(acknowledged); len(acknowledged) > 0; {
		if pk := <-acknowledged; !exists(t, again, pk) {
			t.Errorf("item %s was acknowledged before the kill and is gone", pk)
		}
	}
}

func TestADamagedFileIsNamed(t *testing.T) {
	whole := t.TempDir()
	server, db := start(t, whole)
	createTable(t, db)
	for i := range 200 {
		if err := put(t.Context(), db, strconv.Itoa(i), map[string]types.AttributeValue{"v": &types.AttributeValueMemberS{Value: strings.Repeat("x", 1000)}}); err != nil {
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

func TestTablesOutliveTheServerInAnyDirectoryAndNothingElseIsLeft(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"relative", "a b%20c?d=e#f&ü", filepath.Join(t.TempDir(), "not", "yet", "there")} {
		first, db := start(t, dir)
		createTable(t, db)
		if err := put(t.Context(), db, "a", nil); err != nil {
			t.Fatalf("put in %q: %v", dir, err)
		}
		begin := time.Now() // an idle connection is open
		if err := first.Close(); err != nil || time.Since(begin) > stopGrace {
			t.Errorf("Close in %q: %v after %v, want the server to end by itself", dir, err, time.Since(begin))
		}
		if _, err := net.Dial("tcp", strings.TrimPrefix(first.Endpoint(), "http://")); err == nil {
			t.Errorf("%s still answers after Close", first.Endpoint())
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "tables.db" {
			t.Errorf("Close left %v in %q, %v; want the table file alone", left, dir, err)
		}
		if _, db := start(t, dir); !exists(t, db, "a") {
			t.Errorf("in %q the item is gone after a restart", dir)
		}
	}
}

func TestAnInterruptOfTheTerminalLeavesTheServerToItsCaller(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can block a signal in a child")
	}
	server, db := newTable(t)
	for range 3 {
		if err := server.child.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := put(t.Context(), db, "a", nil); err != nil {
			t.Fatalf("put after an interrupt: %v", err)
		}
	}
	if err := server.Err(); err != nil {
		t.Errorf("Err after an interrupt: %v", err)
	}
}
