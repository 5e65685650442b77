package dynamo_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// accounts is a fresh table under a clock that the test moves.
type accounts struct {
	*dynamo.Table
	client *dynamodb.Client
	org    value.ID
	now    time.Time
}

func newAccounts(t *testing.T) *accounts {
	t.Helper()
	client, name := dynamotest.Client(t)
	a := &accounts{client: client, org: value.NewID(), now: time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC)}
	a.Table = dynamo.New(client, name, func() time.Time { return a.now })
	return a
}

func ptr[T any](v T) *T { return &v }

func (a *accounts) application(t *testing.T, name string) account.Application {
	t.Helper()
	app := account.NewApplication(a.org, value.NewID(), account.CreateApplicationDto{Name: &name, Description: ptr("d")}, value.TimeOf(a.now))
	if err := a.CreateApplication(t.Context(), a.org, app, account.ReadScopes()); err != nil {
		t.Fatalf("create application %s: %v", name, err)
	}
	return app
}

func (a *accounts) key(app *account.Application, expires *value.Time) (account.CreatedKey, account.Credential) {
	return account.NewKey(app, value.NewID(), account.CreateApiKeyDto{Name: ptr("key"), ExpiresAt: expires}, value.TimeOf(a.now))
}

func (a *accounts) endpoint(t *testing.T, app *account.Application) value.ID {
	t.Helper()
	e := &webhook.Endpoint{
		ID: value.NewID(), OrganizationID: a.org, ApplicationID: app.ID, URL: "https://example.com", Status: webhook.Active,
		CreatedAt: value.TimeOf(a.now), UpdatedAt: value.TimeOf(a.now),
	}
	if err := a.CreateEndpoint(t.Context(), e); err != nil {
		t.Fatalf("create an endpoint: %v", err)
	}
	return e.ID
}

// dump returns the primary keys of every item whose text contains the part,
// and fails when an item holds the secret.
func (a *accounts) dump(t *testing.T, part string, secrets ...string) []string {
	t.Helper()
	out, err := a.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: ptr(a.Name())})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, it := range out.Items {
		id := it["PK"].(*types.AttributeValueMemberS).Value + " " + it["SK"].(*types.AttributeValueMemberS).Value
		for name, attribute := range it {
			text := ""
			switch v := attribute.(type) {
			case *types.AttributeValueMemberS:
				text = v.Value
			case *types.AttributeValueMemberB:
				text = string(v.Value)
			}
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("item %s holds a secret in %s", id, name)
				}
			}
		}
		if strings.Contains(id, part) {
			found = append(found, id)
		}
	}
	return found
}

func TestAnApplicationIsStoredWithoutItsSecret(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	got, err := a.Application(t.Context(), a.org, app.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ptr(app.Masked()), got); diff != "" {
		t.Errorf("stored application (-want +got):\n%s", diff)
	}
	a.dump(t, "", app.ClientSecret)
}

func TestAnApplicationOfAnotherOrganizationIsAbsent(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	other := value.NewID()
	if got, err := a.Application(t.Context(), other, app.ID); got != nil || err != nil {
		t.Errorf("read: got %v, %v, want nothing", got, err)
	}
	if got, err := a.Applications(t.Context(), other); len(got) != 0 || err != nil {
		t.Errorf("list: got %v, %v, want nothing", got, err)
	}
	change := func(*account.Application) (bool, error) { t.Error("change was called"); return true, nil }
	if got, err := a.ChangeApplication(t.Context(), other, app.ID, change); got != nil || err != nil {
		t.Errorf("change: got %v, %v, want nothing", got, err)
	}
	check := func(*account.Application) error { t.Error("check was called"); return nil }
	if found, err := a.DeleteApplication(t.Context(), other, app.ID, check); found || err != nil {
		t.Errorf("delete: got %v, %v, want nothing", found, err)
	}
	key, credential := a.key(&app, nil)
	if err := a.CreateKey(t.Context(), other, key.APIKey, credential); !fault.Is(err, fault.NotFound) {
		t.Errorf("create key: got %v, want not found", err)
	}
	if err := a.CreateKey(t.Context(), a.org, key.APIKey, credential); err != nil {
		t.Fatal(err)
	}
	if got, _, err := a.RevokeKey(t.Context(), other, app.ID, key.ID); got != nil || err != nil {
		t.Errorf("revoke: got %v, %v, want nothing", got, err)
	}
	if got, err := a.Keys(t.Context(), other, app.ID); len(got) != 0 || err != nil {
		t.Errorf("keys: got %v, %v, want nothing", got, err)
	}
}

