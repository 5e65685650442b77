package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxOthers bounds the bytes of the cells that a record keeps of columns that its
// format does not know: attributes and metadata hold 32 KiB in all.
const maxOthers = 16 << 10

// otherColumn is a column that a format does not know.
type otherColumn struct {
	at   int
	name string // of the member that keeps its cell
	own  bool   // an empty cell means that the variant has none
}

var (
	programText   = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	variantColumn = regexp.MustCompile(`(?i)^(variant|price|compare.?at|unit price)`)
)

// otherColumns finds the columns of a header that a program does not name. A text of
// a program names columns: a bar divides them, %d and \($n) are numbers, and what
// ends with a blank may go on.
func otherColumns(program string, header []string) []otherColumn {
	var known []string
	for _, text := range programText.FindAllStringSubmatch(program, -1) {
		for name := range strings.SplitSeq(text[1], "|") {
			pattern := strings.NewReplacer("%d", `\d+`, `\\\(\$n\)`, `\d+`).Replace(regexp.QuoteMeta(name))
			if strings.HasSuffix(name, " ") {
				pattern += ".*"
			}
			known = append(known, pattern)
		}
	}
	taken := regexp.MustCompile("(?i)^(" + strings.Join(known, "|") + ")$")
	others := []otherColumn{}
	for i, column := range header {
		if taken.MatchString(column) {
			continue
		}
		name := memberName(column)
		mapped := regexp.MustCompile(`\b` + name + `( =|:)`).MatchString(program)
		if mapped || name == "" || slices.ContainsFunc(others, func(o otherColumn) bool { return o.name == name }) {
			name = column
		}
		others = append(others, otherColumn{at: i, name: name, own: variantColumn.MatchString(column)})
	}
	return others
}

// memberName writes the words of a column as one: googleShoppingGender.
func memberName(column string) string {
	words := strings.FieldsFunc(strings.ToLower(column), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i := 1; i < len(words); i++ {
		first, n := utf8.DecodeRuneInString(words[i])
		words[i] = string(unicode.ToUpper(first)) + words[i][n:]
	}
	return strings.Join(words, "")
}

// otherCells returns the cells of the columns that the format does not know. What is
// empty is as in the record's first row.
func (m *mapper) otherCells(row, first *sheetRow) map[string]any {
	if m.others == nil {
		m.others = otherColumns(m.program, row.header)
	}
	cells, size := map[string]any{}, 0
	for _, c := range m.others {
		cell := row.cell(c.at)
		if cell == "" && !c.own {
			cell = first.cell(c.at)
		}
		if cell == "" {
			continue
		}
		if size+len(c.name)+len(cell) > maxOthers {
			row.warn(row.place, fmt.Sprintf("%s is left out: a record keeps at most %d bytes of such columns", row.header[c.at], maxOthers))
			continue
		}
		size += len(c.name) + len(cell)
		cells[c.name] = cell
	}
	return cells
}
