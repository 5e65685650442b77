package receipts_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api/receipts"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

func (h *harness) readFile(t *testing.T, in receipts.ReadFileDto) (status int, part receipts.FileRecords) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return h.ask(t, http.MethodPost, "/ingest/files", string(body), "", &part).Status, part
}

func TestAFileIsReadBeforeAnythingIsSent(t *testing.T) {
	h := newHarness(t)
	text := "Handle,Title,Variant Price,SEO Title,Variant Inventory Qty\ncup,Cup,8.90,Cups,4\npot,Pot,ten,,\n"
	status, part := h.readFile(t, receipts.ReadFileDto{Content: text})
	if status != http.StatusOK || part.Format != "shopify" || len(part.Records) != 2 || part.Next != nil || !strings.Contains(part.Records[0], `"seoTitle":"Cups"`) {
		t.Fatalf("got %d %+v", status, part)
	}
	if bad := part.Refusals; len(bad) != 1 || bad[0].Line != 3 || bad[0].Field != "Variant Price" || bad[0].Rows[0][0] != "pot" {
		t.Errorf("refused %+v, want line 3 for its price", bad)
	}
	if sent := h.sent(t); len(sent) != 0 {
		t.Errorf("%d messages were sent", len(sent))
	}
	status, made := h.post(t, `{"records":[`+strings.Join(part.Records, ",")+`]}`, "")
	if status != http.StatusAccepted || made.RecordCount != 2 {
		t.Errorf("posting them: got %d %+v", status, made)
	}
}

func TestAFileGivesRecordsOfTheCallersOrganizationOnly(t *testing.T) {
	h := newHarness(t)
	other := value.NewID().String()
	text := "id,name,organizationId\n" + value.NewID().String() + ",Theirs," + other + "\n" + value.NewID().String() + ",Ours," + h.Org.String() + "\n"
	_, part := h.readFile(t, receipts.ReadFileDto{Content: text, Kind: commerce.KindProduct})
	if len(part.Records) != 1 || strings.Contains(part.Records[0], other) || len(part.Refusals) != 1 || part.Refusals[0].Field != "organizationId" {
		t.Errorf("got %+v, want the row of the other organization refused", part)
	}
}

func TestAFileIsReadBehindTheRowsThatAreDealtWith(t *testing.T) {
	h := newHarness(t)
	text := "id,name\n" + value.NewID().String() + ",First\n" + value.NewID().String() + ",Second\n"
	for skip, want := range []string{"First Second", "Second", ""} {
		status, part := h.readFile(t, receipts.ReadFileDto{Content: text, Kind: commerce.KindProduct, Skip: skip})
		all := strings.Join(part.Records, "")
		if status != http.StatusOK || len(part.Records) != len(strings.Fields(want)) || part.Next != nil || want != "" && !strings.Contains(all, "Second") {
			t.Errorf("skip %d: got %d %+v, want %s", skip, status, part, want)
		}
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	h := newHarness(t)
	const empty = `{"content":"id\n","kind":"product"}`
	most := empty + strings.Repeat(" ", 3<<20-len(empty))
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"no columns":      {`{"content":""}`, 400, "the file is empty"},
		"unknown columns": {`{"content":"Nr,Name\n1,x\n"}`, 400, "it needs a kind"},
		"no id":           {`{"content":"name\nx\n","kind":"product"}`, 400, "no column is the id"},
		"a wrong kind":    {`{"content":"id\n","kind":"basket"}`, 400, "kind"},
		"a wrong skip":    {`{"content":"id\n","kind":"product","skip":-1}`, 400, "skip must be 0 or more"},
		"3 MiB":           {most, 200, ""},
		"3 MiB and 1":     {most + " ", 413, "at most 3145728 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if a := h.ask(t, http.MethodPost, "/ingest/files", c.body, "", nil); a.Status != c.status || !strings.Contains(a.Body, c.want) {
				t.Errorf("got %d %.300s, want %d %s", a.Status, a.Body, c.status, c.want)
			}
		})
	}
}
