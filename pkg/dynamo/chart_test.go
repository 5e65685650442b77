package dynamo_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/auth/ratelimit/window"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/dynamo/chart"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
	"github.com/commerce-integration/service/pkg/webhook/source"
)

// fillTable writes an item of each form.
func fillTable(t *testing.T, table *dynamo.Table) {
	t.Helper()
	ctx, org, now := t.Context(), value.NewID(), value.TimeOf(time.Now())
	s := servicetest.OnTable(t, table, org)
	stored, err := table.Application(ctx, org, s.App)
	must(t, err)
	name, scopes := "till", []string{"orders:read"}
	key, credential := account.NewKey(stored, value.NewID(), account.CreateApiKeyDto{Name: &name, Scopes: &scopes}, now)
	must(t, table.CreateKey(ctx, org, key.APIKey, credential))

	grant, _ := account.NewFamily(account.Grant{OrganizationID: org, ApplicationID: s.App, UserID: value.NewID()}, account.GrantLifetime, now)
	must(t, table.CreateGrant(ctx, grant))

	_, err = table.PublishSigningKeys(ctx, apptoken.Published{})
	must(t, err)

	e, gone := s.Endpoint(t, "*"), s.Endpoint(t, "*")
	must(t, table.CreateRecovery(ctx, makeRecovery(e), now))
	_, err = table.SetRouting(ctx, org, e.ID, e.Routing(), webhook.Routing{Circuit: &webhook.Circuit{OpenedAt: now, ProbeAt: now}})
	must(t, err)
	_, err = table.DeleteEndpoint(ctx, org, gone.ID, func(*webhook.Endpoint) error { return nil })
	must(t, err)
	s.Count(t, e.ID, now, webhook.Attempt{})
	s.Count(t, e.ID, now.Add(26*time.Hour), webhook.Attempt{})
	must(t, table.AddFiltered(ctx, org, e.ID, now, 1))
	_, err = table.TakePermit(ctx, slotTaker{t, table, org, e.ID}.request("worker", now))
	must(t, err)
	for _, d := range []webhook.Delivery{
		{Status: webhook.DeliveryPending, DueAt: &now},
		{Status: webhook.DeliveryFailed},
		{Status: webhook.DeliveryHeld, HeldReason: webhook.HeldCircuitOpen},
	} {
		d.ID, d.OrganizationID, d.EndpointID, d.CreatedAt, d.UpdatedAt = value.NewID(), org, e.ID, now, now
		_, err := table.PutDelivery(ctx, d.StoredAt(0), &d)
		must(t, err)
	}
	must(t, table.PutPayload(ctx, org, value.NewID(), []byte("{}")))

	record := commerce.Stored{OrganizationID: org, Kind: commerce.KindOrder, ID: value.NewID(), Revision: now, Doc: []byte("{}")}
	must(t, table.PutRecord(ctx, nil, &record))
	tombstone := commerce.Stored{OrganizationID: org, Kind: commerce.KindOrder, ID: value.NewID(), Revision: now, Deleted: true}
	must(t, table.PutRecord(ctx, nil, &tombstone))
	row := &commerce.StockRow{Record: &commerce.Stored{OrganizationID: org, Kind: commerce.KindStock, ID: value.NewID(), Revision: now, Doc: []byte("{}")}}
	must(t, table.PutRecord(ctx, nil, row.Record))
	_, err = table.AdjustStock(ctx, org, row.Record.ID, row, &commerce.Adjusted{Counted: []string{"a"}, Ahead: 1})
	must(t, err)
	_, _, err = table.ReplaceWindow(ctx, "application", 0, window.Window{Version: 1})
	must(t, err)
	must(t, table.FinishDay(ctx, "application", window.Window{Version: 1, Head: window.At(time.Now())}))
	_, err = table.BeginWait(ctx, org, value.NewID(), 1, now, now+1)
	must(t, err)
	_, _, err = table.PutRequest(ctx, &idempotency.Record{Key: idempotency.NewKey(org, "user", "k"), ExpiresAt: now.Add(time.Hour)}, 0)
	must(t, err)

	must(t, table.CreateReceipt(ctx, receipt.New(org, value.ID{}, nil, 1, now)))

	shop := &source.Source{ID: value.NewID(), OrganizationID: org, UpdatedAt: now}
	must(t, table.CreateSource(ctx, shop, nil))
	changed := func(deleted bool) func(*source.Object) bool {
		return func(o *source.Object) bool { o.Deleted = deleted; return true }
	}
	must(t, table.ChangeShopObject(ctx, shop, commerce.KindProduct, "1", changed(false)))
	must(t, table.ChangeShopObject(ctx, shop, commerce.KindProduct, "2", changed(true)))
	must(t, table.ChangeShopItem(ctx, shop, "1", func(*source.Item) bool { return true }))

	must(t, table.PutAuditEntry(ctx, org, account.NewAuditEntry("", account.AuditActor{}, s.App, account.AuditObject{}, now)))

	_, err = table.PutFailures(ctx, org, s.App, now, 0, nil)
	must(t, err)

	must(t, table.RegisterOrganization(ctx, org))
	_, err = table.ChangeFields(ctx, org, func(f commerce.Fields) (commerce.Fields, error) { f.Version++; return f, nil })
	must(t, err)
	must(t, table.Beat(ctx, now))
	must(t, table.RequestJob(ctx, org, "orders", now))
	_, err = table.AppendTail(ctx, org, "orders", fixed([]byte("x")))
	must(t, err)
	for _, which := range []string{liveManifest, rebuildManifest} {
		_, err = table.PutManifest(ctx, org, "orders", which, index.StoredManifest{Version: 1})
		must(t, err)
	}
	_, err = table.PutChunk(ctx, org, "orders", index.StoredChunk{Number: 1, ContentID: 1, Body: []byte("x")}, 0)
	must(t, err)
}

