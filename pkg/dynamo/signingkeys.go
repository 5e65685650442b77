package dynamo

import (
	"context"

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
	p.KeySet, err = docOf[apptoken.KeySet](it)
	if at := getTime(it, attrSecretsCreated); at != 0 {
		p.Created = at.Std()
	}
	return p, err
}

// PublishSigningKeys stores the keys, and reports whether it did: keys of
// newer secrets stay.
func (t *Table) PublishSigningKeys(ctx context.Context, p apptoken.Published) (bool, error) {
	created := max(value.TimeOf(p.Created), 0)
	_, done, err := t.updateItem(ctx, "publish the signing keys", t.set(signingKeysKey(),
		item{attrType: str(typeSigningKeys), attrDoc: encodeDoc(p.KeySet), attrSecretsCreated: num(created)},
		when("attribute_not_exists(PK) OR secretsCreated <= :secretsCreated", nil)))
	return done, err
}
