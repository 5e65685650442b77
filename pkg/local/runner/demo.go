package runner

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/issuer"
)

// demoRecords is a small shop. {{site}} is replaced by the demo site's ID. The records are silent, without events, because
// nobody can have subscribed yet.
//
//go:embed demo.json
var demoRecords string

// makeDemo makes the demo application and its key unless they exist, and sends the demo records once.
func (r *run) makeDemo(ctx context.Context, base string) error {
	owner, err := r.user(base, r.state.UserID, auth.Owner)
	if err != nil {
		return err
	}
	if err := r.keepApplication(ctx, base, owner); err != nil {
		return err
	}
	if r.cfg.NoDemo || r.state.DemoSent {
		return nil
	}
	if err := r.sendDemo(ctx); err != nil {
		return err
	}
	// A user of its own, so that polling does not use up the rate limit of the printed token.
	viewer, err := r.user(base, value.NewID(), auth.Viewer)
	if err != nil {
		return err
	}
	if err := awaitDemo(ctx, viewer); err != nil {
		return err
	}
	r.state.DemoSent = true
	return r.state.save()
}

// user returns a client of the API that acts as a user of the demo organization.
func (r *run) user(base string, id value.ID, role auth.Role) (*apiclient.Client, error) {
	jwt, err := r.servers.issuer.Sign(issuer.Grant{
		Subject: id.String(), OrganizationID: r.state.OrganizationID, Roles: []auth.Role{role}, Lifetime: time.Hour,
	})
	return apiclient.New(base, jwt), err
}

// application is what an answer shows of one.
type application struct {
	ID           string `json:"id"`
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
}

// keepApplication makes sure that the printed key and client secret are valid. It replaces a revoked key and a secret
// that is not known here, and makes the application again when it was deleted or the table is another one.
func (r *run) keepApplication(ctx context.Context, base string, owner *apiclient.Client) error {
	path, shown := "/developers/applications/"+r.state.ApplicationID, application{}
	if r.state.ApplicationID == "" {
		return r.makeApplication(ctx, owner)
	}
	if err := owner.Get(ctx, path, &shown); apiclient.Refused(err) == http.StatusNotFound {
		r.state.DemoSent = false
		return r.makeApplication(ctx, owner)
	} else if err != nil {
		return fmt.Errorf("look up the demo's application: %w", err)
	}
	if _, end, _ := strings.Cut(shown.ClientSecret, "****"); !strings.HasSuffix(r.state.ClientSecret, end) {
		if err := owner.Act(ctx, path+"/rotate-secret", &shown); err != nil {
			return fmt.Errorf("give the demo's application a secret: %w", err)
		}
		r.state.ClientSecret = shown.ClientSecret
	}
	switch err := apiclient.NewWithKey(base, r.state.APIKey).Get(ctx, "/api/me", nil); {
	case apiclient.Refused(err) == http.StatusUnauthorized:
		return r.makeKey(ctx, owner)
	case err != nil:
		return fmt.Errorf("try the demo's key: %w", err)
	}
	return r.state.save()
}

func (r *run) makeApplication(ctx context.Context, owner *apiclient.Client) error {
	var created application
	if err := owner.Create(ctx, "/developers/applications", map[string]string{"name": "Demo"}, &created); err != nil {
		return fmt.Errorf("make the demo's application: %w", err)
	}
	r.state.ApplicationID, r.state.ClientID, r.state.ClientSecret = created.ID, created.ClientID, created.ClientSecret
	return r.makeKey(ctx, owner)
}

func (r *run) makeKey(ctx context.Context, owner *apiclient.Client) error {
	var created struct {
		Key string `json:"key"`
	}
	path := "/developers/applications/" + r.state.ApplicationID + "/api-keys"
	if err := owner.Create(ctx, path, map[string]string{"name": "Demo"}, &created); err != nil {
		return fmt.Errorf("make the demo's key: %w", err)
	}
	r.state.APIKey = created.Key
	return r.state.save()
}

// sendDemo sends the demo records in one message.
func (r *run) sendDemo(ctx context.Context) error {
	records := strings.ReplaceAll(demoRecords, "{{site}}", r.state.SiteID.String())
	_, err := r.servers.sqs().SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(r.queues["RecordsQueue"].URL), MessageGroupId: aws.String(r.state.OrganizationID.String()),
		MessageBody: aws.String(fmt.Sprintf(`{"organizationId":%q,"records":%s}`, r.state.OrganizationID, records)),
	})
	if err != nil {
		return fmt.Errorf("send the demo records: %w", err)
	}
	return nil
}

// awaitDemo waits until the lists show the demo records, but no longer than 10 s: a slow machine shows them later.
func awaitDemo(ctx context.Context, service *apiclient.Client) error {
	const patience, interval = 10 * time.Second, 50 * time.Millisecond
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, kind := range commerce.Kinds() {
		want := strings.Count(demoRecords, `{"kind": "`+string(kind)+`"`)
		for {
			var list struct {
				Meta struct {
					Total int `json:"total"`
				} `json:"meta"`
			}
			err := service.Get(waiting, "/api/"+kind.Plural()+"?limit=1", &list)
			if err != nil && apiclient.Refused(err) == 0 && waiting.Err() == nil {
				return fmt.Errorf("wait for the demo's records: %w", err)
			}
			if list.Meta.Total >= want {
				break
			}
			if pause.For(waiting, interval) != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}
