package main

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/local/faults"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

type runOptions struct {
	addr, data, template, logLevel  string
	tableServer                     string
	fresh, noDemo, noPrivateTargets bool

	processes bool
	faults    string
	seed      uint64
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
15 s, a second one at once.

The table server is dynoxide on Linux on x86-64, which npm fetches once, and
AWS's DynamoDB Local elsewhere, which Maven fetches once and Java 17 or newer
runs. --table-server selects one; each has tables of its own.

With --processes every function runs as in Lambda: its real binary, in
processes of its own that take one invocation at a time, are started when they
are needed, killed when they exceed the function's timeout and started again
when they die; the stream is read as one of eight shards. In a checkout of the
repository the binaries are built first; elsewhere make build has to have made
them for this machine.

--faults lets requests of the functions to the table fail, as many in a hundred
as it says of each kind: ` + faultKinds() + `
("all" for each of them). Provisioning, the reading of the stream and the start
are spared. It goes with --processes, where every function is a client of its
own, and without. The same --seed brings the same faults, as far as the requests
of a function come in the same order.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.addr, "addr", "127.0.0.1:3000", "address of the API, host:port; the queues get the next port")
	flags.StringVar(&o.data, "data", defaultData, "data folder")
	flags.StringVar(&o.template, "template", "template.yaml", "the stack's template")
	flags.StringVar(&o.tableServer, "table-server", "", "dynoxide or dynamodb-local, default by platform")
	flags.StringVar(&o.logLevel, "log-level", "warn", "debug, info, warn or error")
	flags.BoolVar(&o.fresh, "fresh", false, "remove the old data first")
	flags.BoolVar(&o.noDemo, "no-demo", false, "without demo records")
	flags.BoolVar(&o.noPrivateTargets, "no-private-targets", false, "refuse webhooks to private addresses, as in AWS")
	flags.BoolVar(&o.processes, "processes", false, "run every function's real binary in processes of its own")
	flags.StringVar(&o.faults, "faults", "", "faults between functions and table in percent, such as throttle=5,timeout=1")
	flags.Uint64Var(&o.seed, "seed", 0, "of the faults; 0 is one by chance")
	return cmd
}

// faultKinds lists the faults for the help, by lines.
func faultKinds() string {
	var text strings.Builder
	for i, kind := range faults.All() {
		switch {
		case i == 0:
		case i%6 == 3:
			text.WriteString(",\n")
		default:
			text.WriteString(", ")
		}
		text.WriteString(string(kind))
	}
	return text.String()
}

// parseFaults reads what --faults says.
func parseFaults(text string) (faults.Rates, error) {
	rates := faults.Rates{}
	for part := range strings.SplitSeq(text, ",") {
		kind, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		percent, err := strconv.ParseFloat(number, 64)
		if err != nil || !(percent >= 0 && percent <= 100) {
			return nil, fmt.Errorf("--faults %s: want kinds with their percentages, such as throttle=5,timeout=1", text)
		}
		switch {
		case kind == "all":
			maps.Copy(rates, faults.Every(percent/100))
		case slices.Contains(faults.All(), faults.Fault(kind)):
			rates[faults.Fault(kind)] = percent / 100
		default:
			return nil, fmt.Errorf("--faults %s: there is no %q; there are %s", text, kind, strings.ReplaceAll(faultKinds(), "\n", " "))
		}
	}
	return rates, nil
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
		Processes: o.processes, FunctionLogs: cmd.ErrOrStderr(),
		Logger: newLogger(cmd.ErrOrStderr(), level),
		Ready:  func(info *runner.Info) { greet(out, info) },
	}
	err := o.runFaults(&cfg, out)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Starting …")
	if cfg.TableServer, err = o.kind(cfg.TableEndpoint); err != nil {
		return err
	}
	if cfg.TableServer == tableserver.DynamoDBLocal {
		fmt.Fprintln(out, "The table server is AWS's DynamoDB Local, which needs Java and seconds to start.")
	}
	if err := runner.Run(cmd.Context(), cfg); err != nil {
		return err
	}
	fmt.Fprintln(out, "Stopped.")
	return nil
}

// kind is the table server to start, "" for none.
func (o *runOptions) kind(endpoint string) (tableserver.Kind, error) {
	switch kind := tableserver.Kind(o.tableServer); {
	case kind == tableserver.Dynoxide || kind == tableserver.DynamoDBLocal:
		return kind, nil
	case kind != "":
		return "", fmt.Errorf("--table-server %s: must be %s or %s", kind, tableserver.Dynoxide, tableserver.DynamoDBLocal)
	case endpoint != "":
		return "", nil
	}
	return tableserver.KindFor(runtime.GOOS, runtime.GOARCH)
}

// runFaults has the functions meet the faults that are asked for, and what they
// met printed at the end.
func (o *runOptions) runFaults(cfg *runner.Config, out io.Writer) (err error) {
	if o.faults == "" {
		return nil
	}
	if cfg.Faults, err = parseFaults(o.faults); err != nil {
		return err
	}
	if cfg.Seed = o.seed; cfg.Seed == 0 {
		cfg.Seed = rand.Uint64() //nolint:gosec // it need not be secret
	}
	fmt.Fprintf(out, "Faults %s with --seed %d\n", o.faults, cfg.Seed)
	cfg.Injected = func(counts faults.Counts) { fmt.Fprintf(out, "Faults of seed %d:\n%s", cfg.Seed, counts) }
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
