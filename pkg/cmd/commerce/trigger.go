package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/cmd/commerce/listener"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

// triggerCommand is one run of commerce trigger.
type triggerCommand struct {
	target
	forward, secret string
	json            jsonFlag
}

func newTriggerCommand() *cobra.Command {
	c := &triggerCommand{}
	cmd := &cobra.Command{
		Use: "trigger TYPE", Short: "Cause an event of a type, such as order.paid",
		Long: `Trigger puts a sample record into the local service, changed so that the event
follows: every endpoint that takes the type gets it, signed and retried as any
other, and so does whatever else the change means, such as order.created. The
record is a new one each time, and stays unless the type ends in .deleted.
--queue-url and --organization name the records queue of another service.

With --forward-to it causes nothing: it posts the example of the catalogue to a URL,
signed by --secret or by one that is made and printed, and shows the answer.

These types a record causes:
` + typeLines(triggers()) + `

These are only posted, with --forward-to:
` + typeLines(untriggered()),
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: commerce.EventNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case c.forward != "":
				return c.post(cmd.Context(), args[0], cmd.OutOrStdout())
			case c.secret != "":
				return wrongUsage("--secret goes with --forward-to")
			}
			return c.cause(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	c.queueFlags(cmd)
	f := cmd.Flags()
	c.organizationFlag(cmd)
	urlFlag(cmd, &c.forward, "forward-to", "URL that gets the catalogue's example by POST, instead of the event")
	f.StringVar(&c.secret, "secret", "", "with --forward-to: secret to sign with (whsec_...)")
	c.json.flag(cmd)
	cmd.MarkFlagsMutuallyExclusive("forward-to", "queue-url")
	return cmd
}

// triggers are the types that a record's change means, in the catalogue's order.
func triggers() []string { return slices.DeleteFunc(commerce.EventNames(), unrecorded) }

// typeLines has the types in lines, a new one for each resource.
func typeLines(names []string) string {
	const width = 88
	slices.Sort(names)
	var lines strings.Builder
	last, at := "", 0
	for _, name := range names {
		resource, _, _ := strings.Cut(name, ".")
		if resource != last || at+1+len(name) > width {
			lines.WriteString("\n ")
			last, at = resource, 1
		}
		lines.WriteString(" " + name)
		at += 1 + len(name)
	}
	return lines.String()
}

func untriggered() []string {
	return slices.DeleteFunc(commerce.EventNames(), func(name string) bool { return !unrecorded(name) })
}

func unrecorded(name string) bool { return commerce.IsAlert(name) || name == commerce.EventWebhookTest }

// cause sends the changes that mean the event in one message, so that they are
// made in their order.
func (c *triggerCommand) cause(ctx context.Context, eventType string, out io.Writer) error {
	id := value.NewID()
	changes := commerce.ExampleChanges(eventType, id)
	if changes == nil {
		return wrongUsage("%s: no record causes it; --forward-to posts its example", eventType)
	}
	client, err := c.openQueue(ctx, func(f *runner.Info) string { return f.RecordsQueueURL })
	if err != nil {
		return err
	}
	if err := c.localOrganization(); err != nil {
		return err
	}
	type change struct {
		Kind   commerce.Kind `json:"kind"`
		Op     commerce.Op   `json:"op"`
		Record any           `json:"record"`
	}
	message := struct {
		OrganizationID value.ID `json:"organizationId"`
		Records        []change `json:"records"`
	}{OrganizationID: c.organization}
	for _, made := range changes {
		message.Records = append(message.Records, change{made.Kind, made.Op, made.Record})
	}
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode the records: %w", err)
	}
	if err := queue.New(client, c.queueURL).Send(ctx, recordMessage(body, c.organization)); err != nil {
		return fmt.Errorf("queue %s: %w", c.queueURL, err)
	}
	kind := changes[0].Kind
	result := struct {
		Type string        `json:"type"`
		Kind commerce.Kind `json:"kind"`
		ID   value.ID      `json:"id"`
	}{eventType, kind, id}
	return c.json.printf(out, result, "%s follows from the %s %s\n", eventType, kind, id)
}

// post sends the catalogue's example of the type to the URL.
func (c *triggerCommand) post(ctx context.Context, eventType string, out io.Writer) error {
	made := c.secret == ""
	if made {
		c.secret = webhook.NewSecretText()
	}
	key, err := webhook.SecretKey(c.secret)
	if err != nil {
		return wrongUsage("--secret: must be whsec_ and base64, as the endpoint's secret was shown")
	}
	types := commerce.EventTypes(webhook.Samples())
	event := types[slices.IndexFunc(types, func(t commerce.EventType) bool { return t.Name == eventType })].Example
	event.ID = value.NewID()
	body, err := event.Encode()
	if err != nil {
		return err
	}
	status, err := listener.Forward(ctx, c.forward, webhook.Headers(event.ID, time.Now(), body, key), body)
	if err != nil {
		return err
	}
	result := struct {
		Type      string   `json:"type"`
		WebhookID value.ID `json:"webhookId"`
		Status    int      `json:"status"`
		Secret    string   `json:"secret"`
	}{eventType, event.ID, status, c.secret}
	return c.json.print(out, result, func() error {
		if made {
			fmt.Fprintf(out, "signed with %s\n", c.secret)
		}
		_, err := fmt.Fprintf(out, "%s answered %d to %s %s\n", c.forward, status, eventType, event.ID)
		return err
	})
}
