package index_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/ops"
)

// item is an item of the table as it is.
type item map[string]types.AttributeValue

func (it item) text(name string) string {
	s, _ := it[name].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

func (it item) body() []byte { return it["body"].(*types.AttributeValueMemberB).Value }

func (it item) with(body []byte) item {
	changed := maps.Clone(it)
	changed["body"] = &types.AttributeValueMemberB{Value: body}
	return changed
}

// items are those that make up a list's index, in the order of their keys:
// the manifest, chunks or entries of the tail.
func (tr *trial) items(org, list int, kind string) []item {
	tr.t.Helper()
	prefix := "IDX#" + tr.orgs[org].String() + "#" + tr.names[list]
	var found []item
	pages := dynamodb.NewScanPaginator(tr.client, &dynamodb.ScanInput{
		TableName: &tr.name, ConsistentRead: aws.Bool(true),
		FilterExpression: aws.String("begins_with(PK, :list) AND begins_with(SK, :kind)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":list": &types.AttributeValueMemberS{Value: prefix}, ":kind": &types.AttributeValueMemberS{Value: kind},
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			tr.t.Fatal(err)
		}
		for _, it := range page.Items {
			if pk := item(it).text("PK"); pk == prefix || strings.HasPrefix(pk, prefix+"#") {
				found = append(found, it)
			}
		}
	}
	slices.SortFunc(found, func(a, b item) int { return strings.Compare(a.text("PK")+a.text("SK"), b.text("PK")+b.text("SK")) })
	return found
}

func (tr *trial) store(it item) {
	tr.t.Helper()
	if _, err := tr.client.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &tr.name, Item: it}); err != nil {
		tr.t.Fatal(err)
	}
}

// damages are ways in which bytes go wrong. Each changes the body that it is
// given.
var damages = map[string]func(random *rand.Rand, body, other []byte) []byte{
	"a bit is flipped": func(random *rand.Rand, body, _ []byte) []byte {
		body[random.IntN(len(body))] ^= 1 << random.IntN(8)
		return body
	},
	"a byte of the head is another": func(random *rand.Rand, body, _ []byte) []byte {
		body[random.IntN(min(len(body), 24))] += byte(1 + random.IntN(255))
		return body
	},
	"the end is missing": func(random *rand.Rand, body, _ []byte) []byte { return body[:random.IntN(len(body))] },
	"the end is zeros": func(random *rand.Rand, body, _ []byte) []byte {
		clear(body[random.IntN(len(body)):])
		return body
	},
	"something follows":          func(_ *rand.Rand, body, _ []byte) []byte { return append(body, 0) },
	"it is another's":            func(_ *rand.Rand, _, other []byte) []byte { return other },
	"it is another's, cut alike": func(_ *rand.Rand, body, other []byte) []byte { return append(other, body...)[:len(body)] },
}

