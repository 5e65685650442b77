// Package markdown renders Markdown. It is apart from package docs so that the
// other functions, which share their wiring with the portal's, do not link the
// library: its start takes a millisecond.
package markdown

import (
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

// HTML renders Markdown with tables. Each heading gets the id that GitHub gives it.
func HTML(text string) (string, error) {
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	var out strings.Builder
	err := md.Convert([]byte(text), &out)
	return out.String(), err
}
