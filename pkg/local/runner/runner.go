// Package runner runs the whole service on one machine: a table server, a queue server, the gateway and the event
// sources, as template.yaml declares them, with the handlers that are deployed. Acknowledged data survives a kill of any
// process, and no process outlives the runner. Package app makes the functions.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/local/gateway"
	"github.com/commerce-integration/service/pkg/local/provision"
	"github.com/commerce-integration/service/pkg/local/tableserver"
	"github.com/commerce-integration/service/pkg/local/template"
)

// Config says how to run.
type Config struct {
	Addr           string           // of the gateway, host:port
	DataDir        string           // what persists
	BinDir         string           // where the table server is installed; "" is DataDir/bin
	Template       string           // path of template.yaml
	Fresh          bool             // start with no data
	NoDemo         bool             // without demo records
	PrivateTargets bool             // webhooks may reach loopback and private addresses
	TableServer    tableserver.Kind // "" is the platform's
	Table          string           // the table's name; "" is commerce
	TableEndpoint  string           // of a table server to use instead of starting one
	QueueEndpoint  string           // of a queue server to use instead of the runner's own
	BusEndpoint    string           // of a server in EventBridge's place; "": endpoints that are buses fail
	Logger         *slog.Logger
	// Processes runs every function's real binary in processes of its own, as Lambda does, and reads the stream as one
	// of several shards.
	Processes    bool
	FunctionLogs io.Writer // gets what functions that are processes write; nil drops it
	// Ready is called once the service answers and the demo is there.
	Ready func(*Info)
}

const (
	// tableName is the table's name unless another is given.
	tableName = "commerce"
	region    = "us-east-1"
	// grace is how long requests and invocations in progress may go on when the run is to end.
	grace = 6 * time.Second
)

// Run runs the service until ctx ends, then ends everything that it started, within 15 s.
func Run(ctx context.Context, cfg Config) (err error) {
	cfg.Table = cmp.Or(cfg.Table, tableName)
	if cfg.TableServer == "" && cfg.TableEndpoint == "" {
		if cfg.TableServer, err = tableserver.KindFor(runtime.GOOS, runtime.GOARCH); err != nil {
			return err
		}
	}
	// The heap is small, so that by default the collector would run after every few requests.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	model, err := readTemplate(cfg.Template)
	if err != nil {
		return err
	}
	data, err := openFolder(cfg.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.close()) }()
	listener, err := listen(ctx, cfg.Addr)
	if err != nil {
		data.discard()
		return err
	}
	defer listener.Close() // the server closes it first
	if cfg.Fresh {
		if err := data.clear(); err != nil {
			return err
		}
	}
	state, err := openState(data)
	if err != nil {
		return err
	}
	r := &run{cfg: cfg, folder: data, state: state, listener: listener, servers: &servers{}, model: model}
	defer func() { err = errors.Join(err, r.servers.close()) }()
	if err := r.servers.start(ctx, &r.cfg, data, listener); err != nil {
		return err
	}
	r.provider().Handle(r.servers.routes)
	if err := r.provision(ctx); err != nil {
		return err
	}
	return r.serve(ctx)
}

// readTemplate reads the template before anything starts.
func readTemplate(path string) (*template.Model, error) {
	model, err := template.Load(path, map[string]string{"JwtIssuer": "not known yet", "JwtAudience": audience})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: start in the folder of the repository, or name the template with --template", err)
	}
	return model, err
}

// listen opens the gateway's port before anything starts, so that a port in use is reported at once.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another program: stop it, or choose another address with --addr", addr)
	case err != nil:
		return nil, fmt.Errorf("--addr %s: %w", addr, err)
	}
	return l, nil
}

// run is one run in progress.
type run struct {
	cfg      Config
	folder   *folder
	state    *state
	listener net.Listener
	servers  *servers

	announced atomic.Bool // run.json is written

	model     *template.Model
	queues    map[string]provision.Queue
	streamARN string
}