// damagedTrial is a trial whose first organization has orders in several
// parts, some of them counted, with text, and a tail; the other one too.
func damagedTrial(t *testing.T) *trial {
	t.Helper()
	tr, random := quietTrial(t), rand.New(rand.NewPCG(3, 4))
	for round := range 6 {
		for range 8 {
			tr.change(random)
			tr.put(tr.orgs[1], "order", modelID(random.IntN(modelIDs)), content{
				state: "PENDING", number: "red theirs", created: tr.clock().AddDate(0, -random.IntN(3), 0),
			})
		}
		tr.indexAll()
		if round < 5 {
			tr.advance(2 * time.Hour)
			for _, org := range tr.orgs {
				if _, err := tr.job("worker", org, "orders"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return tr
}

// checks are queries that read every group of every part, and one that reads
// as little as it can.
func (l *plainList) checks() []plainQuery {
	first, ref := everything(), everything()
	first.text, first.order = "the first", "createdAt"
	first.query.OrderBy, first.query.Desc, first.query.Limit = l.Schema.Col("createdAt"), true, 1
	searched := everything()
	searched.text, searched.query.Search = "search", []string{"red"}
	searched.holds = func(r *plainRow) bool { return r.contains(l.search, []string{"red"}) }
	ref.text, ref.query.Filter = "reference", columnar.In(l.Schema.Col("externalRef"), "hat")
	ref.holds = func(r *plainRow) bool { return r.texts["externalRef"] == "hat" }
	return []plainQuery{first, everything(), searched, ref}
}

// answers asks a new reader. Every answer is right or a refusal; it tells
// whether there was one.
func (tr *trial) answers(what string) (refused bool) {
	tr.t.Helper()
	r := tr.reader("new", 0)
	for _, q := range r.lists["orders"].checks() {
		got, err := r.ask(tr.orgs[0], "orders", q)
		if unavailable(err) {
			refused = true
			continue
		}
		if err != nil {
			tr.t.Fatalf("%s: %s: %v", what, q.text, err)
		}
		if total, want := q.answer(tr.rows(tr.orgs[0], "orders")); total != got.Total || !slices.Equal(want, hitsIn(got)) {
			tr.t.Errorf("%s: %s: got %v of %d, want %v of %d", what, q.text, hitsIn(got), got.Total, want, total)
		}
	}
	return refused
}

// TestADamagedIndexIsNeverAnsweredFrom damages manifests, chunks and the tail
// in many ways. A reader that starts then answers right or not at all, says so
// in the log, and the jobs make the index anew from the table.
func TestADamagedIndexIsNeverAnsweredFrom(t *testing.T) {
	for _, kind := range []string{"MANIFEST", "CHUNK", "T#"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tr, random := damagedTrial(t), rand.New(rand.NewPCG(uint64(len(kind)), 5))
			for round := range 3 {
				for _, name := range slices.Sorted(maps.Keys(damages)) {
					tr.damage(fmt.Sprintf("round %d: %s", round, name), kind, random, damages[name])
				}
			}
		})
	}
}

// damage damages an item of the kind and wants that to be noticed and mended.
func (tr *trial) damage(what, kind string, random *rand.Rand, damage func(random *rand.Rand, body, other []byte) []byte) {
	tr.t.Helper()
	ours, theirs := tr.items(0, 0, kind), tr.items(1, 0, kind)
	if len(ours) == 0 || len(theirs) == 0 {
		tr.t.Fatalf("%s: there is no %s to damage", what, kind)
	}
	at := random.IntN(len(ours))
	if kind == "T#" {
		at = len(ours) - 1 // the others have been folded
	}
	others := append(slices.Delete(slices.Clone(ours), at, at+1), theirs...)
	sound := ours[at].body()
	damaged := damage(random, slices.Clone(sound), slices.Clone(others[random.IntN(len(others))].body()))
	what = fmt.Sprintf("%s of %s %s, %d bytes were %d", what, ours[at].text("PK"), ours[at].text("SK"), len(damaged), len(sound))
	logged := len(tr.log.with("rebuilt"))
	tr.store(ours[at].with(damaged))
	if !tr.answers(what) {
		tr.store(ours[at]) // bytes that mean nothing
		return
	}
	if len(tr.log.with("rebuilt")) == logged {
		tr.t.Errorf("%s: the list was refused and nothing logged: %q", what, tr.log.with(""))
	}
	tr.advance(2 * time.Minute)
	tr.work("orders")
	if tr.answers(what + ", after jobs") {
		tr.t.Fatalf("%s: after jobs the list is refused: %q", what, tr.log.with(""))
	}
	tr.verify(what)
	tr.refill(random)
}

// refill makes new segments and a new tail.
func (tr *trial) refill(random *rand.Rand) {
	tr.t.Helper()
	for round := range 2 {
		for range 6 {
			tr.change(random)
		}
		tr.indexAll()
		if round == 0 {
			tr.advance(2 * time.Hour)
			tr.work("orders")
		}
	}
}

func (tr *trial) verify(what string) {
	tr.t.Helper()
	differences, err := ops.Verify(context.Background(), tr.direct, tr.orgs[0], listNamed(tr.direct, "orders").List, tr.clock())
	if err != nil || len(differences) > 0 {
		tr.t.Errorf("%s: the index and the table: %v, %v", what, differences, err)
	}
}