func TestTheChartShowsEveryItemAsItIsStored(t *testing.T) {
	client, name := dynamotest.Client(t)
	table := dynamo.New(client, name, time.Now)
	fillTable(t, table)
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &name})
	must(t, err)
	text := func(it map[string]types.AttributeValue, name string) string {
		s, _ := it[name].(*types.AttributeValueMemberS)
		if s == nil {
			return ""
		}
		return s.Value
	}
	type seen struct{ item, indexed, expires bool }
	found := map[string]*seen{}
	for _, it := range out.Items {
		var form chart.Form
		for _, f := range chart.Forms() {
			if matches(f.PK, text(it, "PK")) && matches(f.SK, text(it, "SK")) {
				form = f
				break
			}
		}
		if form.Type != text(it, "t") || form.Type == "" {
			t.Errorf("the item %v has the key of %+v", it, form)
			continue
		}
		s := found[form.Item]
		if s == nil {
			s = &seen{}
			found[form.Item] = s
		}
		s.item = true
		if pk := text(it, "GSI1PK"); pk != "" {
			s.indexed = true
			if !matches(form.GSI1PK, pk) || !matches(form.GSI1SK, text(it, "GSI1SK")) {
				t.Errorf("%s: GSI1 has %s %s, want %s %s", form.Item, pk, text(it, "GSI1SK"), form.GSI1PK, form.GSI1SK)
			}
		}
		s.expires = s.expires || it["expiresAtEpoch"] != nil
	}
	charted := map[string]bool{}
	for _, f := range chart.Forms() {
		charted[f.Type] = true
		if s := found[f.Item]; s == nil || s.indexed != (f.GSI1PK != "") || s.expires != f.Expires {
			t.Errorf("%s: got %+v, want in GSI1 %t, expires %t", f.Item, s, f.GSI1PK != "", f.Expires)
		}
	}
	keys, err := os.ReadFile("keys.go")
	must(t, err)
	for _, m := range regexp.MustCompile(`(?m)^\ttype\w+ += "(\w+)"$`).FindAllSubmatch(keys, -1) {
		if !charted[string(m[1])] {
			t.Errorf("the chart lacks the item type %s", m[1])
		}
	}
}

// matches reports whether a key has one of a pattern's alternatives.
func matches(pattern, key string) bool {
	for one := range strings.SplitSeq(pattern, "|") {
		want, got := strings.Split(one, "#"), strings.Split(key, "#")
		same := len(want) == len(got)
		for i := 0; same && i < len(want); i++ {
			same = want[i] == got[i] || strings.HasPrefix(want[i], "{") && got[i] != ""
		}
		if same {
			return true
		}
	}
	return false
}

var update = flag.Bool("update", false, "rewrite TABLE.md")

// TestTheChartIsPublished holds TABLE.md to the chart of the table's items.
func TestTheChartIsPublished(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The table\n\nEvery item of the single table, generated from `chart` by `go test ./pkg/dynamo -run Published -update`.\n" +
		"`keys.go` makes the keys. GSI1 is sparse. A time to live is the attribute `expiresAtEpoch`.\n\n" +
		"| Item | PK | SK | GSI1PK | GSI1SK | TTL | Read as |\n|---|---|---|---|---|---|---|\n")
	for _, f := range chart.Forms() {
		ttl := ""
		if f.Expires {
			ttl = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", f.Item, cell(f.PK), cell(f.SK), cell(f.GSI1PK), cell(f.GSI1SK), ttl, f.Reads)
	}
	if *update {
		must(t, os.WriteFile("TABLE.md", []byte(b.String()), 0o644))
	}
	if text, err := os.ReadFile("TABLE.md"); err != nil || string(text) != b.String() {
		t.Errorf("TABLE.md is not current (%v): go test ./pkg/dynamo -run Published -update", err)
	}
}

// cell shows alternatives of a key, which a bar separates, as code.
func cell(key string) string {
	if key == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(key, "|", "` or `") + "`"
}
