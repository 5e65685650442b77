//go:build unix

package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/provision"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/local/tableserver"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// restore copies the table as a restore to a point in time does: under another name, with GSI1, and without stream and
// time to live. At that point the indexer had not come to any change.
func restore(t *testing.T, client *dynamodb.Client, from, to string) {
	t.Helper()
	bare := dynamotest.Model(t).Table
	bare.Create.StreamSpecification, bare.TTL = nil, ""
	if arn, err := provision.Table(t.Context(), client, bare, to); err != nil || arn != "" {
		t.Fatalf("the restored table has the stream %q, %v", arn, err)
	}
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &from})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			if strings.HasPrefix(text(item["PK"]), "IDX#") {
				continue
			}
			if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &to, Item: item}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// enable gives a restored table what OPERATING's Restore says that it lacks, as far as the local server has it.
func enable(t *testing.T, client *dynamodb.Client, table string) {
	t.Helper()
	_, err := client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName:           &table,
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(dynamotest.Model(t).Table.TTL), Enabled: aws.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheServiceGoesOnWithARestoredTable walks through OPERATING's Restore.
func TestTheServiceGoesOnWithARestoredTable(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	program, err := tableserver.Dynoxide.Install(t.Context(), filepath.Join(s.data, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := tableserver.Start(t.Context(), program, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tables.Close(); err != nil {
			t.Error(err)
		}
	}()
	s.env = []string{"AWS_ENDPOINT_URL_DYNAMODB=" + tables.Endpoint()}
	client := dynamodb.NewFromConfig(runner.AWSConfig(), func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(tables.Endpoint()) })

	s.start(t)
	r, kept, lost := s.subscribe(t, "order.*"), value.NewID(), value.NewID()
	of := func(id value.ID) (n int) {
		for _, e := range r.Events() {
			if e.ObjectID == id.String() {
				n++
			}
		}
		return n
	}
	s.send(t, s.order(kept, "PENDING"))
	await(t, "the kept order in its list", func() bool { return s.total(t, "/api/orders") == 1 })
	await(t, "its event", func() bool { return of(kept) == 1 })
	await(t, "the end of its delivery", func() bool { return s.messages(t, s.DeliveriesQueueURL) == 0 })
	const restored = "restored"
	restore(t, client, s.TableName, restored)

	// After the point in time: a change, and an order whose delivery fails, so that its message waits for a retry.
	s.send(t, s.order(kept, "CONFIRMED"))
	await(t, "the event of the change", func() bool { return of(kept) >= 2 })
	if err := r.SetSecrets(webhook.NewSecretText()); err != nil {
		t.Fatal(err)
	}
	s.send(t, s.order(lost, "PENDING"))
	await(t, "the refused event of the lost order", func() bool { return of(lost) >= 1 })
	await(t, "the lost order in its list", func() bool { return s.total(t, "/api/orders") == 2 })
	s.stop(t)

	enable(t, client, restored)
	before := of(lost)
	s.start(t, "--table", restored)
	if s.TableName != restored {
		t.Fatalf("the service is on the table %s", s.TableName)
	}
	if n := s.total(t, "/api/orders"); n != 0 {
		t.Errorf("%d orders are in the list before reindex", n)
	}
	s.commerce(t, "reindex")
	if got := s.commerce(t, "verify"); got != fmt.Sprintf("no differences in %d lists of 1 organization\n", len(listNames())) {
		t.Errorf("verify after reindex: %s", got)
	}
	await(t, "the kept order in the list", func() bool { return s.total(t, "/api/orders") == 1 })
	var orders struct {
		Data []struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"data"`
	}
	s.get(t, "/api/orders", &orders)
	if len(orders.Data) != 1 || orders.Data[0].ID != kept.String() || orders.Data[0].Status != "PENDING" {
		t.Errorf("orders: %+v, want %s as it was", orders.Data, kept)
	}
	if resp, body := s.do(t, http.MethodGet, "/api/orders/"+lost.String(), "", map[string]string{"X-API-Key": s.APIKey}); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the lost order: got %d %s, want 404", resp.StatusCode, body)
	}

	// What names what the table does not hold any more: the waiting retry, and a job for a list of nobody.
	s.sendTo(t, s.IndexJobsQueueURL, `{"organizationId":"`+value.NewID().String()+`","list":"orders"}`)
	for name, queue := range map[string]string{"deliveries": s.DeliveriesQueueURL, "slow deliveries": s.SlowDeliveriesQueueURL, "index jobs": s.IndexJobsQueueURL} {
		await(t, "the end of the messages of "+name, func() bool { return s.messages(t, queue) == 0 })
	}
	for _, dead := range []string{"DeliveriesDLQ", "IndexJobsDLQ", "ParkQueue"} {
		if n := s.messages(t, strings.Replace(s.DeliveriesQueueURL, "DeliveriesQueue", dead, 1)); n != 0 {
			t.Errorf("%s has %d messages", dead, n)
		}
	}
	if got := of(lost); got != before {
		t.Errorf("the lost order was sent %d times, want %d", got, before)
	}

	// The back office sends again what was lost; the restored table's stream carries it on.
	s.send(t, s.order(lost, "PENDING"))
	await(t, "the order that was sent again", func() bool { return s.total(t, "/api/orders") == 2 })
	await(t, "its event", func() bool { return of(lost) > before })
	s.stop(t)
}