// provision makes the table and the queues, and reads the template again with the values of its references.
func (r *run) provision(ctx context.Context) (err error) {
	if r.streamARN, err = provision.Table(ctx, r.servers.dynamodb(), r.model.Table, r.cfg.Table); err != nil {
		return fmt.Errorf("table server %s: %w", r.servers.tableURL, err)
	}
	if r.streamARN == "" {
		return fmt.Errorf("table server %s: its table %s has no stream and so is not this service's", r.servers.tableURL, r.cfg.Table)
	}
	if r.queues, err = provision.Queues(ctx, r.servers.sqs(), r.model.Queues); err != nil {
		return fmt.Errorf("queue server %s: %w", r.servers.queueURL, err)
	}
	r.model, err = template.Load(r.cfg.Template, map[string]string{
		"JwtIssuer": r.servers.issuerURL, "JwtAudience": audience, "JwksUrl": r.servers.issuerURL + "/.well-known/jwks.json",
		"PortalClientId": clientID, "PortalFrames": "http://localhost:*,http://127.0.0.1:*", "PortalBrand": "Tea shop,#f2c230",
		"AllowPrivateTargets": fmt.Sprint(r.cfg.PrivateTargets), "ArnEndpoints": "all-accounts",
		"OrganizationRateLimit": "1000000", // the demo's organization is the only one, and has all the load
		r.model.Table.LogicalID: r.cfg.Table,
	})
	return err
}

// serve runs the gateway and the event sources, makes the demo, and reports that the service is ready.
func (r *run) serve(ctx context.Context) (err error) {
	functions, err := r.startFunctions(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, functions.close()) }()
	src, err := r.newSources(functions)
	if err != nil {
		return err
	}
	handler := gateway.New(r.model, functions.invoke, &gateway.Config{Logger: r.cfg.Logger, Direct: functions.direct})
	return r.runAll(ctx, newServer(r.healthyOnceAnnounced(handler)), src)
}

// newServer makes the server of the gateway. A request that comes in drips is given up; an idle connection stays as
// long as API Gateway keeps one.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 310 * time.Second}
}

func (r *run) runAll(ctx context.Context, server *http.Server, src *sources) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, source := range src.loops {
		group.Go(func() error { return unlessEnded(ctx, source(ctx)) })
	}
	group.Go(func() error {
		if err := server.Serve(r.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the gateway: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return shutdown(context.WithoutCancel(ctx), server)
	})
	if r.servers.table != nil {
		group.Go(func() error {
			r.upkeep(src.feed.Position).run(ctx)
			return nil
		})
	}
	group.Go(func() error { return r.servers.watch(ctx) })
	group.Go(func() error { return unlessEnded(ctx, r.announce(ctx)) })
	return group.Wait()
}

// unlessEnded drops errors after the run has ended, which are only its consequence.
func unlessEnded(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// shutdown waits until requests in progress end, and closes those that take longer than the grace.
func shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("end the gateway: %w", err)
	}
	return nil
}

// base gives the functions the environment that the template declares, and clients of the local servers.
func (r *run) base() (*app.Dependencies, error) {
	declared := map[string]string{}
	for _, f := range r.model.Functions {
		maps.Copy(declared, f.Environment)
	}
	environment := r.environment(declared)
	getenv := func(name string) string { return environment[name] }
	cfg, err := app.ConfigFrom(getenv)
	if err != nil {
		return nil, err
	}
	sdk := r.servers.aws
	sdk.ConfigSources = []any{app.ServiceEndpoints(getenv)}
	return app.NewDependencies(cfg, sdk, r.cfg.Logger), nil
}

// busURL is where events for EventBridge go. Without a server for them that is the queue server, which refuses them: no
// event leaves for AWS.
func (r *run) busURL() string { return cmp.Or(r.cfg.BusEndpoint, r.servers.queueURL) }
