package portal

import (
	"fmt"
	"regexp"
	"strings"
)

// sessionPage is the name of the page of portal sessions. It knows no other credential
// than the code in its address, so that it alone may be in a frame.
const sessionPage = "embed"

// Embedding says where pages of portal sessions may be, and how they look.
type Embedding struct {
	frames []string // the origins whose pages may have them in a frame
	Name   string   `json:"name"`
	Colour string   `json:"colour"` // #rrggbb; "": the portal's
	Logo   string   `json:"logo"`   // a URL; "": the portal's
}

// The forms of the settings, which template.yaml demands, too.
var (
	frameForm = regexp.MustCompile(`^(https://[A-Za-z0-9.-]+(:\d+)?|http://(localhost|127\.0\.0\.1)(:(\d+|\*))?)$`)
	brandForm = regexp.MustCompile(`^([^,]{1,60})(?:,(#[0-9A-Fa-f]{6})(?:,(https://[^ ,;'"]+))?)?$`)
)

// ParseEmbedding reads the origins, separated by commas, and the brand: a name and,
// after commas, a colour and a logo. Either may be empty.
func ParseEmbedding(frames, brand string) (e Embedding, err error) {
	e.frames = strings.FieldsFunc(frames, func(r rune) bool { return r == ',' })
	for _, origin := range e.frames {
		if !frameForm.MatchString(origin) {
			return e, fmt.Errorf("portal: %q is no origin, such as https://app.example.com, that can frame portal sessions", origin)
		}
	}
	if brand == "" {
		return e, nil
	}
	found := brandForm.FindStringSubmatch(brand)
	if found == nil {
		return e, fmt.Errorf("portal: the brand %q is not NAME,#rrggbb,https://LOGO, of which the last two may be left out", brand)
	}
	e.Name, e.Colour, e.Logo = found[1], found[2], found[3]
	return e, nil
}
