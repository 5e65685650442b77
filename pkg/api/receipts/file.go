package receipts

import (
	"fmt"
	"net/http"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/importer"
)

const (
	maxFile     = 3 << 20 // bytes of the request; Lambda takes 6 MiB with the escapes of its JSON
	maxPart     = 1 << 20 // bytes of the records and refused rows in an answer
	maxWarnings = 20
)

// ReadFileDto is a file whose records are asked for.
type ReadFileDto struct {
	Content  string        `json:"content" doc:"The text of the CSV file."`
	Kind     commerce.Kind `json:"kind,omitzero" required:"false" nullable:"true" doc:"What the rows are, of a file whose columns are named as the fields. Absent or null: it is an export of Shopify, WooCommerce, Medusa or Vendure, which is found out by its columns."`
	Currency string        `json:"currency" required:"false" nullable:"true" doc:"The organization's currency, for a file with prices in several, such as EUR."`
	Events   bool          `json:"events" required:"false" nullable:"true" doc:"Whether the records emit events."`
	Skip     int           `json:"skip" required:"false" nullable:"true" minimum:"0" doc:"How many rows to leave out: next of the answer before. Absent: 0."`
}

// FileRecords are the records of a part of a file.
type FileRecords struct {
	Format      importer.Format `json:"format" doc:"What the file is: shopify, woocommerce, medusa, vendure or csv."`
	Header      []string        `json:"header" doc:"The names of the columns."`
	Records     []string        `json:"records" doc:"The JSON text of each change, as POST /ingest/records takes it: as text, so that no number loses digits."`
	Refusals    []FileRefusal   `json:"refusals" doc:"The rows that give no record."`
	Warnings    []string        `json:"warnings" doc:"What was read otherwise than it is written, at most 20 of the part."`
	NotImported []string        `json:"notImported" doc:"With the last part: the columns with values that came into no record."`
	Next        *int            `json:"next" doc:"The skip of the next part. null at the end."`
}

// FileRefusal is a row that gives no record.
type FileRefusal struct {
	Line    int        `json:"line" doc:"The line of the file, from 1."`
	Field   string     `json:"field" doc:"The column or the field. Empty if the whole row is meant."`
	Code    string     `json:"code" doc:"A stable code."`
	Message string     `json:"message" doc:"How to mend it."`
	Rows    [][]string `json:"rows" doc:"The cells of each row of the record. Empty if they cannot be read as CSV."`
}

func (a *area) readFileOperation() api.Operation {
	return api.Operation{
		ID: "readFile", Method: http.MethodPost, Path: "/ingest/files", Tag: tag,
		Summary: "Read the records of a file",
		Description: "Stores nothing: answers the changes that a CSV file gives, to be posted then, and the rows that would be refused. " +
			"The body is at most 3 MiB; an answer has about 1 MiB of it, and the same request with skip has the next part. " +
			"Ids are derived, so that the records of the same file change nothing when they are posted again.",
		Access: api.Manager, Scope: auth.RecordsWrite, Unrepeated: true, Body: ReadFileDto{}, MostBody: maxFile, Result: FileRecords{},
		Handle: a.readFile,
	}
}

func (a *area) readFile(r *api.Request) (*api.Response, error) {
	in := ReadFileDto{}
	if err := strictjson.Unmarshal(r.Body, &in); err != nil {
		return nil, err
	}
	if in.Skip < 0 {
		return nil, fault.Field(fault.InBody, "skip", fault.DetailOutOfRange, "must be 0 or more")
	}
	source, err := importer.OpenContent("the file", []byte(in.Content), in.Kind)
	if err != nil {
		return nil, fault.Field(fault.InBody, "content", fault.DetailFormat, "%s", err)
	}
	answer := FileRecords{Format: source.Format, Header: source.Header}
	source.Currency = in.Currency
	source.Warn = func(place importer.Place, message string) {
		if len(answer.Warnings) < maxWarnings {
			answer.Warnings = append(answer.Warnings, fmt.Sprintf("line %d: %s", place.Line, message))
		}
	}
	part, err := importer.ReadPart(source.Records(), r.Organization(), importer.Config{Events: in.Events, Skip: in.Skip, Now: a.clock}, maxPart)
	if err != nil {
		return nil, fault.Field(fault.InBody, "content", fault.DetailFormat, "%s", err)
	}
	answer.Records = part.Records
	for _, bad := range part.Rejected {
		answer.Refusals = append(answer.Refusals, FileRefusal{bad.Place.Line, bad.Field, bad.Reason, bad.Message, bad.Rows()})
	}
	if part.Next > 0 {
		answer.Next = &part.Next
	} else {
		answer.NotImported = source.NotImported()
	}
	return api.OK(answer)
}
