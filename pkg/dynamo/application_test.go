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
	"golang.org/x/sync/errgroup"

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

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (a *accounts) application(t testing.TB, name string) account.Application {
	t.Helper()
	app := account.NewApplication(a.org, value.NewID(), account.CreateApplicationDto{Name: &name, Description: ptr("d")}, value.TimeOf(a.now))
	if err := a.CreateApplication(t.Context(), a.org, app, account.ReadScopes()); err != nil {
		t.Fatalf("create application %s: %v", name, err)
	}
	return app
}

// create tries to store a key of the application.
func (a *accounts) create(t *testing.T, app *account.Application, expires *value.Time) (account.CreatedKey, account.Credential, error) {
	key, credential := account.NewKey(app, value.NewID(), account.CreateApiKeyDto{Name: ptr("key"), ExpiresAt: expires}, value.TimeOf(a.now))
	return key, credential, a.CreateKey(t.Context(), a.org, key.APIKey, credential)
}

// key stores a key of the application.
func (a *accounts) key(t *testing.T, app *account.Application, expires *value.Time) (account.CreatedKey, account.Credential) {
	t.Helper()
	key, credential, err := a.create(t, app, expires)
	must(t, err)
	return key, credential
}

// atOnce makes n things by eight workers and returns how many were made; the others
// must have met a limit.
func atOnce(t *testing.T, n int, create func(i int) error) int {
	t.Helper()
	var made atomic.Int64
	var group errgroup.Group
	group.SetLimit(8)
	for i := range n {
		group.Go(func() error {
			err := create(i)
			for fault.Is(err, fault.Unavailable) { // collided too often
				err = create(i)
			}
			if f, is := fault.As(err); is && f.Kind == fault.Conflict && f.Code == fault.CodeLimitReached {
				return nil
			}
			made.Add(1)
			return err
		})
	}
	must(t, group.Wait())
	return int(made.Load())
}

// dump returns the primary keys of every item whose text contains the part,
// and fails when an item holds the secret.
func (a *accounts) dump(t *testing.T, part string, secrets ...string) []string {
	t.Helper()
	out, err := a.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: ptr(a.Name())})
	must(t, err)
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

func TestExactlyTheLimitOfApplicationsIsCreatedWhenManyTryAtOnce(t *testing.T) {
	a := newAccounts(t)
	made := atOnce(t, account.MaxApplications+20, func(int) error {
		app := account.NewApplication(a.org, value.NewID(), account.CreateApplicationDto{Name: ptr("x")}, value.TimeOf(a.now))
		return a.CreateApplication(t.Context(), a.org, app, account.ReadScopes())
	})
	if made != account.MaxApplications {
		t.Errorf("created %d, want %d", made, account.MaxApplications)
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

func TestARefusedChangeWritesNothing(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	stop := errors.New("stop")
	change := func(result error) error {
		_, err := a.ChangeApplication(t.Context(), a.org, app.ID, func(app *account.Application) (bool, error) {
			app.Name = "changed"
			return false, result
		})
		return err
	}
	_, deletion := a.DeleteApplication(t.Context(), a.org, app.ID, func(*account.Application) error { return stop })
	if err := change(nil); err != nil || !errors.Is(change(stop), stop) || !errors.Is(deletion, stop) {
		t.Errorf("a change that changes nothing: %v; others that fail: %v, %v", err, change(stop), deletion)
	}
	if got, err := a.Application(t.Context(), a.org, app.ID); err != nil || got.Name != "shop" {
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
		key, credential := a.key(t, &app, expires)
		if i == 3 {
			if _, err := a.RevokeKey(t.Context(), a.org, app.ID, key.ID, nil); err != nil {
				t.Fatal(err)
			}
		}
		texts = append(texts, credential.KeyText)
	}
	_, keptCredential := a.key(t, &other, nil)
	mine, kept := newEndpoint(t, a.Table, a.org, app.ID), newEndpoint(t, a.Table, a.org, other.ID)
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
	if c, owner, err := a.Credential(t.Context(), keptCredential.KeyText); c == nil || owner == nil || err != nil {
		t.Errorf("the key of another application: got %v, %v, %v", c, owner, err)
	}
	directory, err := a.Directory(t.Context(), a.org)
	want := &webhook.Directory{Endpoints: []*webhook.Endpoint{kept}, Applications: map[value.ID]webhook.ApplicationState{other.ID: webhook.ApplicationActive}}
	if err != nil || cmp.Diff(directory, want) != "" {
		t.Errorf("Directory: %v\n%s", err, cmp.Diff(directory, want))
	}
	marks := []webhook.Due{{Kind: webhook.DueDeletion, OrganizationID: a.org, ID: mine.ID}}
	if due := allDue(t, a.Table); cmp.Diff(due, marks) != "" {
		t.Errorf("marks for the deliveries of its endpoint: %s", cmp.Diff(due, marks))
	}
	if was, err := a.DeleteEndpoint(t.Context(), a.org, mine.ID, always); was || err != nil {
		t.Errorf("DeleteEndpoint of one that went with its application: %t, %v", was, err)
	}
	if again, err := a.DeleteApplication(t.Context(), a.org, app.ID, func(*account.Application) error { return nil }); again || err != nil {
		t.Errorf("delete again: got %v, %v, want nothing found", again, err)
	}
}

func TestAKeyMadeWhileItsApplicationIsDeletedIsNotUsable(t *testing.T) {
	a := newAccounts(t)
	app := a.application(t, "shop")
	var credential account.Credential
	calls := 0
	// check runs between the deletion's read and its write.
	found, err := a.DeleteApplication(t.Context(), a.org, app.ID, func(*account.Application) error {
		if calls++; calls == 1 {
			_, credential = a.key(t, &app, nil)
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
			late = newEndpoint(t, a.Table, a.org, app.ID).ID
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
		newEndpoint(t, a.Table, a.org, app.ID)
	}
	for range account.MaxActiveKeys {
		a.key(t, &app, nil)
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
