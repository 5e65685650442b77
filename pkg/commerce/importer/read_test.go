package importer_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/importer"
)

// refuseAll is a service that refuses the first record of each message.
type refuseAll struct{}

func (refuseAll) Send(_ context.Context, batch importer.Batch) (refused []importer.Refused, err error) {
	for i := range batch.Messages {
		refused = append(refused, importer.Refused{Message: i, Reason: "version_conflict", Text: "it is stored"})
	}
	return refused, nil
}

// refusedText is what an import refuses, as a file of it.
func refusedText(t *testing.T, source *importer.Source, to importer.Sender) string {
	t.Helper()
	var lines []string
	_, err := importer.Run(t.Context(), source.Records(), value.NewID(), to, importer.Config{Refused: func(bad *importer.Rejection) error {
		if bad.Place.Read == nil {
			return nil // no row could be read
		}
		if first := bad.Place.Read.FirstLine(); first != "" && len(lines) == 0 {
			lines = append(lines, first)
		}
		lines = append(lines, bad.Place.Read.Lines(bad.Error())...)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

func TestRefusedRowsAreAsTheyWereRead(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		kind       commerce.Kind
		want       string
	}{
		"refused here": {
			"a.csv", "\ufeffid;name;sellingPrice\r\n;\"A; \"\"mug\"\"\";x\r\n", "product",
			"id;name;sellingPrice;refused\n;\"A; \"\"mug\"\"\";x;a.csv:2: validation_failed: sellingPrice must be a number",
		},
		"refused by the service": {
			"a.csv", "id\tname\n0197fb9c-8e00-7000-8000-000000000001\t Mug \n", "product",
			"id\tname\trefused\n0197fb9c-8e00-7000-8000-000000000001\t\" Mug \"\ta.csv:2: version_conflict: it is stored",
		},
		"a negative price": {
			"a.csv", "id,name,sellingPrice\n0197fb9c-8e00-7000-8000-000000000001,Mug,-1\n", "product",
			"id,name,sellingPrice,refused\n0197fb9c-8e00-7000-8000-000000000001,Mug,-1,a.csv:2: validation_failed: sellingPrice must be 0 or more",
		},
		"no CSV": {
			"a.csv", "id,name\nx,\"a\" b\n\n1\n", "product",
			"id,name,refused\n1,\"a.csv:4: malformed_csv: the row has 1 fields, the header 2\"",
		},
		"refused before": {
			"a.csv", "id,sellingPrice,refused\n1,x,\"the reason, before\"\n2,y,\n", "product",
			"id,sellingPrice,refused\n1,x,a.csv:2: validation_failed: sellingPrice must be a number\n" +
				"2,y,a.csv:3: validation_failed: sellingPrice must be a number",
		},
		"lines": {
			"a.jsonl", "{\"kind\":\"product\",\"record\":[]}\n{}\nno JSON\n", "",
			`{"kind":"product","record":[]}` + "\n{}\nno JSON",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, c.file, c.text)
			source, err := importer.Open("", c.kind, []string{path})
			if err != nil {
				t.Fatal(err)
			}
			got := refusedText(t, source, refuseAll{})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}
