package runner

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

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

// startProcesses makes the functions ready to run as processes, from the repository that the template belongs to.
func (r *run) startProcesses(ctx context.Context) (*processes.Fleet, error) {
	names := slices.Sorted(maps.Keys(r.model.Functions))
	binaries, err := processes.Build(ctx, filepath.Dir(r.cfg.Template), r.folder.path("functions"), names)
	if err != nil {
		return nil, err
	}
	var functions []processes.Function
	for _, name := range names {
		declared := r.model.Functions[name]
		functions = append(functions, processes.Function{
			Name: name, Binary: binaries[name], Environment: r.environment(declared.Environment),
			Timeout: declared.Timeout, MemoryMB: declared.MemoryMB, Instances: instances(declared),
		})
	}
	return processes.New(functions, processes.Config{Region: region, Logs: r.cfg.FunctionLogs, Logger: r.cfg.Logger})
}

// environment is the template's for a function, with the local servers in place of AWS's.
func (r *run) environment(declared map[string]string) map[string]string {
	environment := maps.Clone(declared)
	if _, signs := declared["SIGNING_SECRETS"]; signs {
		environment["SIGNING_SECRETS"] = r.state.SigningSecret
	}
	if _, seals := declared["SERVICE_KEY"]; seals {
		environment["SERVICE_KEY"] = r.state.serviceKeys()
	}
	maps.Copy(environment, map[string]string{
		"METRICS_NAMESPACE":            "", // its lines are for CloudWatch
		"AWS_ENDPOINT_URL_DYNAMODB":    r.servers.tableURL,
		"AWS_ENDPOINT_URL_SQS":         r.servers.queueURL,
		"AWS_ENDPOINT_URL_EVENTBRIDGE": r.busURL(),
		"AWS_LAMBDA_LOG_FORMAT":        "JSON",
		"AWS_LAMBDA_LOG_LEVEL":         logLevel(r.cfg.Logger),
	})
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
