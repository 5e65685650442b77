package records_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/api/records"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
)

func TestEveryListWeighsByItsReadUnits(t *testing.T) {
	paths := []string{"/api/deletions"}
	for _, kind := range commerce.Kinds() {
		paths = append(paths, "/api/"+kind.Plural())
	}
	for _, path := range paths {
		for units, weight := range map[int]int{100: 1, 101: 2} {
			s, limiter := newShelf(), &limited{left: 10}
			s.units = units
			operations := records.Operations(s, s, records.Config{Clock: func() time.Time { return present }, Lists: index.NewLists(nil, 1)})
			a := ask(t, limitedServer(operations, func() time.Time { return present }, limiter), user(), path)
			if a.status != http.StatusOK || 10-limiter.left != weight {
				t.Errorf("%s of %d units: got %d and a weight of %d, want %d", path, units, a.status, 10-limiter.left, weight)
			}
		}
	}
}
