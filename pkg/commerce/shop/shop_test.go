package shop_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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
		{shop.WooCommerce, "product.updated", `{"id": 1, "variations": [` + numbers(2_049, ",") + `]}`},
		{shop.Shopify, "inventory_levels/update", `{"inventory_item_id": 1, "location_id": "` + strings.Repeat("1", 101) + `"}`},
		{shop.Shopify, "products/update", variants(1, `"id": "`+strings.Repeat("1", 101)+`"`)},
		{shop.Shopify, "products/update", variants(1, `"inventory_item_id": "`+strings.Repeat("1", 101)+`"`)},
		{shop.Shopify, "products/update", variants(2_049, "")},
		{shop.Shopify, "products/update", `{"body_html": "` + strings.Repeat("x", 200_000) + `",` + variants(100, "")[1:]},
	} {
		if event, err := shop.Read(row.system, "", row.topic, []byte(row.body)); err == nil {
			t.Errorf("%s %s: got %+v, want an error", row.topic, row.body, event)
		}
	}
	if event, err := shop.Read(shop.Shopify, "", "refunds/create", []byte(`{"id": 1}`)); event != nil || err != nil {
		t.Errorf("a topic without records: got %v, %v", event, err)
	}
}

// numbers are the numbers up to n.
func numbers(n int, separator string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(i + 1)
	}
	return strings.Join(all, separator)
}

// variants is a product of so many variants, each with the fields.
func variants(n int, fields string) string {
	return `{"id": 1, "handle": "tee", "variants": [` + strings.Repeat("{"+fields+"},", n-1) + "{" + fields + "}]}"
}

// Each list of a body may be as long as the body: one that took the square of its
// length took half a minute.
func TestABodyOfAMebibyteIsReadAtOnce(t *testing.T) {
	start := time.Now()
	for _, row := range []struct {
		topic, body string
		parts       int
	}{
		{"products/update", variants(1, `"id": "`+strings.Repeat("1", 100)+`"`), 1},
		{"products/update", `{"tags": "` + numbers(140_000, ",") + `",` + variants(8, "")[1:], 8},
		{"products/update", `{"product_type": "` + numbers(140_000, ">") + `",` + variants(8, "")[1:], 8},
		{"products/update", `{"images": [` + strings.Repeat("{},", 250_000) + `{}],` + variants(2_048, "")[1:], 2_048},
		{"products/update", `{"options": [` + strings.Repeat("{},", 250_000) + `{}],` + variants(2_048, "")[1:], 2_048},
		{"products/update", `{"body_html": "` + strings.Repeat("x", 128<<10) + `",` + variants(100, "")[1:], 100},
	} {
		event, err := shop.Read(shop.Shopify, "", row.topic, []byte(row.body))
		if err != nil || len(event.Parts) != row.parts {
			t.Fatalf("%.40s: got %v", row.body, err)
		}
		if all := shop.Categories(event.Category); len(all) > 20 || len(all) > 0 && all[19].ID == all[18].ID {
			t.Errorf("got %d categories", len(all))
		}
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
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
	for text, want := range map[string]string{`1.23456`: `"1.23456"`, `1e99`: `"1e99"`, `"many"`: `"many"`, `"-2.50"`: `-2.5`, `null`: ``} {
		event, err := shop.Read(shop.Shopify, "", "inventory_levels/update", []byte(`{"inventory_item_id": 1, "available": `+text+`}`))
		if err != nil || string(event.Level.Available) != want {
			t.Errorf("a level of %s: got %s, %v, want %s", text, event.Level.Available, err, want)
		}
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
