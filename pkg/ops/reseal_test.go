package ops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
	"github.com/commerce-integration/service/pkg/webhook/source"
)

func serviceKey(fill byte) []byte { return bytes.Repeat([]byte{fill}, sealed.KeySize) }

func boxOf(t *testing.T, keys ...[]byte) *sealed.Box {
	t.Helper()
	box, err := sealed.NewBox(keys[0], keys[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// sealedTable is a table with endpoints, one of them with two secrets, and
// kept answers, which are all sealed under the first key.
type sealedTable struct {
	*servicetest.Service
	client  *dynamodb.Client
	secrets map[value.ID]string // by endpoint
	keys    []idempotency.Key   // of kept answers
}

func newSealedTable(t *testing.T, endpoints, answers int) *sealedTable {
	t.Helper()
	client, name := dynamotest.Client(t)
	w := &sealedTable{client: client, secrets: map[value.ID]string{}}
	w.Service = servicetest.OnTable(t, dynamo.New(client, name, time.Now), value.NewID())
	w.Box = boxOf(t, serviceKey(1))
	url := "https://example.com/hook"
	for range endpoints {
		e, secret := w.NewEndpoint(t, webhook.CreateWebhookEndpointDto{URL: &url, Events: &[]string{"*"}})
		w.secrets[e.ID] = secret
	}
	keeper := idempotency.New(w.Table, w.Box, time.Now)
	for i := range answers {
		key := idempotency.NewKey(w.Org, "user", fmt.Sprint(i))
		lock, _, err := keeper.Lock(t.Context(), key, idempotency.Fingerprint{})
		if err == nil {
			err = lock.Keep(t.Context(), &idempotency.Answer{Status: 201, Body: []byte("answer")})
		}
		if err != nil {
			t.Fatal(err)
		}
		w.keys = append(w.keys, key)
	}
	return w
}

// check fails unless everything opens with the box as it was made.
func (w *sealedTable) check(t *testing.T, box *sealed.Box) {
	t.Helper()
	for id, want := range w.secrets {
		e := w.StoredEndpoint(t, id)
		if got, err := box.Open(e.Secret.Sealed, webhook.SecretPurpose(id)); err != nil || string(got) != want {
			t.Errorf("endpoint %s: the secret opens as %q, %v; want %q", id, got, err, want)
		}
		for _, p := range e.PreviousSecrets {
			if _, err := box.Open(p.Secret.Sealed, webhook.SecretPurpose(id)); err != nil {
				t.Errorf("endpoint %s: a previous secret: %v", id, err)
			}
		}
	}
	keeper := idempotency.New(w.Table, box, time.Now)
	for _, key := range w.keys {
		_, answer, err := keeper.Lock(t.Context(), key, idempotency.Fingerprint{})
		if err != nil || answer == nil || string(answer.Body) != "answer" {
			t.Errorf("the answer %s: %+v, %v", key.Hash, answer, err)
		}
	}
}

// run is one run of the command on the table.
func (w *sealedTable) run(ctx context.Context, table *dynamo.Table, dryRun bool, box *sealed.Box) (ops.ResealCounts, error) {
	r := &ops.Reseal{Table: table, Box: box, Clock: time.Now, DryRun: dryRun, Unreadable: func(string, error) {}}
	return r.Run(ctx)
}

func TestResealLeavesNothingUnderAnOlderKeyAndChangesNothingElse(t *testing.T) {
	w := newSealedTable(t, 3, 2)
	var rotated value.ID
	before := map[value.ID]value.Time{}
	for id := range w.secrets {
		before[id], rotated = w.StoredEndpoint(t, id).UpdatedAt, id
	}
	if _, err := w.Table.ChangeEndpoint(t.Context(), w.Org, rotated, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		next, secret := e.Rotate(time.Hour, w.Box.Seal, w.Now())
		w.secrets[rotated] = secret
		return next, nil
	}); err != nil {
		t.Fatal(err)
	}
	before[rotated] = w.StoredEndpoint(t, rotated).UpdatedAt

	both := boxOf(t, serviceKey(2), serviceKey(1))
	for i, c := range []struct {
		dryRun bool
		want   ops.ResealCounts
	}{
		{true, ops.ResealCounts{Items: 5, Left: 5}},
		{false, ops.ResealCounts{Items: 5, Resealed: 5}},
		{false, ops.ResealCounts{Items: 5}},
		{true, ops.ResealCounts{Items: 5}},
	} {
		counts, err := w.run(t.Context(), w.Table, c.dryRun, both)
		if err != nil || counts != c.want {
			t.Errorf("run %d: got %+v, %v; want %+v", i, counts, err, c.want)
		}
	}
	w.check(t, boxOf(t, serviceKey(2)))
	for id, at := range before {
		if e := w.StoredEndpoint(t, id); e.UpdatedAt != at {
			t.Errorf("endpoint %s: updatedAt moved from %s to %s", id, at, e.UpdatedAt)
		}
	}
	if n := len(w.StoredEndpoint(t, rotated).PreviousSecrets); n != 1 {
		t.Errorf("the rotated endpoint has %d previous secrets, want 1", n)
	}
}

func TestWhatNoKeyOpensIsCountedAndNamed(t *testing.T) {
	w := newSealedTable(t, 1, 1)
	var named []string
	r := &ops.Reseal{
		Table: w.Table, Box: boxOf(t, serviceKey(3), serviceKey(2)), Clock: time.Now, DryRun: true,
		Unreadable: func(item string, err error) {
			if !errors.Is(err, sealed.ErrUnopened) {
				t.Errorf("%s: %v", item, err)
			}
			named = append(named, item)
		},
	}
	counts, err := r.Run(t.Context())
	if want := (ops.ResealCounts{Items: 2, Unreadable: 2}); err != nil || counts != want || len(named) != 2 {
		t.Errorf("got %+v, %v, %v; want %+v", counts, named, err, want)
	}
}

// TestResealSurvivesKillsAndFaultsBesideOwnersWhoChangeEndpoints kills runs
// after some of their requests, behind a table that fails, while owners rotate
// and change endpoints by instances with both keys.
func TestResealSurvivesKillsAndFaultsBesideOwnersWhoChangeEndpoints(t *testing.T) {
	w := newSealedTable(t, 24, 12)
	proxy, err := faults.New(*w.client.Options().BaseEndpoint, faults.Config{
		Rates: faults.Every(0.05, faults.LostRequest, faults.LostAnswer, faults.Throttle, faults.InternalError), Seed: 7,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := proxy.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	endpoint := proxy.Endpoint()
	faulty := dynamo.New(dynamodb.New(w.client.Options(), func(o *dynamodb.Options) { o.BaseEndpoint = &endpoint }), w.Table.Name(), time.Now)

	old, both := boxOf(t, serviceKey(1), serviceKey(2)), boxOf(t, serviceKey(2), serviceKey(1))
	var stop atomic.Bool
	owners := make(chan error, 1)
	go func() {
		for n := 0; !stop.Load(); n++ {
			for id := range w.secrets {
				seal := both.Seal
				if n == 0 {
					seal = old.Seal // an instance that has not read the new key
				}
				if _, err := w.Table.ChangeEndpoint(context.Background(), w.Org, id, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
					next := *e
					text := fmt.Sprint(n)
					next.Description, next.UpdatedAt = &text, e.UpdatedAt+1
					if n%4 == 0 && len(e.PreviousSecrets) == 0 {
						rotated, _ := e.Rotate(time.Hour, seal, w.Now())
						return rotated, nil
					}
					return &next, nil
				}); err != nil {
					owners <- err
					return
				}
			}
		}
		owners <- nil
	}()
	kills := 0
	for n := 0; ; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(20+15*n)*time.Millisecond)
		_, err := w.run(ctx, faulty, false, both)
		cancel()
		if err == nil {
			break
		}
		if kills++; kills > 200 {
			t.Fatalf("no run came to its end: %v", err)
		}
	}
	stop.Store(true)
	if err := <-owners; err != nil {
		t.Fatal(err)
	}
	counts, err := w.run(t.Context(), w.Table, false, both)
	if err != nil || counts.Items != 36 || counts.Left != 0 || counts.Unreadable != 0 {
		t.Errorf("the last run: %+v, %v", counts, err)
	}
	t.Logf("%d runs were killed or failed; the last resealed %d", kills, counts.Resealed)
	box := boxOf(t, serviceKey(2))
	for id := range w.secrets {
		for _, s := range w.StoredEndpoint(t, id).Secrets(w.Now()) {
			if _, err := box.Open(s.Sealed, webhook.SecretPurpose(id)); err != nil {
				t.Errorf("endpoint %s: %v", id, err)
			}
		}
	}
	w.secrets = nil // owners have rotated them
	w.check(t, box)
}

func TestResealTakesTheSecretsOfSources(t *testing.T) {
	w := newSealedTable(t, 0, 0)
	s, made, err := source.New(w.Org, []byte(`{"kind":"WOOCOMMERCE","name":"Shop"}`), w.Box.Seal, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Table.CreateSource(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	got, err := w.run(t.Context(), w.Table, false, boxOf(t, serviceKey(2), serviceKey(1)))
	if want := (ops.ResealCounts{Items: 1, Resealed: 1}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	stored, err := w.Table.Source(t.Context(), w.Org, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	if secrets, err := stored.Open(boxOf(t, serviceKey(2)).Open, w.Now()); err != nil || len(secrets) != 1 || string(secrets[0]) != made {
		t.Errorf("by the new key alone: %q, %v", secrets, err)
	}
}
