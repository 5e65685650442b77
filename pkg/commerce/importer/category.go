package importer

import (
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/shop"
)

const pathSeparator = " > "

// emitCategory emits the categories of a path such as Cups > Mugs that this pass
// has not emitted yet, from the top. Their identifiers derive from names alone, so
// that files of several systems agree on them.
func (s *Source) emitCategory(path string, place Place, emit emitter) error {
	names := strings.Split(path, pathSeparator)
	body := map[string]any{}
	for i, name := range names {
		id := value.DeriveID(shop.Namespace, "category/"+strings.Join(names[:i+1], pathSeparator))
		body["id"], body["name"] = id, name
		if !s.categories[id] {
			s.categories[id] = true
			if err := emit(Record{Kind: commerce.KindCategory, Op: commerce.OpPut, Body: encode(body), Place: place}, nil); err != nil {
				return err
			}
		}
		body["parentId"] = id
	}
	return nil
}
