// Command release is the index's programs of one release, for a test that runs
// two of them. It does what each line of its input says, and answers in a line.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

type release struct {
	table     *dynamo.Table
	org       value.ID
	list      *index.List
	lists     *index.Lists
	warm      *views.Cache
	compactor *compactor.Compactor
	indexer   *indexer.Indexer
}

func main() {
	endpoint, name, org := os.Args[1], os.Args[2], value.MustID(os.Args[3])
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1",
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("local", "local", "")),
	})
	// The clock is ahead by what the test says, so that chunks may be overwritten.
	var ahead time.Duration
	clock := func() time.Time { return time.Now().Add(ahead) }
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	r := &release{table: dynamo.New(client, name, clock), org: org}
	r.lists = index.NewLists(r.table, dynamo.Shards)
	r.list = r.lists.Records[commerce.KindProduct]
	r.warm = views.NewCache(r.table, views.Config{Clock: clock, Logger: logger})
	r.compactor = compactor.New(r.table, r.lists.All(), clock, logger)
	r.indexer = indexer.New(r.table, r.decode, r, r, logger)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		var answer string
		var err error
		switch words[0] {
		case "layout":
			answer = index.Key{Org: org, List: r.list}.Layout().Live()
		case "ahead":
			ahead, err = time.ParseDuration(words[1])
		case "index":
			err = r.index(words[1:])
		case "work":
			err = r.work(value.TimeOf(clock()))
		case "list":
			answer, err = r.query(true)
		case "ask":
			_, err = r.query(false)
		}
		if err != nil {
			answer = "error: " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Println(answer)
	}
}

func (r *release) Park(_ context.Context, _ string, _ events.DynamoDBEventRecord, cause error) error {
	return cause
}

func (r *release) Send(context.Context, value.ID, string) error { return nil }

// decode reads the record that a change is of.
func (r *release) decode(change *events.DynamoDBEventRecord) ([]indexer.ListChange, error) {
	s, err := r.table.Record(context.Background(), r.org, commerce.KindProduct, value.MustID(change.EventID))
	if err != nil || s == nil {
		return nil, errors.Join(err, fmt.Errorf("no product %s", change.EventID))
	}
	document, err := index.RecordDocument(s)
	if err != nil {
		return nil, err
	}
	return indexer.Changes(r.org, r.list, int64(s.Revision), nil, document), nil
}

func (r *release) index(ids []string) error {
	var batch events.DynamoDBEvent
	for _, id := range ids {
		batch.Records = append(batch.Records, events.DynamoDBEventRecord{EventID: id})
	}
	answer, err := r.indexer.Handle(context.Background(), batch)
	if err == nil && len(answer.BatchItemFailures) > 0 {
		err = errors.New("the batch failed")
	}
	return err
}

func (r *release) work(now value.Time) error {
	ctx := context.Background()
	if err := r.table.RequestJob(ctx, r.org, r.list.Name, now); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = r.compactor.Run(ctx, r.org, r.list.Name); err != nil {
			return err
		}
	}
	return nil
}

// query lists the products twice, from a view that goes on and from one that
// begins. Both agree unless another process indexes between them.
func (r *release) query(quiet bool) (string, error) {
	first := ""
	for _, cache := range []*views.Cache{r.warm, views.NewCache(r.table, views.Config{})} {
		got, err := cache.Query(context.Background(), r.org, r.list, columnar.Query{OrderBy: columnar.ByID, Limit: 10_000}, true)
		if err != nil {
			return "", err
		}
		hits := []string{fmt.Sprint(got.Total)}
		for _, hit := range got.Hits {
			hits = append(hits, fmt.Sprint(value.ID(hit.ID), "@", hit.Revision))
		}
		answer := strings.Join(hits, " ")
		if quiet && first != "" && answer != first {
			return "", fmt.Errorf("two views differ: %s and %s", first, answer)
		}
		first = answer
	}
	return first, nil
}
