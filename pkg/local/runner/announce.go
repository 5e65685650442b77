package runner

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/local/issuer"
)

// tokenTTL is the lifetime of the printed token, longer than a local service runs.
const tokenTTL = 30 * 24 * time.Hour

// announce makes the demo and reports. Its requests wait until the gateway takes connections.
func (r *run) announce(ctx context.Context) error {
	base := baseURL(r.listener.Addr())
	jwt, err := r.servers.issuer.Sign(issuer.Grant{
		Subject: r.state.UserID.String(), OrganizationID: r.state.OrganizationID, Roles: []auth.Role{auth.Owner}, Lifetime: tokenTTL,
	})
	if err != nil {
		return err
	}
	if err := r.makeDemo(ctx, base); err != nil {
		return fmt.Errorf("make the demo: %w", err)
	}
	info := &Info{
		BaseURL: base, Issuer: r.servers.issuerURL, OrganizationID: r.state.OrganizationID.String(), SiteID: r.state.SiteID.String(),
		ApplicationID: r.state.ApplicationID, ClientID: r.state.ClientID, ClientSecret: r.state.ClientSecret,
		JWT: jwt, APIKey: r.state.APIKey,
		DynamoDBEndpoint: r.servers.tableURL, SQSEndpoint: r.servers.queueURL, TableName: r.cfg.Table,
		RecordsQueueURL: r.queues["RecordsQueue"].URL, ImportsQueueURL: r.queues["ImportsQueue"].URL,
		DeliveriesQueueURL:     r.queues["DeliveriesQueue"].URL,
		SlowDeliveriesQueueURL: r.queues["SlowDeliveriesQueue"].URL, IndexJobsQueueURL: r.queues["IndexJobsQueue"].URL,
	}
	if err := WriteInfo(r.cfg.DataDir, info); err != nil {
		return err
	}
	r.announced.Store(true)
	if r.cfg.Ready != nil {
		r.cfg.Ready(info)
	}
	return nil
}

// healthyOnceAnnounced answers 503 to /health until run.json says where the
// service is: a program that waits for the one reads the other then.
func (r *run) healthyOnceAnnounced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.TrimSuffix(req.URL.Path, "/") == "/health" && !r.announced.Load() {
			http.Error(w, "the service is starting", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// baseURL returns the URL of a listener for clients on this machine.
func baseURL(listener net.Addr) string {
	addr, ok := listener.(*net.TCPAddr)
	if ok && addr.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", addr.Port)
	}
	return "http://" + listener.String()
}
