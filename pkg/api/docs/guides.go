package docs

import (
	"embed"
	"html"
	"regexp"
	"slices"
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

// linked has the links between guides lead where to says. The link to the document
// beside a guide's folder leads to the reference, and those from the folder above to
// the portal and to the document itself.
func linked(text string, to func(name string) string) string {
	base := to(start)
	base = base[:strings.LastIndex(base, "/docs")]
	text = strings.NewReplacer("](../../portal", "]("+base+"/portal", "](../../docs/openapi.json", "]("+base+"/openapi.json").Replace(text)
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
	all := entries()
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
		content = contentsOf(content) + `<article class="guide">` + content + next(all, name) + "</article>"
	}
	return strings.NewReplacer(
		"{{title}}", title, "{{navigation}}", navigation(all, name),
		"{{markdown}}", basePath+"/docs/"+name+".md", "{{content}}", content,
	).Replace(string(layout)), nil
}

// htmlOf renders Markdown. Where a fenced block has the name of a file behind its
// language, the name stands above it. A sample that is there in five languages is one
// element, in which the script shows one at a time. A row that begins with a code has
// it as its id.
func (s *site) htmlOf(text string) (string, error) {
	named := regexp.MustCompile("(?m)^```(\\w+) (\\S+)$")
	markup, err := s.render(named.ReplaceAllString(linked(text, pageURL), "`$2`\n\n```$1"))
	sideBySide := regexp.MustCompile(`((<p><code>[\w.]+</code></p>\n)?<pre><code class="language-(sh|python|javascript|go|php)">[^<]*</code></pre>\n){5}`)
	markup = sideBySide.ReplaceAllString(markup, `<div class="languages">$0</div>`)
	markup = regexp.MustCompile(`<tr>\n<td><code>(\w+)</code>`).ReplaceAllString(markup, `<tr id="$1"><td><code>$1</code>`)
	// What scrolls must be reached by the keyboard.
	return strings.NewReplacer("<pre>", `<pre tabindex="0">`, "<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>").
		Replace(markup), err
}

// contentsOf links to the sections of a page that has several.
func contentsOf(content string) string {
	sections := regexp.MustCompile(`<h2 id="(.+?)">(.*?)</h2>`).FindAllStringSubmatch(content, -1)
	if len(sections) < 2 {
		return ""
	}
	var b strings.Builder
	b.WriteString(`<nav class="contents" aria-label="On this page">`)
	for _, section := range sections {
		b.WriteString(`<a href="#` + section[1] + `">` + section[2] + "</a>\n")
	}
	return b.String() + "</nav>"
}

// entry is a line of the start page: a group of pages, or a page in it.
type entry struct{ group, title, url string }

// entries are the lines of the start page.
func entries() (all []entry) {
	text, _ := textOf(start)
	line := regexp.MustCompile(`(?m)^(?:## (.+)|- \[(.+?)\]\((.+?)\).*)$`)
	for _, found := range line.FindAllStringSubmatch(linked(text, pageURL), -1) {
		all = append(all, entry{found[1], html.EscapeString(found[2]), found[3]})
	}
	return all
}

// next links to the page that follows in the navigation.
func next(all []entry, name string) string {
	pages := slices.DeleteFunc(slices.Clone(all), func(e entry) bool { return e.group != "" })
	at := slices.IndexFunc(pages, func(e entry) bool { return e.url == pageURL(name) }) + 1
	if at == len(pages) {
		return ""
	}
	return `<p><a rel="next" href="` + pages[at].url + `">Next: ` + pages[at].title + "</a></p>"
}

// navigation lists the guides, in the groups of the start page.
func navigation(all []entry, current string) string {
	var b strings.Builder
	for _, e := range all {
		if e.group != "" {
			b.WriteString("<span>" + html.EscapeString(e.group) + "</span>\n")
			continue
		}
		b.WriteString(`<a href="` + e.url + `"`)
		if e.url == pageURL(current) {
			b.WriteString(` aria-current="page"`)
		}
		b.WriteString(">" + e.title + "</a>\n")
	}
	return b.String()
}
