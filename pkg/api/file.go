package api

import (
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// PageHeader returns the header of a page, or of its files, with how they may be
// kept. It permits them their own files, the API and what the origins answer to
// scripts, and nothing else: no other host, no inline script or style, no frame
// around them.
func PageHeader(caching string, origins ...string) http.Header {
	connect := strings.Join(append([]string{"connect-src 'self'"}, origins...), " ")
	return http.Header{
		"Cache-Control": {caching},
		"Content-Security-Policy": {"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " + connect +
			"; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"},
		"Referrer-Policy": {"no-referrer"},
	}
}

// File answers a file of files, or a 404. One that lies there compressed, under
// its name with .gz, goes out as it is to every client that takes gzip. The
// header is added to, by the file's media type.
func File(files fs.FS, name string, header http.Header) (*Response, error) {
	header.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	body, err := fs.ReadFile(files, name+".gz")
	if err == nil {
		header.Set("Content-Encoding", "gzip")
	} else if body, err = fs.ReadFile(files, name); err != nil {
		return nil, fault.Missing("file")
	}
	if header.Get("Content-Type") == "" {
		return nil, fmt.Errorf("no media type for %s", name)
	}
	return &Response{Raw: body, Header: header}, nil
}
