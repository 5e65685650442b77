package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/listener"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// remoteListener makes webhooks of the feed of a service that cannot reach this
// machine. They are signed by a secret of this machine's.
type remoteListener struct {
	feedReader
	forward string // URL that gets them; "": they are only shown
	secret  string
	json    bool

	organization value.ID
	signingKey   []byte
}

func (l *remoteListener) run(ctx context.Context, out, errOut io.Writer) error {
	api, err := l.open()
	if err != nil {
		return err
	}
	if err := l.prepare(ctx, api, errOut); err != nil {
		return err
	}
	return l.follow(ctx, api, errOut, func(c feedChange) error {
		event, err := l.event(c)
		if err != nil {
			return err
		}
		body, err := event.Encode()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s  %-20s  %s  %s  %s\n", event.Timestamp, event.Type, event.ID, event.ObjectID, l.send(ctx, event, body))
		if l.json {
			fmt.Fprintf(out, "%s\n", body)
		}
		return nil
	})
}

// prepare finds out whose changes they are, and takes or makes the secret.
func (l *remoteListener) prepare(ctx context.Context, api *apiclient.Client, errOut io.Writer) (err error) {
	var me struct {
		OrganizationID value.ID `json:"organizationId"`
	}
	if err := api.Get(ctx, "/api/me", &me); err != nil {
		return fmt.Errorf("ask %s who the key is: %w", l.url, err)
	}
	l.organization = me.OrganizationID
	if l.secret == "" {
		l.secret = webhook.NewSecretText()
		fmt.Fprintf(errOut, "signing with %s\n", l.secret)
	}
	if l.signingKey, err = webhook.SecretKey(l.secret); err != nil {
		return fmt.Errorf("--secret: %w", err)
	}
	return nil
}

// event is the webhook that a change could have been. A record that the feed
// shows as it was created is created, any other updated.
func (l *remoteListener) event(c feedChange) (*commerce.WebhookPayload, error) {
	object := struct {
		SiteID    *value.ID  `json:"siteId"`
		CreatedAt value.Time `json:"createdAt"`
	}{}
	kind := string(c.Kind) + ".updated"
	if c.Op == commerce.OpDelete {
		kind, c.Object = string(c.Kind)+".deleted", jsontext.Value(`{"id":"`+c.ID.String()+`"}`)
	}
	if err := json.Unmarshal(c.Object, &object); err != nil {
		return nil, fmt.Errorf("read the %s %s: %w", c.Kind, c.ID, err)
	}
	if object.CreatedAt == c.ChangedAt {
		kind = string(c.Kind) + ".created"
	}
	return &commerce.WebhookPayload{
		ID: value.DeriveID(c.ID, kind+" "+c.ChangedAt.String()), Type: kind, APIVersion: commerce.APIVersion, Timestamp: c.ChangedAt,
		OrganizationID: l.organization, SiteID: object.SiteID, ObjectID: c.ID,
		Data: commerce.WebhookData{Object: c.Object, PreviousAttributes: jsontext.Value("null")},
	}, nil
}

// send posts an event once, if that was asked for, and says what became of it.
func (l *remoteListener) send(ctx context.Context, event *commerce.WebhookPayload, body []byte) string {
	if l.forward == "" {
		return "from the feed"
	}
	header := webhook.Headers(event.ID, time.Now(), body, l.signingKey)
	status, err := listener.Forward(ctx, l.forward, header, body)
	if err != nil {
		return "not forwarded: " + err.Error()
	}
	return fmt.Sprintf("answered %d", status)
}
