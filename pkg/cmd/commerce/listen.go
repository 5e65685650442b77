package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/cmd/commerce/listener"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/webhook"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

// listenCommand is one run of commerce listen.
type listenCommand struct {
	addr, path, data string
	secrets, events  []string
	json             bool
	remote           remoteListener
}

func newListenCommand() *cobra.Command {
	c := &listenCommand{}
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Receive webhooks and show them as they arrive",
		Long: `Listen receives webhooks, verifies their signatures and answers 204. It prints a
line for each: time, type, webhook-id, id of the object, and whether it was
verified or came before. With --subscribe it creates its own endpoint at the local
service, which it deletes at the end. commerce trigger causes events.

With --forward-to each webhook that is not refused is posted with its headers to a
URL, whose answer is shown and, unless it is a 2xx, given to the sender, who tries
again; 502 says that there was none within 15 seconds.

With --remote it follows the feed of changes of a service that cannot reach this
machine, and prints, and with --forward-to posts, an event for each change. Types
are created, updated and deleted only, previousAttributes is null, and each event
is posted once. They are signed by --secret, or by one that is made and printed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(cmd); err != nil {
				return err
			}
			if c.remote.url != "" {
				c.remote.json, c.remote.secret = c.json, strings.Join(c.secrets, "")
				return c.remote.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.addr, "addr", "127.0.0.1:4000", "address to listen on")
	f.StringVar(&c.path, "path", "/", "path that takes webhooks")
	f.StringSliceVar(&c.secrets, "secret", nil, "secret of the endpoint (whsec_...); several during a rotation")
	f.StringVar(&c.data, "data", defaultData, "data directory of the local runner")
	f.StringSliceVar(&c.events, "subscribe", nil, "event types to subscribe to at the local service, such as 'order.*'")
	f.BoolVar(&c.json, "json", false, "print each webhook with its payload, as JSON in a line")
	f.StringVar(&c.remote.url, "remote", "", "base URL of a service whose feed of changes takes the place of webhooks")
	f.StringVar(&c.remote.forward, "forward-to", "", "URL that gets the webhooks by POST")
	c.remote.keyFlags(cmd)
	f.StringVar(&c.remote.after, "after", "now", "with --remote: cursor to go on from, as a run before printed it; '' begins with every record")
	for _, local := range []string{"addr", "path", "subscribe"} {
		cmd.MarkFlagsMutuallyExclusive("remote", local)
	}
	return cmd
}

func (c *listenCommand) run(ctx context.Context, out, errOut io.Writer) error {
	receiver, err := listener.New(c.secrets, listener.Config{
		Path: c.path, ForwardTo: c.remote.forward,
		OnEvent: func(e listener.Event) { printEvent(out, c.json, &e) },
	})
	if err != nil {
		return err
	}
	// The socket opens before the endpoint exists and is served once its secret
	// is known, so that the first event is neither refused nor unverified.
	socket, err := net.Listen("tcp", c.addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use by another program: stop it, or choose another address with --addr", c.addr)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.addr, err)
	}
	defer socket.Close()
	target := "http://" + socket.Addr().String() + c.path
	if len(c.events) > 0 {
		unsubscribe, err := c.subscribe(ctx, receiver, target, errOut)
		if err != nil {
			return err
		}
		defer unsubscribe()
	}
	next := "give the URL to a sender, or make an endpoint of the local service by --subscribe 'order.*'"
	if len(c.events) > 0 {
		next = asCalled("to see an event: commerce trigger ") + exampleOf(c.events)
	}
	fmt.Fprintf(errOut, "listening on %s\n%s\n", target, next)
	return serve(ctx, socket, receiver)
}

func (c *listenCommand) check(cmd *cobra.Command) error {
	for _, name := range []string{"key", "kinds", "after"} {
		if cmd.Flags().Changed(name) && c.remote.url == "" {
			return wrongUsage("--%s goes with --remote", name)
		}
	}
	switch {
	case c.remote.url != "" && len(c.secrets) > 1:
		return wrongUsage("--remote signs with one --secret")
	case !strings.HasPrefix(c.path, "/"):
		return wrongUsage("--path %s: must begin with /", c.path)
	case len(c.events) > 0 && len(c.secrets) > 0:
		return wrongUsage("--subscribe brings its own secret; leave --secret out")
	}
	for _, secret := range c.secrets {
		if _, err := webhook.SecretKey(secret); err != nil {
			return wrongUsage("--secret: must be whsec_ and base64, as the endpoint's secret was shown")
		}
	}
	return nil
}

// printEvent prints a line: time, type, id, object, signature and what is unusual.
func printEvent(out io.Writer, asJSON bool, e *listener.Event) {
	if !asJSON {
		fmt.Fprintf(out, "%s  %-20s  %-36s  %-36s  %s\n", value.TimeOf(e.At), shown(e.Type), shown(e.ID), shown(e.ObjectID), visible(e.Outcome()))
		return
	}
	payload := jsontext.Value(e.Body)
	if !payload.IsValid(ops.LenientJSON()...) {
		payload = nil
	}
	_ = writeJSON(out, struct {
		At        value.Time     `json:"at"`
		Type      string         `json:"type"`
		WebhookID string         `json:"webhookId"`
		ObjectID  string         `json:"objectId"`
		Outcome   string         `json:"outcome"`
		Payload   jsontext.Value `json:"payload"` // null when it is no JSON
	}{value.TimeOf(e.At), e.Type, e.ID, e.ObjectID, e.Outcome(), payload})
}

// shown is what a line shows of a text from outside.
func shown(text string) string {
	const most = 100
	return cmp.Or(visible(ops.Shorten(text, most)), "-")
}

func serve(ctx context.Context, socket net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(socket) }()
	select {
	case err := <-stopped:
		return fmt.Errorf("serve webhooks: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(grace); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop listening: %w", err)
	}
	return nil
}

// exampleOf returns a type that trigger can cause and one of the subscriptions takes.
func exampleOf(subscriptions []string) string {
	for _, name := range triggers() {
		if commerce.Matches(subscriptions, name) {
			return name
		}
	}
	return "TYPE"
}

// subscribe creates an endpoint for the listener at the local service and
// returns a function that deletes it.
func (c *listenCommand) subscribe(ctx context.Context, receiver *listener.Listener, target string, errOut io.Writer) (func(), error) {
	info, err := runner.ReadInfo(c.data)
	if err != nil {
		return nil, err
	}
	api := apiclient.New(info.BaseURL, info.JWT)
	path := func(endpoint string) string {
		return "/developers/webhooks/endpoints" + endpoint + "?applicationId=" + url.QueryEscape(info.ApplicationID)
	}
	var endpoint struct {
		ID     string `json:"id"`
		Secret string `json:"secret"`
	}
	body := map[string]any{"url": target, "description": "commerce listen", "events": c.events}
	if err := api.Create(ctx, path(""), body, &endpoint); err != nil {
		return nil, fmt.Errorf("create an endpoint for %s: %w", target, err)
	}
	unsubscribe := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		if err := api.Delete(ctx, path("/"+url.PathEscape(endpoint.ID))); err != nil {
			fmt.Fprintf(errOut, "the endpoint %[1]s stays: delete endpoint %[1]s: %[2]v\n", endpoint.ID, err)
		}
	}
	if err := receiver.SetSecrets(endpoint.Secret); err != nil {
		unsubscribe()
		return nil, fmt.Errorf("read the secret of endpoint %s: %w", endpoint.ID, err)
	}
	fmt.Fprintf(errOut, "endpoint %s gets %s\n", endpoint.ID, strings.Join(c.events, ", "))
	return unsubscribe, nil
}
