package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/local/runner"
)

// defaultData is the folder in which the local runner keeps its data.
const defaultData = ".local"

type runOptions struct {
	addr, data, template, logLevel  string
	fresh, noDemo, noPrivateTargets bool
}

func newRunCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "run", Short: "Run the whole service on this machine", Args: cobra.NoArgs,
		Long: `Run starts a table server, a queue server, the gateway and every function, as
template.yaml declares them, with demo data. Data persists in the data folder,
which only one run uses at a time; its file run.json is there while the service
answers and says where it is. AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL_SQS
name servers to use instead of starting them. Ctrl-C ends everything within
15 s, a second one at once.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.addr, "addr", "127.0.0.1:3000", "address of the API, host:port; the queues get the next port")
	flags.StringVar(&o.data, "data", defaultData, "data folder")
	flags.StringVar(&o.template, "template", "template.yaml", "the stack's template")
	flags.StringVar(&o.logLevel, "log-level", "warn", "debug, info, warn or error")
	flags.BoolVar(&o.fresh, "fresh", false, "remove the old data first")
	flags.BoolVar(&o.noDemo, "no-demo", false, "without demo records")
	flags.BoolVar(&o.noPrivateTargets, "no-private-targets", false, "refuse webhooks to private addresses, as in AWS")
	return cmd
}

func (o *runOptions) run(cmd *cobra.Command) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return fmt.Errorf("--log-level %s: must be debug, info, warn or error", o.logLevel)
	}
	out := cmd.OutOrStdout()
	cfg := runner.Config{
		Addr: o.addr, DataDir: o.data, Template: o.template,
		Fresh: o.fresh, NoDemo: o.noDemo, PrivateTargets: !o.noPrivateTargets,
		TableEndpoint: os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), QueueEndpoint: os.Getenv("AWS_ENDPOINT_URL_SQS"),
		Logger: newLogger(cmd.ErrOrStderr(), level),
		Ready:  func(info *runner.Info) { greet(out, info) },
	}
	fmt.Fprintln(out, "Starting …")
	if err := runner.Run(cmd.Context(), cfg); err != nil {
		return err
	}
	fmt.Fprintln(out, "Stopped.")
	return nil
}

// greet prints what one needs to try the service.
func greet(out io.Writer, info *runner.Info) {
	fmt.Fprintf(out, `The service runs at %[1]s (documentation: %[1]s/docs)

  organization  %[2]s
  site          %[3]s
  application   %[4]s
  API key       %[5]s
  user token    %[6]s

Try:

  curl -H 'X-API-Key: %[5]s' '%[1]s/api/products?search=tea&orderBy=sellingPrice'

  curl -H 'X-API-Key: %[5]s' '%[1]s/api/orders?paymentStatus=PAID&limit=2'

  curl -H 'Authorization: Bearer %[6]s' '%[1]s/developers/applications'

Ctrl-C stops it.
`, info.BaseURL, info.OrganizationID, info.SiteID, info.ApplicationID, info.APIKey, info.JWT)
}
