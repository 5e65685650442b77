package shop_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/shop"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// read reads the sample of a topic.
func read(t *testing.T, system shop.System, topic string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", strings.ToLower(string(system))+"-"+strings.ReplaceAll(topic, "/", "-")+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// The samples are those of the systems' documentation.
func TestSamplesMapToRecordsThatAreAccepted(t *testing.T) {
	for _, row := range []struct {
		system shop.System
		topic  string
	}{
		{shop.Shopify, "products/update"},
		{shop.Shopify, "products/delete"},
		{shop.Shopify, "orders/updated"},
		{shop.Shopify, "customers/update"},
		{shop.Shopify, "inventory_levels/update"},
		{shop.WooCommerce, "product.updated"},
		{shop.WooCommerce, "product.created"},
		{shop.WooCommerce, "product.deleted"},
		{shop.WooCommerce, "order.updated"},
		{shop.WooCommerce, "customer.updated"},
	} {
		t.Run(string(row.system)+"_"+row.topic, func(t *testing.T) {
			event, err := shop.Read(row.system, "", row.topic, read(t, row.system, row.topic))
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range event.Parts {
				if part.Record == nil {
					continue
				}
				stored, err := commerce.Apply(nil, commerce.Change{OrganizationID: value.NewID(), Kind: event.Kind, Op: commerce.OpPut, Record: part.Record}, 1)
				if err != nil || stored.ID != part.ID {
					t.Errorf("the record is refused: %v\n%s", err, part.Record)
				}
			}
			got, err := json.Marshal(event, json.Deterministic(true), jsontext.WithIndent("  "))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", strings.ToLower(string(row.system))+"-"+strings.ReplaceAll(row.topic, "/", "-")+".golden")
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: got %s (%v); go test ./pkg/commerce/shop -update", golden, got, err)
			}
		})
	}
}

func TestWhatIsNotOfTheTopicIsAnError(t *testing.T) {
	for _, row := range []struct {
		system      shop.System
		topic, body string
	}{
		{shop.Shopify, "products/update", `[]`},
		{shop.Shopify, "products/update", `{"id": 1`},
		{shop.Shopify, "products/update", `{"id": 1}`},
		{shop.Shopify, "orders/create", `{"id": 1}`},
		{shop.Shopify, "customers/update", `{}`},
		{shop.WooCommerce, "product.deleted", `{"id": ""}`},
		{shop.WooCommerce, "order.updated", `{"id": "` + strings.Repeat("1", 101) + `"}`},
	} {
		if event, err := shop.Read(row.system, "", row.topic, []byte(row.body)); err == nil {
			t.Errorf("%s %s: got %+v, want an error", row.topic, row.body, event)
		}
	}
	if event, err := shop.Read(shop.Shopify, "", "refunds/create", []byte(`{"id": 1}`)); event != nil || err != nil {
		t.Errorf("a topic without records: got %v, %v", event, err)
	}
}

func TestAPrefixKeepsTheIdsOfShopsApart(t *testing.T) {
	ids := map[value.ID]bool{}
	for _, prefix := range []string{"", "berlin", "paris", "berlin"} {
		for _, topic := range []string{"products/update", "orders/updated", "customers/update"} {
			event, err := shop.Read(shop.Shopify, prefix, topic, read(t, shop.Shopify, topic))
			if err != nil {
				t.Fatal(err)
			}
			ids[event.Parts[0].ID] = true
		}
	}
	if len(ids) != 9 {
		t.Errorf("three shops have %d ids of three objects, want 9", len(ids))
	}
}

// What is wrong stays, so that ingest refuses the record by the field.
func TestAWrongFieldIsRefusedByItsName(t *testing.T) {
	body := strings.Replace(string(read(t, shop.Shopify, "products/update")), `"19.99"`, `"19.99999"`, 1)
	event, err := shop.Read(shop.Shopify, "", "products/update", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	_, err = commerce.Apply(nil, commerce.Change{OrganizationID: value.NewID(), Kind: event.Kind, Op: commerce.OpPut, Record: event.Parts[0].Record}, 1)
	if err == nil || !strings.Contains(err.Error(), "sellingPrice") {
		t.Errorf("got %v, want sellingPrice refused", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"id":1,"handle":"a","variants":[{"id":2,"price":"1"}],"variant_gids":[{}],"line_items":[{"quantity":0,"subtotal":"1"}],"name":"#1"}`)
	f.Fuzz(func(_ *testing.T, body string) {
		for _, topic := range []string{"products/update", "orders/updated", "customers/update", "inventory_levels/update"} {
			_, _ = shop.Read(shop.Shopify, "", topic, []byte(body))
		}
		for _, topic := range []string{"product.updated", "order.updated", "customer.updated", "product.deleted"} {
			_, _ = shop.Read(shop.WooCommerce, "", topic, []byte(body))
		}
	})
}
