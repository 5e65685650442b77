package runner

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/auth"
)

// announce waits until the service answers, makes the demo and reports.
func (r *run) announce(ctx context.Context) error {
	base := "http://" + r.listener.Addr().String()
	if err := awaitHealth(ctx, base); err != nil {
		return err
	}
	jwt, err := r.issuer.Sign(auth.Grant{
		Subject: r.state.UserID.String(), OrganizationID: r.state.OrganizationID, Roles: []auth.Role{auth.Owner}, Lifetime: tokenTTL,
	})
	if err != nil {
		return err
	}
	if err := r.makeDemo(ctx, base, jwt); err != nil {
		return fmt.Errorf("make the demo: %w", err)
	}
	if r.cfg.Ready == nil {
		return nil
	}
	return r.cfg.Ready(Info{
		BaseURL: base, OrganizationID: r.state.OrganizationID.String(), SiteID: r.state.SiteID.String(),
		ApplicationID: r.state.ApplicationID, JWT: jwt, APIKey: r.state.APIKey,
		DynamoDBEndpoint: r.tableURL, SQSEndpoint: r.internalURL, TableName: tableName,
		RecordsQueueURL: r.made["RecordsQueue"].URL, DeliveriesQueueURL: r.made["DeliveriesQueue"].URL,
	})
}

// tokenTTL is how long the printed token is good for.
const tokenTTL = 24 * time.Hour

func awaitHealth(ctx context.Context, base string) error {
	const patience, pause = 20 * time.Second, 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		status, err := call(ctx, http.MethodGet, base+"/health", "", nil, nil)
		if err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the service does not answer on %s: status %d, %w", base, status, err)
		case <-time.After(pause):
		}
	}
}

// call makes a request of the service's own API and decodes its answer.
func call(ctx context.Context, method, url, jwt string, body, answer any) (status int, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, url, err)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, url, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if jwt != "" {
		req.Header.Set("Authorization", "Bearer "+jwt)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, url, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	if answer == nil || resp.StatusCode >= http.StatusBadRequest {
		return resp.StatusCode, nil
	}
	if err := json.UnmarshalRead(resp.Body, answer); err != nil {
		return resp.StatusCode, fmt.Errorf("%s %s: %w", method, url, err)
	}
	return resp.StatusCode, nil
}
