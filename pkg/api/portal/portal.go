// Package portal serves the portal: a page for people who run integrations, who
// see there the state of the service and manage applications, keys and webhook
// endpoints. The page uses the public API with the credential that its user
// gives it; this package serves its files, without credentials, and knows no
// tenant. The source of the page is in the folder web, from which make portal
// builds what is embedded here; a program that was built without it says so.
package portal

import (
	"bytes"
	"embed"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/base/fault"
)

// built is what make portal builds, and a file that is always there: a pattern
// of go:embed has to match something.
//
//go:embed all:dist
var built embed.FS

const (
	tag = "About"
	// revalidated has browsers ask each time whether a file has changed: files
	// keep their names over releases, and have to fit together.
	revalidated = "no-cache"
)

// Operations returns the operations of the portal: its page, the files of the
// page, and the way there from the root.
func Operations() []api.Operation {
	files, err := fs.Sub(built, "dist")
	if err != nil {
		panic(err) // the name is a constant
	}
	return operations(files)
}

func operations(files fs.FS) []api.Operation {
	return []api.Operation{
		{
			ID: "getRoot", Method: http.MethodGet, Path: "/", Tag: tag,
			Summary: "Lead browsers to the portal", MediaType: "*/*", Handle: root,
		},
		{
			ID: "getPortal", Method: http.MethodGet, Path: "/portal", Tag: tag,
			Summary: "Use the service in a browser", MediaType: "text/html; charset=utf-8",
			Handle: func(r *api.Request) (*api.Response, error) { return page(files, r) },
		},
		{
			ID: "getPortalFile", Method: http.MethodGet, Path: "/portal/{file}", Tag: tag,
			Summary: "Read a part of the page", MediaType: "*/*",
			Handle: func(r *api.Request) (*api.Response, error) { return file(files, r) },
			Params: []api.Param{{Name: "file", In: fault.InPath, Type: "string", Required: true, Description: "The file's name."}},
		},
	}
}

// root leads a client that reads HTML to the portal. Others learn what they
// learn of every path that is none.
func root(r *api.Request) (*api.Response, error) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return nil, api.ErrNoSuchPath()
	}
	header := http.Header{"Location": {r.BaseURL + "/portal"}, "Vary": {"Accept"}, "Cache-Control": {revalidated}}
	return &api.Response{Status: http.StatusFound, Header: header}, nil
}

// page answers the page, which learns here under which path the service is: it
// may be below a stage or a base path, with and without a trailing slash.
func page(files fs.FS, r *api.Request) (*api.Response, error) {
	body, err := fs.ReadFile(files, "index.html")
	if err != nil {
		return nil, notBuilt()
	}
	base, err := url.Parse(r.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("the base URL: %w", err)
	}
	body = bytes.ReplaceAll(body, []byte("{{base}}"), []byte(html.EscapeString(base.EscapedPath())))
	return &api.Response{Raw: body, Header: api.PageHeader(revalidated)}, nil
}

func file(files fs.FS, r *api.Request) (*api.Response, error) {
	if _, err := fs.Stat(files, "index.html"); err != nil {
		return nil, notBuilt()
	}
	return api.File(files, r.PathText("file"), api.PageHeader(revalidated))
}

// notBuilt is the fault of a program without the page.
func notBuilt() error {
	return fault.New(fault.NotFound, fault.CodeNotFound, "this program was built without the portal; make build and make run build it first")
}
