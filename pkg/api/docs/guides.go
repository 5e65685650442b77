package docs

import (
	"embed"
	"html"
	"regexp"
	"strings"

	"github.com/commerce-integration/service/pkg/base/fault"
)

//go:embed guides
var guides embed.FS

const (
	start     = "index"     // the guide at /docs, which lists the others in their order
	reference = "reference" // the page of the OpenAPI document
	// basePath stands in links for the path under which the service is: it may be
	// below a stage or a base path.
	basePath = "/@base"
)

// site makes the pages.
type site struct {
	render func(markdown string) (string, error)
}

// textOf returns the Markdown of a page.
func textOf(name string) (string, error) {
	if name == reference {
		return referenceText, nil
	}
	text, err := guides.ReadFile("guides/" + name + ".md")
	if err != nil {
		return "", fault.Missing("page")
	}
	return string(text), nil
}

// linked has the links between guides lead where to says. The link to the
// document leads to the reference.
func linked(text string, to func(name string) string) string {
	link := regexp.MustCompile(`\]\(([a-z-]+)\.md|\]\(\.\./openapi\.json`)
	return link.ReplaceAllStringFunc(text, func(found string) string {
		name := link.FindStringSubmatch(found)[1]
		if name == "" {
			name = reference
		}
		return "](" + to(name)
	})
}

func pageURL(name string) string {
	if name == start {
		return basePath + "/docs"
	}
	return basePath + "/docs/" + name
}

// rendered returns a page whose links begin with [basePath].
func (s *site) rendered(name string) (string, error) {
	layout, err := web.ReadFile("web/page.html")
	if err != nil {
		return "", err
	}
	title, content := "API reference", ""
	if name == reference {
		viewer, err := web.ReadFile("web/reference.html")
		if err != nil {
			return "", err
		}
		content = string(viewer)
	} else {
		text, err := textOf(name)
		if err != nil {
			return "", err
		}
		if content, err = s.htmlOf(text); err != nil {
			return "", err
		}
		title = regexp.MustCompile(`<h1[^>]*>(.*?)</h1>`).FindStringSubmatch(content)[1]
		content = `<article class="guide">` + content + "</article>"
	}
	return strings.NewReplacer(
		"{{title}}", title, "{{navigation}}", navigation(name),
		"{{markdown}}", basePath+"/docs/"+name+".md", "{{content}}", content,
	).Replace(string(layout)), nil
}

// htmlOf renders Markdown. Where a fenced block has the name of a file behind its
// language, the name stands above it.
func (s *site) htmlOf(text string) (string, error) {
	named := regexp.MustCompile("(?m)^```(\\w+) (\\S+)$")
	markup, err := s.render(named.ReplaceAllString(linked(text, pageURL), "`$2`\n\n```$1"))
	// What scrolls must be reached by the keyboard.
	return strings.NewReplacer("<pre>", `<pre tabindex="0">`, "<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>").
		Replace(markup), err
}

// navigation lists the guides, in the groups of the start page.
func navigation(current string) string {
	var b strings.Builder
	text, _ := textOf(start)
	entry := regexp.MustCompile(`(?m)^(?:## (.+)|- \[(.+?)\]\((.+?)\).*)$`)
	for _, found := range entry.FindAllStringSubmatch(linked(text, pageURL), -1) {
		if group := found[1]; group != "" {
			b.WriteString("<span>" + html.EscapeString(group) + "</span>\n")
			continue
		}
		b.WriteString(`<a href="` + found[3] + `"`)
		if found[3] == pageURL(current) {
			b.WriteString(` aria-current="page"`)
		}
		b.WriteString(">" + html.EscapeString(found[2]) + "</a>\n")
	}
	return b.String()
}
