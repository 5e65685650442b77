package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/cmd/commerce/listener"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/apiclient"
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

// fromFeed takes the place of a signature that came with a webhook.
const fromFeed listener.Signature = "from the feed"

func (l *remoteListener) run(ctx context.Context, out, errOut io.Writer) error {
	api, err := l.open()
	if err != nil {
		return err
	}
	if err := l.prepare(ctx, api, errOut); err != nil {
		return err
	}
	before := l.after
	err = l.read(ctx, api, waitForChanges, errOut, func(c feedChange) error {
		event, err := l.event(c)
		if err != nil {
			return err
		}
		body, err := event.Encode()
		if err != nil {
			return err
		}
		shown := &listener.Event{
			At: event.Timestamp.Std(), ID: event.ID.String(), Type: event.Type, ObjectID: event.ObjectID.String(), Signature: fromFeed, Body: body,
		}
		if l.forward != "" {
			shown.Answer, shown.Unreached = listener.Forward(ctx, l.forward, webhook.Headers(event.ID, time.Now(), body, l.signingKey), body)
		}
		printEvent(out, l.json, shown)
		return nil
	})
	if l.after != before {
		fmt.Fprintf(errOut, "to go on from here: --after %s\n", l.after)
	}
	return err
}

// prepare finds out whose changes they are, and takes or makes the secret.
func (l *remoteListener) prepare(ctx context.Context, api *apiclient.Client, errOut io.Writer) (err error) {
	if l.organization, err = organizationOf(ctx, api); err != nil {
		return err
	}
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
