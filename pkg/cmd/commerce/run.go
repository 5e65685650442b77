package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// runOptions are the runner's configuration and the flags that it does not have.
type runOptions struct {
	runner.Config
	logLevel, tableServer string
	noPrivateTargets      bool
}

func newRunCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "run", Short: "Run the whole service on this machine", Args: cobra.NoArgs,
		Long: `Run starts a table server, a queue server, the gateway and all functions of
template.yaml, with demo data. The data folder keeps the data; only one run may
use it at a time. Its file run.json says where the service is while it answers.
AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL_SQS name servers to use instead,
AWS_ENDPOINT_URL_EVENTBRIDGE one for webhooks to buses, which fail without it.
Ctrl-C ends everything within 15 s, a second one at once.

The table server is dynoxide on Linux on x86-64, which npm fetches once, and
AWS's DynamoDB Local elsewhere, which Maven fetches once and Java 17 or newer
runs. --table-server selects one; each has its own tables. Items whose age is
over are deleted on dynoxide alone, in a table that is named commerce.

With --processes every function runs as in Lambda: as its real binary, in
processes that take one invocation at a time, start when needed, are killed at
the function's timeout and replaced when they die. The stream is read as one of
eight shards. The command builds the binaries first, which needs Go and a
checkout of the repository.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Addr, "addr", "127.0.0.1:3000", "address of the API, host:port; the queues get the next port")
	flags.StringVar(&o.DataDir, "data", defaultData, "data folder")
	flags.StringVar(&o.Template, "template", "template.yaml", "the stack's template")
	flags.StringVar(&o.Table, "table", "", "name of the table, which is made if it is not there (default: commerce)")
	addEnum(cmd, &o.tableServer, "table-server", "dynoxide or dynamodb-local, default by platform",
		[]string{string(tableserver.Dynoxide), string(tableserver.DynamoDBLocal)})
	o.logLevel = "warn"
	addEnum(cmd, &o.logLevel, "log-level", "debug, info, warn or error", []string{"debug", "info", "warn", "error"})
	flags.BoolVar(&o.Fresh, "fresh", false, "remove the old data first")
	flags.BoolVar(&o.NoDemo, "no-demo", false, "without demo records")
	flags.BoolVar(&o.noPrivateTargets, "no-private-targets", false, "refuse webhooks to private addresses, as in AWS")
	flags.BoolVar(&o.Processes, "processes", false, "run every function's real binary in processes of its own")
	return cmd
}

func (o *runOptions) run(cmd *cobra.Command) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return wrongUsage("--log-level %s: %w", o.logLevel, err)
	}
	out := cmd.OutOrStdout()
	o.PrivateTargets = !o.noPrivateTargets
	o.TableEndpoint, o.QueueEndpoint = os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), os.Getenv("AWS_ENDPOINT_URL_SQS")
	o.BusEndpoint = os.Getenv("AWS_ENDPOINT_URL_EVENTBRIDGE")
	o.FunctionLogs, o.Logger = cmd.ErrOrStderr(), newLogger(cmd.ErrOrStderr(), level)
	o.Ready = func(info *runner.Info) { greet(out, info) }
	fmt.Fprintln(out, "Starting …")
	var err error
	if o.TableServer, err = o.tableServerKind(); err != nil {
		return err
	}
	if o.TableServer == tableserver.DynamoDBLocal {
		fmt.Fprintln(out, "The table server is AWS's DynamoDB Local, which needs Java and seconds to start.")
	}
	if err := runner.Run(cmd.Context(), o.Config); err != nil {
		return err
	}
	fmt.Fprintln(out, "Stopped.")
	return nil
}

// tableServerKind returns the table server to start, "" for none.
func (o *runOptions) tableServerKind() (tableserver.Kind, error) {
	switch kind := tableserver.Kind(o.tableServer); {
	case kind != "":
		return kind, nil
	case o.TableEndpoint != "":
		return "", nil
	}
	return tableserver.KindFor(runtime.GOOS, runtime.GOARCH)
}

// greet prints the credentials and some requests to try the service with.
func greet(out io.Writer, info *runner.Info) {
	fmt.Fprintf(out, `The service runs at %[1]s (documentation: %[1]s/docs)
The portal, signed in: %[1]s/portal#token=%[6]s
The portal, to sign in as a demo user: %[1]s/portal

  organization  %[2]s
  site          %[3]s
  application   %[4]s
  client id     %[7]s
  client secret %[8]s
  API key       %[5]s
  user token    %[6]s

Try:

  curl -H 'X-API-Key: %[5]s' '%[1]s/api/products?search=tea&orderBy=sellingPrice'

  curl -H 'X-API-Key: %[5]s' '%[1]s/api/orders?paymentStatus=PAID&limit=2'

  curl -H 'Authorization: Bearer %[6]s' '%[1]s/developers/applications'

  curl -u '%[7]s:%[8]s' -d grant_type=client_credentials '%[1]s/oauth/token'

Ctrl-C stops it.
`, info.BaseURL, info.OrganizationID, info.SiteID, info.ApplicationID, info.APIKey, info.JWT, info.ClientID, info.ClientSecret)
}
