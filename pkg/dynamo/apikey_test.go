package dynamo_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
)

func TestAKeyIsStoredAsItsHashOnly(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	dto := account.CreateApiKeyDto{
		Name: ptr("till"), Scopes: &[]string{"orders:read"}, SiteIDs: &[]value.ID{value.NewID(), value.NewID()},
		ExpiresAt: ptr(value.TimeOf(a.now.Add(time.Hour))),
	}
	key, credential := account.NewKey(&app, value.NewID(), dto, value.TimeOf(a.now))
	must(t, a.CreateKey(t.Context(), a.org, key.APIKey, credential))
	keys, err := a.Keys(t.Context(), a.org, app.ID)
	must(t, err)
	if diff := cmp.Diff([]account.APIKey{key.APIKey}, keys); diff != "" {
		t.Errorf("stored key (-want +got):\n%s", diff)
	}
	got, owner, err := a.Credential(t.Context(), credential.KeyText)
	must(t, err)
	if diff := cmp.Diff(&credential, got); diff != "" {
		t.Errorf("stored credential (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ptr(app.Masked()), owner); diff != "" {
		t.Errorf("its application (-want +got):\n%s", diff)
	}
	a.dump(t, "", key.Key, app.ClientSecret)
	if c, app, err := a.Credential(t.Context(), "AAAAAAAA"); c != nil || app != nil || err != nil {
		t.Errorf("an unknown key: got %v, %v, %v, want nothing", c, app, err)
	}
}

func TestExactlyTheLimitOfActiveKeysIsCreatedWhenManyTryAtOnce(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	create := func(int) error {
		_, _, err := a.create(t, &app, nil)
		return err
	}
	if made := atOnce(t, 30, create); made != account.MaxActiveKeys {
		t.Errorf("created %d of 30, want %d", made, account.MaxActiveKeys)
	}
	keys, err := a.Keys(t.Context(), a.org, app.ID)
	if err != nil || len(keys) != account.MaxActiveKeys {
		t.Fatalf("stored: got %d, %v", len(keys), err)
	}
	if _, err := a.RevokeKey(t.Context(), a.org, app.ID, keys[7].ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := create(0); err != nil {
		t.Errorf("in the place of a revoked key: %v", err)
	}
	if err := create(0); !fault.Is(err, fault.Conflict) {
		t.Errorf("one more: got %v, want limit_reached", err)
	}
}

func TestExpiredKeysGiveTheirPlaceBack(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	for i := range account.MaxActiveKeys {
		var expires *value.Time
		if i%2 == 0 {
			expires = ptr(value.TimeOf(a.now.Add(time.Minute)))
		}
		a.key(t, &app, expires)
	}
	a.now = a.now.Add(time.Minute)
	created := atOnce(t, account.MaxActiveKeys, func(int) error {
		_, _, err := a.create(t, &app, nil)
		return err
	})
	if created != account.MaxActiveKeys/2 {
		t.Errorf("created after half of the keys expired: got %d, want %d", created, account.MaxActiveKeys/2)
	}
	keys, err := a.Keys(t.Context(), a.org, app.ID)
	must(t, err)
	expired := 0
	for _, k := range keys {
		if k.Status == account.KeyExpired {
			expired++
		}
	}
	if len(keys) != 30 || expired != 10 {
		t.Errorf("listed %d keys, %d of them expired, want 30 and 10", len(keys), expired)
	}
}

func TestTheLastUseIsWrittenAtMostOnceAnInterval(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	key, credential := a.key(t, &app, nil)
	start := a.now
	var seen []time.Duration
	for range 6 {
		must(t, a.TouchKey(t.Context(), &credential, time.Minute))
		keys, err := a.Keys(t.Context(), a.org, app.ID)
		must(t, err)
		seen = append(seen, keys[0].LastUsedAt.Std().Sub(start))
		a.now = a.now.Add(20 * time.Second)
	}
	want := []time.Duration{0, 0, 0, time.Minute, time.Minute, time.Minute}
	if !slices.Equal(seen, want) {
		t.Errorf("last use: got %v, want %v", seen, want)
	}
	revoked, err := a.RevokeKey(t.Context(), a.org, app.ID, key.ID, nil)
	if err != nil || revoked.LastUsedAt == nil || revoked.UpdatedAt == key.UpdatedAt {
		t.Errorf("revoked: got %+v, %v, want the last use kept", revoked, err)
	}
	if c, _, err := a.Credential(t.Context(), credential.KeyText); err != nil || c.LastUsedAt.Std().Sub(start) != 100*time.Second {
		t.Errorf("credential: got %+v, %v, want the last use, after 100 s", c, err)
	}
	credential.KeyID, credential.KeyText = value.NewID(), "AAAAAAAA"
	if err := a.TouchKey(t.Context(), &credential, time.Minute); err != nil {
		t.Errorf("a key that is gone: got %v, want no error", err)
	}
	if left := a.dump(t, "KEYS"); len(left) != 1 {
		t.Errorf("touching a key that is gone made an item: %v", left)
	}
}

// TestAKnownCredentialIsReadEventuallyConsistent asks a replica that is behind,
// and one that lacks the application or the credential.
func TestAKnownCredentialIsReadEventuallyConsistent(t *testing.T) {
	a := newAccounts(t)
	r := newReplica(a.client, a.Name())
	table := dynamo.New(r.client, a.Name(), func() time.Time { return a.now })
	r.catchUp(t)
	app := a.application(t, "shop")
	key, credential := a.key(t, &app, nil)
	expect := func(when string, strong int, revoked bool, application bool) {
		t.Helper()
		before := r.strong
		c, owner, err := table.RefreshCredential(t.Context(), &credential)
		if err != nil || c == nil || c.Revoked != revoked || (owner != nil) != application || owner != nil && owner.ID != app.ID {
			t.Errorf("%s: got %+v of %+v, %v", when, c, owner, err)
		}
		if r.strong-before != strong {
			t.Errorf("%s: %d items were read strongly consistent, want %d", when, r.strong-before, strong)
		}
	}
	expect("the replica knows neither", 2, false, true)
	r.catchUp(t)
	expect("the replica is current", 0, false, true)
	if _, err := a.RevokeKey(t.Context(), a.org, app.ID, key.ID, nil); err != nil {
		t.Fatal(err)
	}
	expect("revoked, and the replica is behind", 0, false, true)
	r.catchUp(t)
	expect("revoked", 0, true, true)
}
