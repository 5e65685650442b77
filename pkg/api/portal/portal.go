// Package portal serves the portal: a page for people who run integrations, who
// see there the state of the service and manage applications, keys and webhook
// endpoints. The page uses the public API with the credential that its user
// gives it, or with the token of one who signs in at the identity provider; this
// package serves its files, without credentials, and knows no tenant. The source of the page is in the folder web, from which make portal
// builds what is embedded here; a program that was built without it says so.
package portal

import (
	"embed"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"

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
	pageType    = "text/html; charset=utf-8"
	// consent is the name of the authorization endpoint, at which the page asks
	// users to let an application act for them.
	consent = "authorize"
)

// SignIn says how people sign in at their identity provider. Without a ClientID
// they give the page a credential.
type SignIn struct {
	Issuer      string `json:"issuer"`   // the provider, an OpenID Connect issuer
	ClientID    string `json:"clientId"` // of the page, a public client
	Scope       string `json:"scope"`    // that the page asks for; openid is among them
	Audience    string `json:"audience"` // of the tokens that the service accepts
	TokenOrigin string `json:"-"`        // of the token endpoint, where it is not the issuer's
}

// Operations returns the operations of the portal: its page, that of portal sessions,
// the files of both, and the way there from the root.
func Operations(signIn SignIn, embedding Embedding) []api.Operation {
	files, err := fs.Sub(built, "dist")
	if err != nil {
		panic(err) // the name is a constant
	}
	return operations(files, signIn, embedding)
}

// view is a page as it is served.
type view struct {
	script        string // that runs it
	signIn, brand any    // what that learns; nil: nothing
	with          api.Origins
}

func operations(files fs.FS, signIn SignIn, embedding Embedding) []api.Operation {
	ordinary := &view{script: "main"}
	if signIn.ClientID != "" {
		ordinary.signIn, ordinary.with.Connect = signIn, originsOf(signIn.Issuer, signIn.TokenOrigin)
	}
	embedded := &view{script: sessionPage, brand: embedding, with: api.Origins{Images: originsOf(embedding.Logo), Frames: embedding.frames}}
	return []api.Operation{
		{
			ID: "getRoot", Method: http.MethodGet, Path: "/", Tag: tag,
			Summary: "Lead browsers to the portal", MediaType: "*/*", Handle: root,
		},
		{
			ID: "getPortal", Method: http.MethodGet, Path: "/portal", Tag: tag,
			Summary: "Use the service in a browser", MediaType: pageType,
			AnyQuery: true, // identity providers lead back here, each with parameters of its own
			Handle:   func(r *api.Request) (*api.Response, error) { return page(files, ordinary, r) },
		},
		{
			ID: "getPortalFile", Method: http.MethodGet, Path: "/portal/{file}", Tag: tag,
			Summary: "Read a part of the page", MediaType: "*/*", AnyQuery: true,
			Description: "authorize is the authorization endpoint of OAuth 2.0: the page asks the user what the query asks for. " +
				"embed is the page of portal sessions, the only one that may be in a frame, of the operator's choice.",
			Handle: func(r *api.Request) (*api.Response, error) {
				switch r.PathText("file") {
				case consent:
					return page(files, ordinary, r)
				case sessionPage:
					return page(files, embedded, r)
				}
				return file(files, r)
			},
			Params: []api.Param{{Name: "file", In: fault.InPath, Type: "string", Required: true, Description: "The file's name, authorize or embed."}},
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
// may be below a stage or a base path, with and without a trailing slash. It also
// learns how to sign in, or whose it is.
func page(files fs.FS, v *view, r *api.Request) (*api.Response, error) {
	body, err := fs.ReadFile(files, "index.html")
	if err != nil {
		return nil, notBuilt()
	}
	base, err := url.Parse(r.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("the base URL: %w", err)
	}
	signIn, err := json.Marshal(v.signIn)
	if err != nil {
		return nil, err
	}
	brand, err := json.Marshal(v.brand)
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer("{{base}}", html.EscapeString(base.EscapedPath()), "{{script}}", v.script,
		"{{signIn}}", html.EscapeString(string(signIn)), "{{brand}}", html.EscapeString(string(brand))).Replace(string(body))
	header := api.PageHeader(revalidated, v.with)
	header.Set("Content-Type", pageType)
	return &api.Response{Raw: []byte(text), Header: header}, nil
}

// originsOf returns the origins of those addresses that have one.
func originsOf(addresses ...string) (origins []string) {
	for _, address := range addresses {
		if at, err := url.Parse(address); err == nil && at.Host != "" {
			origins = append(origins, at.Scheme+"://"+at.Host)
		}
	}
	return origins
}

func file(files fs.FS, r *api.Request) (*api.Response, error) {
	if _, err := fs.Stat(files, "index.html"); err != nil {
		return nil, notBuilt()
	}
	return api.File(files, r.PathText("file"), api.PageHeader(revalidated, api.Origins{}))
}

// notBuilt is the fault of a program without the page.
func notBuilt() error {
	return fault.New(fault.NotFound, fault.CodeNotFound, "this program was built without the portal; make build and make run build it first")
}
