package tableserver

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
)

// An expiry finds the items of a table by their TTL attribute in the server's file.
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

// value is the attribute as SQL: NULL unless it is a Number. Index and query have it word for word, since SQLite uses an
// index of an expression for that expression only. The server writes Numbers without an exponent; the cast drops a
// fraction, and makes the largest integer of what is larger.
func (e *expiry) value() string {
	return fmt.Sprintf(`CAST(json_extract(item_json, '$."%s".N') AS INTEGER)`, e.attribute)
}

// index adds the index if it is not there yet. Only items with the attribute are in it.
func (e *expiry) index(ctx context.Context) error {
	statement := fmt.Sprintf(`CREATE INDEX IF NOT EXISTS "%[1]s::ttl::%[2]s" ON "%[1]s" (%[3]s) WHERE %[3]s IS NOT NULL`, e.table, e.attribute, e.value())
	if _, err := e.db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("indexing the expiry of table %s by %s: %w", e.table, e.attribute, err)
	}
	return nil
}

// query selects keys, each attribute as a column, in the order in which the items expire.
func (e *expiry) query() string {
	columns := make([]string, len(e.keys))
	for i, key := range e.keys {
		columns[i] = fmt.Sprintf(`json_extract(item_json, '$."%s"')`, key)
	}
	return fmt.Sprintf(`SELECT %s FROM "%s" WHERE %[3]s BETWEEN ? AND ? ORDER BY %[3]s LIMIT ? OFFSET ?`, strings.Join(columns, ", "), e.table, e.value())
}

// between returns the keys of items that expire between two times, both included, without the first skip of them and at
// most limit.
func (e *expiry) between(ctx context.Context, from, to time.Time, limit, skip int) (found []map[string]types.AttributeValue, err error) {
	rows, err := e.db.QueryContext(ctx, e.query(), from.Unix(), to.Unix(), limit, skip)
	if err != nil {
		return nil, fmt.Errorf("looking for expired items in %s: %w", e.table, err)
	}
	defer rows.Close()
	columns, into := make([][]byte, len(e.keys)), make([]any, len(e.keys))
	for i := range columns {
		into[i] = &columns[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, fmt.Errorf("reading the key of an expired item in %s: %w", e.table, err)
		}
		key := make(map[string]types.AttributeValue, len(e.keys))
		for i, name := range e.keys {
			if key[name], err = keyValue(columns[i]); err != nil {
				return nil, fmt.Errorf("reading %s of an expired item in %s: %w", name, e.table, err)
			}
		}
		found = append(found, key)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("looking for expired items in %s: %w", e.table, err)
	}
	return found, nil
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
