package docs

import (
	"fmt"
	"html"
	"strings"

	"github.com/commerce-integration/service/pkg/api"
)

// changes is the guide whose sections are the versions. The heading of each ends with
// its day.
const changes = "changelog"

// feed answers the versions as an Atom feed (RFC 4287).
func (s *site) feed(r *api.Request) (*api.Response, error) {
	text, err := textOf(changes)
	if err != nil {
		return nil, err
	}
	content, err := s.htmlOf(linked(text, func(name string) string { return r.BaseURL + "/docs/" + name }))
	if err != nil {
		return nil, err
	}
	page := html.EscapeString(r.BaseURL) + "/docs/" + changes
	var entries strings.Builder
	newest := ""
	for _, section := range strings.Split(content, `<h2 id="`)[1:] {
		id, rest, _ := strings.Cut(section, `">`)
		title, body, _ := strings.Cut(rest, "</h2>")
		day := title[len(title)-len("2006-01-02"):]
		newest = max(newest, day)
		fmt.Fprintf(&entries, `<entry><id>%[1]s#%[2]s</id><title>%[3]s</title><updated>%[4]sT00:00:00Z</updated>`+
			`<link href="%[1]s#%[2]s"/><content type="html">%[5]s</content></entry>`, page, id, title, day, html.EscapeString(body))
	}
	feed := fmt.Sprintf(`<?xml version="1.0" encoding="utf-8"?>`+"\n"+`<feed xmlns="http://www.w3.org/2005/Atom"><id>%[1]s</id>`+
		`<title>Changes of the API</title><author><name>Commerce Integration Service</name></author>`+
		`<updated>%[2]sT00:00:00Z</updated><link href="%[1]s"/>%[3]s</feed>`, page, newest, entries.String())
	return &api.Response{Raw: []byte(feed), Header: headers("application/atom+xml; charset=utf-8")}, nil
}
