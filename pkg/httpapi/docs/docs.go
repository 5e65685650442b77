// Package docs describes the service itself, without credentials: the OpenAPI
// document, a page that shows it and works offline, and a health check. All of it
// is fixed when the program is built; package openapi makes the document from
// the operations.
package docs

import (
	_ "embed"
	"net/http"
	"sync"

	"github.com/swaggest/swgui/v5/static"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/httpapi"
)

// OpenAPI is the service's OpenAPI 3.1 document.
//
//go:embed openapi.json
var OpenAPI []byte

//go:embed docs.html
var page []byte

const (
	cacheable = "public, max-age=300"
	tag       = "About"
)

// Health is the answer of the health check.
type Health struct {
	Status string `json:"status" doc:"ok, always: a service that is not answers an error or nothing."`
}

// Operations returns the operations of this package.
func Operations() []httpapi.Operation {
	return []httpapi.Operation{
		{
			ID: "getOpenAPI", Method: http.MethodGet, Path: "/openapi.json", Tag: tag,
			Summary: "Read this document", Result: map[string]any{}, Handle: fixed(OpenAPI, cacheable),
		},
		{
			ID: "getDocs", Method: http.MethodGet, Path: "/docs", Tag: tag,
			Summary: "Read this document as a page", MediaType: "text/html; charset=utf-8", Handle: fixed(page, cacheable),
		},
		{
			ID: "getDocsAsset", Method: http.MethodGet, Path: "/docs/{file}", Tag: tag,
			Summary: "Read a part of the page", MediaType: "*/*", Handle: asset,
			Params: []httpapi.Param{{Name: "file", In: fault.InPath, Type: "string", Required: true, Description: "The file's name."}},
		},
		{
			ID: "getHealth", Method: http.MethodGet, Path: "/health", Tag: tag,
			Summary: "Check that the service answers", Result: Health{},
			Handle: func(*httpapi.Request) (*httpapi.Response, error) {
				return &httpapi.Response{JSON: Health{Status: "ok"}, Header: http.Header{"Cache-Control": {"no-store"}}}, nil
			},
		},
	}
}

func fixed(body []byte, caching string) func(*httpapi.Request) (*httpapi.Response, error) {
	etag := sync.OnceValue(func() string { return httpapi.ETagOf(body) }) // no function reads the body before it is asked for
	return func(*httpapi.Request) (*httpapi.Response, error) {
		return &httpapi.Response{Raw: body, ETag: etag(), Header: http.Header{"Cache-Control": {caching}}}, nil
	}
}

// asset serves a file of the viewer.
func asset(r *httpapi.Request) (*httpapi.Response, error) {
	return httpapi.File(static.FS, r.PathText("file"), http.Header{"Cache-Control": {cacheable}})
}
