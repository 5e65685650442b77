package tableserver

import (
	"context"
	"database/sql"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

const ttl = "expiresAtEpoch"

func newTestExpiry(t testing.TB, db *sql.DB) *expiry {
	t.Helper()
	e, err := newExpiry(db, table, ttl, []string{"PK", "SK"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// check compares the index with the items, as SQLite of this process understands both.
func (e *expiry) check(t *testing.T) {
	t.Helper()
	var found string
	if err := e.db.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&found); err != nil || found != "ok" {
		t.Errorf("integrity check: got %s, %v, want ok", found, err)
	}
}

func (e *expiry) found(t *testing.T, until time.Time) []string {
	t.Helper()
	keys, err := e.between(t.Context(), time.Unix(0, 0), until, 1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, key := range keys {
		names = append(names, key["PK"].(*types.AttributeValueMemberS).Value)
	}
	return names
}

func expiringAt(second int64) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{ttl: epoch(time.Unix(second, 0))}
}

func TestExpiredItemsAreFoundByTheIndex(t *testing.T) {
	server := start(t, t.TempDir())
	createTable(t, client(server))
	e := newTestExpiry(t, server.db)
	if err := e.index(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := plan(t, server.db, e.query(), 1, 2, 100, 0)
	if !strings.Contains(got, "SEARCH commerce USING INDEX commerce::ttl::"+ttl) || strings.Contains(got, "TEMP B-TREE") {
		t.Errorf("plan of %s: got %s, want a search by the index and no sort", e.query(), got)
	}
}

func TestEveryKindOfWriteKeepsTheExpiryIndex(t *testing.T) {
	dir := t.TempDir()
	server := start(t, dir)
	db := client(server)
	createTable(t, db)
	for i := range 50 { // items of this kind are there before the index
		if err := put(t.Context(), db, "early-"+strconv.Itoa(i), expiringAt(int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := newTestExpiry(t, server.db).index(t.Context()); err != nil {
		t.Fatal(err)
	}
	writeInEveryWay(t, db)
	want := []string{"early-48", "early-49", "batched", "put in a transaction", "put", "put over", "updated", "updated in a transaction"}
	look := func(when string) {
		t.Helper()
		e := newTestExpiry(t, server.db)
		if diff := cmp.Diff(want, e.found(t, time.Unix(2000, 0))); diff != "" {
			t.Errorf("expiring items %s (-want +got):\n%s", when, diff)
		}
		e.check(t)
	}
	look("after all writes")
	if err := server.child.process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-server.Done()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	server = start(t, dir)
	look("after a kill")
	if err := put(t.Context(), client(server), "put after a kill", expiringAt(1999)); err != nil {
		t.Fatal(err)
	}
	want = append(want, "put after a kill")
	look("after a kill and a put")
}

// writeInEveryWay deletes the items early-0 to early-47 and leaves eight more that expire from second 48 on.
func writeInEveryWay(t *testing.T, db *dynamodb.Client) {
	t.Helper()
	name := aws.String(table)
	names := map[string]string{"#ttl": ttl}
	update := func(pk, expression string, values map[string]types.AttributeValue) {
		t.Helper()
		_, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: name, Key: key(pk), UpdateExpression: &expression, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		})
		if err != nil {
			t.Fatalf("updating %s: %v", pk, err)
		}
	}
	for pk, second := range map[string]int64{"put": 1002, "put over": 1, "updated": 2, "removed": 3, "put without": 4, "moved": 5} {
		if err := put(t.Context(), db, pk, expiringAt(second)); err != nil {
			t.Fatal(err)
		}
	}
	for pk, more := range map[string]map[string]types.AttributeValue{"put over": expiringAt(1003), "put without": nil} {
		if err := put(t.Context(), db, pk, more); err != nil {
			t.Fatal(err)
		}
	}
	at := func(second int64) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{":at": epoch(time.Unix(second, 0))}
	}
	update("updated", "SET #ttl = :at", at(1004))
	update("moved", "SET #ttl = :at", at(5000))
	update("removed", "REMOVE #ttl", nil)
	update("updated in a transaction", "SET #ttl = :at", at(6))
	batched := key("batched")
	batched[ttl] = epoch(time.Unix(1000, 0))
	requests := []types.WriteRequest{{PutRequest: &types.PutRequest{Item: batched}}}
	for i := range 24 {
		requests = append(requests, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key("early-" + strconv.Itoa(i))}})
	}
	if _, err := db.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: requests}}); err != nil {
		t.Fatal(err)
	}
	transacted := key("put in a transaction")
	transacted[ttl] = epoch(time.Unix(1001, 0))
	writes := []types.TransactWriteItem{
		{Put: &types.Put{TableName: name, Item: transacted}},
		{Update: &types.Update{
			TableName: name, Key: key("updated in a transaction"), UpdateExpression: aws.String("SET #ttl = :at"),
			ExpressionAttributeNames: names, ExpressionAttributeValues: at(1005),
		}},
	}
	for i := 24; i < 47; i++ {
		writes = append(writes, types.TransactWriteItem{Delete: &types.Delete{TableName: name, Key: key("early-" + strconv.Itoa(i))}})
	}
	if _, err := db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: writes}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: name, Key: key("early-47")}); err != nil {
		t.Fatal(err)
	}
}

func TestTheIndexIsAddedBesideWrites(t *testing.T) {
	server := start(t, t.TempDir())
	db := client(server)
	createTable(t, db)
	const writers, each = 4, 100
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				if err := put(ctx, db, strconv.Itoa(w*each+i), expiringAt(int64(w*each+i))); err != nil {
					t.Errorf("put beside the making of an index: %v", err)
					return
				}
			}
		})
	}
	e := newTestExpiry(t, server.db)
	waitUntil(t, "the first items", func() bool { return len(e.found(t, time.Unix(writers*each, 0))) > 10 })
	for range 2 {
		if err := e.index(t.Context()); err != nil {
			t.Errorf("indexing beside writes: %v", err)
		}
	}
	writing.Wait()
	if got := len(e.found(t, time.Unix(writers*each, 0))); got != writers*each {
		t.Errorf("found %d items, want %d", got, writers*each)
	}
	e.check(t)
}

func TestKeysOfEveryTypeAreRead(t *testing.T) {
	for text, want := range map[string]types.AttributeValue{
		`{"S":"a\"b\u0000ü"}`: &types.AttributeValueMemberS{Value: "a\"b\x00ü"},
		`{"N":"-1.50"}`:       &types.AttributeValueMemberN{Value: "-1.50"},
		`{"B":"AQL/"}`:        &types.AttributeValueMemberB{Value: []byte{1, 2, 255}},
	} {
		got, err := keyValue([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("keyValue(%s) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{``, `{}`, `{"S":7}`, `{"BOOL":true}`} {
		if got, err := keyValue([]byte(bad)); err == nil {
			t.Errorf("keyValue(%s) = %v, want an error", bad, got)
		}
	}
}

func TestNamesThatSQLWouldHaveToEscapeAreRefused(t *testing.T) {
	for _, names := range [][3]string{{`a"b`, ttl, "PK"}, {table, `x'y`, "PK"}, {table, ttl, `P\K`}, {table, "", "PK"}} {
		if _, err := newExpiry(nil, names[0], names[1], names[2:]); err == nil {
			t.Errorf("newExpiry of %q works, want an error", names)
		}
	}
}