func TestExactlyTheLimitOfApplicationsIsCreatedWhenManyTryAtOnce(t *testing.T) {
	a := newAccounts(t)
	var created, refused atomic.Int64
	var group sync.WaitGroup
	work := make(chan struct{}, account.MaxApplications+20)
	for range cap(work) {
		work <- struct{}{}
	}
	close(work)
	for range 8 {
		group.Go(func() {
			for range work {
				app := account.NewApplication(a.org, value.NewID(), account.CreateApplicationDto{Name: ptr("x")}, value.TimeOf(a.now))
				err := a.CreateApplication(context.Background(), a.org, app, account.ReadScopes())
				f, _ := fault.As(err)
				switch {
				case err == nil:
					created.Add(1)
				case f != nil && f.Kind == fault.Conflict && f.Code == fault.CodeLimitReached:
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if created.Load() != account.MaxApplications || refused.Load() != 20 {
		t.Errorf("created %d and refused %d, want %d and 20", created.Load(), refused.Load(), account.MaxApplications)
	}
	apps, err := a.Applications(t.Context(), a.org)
	if err != nil || len(apps) != account.MaxApplications {
		t.Fatalf("stored: got %d, %v, want %d", len(apps), err, account.MaxApplications)
	}
	if _, err := a.DeleteApplication(t.Context(), a.org, apps[0].ID, func(*account.Application) error { return nil }); err != nil {
		t.Fatal(err)
	}
	a.application(t, "in the place of the deleted one")
}

func TestConcurrentChangesOfAnApplicationAllHappen(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 5 {
				_, err := a.ChangeApplication(context.Background(), a.org, app.ID, func(app *account.Application) (bool, error) {
					app.RateLimit++
					app.UpdatedAt++
					return true, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	got, err := a.Application(t.Context(), a.org, app.ID)
	if err != nil || got.RateLimit != account.DefaultRateLimit+20 || got.UpdatedAt != app.UpdatedAt+20 {
		t.Errorf("got %+v, %v, want 20 changes", got, err)
	}
}

func TestAChangeThatChangesNothingOrFailsWritesNothing(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	stop := errors.New("stop")
	for name, result := range map[string]error{"nothing": nil, "fails": stop} {
		t.Run(name, func(t *testing.T) {
			_, err := a.ChangeApplication(t.Context(), a.org, app.ID, func(app *account.Application) (bool, error) {
				app.Name = "changed"
				return false, result
			})
			if !errors.Is(err, result) {
				t.Errorf("got %v, want %v", err, result)
			}
		})
	}
	got, err := a.Application(t.Context(), a.org, app.ID)
	if err != nil || got.Name != "shop" {
		t.Errorf("got %+v, %v, want it as it was", got, err)
	}
}

func TestADeletedApplicationLeavesNothingBehind(t *testing.T) {
	a := newAccounts(t)
	app, other := a.application(t, "shop"), a.application(t, "other")
	var texts []string
	for i := range 5 {
		var expires *value.Time
		if i == 4 {
			expires = ptr(value.TimeOf(a.now.Add(time.Minute)))
		}
		key, credential := a.key(&app, expires)
		if err := a.CreateKey(t.Context(), a.org, key.APIKey, credential); err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			if _, _, err := a.RevokeKey(t.Context(), a.org, app.ID, key.ID); err != nil {
				t.Fatal(err)
			}
		}
		texts = append(texts, credential.KeyText)
	}
	kept, keptCredential := a.key(&other, nil)
	if err := a.CreateKey(t.Context(), a.org, kept.APIKey, keptCredential); err != nil {
		t.Fatal(err)
	}
	mine, others := a.endpoint(t, &app), a.endpoint(t, &other)
	a.now = a.now.Add(time.Hour)

	found, err := a.DeleteApplication(t.Context(), a.org, app.ID, func(got *account.Application) error {
		if got.ID != app.ID {
			t.Errorf("check saw %s, want %s", got.ID, app.ID)
		}
		return nil
	})
	if !found || err != nil {
		t.Fatalf("delete: got %v, %v", found, err)
	}
	for _, text := range texts {
		if c, _, err := a.Credential(t.Context(), text); c != nil || err != nil {
			t.Errorf("credential %s: got %v, %v, want none", text, c, err)
		}
	}
	if left := a.dump(t, app.ID.String()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if e, err := a.Endpoint(t.Context(), a.org, mine); e != nil || err != nil {
		t.Errorf("its endpoint: got %v, %v, want none", e, err)
	}
	if c, owner, err := a.Credential(t.Context(), keptCredential.KeyText); c == nil || owner == nil || err != nil {
		t.Errorf("the key of another application: got %v, %v, %v", c, owner, err)
	}
	if e, err := a.Endpoint(t.Context(), a.org, others); e == nil || err != nil {
		t.Errorf("the endpoint of another application: got %v, %v, want it", e, err)
	}
	if again, err := a.DeleteApplication(t.Context(), a.org, app.ID, func(*account.Application) error { return nil }); again || err != nil {
		t.Errorf("delete again: got %v, %v, want nothing found", again, err)
	}
}

func TestARefusedDeletionKeepsEverything(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	stop := errors.New("stop")
	if found, err := a.DeleteApplication(t.Context(), a.org, app.ID, func(*account.Application) error { return stop }); found || !errors.Is(err, stop) {
		t.Errorf("got %v, %v, want the error of check", found, err)
	}
	if got, err := a.Application(t.Context(), a.org, app.ID); got == nil || err != nil {
		t.Errorf("got %v, %v, want it as it was", got, err)
	}
}

func TestAKeyMadeWhileItsApplicationIsDeletedIsNotUsable(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	late, credential := a.key(&app, nil)
	calls := 0
	// check runs between the deletion's read and its write.
	found, err := a.DeleteApplication(t.Context(), a.org, app.ID, func(*account.Application) error {
		if calls++; calls == 1 {
			return a.CreateKey(t.Context(), a.org, late.APIKey, credential)
		}
		return nil
	})
	if !found || err != nil || calls != 2 {
		t.Fatalf("got %v, %v after %d reads, want a deletion that read again", found, err, calls)
	}
	if c, _, err := a.Credential(t.Context(), credential.KeyText); c != nil || err != nil {
		t.Errorf("credential: got %v, %v, want none", c, err)
	}
}

func TestAnEndpointMadeWhileItsApplicationIsDeletedIsDeletedToo(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	var late value.ID
	found, err := a.DeleteApplication(t.Context(), a.org, app.ID, func(*account.Application) error {
		if late.IsZero() {
			late = a.endpoint(t, &app)
		}
		return nil
	})
	if !found || err != nil {
		t.Fatalf("got %v, %v, want a deletion", found, err)
	}
	if e, err := a.Endpoint(t.Context(), a.org, late); e != nil || err != nil {
		t.Errorf("endpoint: got %v, %v, want none", e, err)
	}
}

func TestTheLargestApplicationIsDeletedAtOnce(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	for range webhook.MaxEndpointsPerApplication {
		a.endpoint(t, &app)
	}
	for range account.MaxActiveKeys {
		key, credential := a.key(&app, nil)
		if err := a.CreateKey(t.Context(), a.org, key.APIKey, credential); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := a.DeleteApplication(t.Context(), a.org, app.ID, func(*account.Application) error { return nil }); !found || err != nil {
		t.Fatalf("got %v, %v, want a deletion", found, err)
	}
	if left, err := a.Endpoints(t.Context(), a.org); len(left) != 0 || err != nil {
		t.Errorf("endpoints: got %d, %v, want none", len(left), err)
	}
	if left := a.dump(t, "KEY"); len(left) != 0 {
		t.Errorf("keys and credentials left: %v", left)
	}
}
