package segment_test

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// everything has every type of column with every flag.
var everything = columnar.MustSchema("everything",
	columnar.Column{Name: "state", Type: columnar.Keyword},
	columnar.Column{Name: "sites", Type: columnar.Keyword, Fold: true},
	columnar.Column{Name: "active", Type: columnar.Bool},
	columnar.Column{Name: "price", Type: columnar.Number, Sort: true},
	columnar.Column{Name: "placed", Type: columnar.Time, Sort: true},
	columnar.Column{Name: "tags", Type: columnar.Text, Search: true},
	columnar.Column{Name: "name", Type: columnar.Text, Search: true, Sort: true},
	columnar.Column{Name: "sku", Type: columnar.Text, Search: true, Sort: true, Match: true},
	columnar.Column{Name: "ref", Type: columnar.Text, Match: true},
	columnar.Column{Name: "lastName", Type: columnar.Text, Sort: true},
)

var (
	state    = everything.Col("state")
	sites    = everything.Col("sites")
	active   = everything.Col("active")
	price    = everything.Col("price")
	placed   = everything.Col("placed")
	tags     = everything.Col("tags")
	name     = everything.Col("name")
	sku      = everything.Col("sku")
	ref      = everything.Col("ref")
	lastName = everything.Col("lastName")
	sortCols = []columnar.Col{columnar.ByID, price, placed, name, sku, lastName}
)

func number(n int) [16]byte { return [16]byte{14: byte(n >> 8), 15: byte(n)} }

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// read decodes a segment in which one group has other bytes.
func read(e segment.Encoded, group segment.Group, data []byte) error {
	e.Groups[group] = data
	_, err := segment.Decode(everything, e.Groups[segment.Core], e.Groups[segment.Text])
	return err
}

// bytesOf are the documents as they are written one by one.
func bytesOf(docs []columnar.Document) [][]byte {
	list := [][]byte{}
	for i := range docs {
		list = append(list, columnar.AppendDocument(nil, &docs[i]))
	}
	return list
}

// seal appends the checksum.
func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}
