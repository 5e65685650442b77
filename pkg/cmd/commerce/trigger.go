package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/runner"
)

func newTriggerCommand() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use: "trigger TYPE", Short: "Cause an event of a type, such as order.paid",
		Long: `Trigger puts a sample record into the local service, changed so that the event
follows: every endpoint that takes the type gets it, signed and retried as any
other, and so does whatever else the change means, such as order.created. The
record is a new one each time, and stays unless the type ends in .deleted. These
are the types:

  ` + strings.Join(triggers(), "\n  "),
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: triggers(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return trigger(cmd.Context(), data, args[0], cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&data, "data", defaultData, "data folder of the local runner")
	return cmd
}

// triggers are the types that a record's change means, in the catalogue's order.
func triggers() []string {
	return slices.DeleteFunc(commerce.EventNames(), func(name string) bool {
		return commerce.IsAlert(name) || name == commerce.EventWebhookTest
	})
}

// trigger posts the changes that mean the event in one request, so that they are
// made in their order.
func trigger(ctx context.Context, data, eventType string, out io.Writer) error {
	id := value.NewID()
	changes := commerce.ExampleChanges(eventType, id)
	info, err := runner.ReadInfo(data)
	if err != nil {
		return err
	}
	type change struct {
		Kind   commerce.Kind `json:"kind"`
		Op     commerce.Op   `json:"op"`
		Record any           `json:"record"`
	}
	var message struct {
		Records []change `json:"records"`
	}
	for _, made := range changes {
		message.Records = append(message.Records, change{made.Kind, made.Op, made.Record})
	}
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode the records: %w", err)
	}
	if err := apiclient.New(info.BaseURL, info.JWT).Submit(ctx, "/ingest/records", id.String(), body, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s follows from the %s %s\n", eventType, changes[0].Kind, id)
	return err
}
