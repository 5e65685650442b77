package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/local/eventsource"
	"github.com/commerce-integration/service/pkg/local/gateway"
	"github.com/commerce-integration/service/pkg/local/provision"
	"github.com/commerce-integration/service/pkg/local/queueserver"
	"github.com/commerce-integration/service/pkg/local/tableserver"
	"github.com/commerce-integration/service/pkg/local/template"
)

// Config says how to run.
type Config struct {
	Addr           string // of the gateway, host:port
	DataDir        string // what persists
	BinDir         string // where the table server is installed; "" is DataDir/bin
	Template       string // path of template.yaml
	Fresh          bool   // start with no data
	NoDemo         bool   // without demo records
	PrivateTargets bool   // webhooks may reach loopback and private addresses
	TableEndpoint  string // of a table server to use instead of starting one
	Logger         *slog.Logger
	// Ready is called once the service answers.
	Ready func(Info) error
}

// Info tells clients where the service is and how to get in.
type Info struct {
	BaseURL, OrganizationID, SiteID, ApplicationID, JWT, APIKey string
	DynamoDBEndpoint, SQSEndpoint, TableName                    string
	RecordsQueueURL, DeliveriesQueueURL                         string
}

const (
	// tableName is the table's name on the local server.
	tableName = "commerce"
	region    = "us-east-1"
	// grace is how long the end may take: requests and invocations in
	// progress come to their end.
	grace = 8 * time.Second
)

// Run runs the service until ctx ends, then ends everything that it started.
func Run(ctx context.Context, cfg Config) (err error) {
	listener, err := listen(cfg.Addr)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server closes it first
	if cfg.Fresh {
		if err := removeData(cfg.DataDir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(cfg.DataDir, 0o755); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	state, err := openState(cfg.DataDir)
	if err != nil {
		return err
	}
	r := &run{cfg: cfg, state: state, listener: listener}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.startServers(ctx); err != nil {
		return err
	}
	if err := r.provision(ctx); err != nil {
		return err
	}
	return r.serve(ctx)
}

// listen opens the gateway's port first of all, so that a port in use costs
// nobody a start of everything else.
func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w (is another run using the port? choose another with --addr)", addr, err)
	}
	return l, nil
}

// removeData removes what a runner keeps, and nothing else that may be in
// the folder.
func removeData(dir string) error {
	for _, name := range []string{"table", "queues", "checkpoints", "state.json", "run.json", "issuer.pem"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove the old data: %w", err)
		}
	}
	return nil
}

// run is one run in progress.
type run struct {
	cfg      Config
	state    *State
	listener net.Listener

	table    *tableserver.Server // nil when another server is used
	queues   *queueserver.Server
	internal *http.Server // queues and the issuer's keys
	issuer   *auth.Issuer

	tableURL, internalURL string
	aws                   aws.Config
	model                 *template.Model
	made                  map[string]provision.Queue
	streamARN             string
}

// startServers starts the table server and the queue server.
func (r *run) startServers(ctx context.Context) (err error) {
	if r.tableURL = r.cfg.TableEndpoint; r.tableURL == "" {
		if err := r.startTable(ctx); err != nil {
			return err
		}
	}
	if r.queues, err = queueserver.Open(filepath.Join(r.cfg.DataDir, "queues"), &queueserver.Config{Logger: r.cfg.Logger}); err != nil {
		return fmt.Errorf("open the queues: %w", err)
	}
	if r.issuer, err = OpenIssuer(r.cfg.DataDir); err != nil {
		return err
	}
	keys, err := serveKeys(r.issuer)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /.well-known/jwks.json", keys)
	mux.Handle("/", r.queues.Handler())
	internal, err := listenBeside(r.listener)
	if err != nil {
		return err
	}
	r.internalURL = "http://" + internal.Addr().String()
	r.internal = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go r.serveInternal(internal)
	r.aws = aws.Config{
		Region: region, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""), HTTPClient: httpClient(),
	}
	return nil
}

func (r *run) startTable(ctx context.Context) error {
	bin := r.cfg.BinDir
	if bin == "" {
		bin = filepath.Join(r.cfg.DataDir, "bin")
	}
	binary, err := tableserver.Install(ctx, bin)
	if err != nil {
		return err
	}
	if r.table, err = tableserver.Start(ctx, binary, filepath.Join(r.cfg.DataDir, "table"), nil); err != nil {
		return err
	}
	r.tableURL = r.table.Endpoint()
	return nil
}

func (r *run) serveInternal(l net.Listener) {
	if err := r.internal.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		r.cfg.Logger.Error("the queue server ended", "error", err)
	}
}

