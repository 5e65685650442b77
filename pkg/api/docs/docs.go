// Package docs describes the service itself, without credentials: guides for
// integrators, the OpenAPI document with a page to read and try it, and /llms.txt.
// The browser searches both. The guides are the Markdown files of the folder guides,
// which can be read as they are, too; their pages are rendered on each request.
// Package openapi makes the document from the operations.
//
// The guide index.md is the start page, the navigation and /llms.txt: a guide that
// it does not list fails a test. Tests of pkg/cmd/commerce run every sample: the
// commands of a guide from top to bottom, which must print what the block behind
// them shows, and the programs, whose file is named behind their language. A sample in
// five languages is five blocks with nothing between them, in which the first line of a
// program is the command that runs it.
package docs

import (
	"bytes"
	"embed"
	"html"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/swaggest/swgui/v5/static"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/base/fault"
)

// OpenAPI is the service's OpenAPI 3.1 document.
//
//go:embed openapi.json
var OpenAPI []byte

// referenceText is the document as Markdown.
//
//go:embed reference.md
var referenceText string

// web holds the layout of the pages, and their styles and scripts.
//
//go:embed web
var web embed.FS

const (
	cacheable    = "public, max-age=300"
	tag          = "About"
	markdownType = "text/markdown; charset=utf-8"
)

// Operations returns the operations of this package. render makes HTML of
// Markdown; without it the operations are for reading only.
func Operations(render func(markdown string) (string, error)) []api.Operation {
	s := &site{render}
	return []api.Operation{
		{
			ID: "getOpenAPI", Method: http.MethodGet, Path: "/openapi.json", Tag: tag,
			Summary: "Read this document", Result: map[string]any{}, Handle: document(),
		},
		{
			ID: "getDocs", Method: http.MethodGet, Path: "/docs", Tag: tag,
			Summary: "Read the guides", MediaType: "text/html; charset=utf-8",
			Handle: func(r *api.Request) (*api.Response, error) { return s.page(r, start) },
		},
		{
			ID: "getDocsAsset", Method: http.MethodGet, Path: "/docs/{file}", Tag: tag,
			Summary: "Read a guide, the reference, or a part of their pages", MediaType: "*/*", Handle: s.file,
			Description: "A guide's name gives its page, with `.md` its Markdown; `reference` and `reference.md` show this document, `changelog.atom` is a feed of the versions.",
			Params:      []api.Param{{Name: "file", In: fault.InPath, Type: "string", Required: true, Description: "The file's name."}},
		},
		{
			ID: "getLlmsTxt", Method: http.MethodGet, Path: "/llms.txt", Tag: tag,
			Summary: "List the guides for language models", MediaType: markdownType,
			Description: "Links to the Markdown of each page, in the format of llmstxt.org.",
			Handle:      func(r *api.Request) (*api.Response, error) { return source(r, start) },
		},
	}
}

// document answers the document with the address at which it was asked for, since
// a tool that reads it from a file cannot resolve a relative one.
func document() func(*api.Request) (*api.Response, error) {
	etag := sync.OnceValue(func() string { return api.ETagOf(OpenAPI) }) // no function reads the document before it is asked for
	return func(r *api.Request) (*api.Response, error) {
		server, err := json.Marshal(r.BaseURL)
		if err != nil {
			return nil, err
		}
		return &api.Response{
			Raw: bytes.Replace(OpenAPI, []byte(`"url": "."`), append([]byte(`"url": `), server...), 1), ETag: api.ETagOf(append([]byte(etag()), server...)),
			Header: http.Header{"Cache-Control": {cacheable}},
		}, nil
	}
}

// file answers what lies below /docs.
func (s *site) file(r *api.Request) (*api.Response, error) {
	name := r.PathText("file")
	switch {
	case name == changes+".atom":
		return s.feed(r)
	case path.Ext(name) == "":
		return s.page(r, name)
	case path.Ext(name) == ".md":
		return source(r, strings.TrimSuffix(name, ".md"))
	}
	if body, err := web.ReadFile("web/" + name); err == nil && path.Ext(name) != ".html" {
		return &api.Response{Raw: body, Header: headers(mime.TypeByExtension(path.Ext(name)))}, nil
	}
	return api.File(static.FS, name, headers(""))
}

// page answers the page of a guide, or the reference's.
func (s *site) page(r *api.Request, name string) (*api.Response, error) {
	body, err := s.rendered(name)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(r.BaseURL)
	if err != nil {
		return nil, err
	}
	body = strings.ReplaceAll(body, basePath, html.EscapeString(base.EscapedPath()))
	return &api.Response{Raw: []byte(body), Header: headers("text/html; charset=utf-8")}, nil
}

// source answers the Markdown of a page, with links that work where it is read.
func source(r *api.Request, name string) (*api.Response, error) {
	text, err := textOf(name)
	if err != nil {
		return nil, err
	}
	text = linked(text, func(name string) string { return r.BaseURL + "/docs/" + name + ".md" })
	return &api.Response{Raw: []byte(text), Header: headers(markdownType)}, nil
}

func headers(mediaType string) http.Header {
	h := api.PageHeader(cacheable, api.Origins{})
	if mediaType != "" {
		h.Set("Content-Type", mediaType)
	}
	return h
}
