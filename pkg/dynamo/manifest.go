package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
)

// manifestItem is an [index.StoredManifest] as it is stored. How far it covers the
// tail is outside the body, so that writers of the tail can read it.
type manifestItem struct {
	Version   uint64
	Covered   uint64
	CoveredAt value.Time
	At        value.Time
	Body      []byte `dynamodbav:"body"`
}

func decodeManifest(it item) (*index.StoredManifest, error) {
	m, err := decodeFound[manifestItem](it)
	return (*index.StoredManifest)(m), err
}

// Manifest reads a manifest, strongly consistent; nil when there is none.
func (t *Table) Manifest(ctx context.Context, org value.ID, list, which string) (*index.StoredManifest, error) {
	return read(ctx, t, manifestKey(org, list, which), decodeManifest)
}

// Manifests reads the manifests whose names begin so, strongly consistent.
func (t *Table) Manifests(ctx context.Context, org value.ID, list, prefix string) (map[string]*index.StoredManifest, error) {
	found := map[string]*index.StoredManifest{}
	return found, t.query(ctx, partition(tailPartition(org, list), prefix), func(it item) (more bool, err error) {
		found[getString(it, attrSK)], err = decodeManifest(it)
		return true, err
	})
}

// covered reads how far into the tail the segments of a list reach, in the
// layout that has come farthest; nowhere without a manifest.
func (t *Table) covered(ctx context.Context, org value.ID, list string) (end index.Position, err error) {
	in := partition(tailPartition(org, list), manifestPrefix)
	in.ProjectionExpression = aws.String("Covered, CoveredAt")
	return end, t.query(ctx, in, func(it item) (bool, error) {
		m, err := decode[manifestItem](it)
		if m.Covered > end.Sequence {
			end = index.Position{Sequence: m.Covered, At: m.CoveredAt}
		}
		return true, err
	})
}

// PutManifest replaces the manifest of the version before m's; for version 1
// there must be none. It reports false when another version is there. After that, as
// after an error, the write may have been made nevertheless: its answer was lost, and
// another writer has replaced it since.
func (t *Table) PutManifest(ctx context.Context, org value.ID, list, which string, m index.StoredManifest) (bool, error) {
	if err := checkBody("a manifest", m.Body); err != nil {
		return false, err
	}
	it := encode(manifestKey(org, list, which), typeManifest, manifestItem(m))
	_, done, err := t.putOnce(ctx, "put a manifest", it, newToken(), ifLast(attrItemVersion, m.Version-1))
	return done, err
}

// DeleteManifest deletes the manifest of the version; a manifest that is gone
// already is not an error. It fails with [fault.ErrChanged] when another version is
// there. Without a live manifest and without entries a tail starts from 1 again.
func (t *Table) DeleteManifest(ctx context.Context, org value.ID, list, which string, version uint64) error {
	_, done, err := t.removeItem(ctx, "delete a manifest", t.remove(manifestKey(org, list, which),
		when("attribute_not_exists(PK) OR Version = :version", item{":version": num(version)})))
	if err == nil && !done {
		return fault.ErrChanged
	}
	return err
}