// listenBeside takes the port after the gateway's where it is free, so that
// queue URLs stay the same from run to run, and any other where it is not.
func listenBeside(gateway net.Listener) (net.Listener, error) {
	if addr, ok := gateway.Addr().(*net.TCPAddr); ok && addr.Port < 65535 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", addr.Port+1)); err == nil {
			return l, nil
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the queues: %w", err)
	}
	return l, nil
}

func (r *run) dynamodb() *dynamodb.Client {
	return dynamodb.NewFromConfig(r.aws, func(o *dynamodb.Options) { o.BaseEndpoint = &r.tableURL })
}

func (r *run) sqs() *sqs.Client {
	return sqs.NewFromConfig(r.aws, func(o *sqs.Options) { o.BaseEndpoint = &r.internalURL })
}

// provision makes table and queues, and reads the template again with what
// its references stand for here.
func (r *run) provision(ctx context.Context) (err error) {
	parameters := map[string]string{
		"JwtIssuer": issuerName, "JwtAudience": audience, "JwksUrl": r.internalURL + "/.well-known/jwks.json",
		"AllowPrivateTargets": fmt.Sprint(r.cfg.PrivateTargets),
	}
	if r.model, err = template.Load(r.cfg.Template, parameters); err != nil {
		return err
	}
	if r.streamARN, err = provision.Table(ctx, r.dynamodb(), r.model.Table, tableName); err != nil {
		return err
	}
	if r.made, err = provision.Queues(ctx, r.sqs(), r.model.Queues); err != nil {
		return err
	}
	parameters[r.model.Table.LogicalID] = tableName
	for id, queue := range r.made {
		parameters[id] = queue.URL
	}
	r.model, err = template.Load(r.cfg.Template, parameters)
	return err
}

// serve runs gateway and event sources, makes the demo, and reports that the
// service is ready.
func (r *run) serve(ctx context.Context) error {
	base, err := r.base()
	if err != nil {
		return err
	}
	functions, err := makeFunctions(ctx, r.model, base)
	if err != nil {
		return err
	}
	src := &sources{
		model: r.model, functions: functions, queues: r.made, dir: filepath.Join(r.cfg.DataDir, "checkpoints"),
		host: eventsource.Host{Region: region, Grace: grace, Logger: r.cfg.Logger},
		sqs:  r.sqs(), release: r.queues.Release, streamARN: r.streamARN,
		streams: dynamodbstreams.NewFromConfig(r.aws, func(o *dynamodbstreams.Options) { o.BaseEndpoint = &r.tableURL }),
	}
	if err := os.MkdirAll(src.dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of checkpoints: %w", err)
	}
	if err := src.prepare(); err != nil {
		return err
	}
	server := &http.Server{Handler: gateway.New(r.model, functions.invoke, &gateway.Config{Logger: r.cfg.Logger}), ReadHeaderTimeout: 10 * time.Second}
	return r.runAll(ctx, server, src)
}

func (r *run) runAll(ctx context.Context, server *http.Server, src *sources) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	wait := src.start(ctx, r.cfg.Logger)
	defer wait()
	defer stop()
	if r.table != nil {
		go src.upkeep(ctx, r.table, r.dynamodb(), tableName, r.cfg.Logger)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(r.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the gateway: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		return server.Shutdown(stopping)
	})
	group.Go(func() error { return r.watchTable(ctx) })
	group.Go(func() error { return r.announce(ctx) })
	return group.Wait()
}

// watchTable ends the run when the table server dies.
func (r *run) watchTable(ctx context.Context) error {
	if r.table == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-r.table.Done():
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("the table server has ended: %w", r.table.Err())
	}
}

// base gives the functions the environment that the template declares, and
// clients of the local servers.
func (r *run) base() (*app.Base, error) {
	environment := r.model.Functions["api"].Environment
	cfg, err := app.ConfigFrom(func(name string) string { return environment[name] })
	if err != nil {
		return nil, err
	}
	cfg.ServiceKey, cfg.ServiceKeySecretARN = r.state.ServiceKey, ""
	return app.NewBase(cfg, r.aws, r.cfg.Logger, app.Endpoints{DynamoDB: r.tableURL, SQS: r.internalURL}), nil
}

// close ends the servers, those that others use last.
func (r *run) close() error {
	var errs []error
	if r.queues != nil {
		errs = append(errs, r.queues.Close())
	}
	if r.internal != nil {
		errs = append(errs, r.internal.Close())
	}
	if r.table != nil {
		errs = append(errs, r.table.Close())
	}
	return errors.Join(errs...)
}

// httpClient keeps enough connections for all functions side by side.
func httpClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.Proxy = nil
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 256
	return &http.Client{Transport: transport}
}
