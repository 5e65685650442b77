package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/sender"
)

// sendersCommand is one run of a commerce senders command.
type sendersCommand struct {
	target
	secret string
	json   jsonFlag
}

func newSendersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "senders", Short: "Show, rotate and remove the keys that an organization's records are signed with",
		Long: `Senders keeps the keys of an organization's back office. Once there is one, a
message to the records queue needs the attribute signature, made with a key of
the organization that it names; others are refused. Without keys messages need
none. Each change acts within ` + fmt.Sprint(sender.KeysMaxAge) + `.`,
	}
	c := &sendersCommand{}
	rotate := c.command("rotate", "Make a new key and print it, once; the key before stays good, an older one ends", c.rotate)
	rotate.Flags().StringVar(&c.secret, "secret", "", "ARN or name of the service key's secret in AWS, the stack's output ServiceKeySecretArn")
	rotate.MarkFlagsRequiredTogether("table", "secret")
	cmd.AddCommand(c.command("show", "Show which keys are good", c.show), rotate,
		c.command("remove", "Remove the keys: messages need no signature", c.remove))
	return cmd
}

func (c *sendersCommand) command(use, short string, run func(context.Context, io.Writer, *dynamo.Table, value.ID) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table, org, err := c.openOrganization(cmd.Context())
			if err != nil {
				return err
			}
			return run(cmd.Context(), cmd.OutOrStdout(), table, org)
		},
	}
	c.tableFlags(cmd)
	c.organizationFlag(cmd)
	c.json.flag(cmd)
	return cmd
}

// sendersResult is what the commands print as JSON.
type sendersResult struct {
	OrganizationID value.ID     `json:"organizationId"`
	Key            string       `json:"key,omitempty"` // the new one
	Keys           []senderCell `json:"keys"`          // the newest first
}

type senderCell struct {
	ID        string     `json:"id"`
	CreatedAt value.Time `json:"createdAt"`
}

func (c *sendersCommand) show(ctx context.Context, out io.Writer, table *dynamo.Table, org value.ID) error {
	keys, err := table.SenderKeys(ctx, org)
	if err != nil {
		return err
	}
	return c.print(out, org, keys, "")
}

func (c *sendersCommand) rotate(ctx context.Context, out io.Writer, table *dynamo.Table, org value.ID) error {
	service, _, err := c.serviceKeys(ctx, c.secret)
	if err != nil {
		return err
	}
	box, err := sealed.NewBox(service[0], service[1:]...)
	if err != nil {
		return err
	}
	var text string
	var next *sender.Keys
	err = dynamo.PutSenderKeys(ctx, table, org, func(old *sender.Keys) *sender.Keys {
		next, text = sender.Rotate(org, old, box.Seal, value.TimeOf(time.Now()))
		return next
	})
	if err != nil {
		return err
	}
	return c.print(out, org, next, text)
}

func (c *sendersCommand) remove(ctx context.Context, out io.Writer, table *dynamo.Table, org value.ID) error {
	if _, err := dynamo.RemoveSenderKeys(ctx, table, org); err != nil {
		return err
	}
	return c.print(out, org, nil, "")
}

func (c *sendersCommand) print(out io.Writer, org value.ID, keys *sender.Keys, text string) error {
	result := sendersResult{OrganizationID: org, Key: text, Keys: []senderCell{}}
	if keys != nil {
		for _, k := range keys.Keys {
			result.Keys = append(result.Keys, senderCell{k.ID, k.CreatedAt})
		}
	}
	return c.json.print(out, result, func() error { return result.print(out) })
}

func (r *sendersResult) print(out io.Writer) error {
	if len(r.Keys) == 0 {
		_, err := fmt.Fprintf(out, "%s has no sender keys: messages need no signature\n", r.OrganizationID)
		return err
	}
	rows := [][]string{{"KEY", "CREATED"}}
	for _, k := range r.Keys {
		rows = append(rows, []string{k.ID, timeCell(k.CreatedAt.Std())})
	}
	if err := writeTable(out, rows); err != nil || r.Key == "" {
		return err
	}
	_, err := fmt.Fprintf(out, "new key, shown once: %s\nsign with it after %s\n", r.Key, sender.KeysMaxAge)
	return err
}

// signer makes messages of records, signed when --sender-key names the key.
type signer struct {
	path string
	key  []byte
}

func (s *signer) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.path, "sender-key", "", "file with the organization's sender key, to sign the messages with")
}

// read reads the key that --sender-key names.
func (s *signer) read() error {
	if s.path == "" {
		return nil
	}
	text, err := os.ReadFile(s.path)
	if err == nil {
		s.key, err = sender.ParseKey(strings.TrimSpace(string(text)))
	}
	if err != nil {
		return fmt.Errorf("--sender-key: %w", err)
	}
	return nil
}

// message is in the group of the organization, so that one tenant's records do
// not delay another's changes.
func (s *signer) message(body []byte, organization value.ID) queue.Message {
	m := queue.Message{Body: string(body), Group: organization.String()}
	if s.key != nil {
		m.Attributes = map[string]string{sender.Attribute: sender.Sign(s.key, m.Body)}
	}
	return m
}
