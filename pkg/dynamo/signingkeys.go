package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/base/value"
)

// attrSecretsCreated is when the secrets of the published keys were made.
const attrSecretsCreated = "secretsCreated"

// SigningKeys reads the published keys of application tokens, strongly
// consistent; there are none before the first token.
func (t *Table) SigningKeys(ctx context.Context) (p apptoken.Published, err error) {
	it, err := t.get(ctx, signingKeysKey())
	if err != nil || it == nil {
		return p, err
	}
	if err := json.Unmarshal([]byte(getString(it, attrDoc)), &p.KeySet); err != nil {
		return p, fmt.Errorf("decode the signing keys: %w", err)
	}
	if at := getTime(it, attrSecretsCreated); at != 0 {
		p.Created = at.Std()
	}
	return p, nil
}

// PublishSigningKeys stores the keys, and reports whether it did: keys of
// newer secrets stay.
func (t *Table) PublishSigningKeys(ctx context.Context, p apptoken.Published) (bool, error) {
	created := value.Time(0)
	if p.Created.After(time.Time{}) {
		created = value.TimeOf(p.Created)
	}
	_, done, err := t.updateItem(ctx, "publish the signing keys", t.set(signingKeysKey(),
		item{attrType: str(typeSigningKeys), attrDoc: encodeDoc(p.KeySet), attrSecretsCreated: num(created)},
		when("attribute_not_exists(PK) OR secretsCreated <= :secretsCreated", nil)))
	return done, err
}
