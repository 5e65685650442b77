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

// Origins are those that a page has to do with beside its own.
type Origins struct {
	Connect []string // they answer its scripts
	Images  []string
	Frames  []string // their pages may have it in a frame
}

// PageHeader returns the header of a page, or of its files, with how they may be
// kept. It permits them their own files, the API and the origins, and nothing else:
// no other host, no inline script or style, no other frame around them.
func PageHeader(caching string, with Origins) http.Header {
	list := func(name string, origins []string) string {
		return strings.Join(append([]string{name}, origins...), " ")
	}
	if len(with.Frames) == 0 {
		with.Frames = []string{"'none'"}
	}
	return http.Header{
		"Cache-Control": {caching},
		"Content-Security-Policy": {"default-src 'none'; script-src 'self'; style-src 'self'; " + list("img-src 'self' data:", with.Images) + "; " +
			list("connect-src 'self'", with.Connect) + "; form-action 'none'; base-uri 'none'; " + list("frame-ancestors", with.Frames)},
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
