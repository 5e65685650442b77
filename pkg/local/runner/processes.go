package runner

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/local/clocks"
	"github.com/commerce-integration/service/pkg/local/faults"
	"github.com/commerce-integration/service/pkg/local/processes"
	"github.com/commerce-integration/service/pkg/local/template"
)

const (
	// processStart is what an invocation may take beyond its function's timeout when a process has to start for it. The
	// process's own limit is shorter.
	processStart = 12 * time.Second
	// maxProcesses bounds the processes of a function that one event source keeps busy: a machine cannot take hundreds.
	maxProcesses = 16
	// streamShards is how many shards functions that are processes meet: a busy table's stream has several in DynamoDB, and
	// one on the local server.
	streamShards = 8
)

// startProcesses makes the functions ready to run as processes, from binaries of the repository that the template
// belongs to.
func (r *run) startProcesses(ctx context.Context) (*processes.Fleet, error) {
	names := slices.Sorted(maps.Keys(r.model.Functions))
	var tags []string
	if r.cfg.Clocks.Apart > 0 {
		tags = append(tags, clocks.Tag)
	}
	binaries, err := processes.Binaries(ctx, filepath.Dir(r.cfg.Template), r.folder.path("functions"), names, tags...)
	if err != nil {
		return nil, err
	}
	var functions []processes.Function
	for _, name := range names {
		declared := r.model.Functions[name]
		functions = append(functions, processes.Function{
			Name: name, Binary: binaries[name], Environment: r.environment(name, declared.Environment),
			Timeout: declared.Timeout, MemoryMB: declared.MemoryMB, Instances: instances(declared),
		})
	}
	return processes.New(functions, processes.Config{Region: region, Logs: r.cfg.FunctionLogs, Logger: r.cfg.Logger})
}

// environment is the template's for a function, with the local servers in place of AWS's.
func (r *run) environment(function string, declared map[string]string) map[string]string {
	environment := maps.Clone(declared)
	if _, signs := declared["SIGNING_SECRETS"]; signs {
		environment["SIGNING_SECRETS"] = r.state.SigningSecret
	}
	if _, seals := declared["SERVICE_KEY"]; seals {
		environment["SERVICE_KEY"] = r.state.serviceKeys()
	}
	maps.Copy(environment, map[string]string{
		"METRICS_NAMESPACE":            "", // its lines are for CloudWatch
		"AWS_ENDPOINT_URL_DYNAMODB":    r.tableURL(function),
		"AWS_ENDPOINT_URL_SQS":         r.servers.queueURL,
		"AWS_ENDPOINT_URL_EVENTBRIDGE": r.busURL(),
		"AWS_LAMBDA_LOG_FORMAT":        "JSON",
		"AWS_LAMBDA_LOG_LEVEL":         logLevel(r.cfg.Logger),
	})
	// Tokens' times are by their issuer's clock, which may differ by 30 s.
	if r.cfg.Clocks.Apart > 0 && function != "authorizer" {
		environment[clocks.Variable] = r.cfg.Clocks.String()
	}
	return environment
}

// logLevel is the lowest level of the logger, by Lambda's name.
func logLevel(logger *slog.Logger) string {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if logger.Enabled(context.Background(), level) {
			return level.String()
		}
	}
	return slog.LevelError.String()
}

// instances bounds the processes of a function: one for each concurrent invocation of its event sources, so that none
// waits while the visibility timeout of its messages runs.
func instances(f template.Function) int {
	n := len(f.Schedules)
	for _, source := range f.Queues {
		n += processConcurrency(source.Queue, source.MaxConcurrency)
	}
	for _, source := range f.Streams {
		n += processLanes(source.ParallelizationFactor)
	}
	if n == 0 {
		return processes.DefaultInstances
	}
	return n
}

// processConcurrency is concurrency for functions that are processes.
func processConcurrency(queue string, template int) int {
	return min(concurrency(queue, template), maxProcesses)
}

// processLanes is lanes for functions that are processes.
func processLanes(factor int) int { return min(streamShards*factor, maxProcesses) }

// startFaults puts the fault proxy between the functions and the table server. Provisioning, the stream and the upkeep do
// not go through it, and it is off until the service is ready.
func (r *run) startFaults() (err error) {
	if len(r.cfg.Faults) == 0 {
		return nil
	}
	if r.faults, err = faults.New(r.servers.tableURL, faults.Config{Rates: r.cfg.Faults, Seed: r.cfg.Seed}); err != nil {
		return err
	}
	r.faults.Off()
	return r.faults.Start("127.0.0.1:0")
}

// stopFaults reports the faults that were injected.
func (r *run) stopFaults() error {
	if r.faults == nil {
		return nil
	}
	if r.cfg.Injected != nil {
		r.cfg.Injected(r.faults.Counts())
	}
	return r.faults.Close()
}

// tableURL is the table server's URL for a function. The fault proxy sees each function as a client of its own.
func (r *run) tableURL(function string) string {
	if r.faults == nil {
		return r.servers.tableURL
	}
	return r.faults.Endpoint(function)
}
