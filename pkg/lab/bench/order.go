package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/pprof"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/local/runner"
)

// childOrder is the first that a child is told: what it is to be, one of the
// two.
type childOrder struct {
	Profile string        `json:"profile,omitzero"` // file for a CPU profile
	Service *serviceOrder `json:"service,omitzero"`
	Worker  *workerOrder  `json:"worker,omitzero"`
}

// serviceOrder makes a child the whole service, as commerce run does. Its
// answer is a [runner.Info].
type serviceOrder struct {
	Template      string `json:"template"`
	BinDir        string `json:"binDir"`
	DataDir       string `json:"dataDir"`
	TableEndpoint string `json:"tableEndpoint,omitzero"` // of a table server to use instead of its own
}

// Child is a process that the bench measures. It does what it reads from in
// and ends with that, or with ctx.
func Child(ctx context.Context, in io.Reader, out, log io.Writer) (err error) {
	orders := jsontext.NewDecoder(in)
	var first childOrder
	if err := json.UnmarshalDecode(orders, &first); err != nil {
		return fmt.Errorf("read what to do: %w", err)
	}
	if first.Profile != "" {
		end, err := profile(first.Profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	switch {
	case first.Service != nil:
		return first.Service.serve(ctx, orders, out, logger)
	case first.Worker != nil:
		return first.Worker.work(ctx, orders, out, logger)
	}
	return errors.New("nothing was ordered")
}

// profile begins a CPU profile and returns what ends it.
func profile(path string) (end func() error, err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("make a profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("make a profile: %w", err), file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}

// serve runs the service until there are no more orders, of which it takes
// none.
func (o *serviceOrder) serve(ctx context.Context, orders *jsontext.Decoder, out io.Writer, logger *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = orders.ReadToken() // only its end can come
		stop()
	}()
	return runner.Run(ctx, runner.Config{
		Addr: "127.0.0.1:0", DataDir: o.DataDir, BinDir: o.BinDir, Template: o.Template, TableEndpoint: o.TableEndpoint,
		NoDemo: true, PrivateTargets: true, Logger: logger,
		Ready: func(info *runner.Info) {
			if err := json.MarshalWrite(out, info); err != nil {
				stop() // nobody listens
			}
		},
	})
}
