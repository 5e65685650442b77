package docs

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// found is what the search knows of a section of a guide, or of an operation.
type found struct {
	Title string `json:"title"`
	Page  string `json:"page"` // the guide's title, or the operation's method and path
	Path  string `json:"path"` // below /docs
	Text  string `json:"text"`
}

// index returns everything that can be found. The browser searches it.
func (s *site) index() ([]found, error) {
	var all []found
	files, err := guides.ReadDir("guides")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".md")
		text, err := textOf(name)
		if err != nil {
			return nil, err
		}
		markup, err := s.htmlOf(text)
		if err != nil {
			return nil, err
		}
		of := sections(markup)
		for i := range of {
			of[i].Page, of[i].Path = of[0].Title, name+of[i].Path
		}
		all = append(all, of...)
	}
	documented, err := operations()
	return append(all, documented...), err
}

// sections takes a guide's page apart. Their paths are their anchors.
func sections(markup string) []found {
	heads := regexp.MustCompile(`<h[1-3] id="(.*?)">(.*?)</h[1-3]>`).FindAllStringSubmatchIndex(markup, -1)
	all := make([]found, len(heads))
	for i, h := range heads {
		end := len(markup)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		all[i] = found{Title: plain(markup[h[4]:h[5]]), Path: "#" + markup[h[2]:h[3]], Text: plain(markup[h[1]:end])}
	}
	return all
}

// operation is what the search takes of an operation in the OpenAPI document.
type operation struct {
	OperationID string   `json:"operationId"`
	Summary     string   `json:"summary"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

// operations are those of the OpenAPI document, events included.
func operations() (all []found, err error) {
	var document struct {
		Paths    map[string]map[string]operation `json:"paths"`
		Webhooks map[string]map[string]operation `json:"webhooks"`
	}
	if err := json.Unmarshal(OpenAPI, &document); err != nil {
		return nil, err
	}
	add := func(route string, op operation) {
		all = append(all, found{op.Summary, route, reference + "#/" + op.Tags[0] + "/" + op.OperationID, plain(op.Description)})
	}
	for path, methods := range document.Paths {
		for method, op := range methods {
			add(strings.ToUpper(method)+" "+path, op)
		}
	}
	for event, methods := range document.Webhooks {
		add(event, methods["post"])
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}
