package importer

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/shop"
)

// The folder formats has a program in jq for each kind of file that a shop
// system writes: its input is the numbers of the rows of one record, its output
// records, {row, record, categories}, or what it refuses, {rejected: {row, field,
// message}}.
//
//go:embed formats
var formatFiles embed.FS

// shopFile is a kind of file that a shop system writes, told by its header.
type shopFile struct {
	format  Format
	content string // orders, for example: the format's program has the name of both
	kind    commerce.Kind
	header  []string // the columns that only such a file has together
	key     string   // columns: consecutive rows with one key are of one record
	blank   bool     // a row without a key belongs to the record above
}

// shopFiles lists what each shop system exports. Columns as of 2026, and those
// of Shopify's exports before 2025.
var shopFiles = []shopFile{
	{Shopify, "products", commerce.KindProduct, []string{"Handle|URL handle", "Title", "Variant Price|Price"}, "Handle|URL handle", false},
	{Shopify, "orders", commerce.KindOrder, []string{"Name", "Financial Status", "Lineitem name", "Lineitem price"}, "Name", false},
	{Shopify, "customers", commerce.KindCustomer, []string{"First Name", "Last Name", "Email", "Total Spent"}, "", false},
	{Shopify, "inventory", commerce.KindStock, []string{"Handle", "Option1 Value", "SKU", "COO"}, "", false},
	{WooCommerce, "products", commerce.KindProduct, []string{"Type", "SKU", "Name", "Regular price"}, "", false},
	{Medusa, "products", commerce.KindProduct, []string{"Product Handle", "Product Title", "Variant Title"}, "Product Handle|Product Id|Product Title", false},
	{Vendure, "products", commerce.KindProduct, []string{"name", "optionGroups", "optionValues", "sku", "price"}, "slug|name", true},
}

func (f *shopFile) matches(sh *sheet) bool {
	return !slices.ContainsFunc(f.header, func(c string) bool { return len(sh.positions(c)) == 0 })
}

// shopFormat returns the shop system whose file has the header; empty for none.
func shopFormat(sh *sheet) Format {
	for _, f := range shopFiles {
		if f.matches(sh) {
			return f.format
		}
	}
	return ""
}

// readShop reads one file of a shop system.
func (s *Source) readShop(sh *sheet, emit emitter) error {
	for _, f := range shopFiles {
		if f.format != s.Format {
			continue
		}
		if f.matches(sh) {
			return f.read(s, sh, emit)
		}
	}
	return fmt.Errorf("read %s: it is not an export of %s that is known; its columns are %s", sh.name, s.Format, strings.Join(sh.header, ", "))
}

func (f *shopFile) read(s *Source, sh *sheet, emit emitter) error {
	sh.decimalComma = f.format == WooCommerce // it writes amounts as the shop's language does
	m := &mapper{source: s, kind: f.kind, emit: emit}
	if err := m.compile(string(f.format) + "-" + f.content); err != nil {
		return err
	}
	if f.format == WooCommerce {
		return m.readVariations(sh)
	}
	return m.readGroups(sh, f)
}

// readGroups maps consecutive rows of one key together.
func (m *mapper) readGroups(sh *sheet, f *shopFile) error {
	var group []*sheetRow
	open := ""
	err := sh.each(m.emit, func(row *sheetRow) error {
		key, _ := row.get(f.key)
		if len(group) > 0 && f.key != "" && (key == open || key == "" && f.blank) {
			row.join(group[0])
			group = append(group, row)
			return nil
		}
		complete := group
		group, open = []*sheetRow{row}, key
		return m.run(complete)
	})
	if err != nil {
		return err
	}
	return m.emit.orReject(m.run(group))
}

// readVariations maps each row of WooCommerce's export by itself, but variations
// together with their product, which is anywhere above. A variable product without
// variations is a product itself.
func (m *mapper) readVariations(sh *sheet) error {
	parents, sold := map[string]*sheetRow{}, map[*sheetRow]bool{}
	var order []*sheetRow
	err := sh.each(m.emit, func(row *sheetRow) error {
		cell, _ := row.get("Type")
		switch kinds := shop.Texts(strings.Split(strings.ToLower(cell), ",")); {
		case slices.Contains(kinds, "variation"):
			name, _ := row.get("Parent")
			parent := parents[name]
			if name == "" || parent == nil {
				return rejectField(row.place, "Parent", "%q is not a variable product above this row", name)
			}
			sold[parent] = true
			row.join(parent)
			return m.run([]*sheetRow{parent, row})
		case slices.Contains(kinds, "variable"):
			sku, _ := row.get("SKU")
			id, _ := row.get("ID")
			parents[sku], parents["id:"+id] = row, row
			order = append(order, row)
			return nil
		}
		return m.run([]*sheetRow{row})
	})
	for _, parent := range order {
		if err == nil && !sold[parent] {
			err = m.emit.orReject(m.run([]*sheetRow{parent}))
		}
	}
	return err
}

// compileProgram compiles a format's program, with the prelude before it, and returns
// its text, too.
func compileProgram(name string, options ...gojq.CompilerOption) (text string, code *gojq.Code, err error) {
	for _, part := range []string{"prelude", name} {
		content, err := formatFiles.ReadFile("formats/" + part + ".jq")
		if err != nil {
			return "", nil, fmt.Errorf("read the format %s: %w", part, err)
		}
		text += string(content)
	}
	query, err := gojq.Parse(text)
	if err == nil {
		code, err = gojq.Compile(query, options...)
	}
	if err != nil {
		return "", nil, fmt.Errorf("compile the format %s: %w", name, err)
	}
	return text, code, nil
}
