package tableserver

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
)

// An expiry finds the items of a table by their TTL attribute in the server's file. It reads all of the table, beside the
// server, which neither waits for it nor does anything for it. An index of the attribute would find them at once, but an
// index of an expression makes every put dearer, by more in a minute of writing than the reading costs.
type expiry struct {
	db        *sql.DB
	table     string
	attribute string
	keys      []string // the attributes of the primary key
}

// newExpiry refuses names that SQL or a JSON path would have to escape.
func newExpiry(db *sql.DB, table, attribute string, keys []string) (*expiry, error) {
	plain := regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	for _, name := range append([]string{table, attribute}, keys...) {
		if !plain.MatchString(name) {
			return nil, fmt.Errorf("expiry of table %s by %s: the name %q has other than letters, digits, dots, hyphens and underscores", table, attribute, name)
		}
	}
	return &expiry{db: db, table: table, attribute: attribute, keys: keys}, nil
}

// query selects row and keys, each attribute as a column. The server writes Numbers without an exponent; the cast drops a
// fraction, makes the largest integer of what is larger, and NULL of what is no Number.
func (e *expiry) query() string {
	columns := "rowid"
	for _, key := range e.keys {
		columns += fmt.Sprintf(`, json_extract(item_json, '$."%s"')`, key)
	}
	return fmt.Sprintf(`SELECT %s FROM "%s" WHERE rowid > ? AND CAST(json_extract(item_json, '$."%s".N') AS INTEGER) BETWEEN ? AND ?
		ORDER BY rowid LIMIT ?`, columns, e.table, e.attribute)
}

// between returns the keys of at most limit items after a row that expire between two times, both included, and the row
// of the last. Rows are numbered from 1.
func (e *expiry) between(ctx context.Context, from, to time.Time, row int64, limit int) (found []map[string]types.AttributeValue, last int64, err error) {
	rows, err := e.db.QueryContext(ctx, e.query(), row, from.Unix(), to.Unix(), limit)
	if err != nil {
		return nil, 0, fmt.Errorf("looking for expired items in %s: %w", e.table, err)
	}
	defer rows.Close()
	columns := make([][]byte, len(e.keys))
	into := []any{&last}
	for i := range columns {
		into = append(into, &columns[i])
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, 0, fmt.Errorf("reading the key of an expired item in %s: %w", e.table, err)
		}
		key := make(map[string]types.AttributeValue, len(e.keys))
		for i, name := range e.keys {
			if key[name], err = keyValue(columns[i]); err != nil {
				return nil, 0, fmt.Errorf("reading %s of an expired item in %s: %w", name, e.table, err)
			}
		}
		found = append(found, key)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, fmt.Errorf("looking for expired items in %s: %w", e.table, err)
	}
	return found, last, nil
}

// keyValue reads an attribute of one of the three types that a key may have.
func keyValue(text []byte) (types.AttributeValue, error) {
	var value struct {
		S, N *string
		B    []byte
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	switch {
	case value.S != nil:
		return &types.AttributeValueMemberS{Value: *value.S}, nil
	case value.N != nil:
		return &types.AttributeValueMemberN{Value: *value.N}, nil
	case value.B != nil:
		return &types.AttributeValueMemberB{Value: value.B}, nil
	}
	return nil, fmt.Errorf("no string, number or binary: %s", text)
}
