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
	d, err := described()
	if err != nil {
		return nil, err
	}
	for _, group := range d.groups() {
		for _, op := range group.operations {
			all = append(all, found{op.Summary, op.route, reference + "#/" + op.Tags[0] + "/" + op.OperationID, plain(op.Description)})
		}
	}
	return all, nil
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

// described reads the OpenAPI document.
func described() (d description, err error) {
	err = json.Unmarshal(OpenAPI, &d)
	return d, err
}

// description is what the search and the reference's Markdown take of the
// OpenAPI document.
type description struct {
	Info struct {
		Title       string `json:"title"`
		Description string `json:"description"`
	} `json:"info"`
	Tags []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"tags"`
	Paths      map[string]map[string]*operation `json:"paths"`
	Webhooks   map[string]map[string]*operation `json:"webhooks"`
	Components struct {
		Schemas map[string]*schema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	OperationID string   `json:"operationId"`
	Summary     string   `json:"summary"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Parameters  []struct {
		Name        string `json:"name"`
		In          string `json:"in"`
		Description string `json:"description"`
		Required    bool   `json:"required"`
		Schema      schema `json:"schema"`
	} `json:"parameters"`
	RequestBody body            `json:"requestBody"`
	Responses   map[string]body `json:"responses"`

	route string // method and path, or an event's name
}

// group is a tag with its operations, by their routes.
type group struct {
	name, description string
	operations        []*operation
}

func (d *description) groups() []group {
	byTag := map[string][]*operation{}
	collect := func(path, method string, op *operation) {
		op.route = strings.TrimSpace(method + " " + path)
		byTag[op.Tags[0]] = append(byTag[op.Tags[0]], op)
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			collect(path, strings.ToUpper(method), op)
		}
	}
	for event, methods := range d.Webhooks {
		for _, op := range methods {
			collect(event, "", op)
		}
	}
	var all []group
	for _, t := range d.Tags {
		operations := byTag[t.Name]
		slices.SortFunc(operations, func(a, b *operation) int { return cmp.Compare(a.OperationID, b.OperationID) })
		all = append(all, group{t.Name, t.Description, operations})
	}
	return all
}
