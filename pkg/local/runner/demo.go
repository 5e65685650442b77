package runner

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/issuer"
)

// demoRecords is a small shop. {{site}} is replaced by the demo site's ID.
//
//go:embed demo.json
var demoRecords []byte

// makeDemo makes the demo application and its key unless they exist, and sends the demo records once.
func (r *run) makeDemo(ctx context.Context, base string) error {
	owner, err := r.user(base, r.state.UserID, auth.Owner)
	if err != nil {
		return err
	}
	// A user of its own, so that polling does not use up the rate limit of the printed token.
	viewer, err := r.user(base, value.NewID(), auth.Viewer)
	if err != nil {
		return err
	}
	if err := r.keepKey(ctx, owner, viewer); err != nil {
		return err
	}
	if r.cfg.NoDemo || r.state.DemoSent {
		return nil
	}
	sent, err := r.sendDemo(ctx)
	if err != nil {
		return err
	}
	if err := r.awaitRecords(ctx, viewer, sent); err != nil {
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

// keepKey makes sure that the printed key is valid. It replaces a revoked key, and makes the application again when it was
// deleted or the table is another one.
func (r *run) keepKey(ctx context.Context, owner, viewer *apiclient.Client) error {
	if r.state.ApplicationID == "" {
		return r.makeApplication(ctx, owner)
	}
	var keys struct {
		Data []struct {
			Prefix string `json:"prefix"`
		} `json:"data"`
	}
	path := "/developers/applications/" + r.state.ApplicationID + "/api-keys?status=ACTIVE&limit=100"
	if err := viewer.Get(ctx, path, &keys); apiclient.Refused(err) == http.StatusNotFound {
		r.state.DemoSent = false
		return r.makeApplication(ctx, owner)
	} else if err != nil {
		return fmt.Errorf("look up the demo's keys: %w", err)
	}
	if err := r.keepSecret(ctx, owner, viewer); err != nil {
		return err
	}
	for _, key := range keys.Data {
		if strings.HasPrefix(r.state.APIKey, key.Prefix) {
			return nil
		}
	}
	return r.makeKey(ctx, owner)
}

func (r *run) makeApplication(ctx context.Context, service *apiclient.Client) error {
	var created application
	if err := service.Create(ctx, "/developers/applications", map[string]string{"name": "Demo"}, &created); err != nil {
		return fmt.Errorf("make the demo's application: %w", err)
	}
	r.state.ApplicationID = created.ID
	r.state.ClientID, r.state.ClientSecret = created.ClientID, created.ClientSecret
	return r.makeKey(ctx, service)
}

// application is what an answer shows of one.
type application struct {
	ID           string `json:"id"`
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
}

// keepSecret makes sure that the printed client secret is the current one: it rotates one that is not known here.
func (r *run) keepSecret(ctx context.Context, owner, viewer *apiclient.Client) error {
	path := "/developers/applications/" + r.state.ApplicationID
	var shown, rotated application
	if err := viewer.Get(ctx, path, &shown); err != nil {
		return fmt.Errorf("look up the demo's application: %w", err)
	}
	_, end, _ := strings.Cut(shown.ClientSecret, "****")
	if r.state.ClientSecret != "" && strings.HasSuffix(r.state.ClientSecret, end) {
		return nil
	}
	if err := owner.Act(ctx, path+"/rotate-secret", &rotated); err != nil {
		return fmt.Errorf("give the demo's application a secret: %w", err)
	}
	r.state.ClientID, r.state.ClientSecret = rotated.ClientID, rotated.ClientSecret
	return r.state.save()
}

func (r *run) makeKey(ctx context.Context, service *apiclient.Client) error {
	var created struct {
		Key string `json:"key"`
	}
	path := "/developers/applications/" + r.state.ApplicationID + "/api-keys"
	if err := service.Create(ctx, path, map[string]string{"name": "Demo"}, &created); err != nil {
		return fmt.Errorf("make the demo's key: %w", err)
	}
	r.state.APIKey = created.Key
	return r.state.save()
}

// sendDemo sends the demo records in one message and returns their number by kind. They are silent, without events,
// because nobody can have subscribed yet.
func (r *run) sendDemo(ctx context.Context) (sent map[commerce.Kind]int, err error) {
	text := bytes.ReplaceAll(demoRecords, []byte("{{site}}"), []byte(r.state.SiteID.String()))
	var records []map[string]jsontext.Value
	if err := json.Unmarshal(text, &records); err != nil {
		return nil, fmt.Errorf("read the demo records: %w", err)
	}
	sent = map[commerce.Kind]int{}
	for _, record := range records {
		record["silent"] = jsontext.Value("true")
		var kind commerce.Kind
		if err := json.Unmarshal(record["kind"], &kind); err != nil {
			return nil, fmt.Errorf("read the demo records: %w", err)
		}
		sent[kind]++
	}
	body, err := json.Marshal(map[string]any{"organizationId": r.state.OrganizationID, "records": records})
	if err != nil {
		return nil, fmt.Errorf("encode the demo records: %w", err)
	}
	_, err = r.servers.sqs().SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(r.queues["RecordsQueue"].URL), MessageBody: aws.String(string(body)),
		MessageGroupId: aws.String(r.state.OrganizationID.String()),
	})
	if err != nil {
		return nil, fmt.Errorf("send the demo records: %w", err)
	}
	return sent, nil
}

// awaitRecords waits until the lists show the records, but no longer than 10 s: a slow machine shows them later.
func (r *run) awaitRecords(ctx context.Context, service *apiclient.Client, want map[commerce.Kind]int) error {
	const patience, interval = 10 * time.Second, 50 * time.Millisecond
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for kind, n := range want {
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
			if list.Meta.Total >= n {
				break
			}
			if pause.For(waiting, interval) != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}
