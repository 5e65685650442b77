package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// WebhooksConfig says what of the deliveries to measure, and how much of it.
type WebhooksConfig struct {
	Template string        // path of template.yaml
	BinDir   string        // where the table server is installed
	Child    []string      // command line of a program that calls [Child]
	Sections []string      // names; none is all
	Events   int           // of a round of deliveries
	Rounds   int           // of deliveries, of which the best counts
	Rate     int           // events a second whose latency is measured
	Duration time.Duration // for which it is
	Others   int           // events a second of another organization, in the section of isolation
	Waiting  int           // events that wait for an endpoint that hangs
	Imported int           // records of an import
	Profiles string        // folder for CPU profiles of the processes that are measured; "" makes none
	Out      io.Writer     // of the report
	Log      io.Writer     // of progress and of what the service logs
}

// isolationSection takes longer than the others together.
const isolationSection = "isolation"

func webhooksSections() []section[*webhooks] {
	return []section[*webhooks]{
		{"end-to-end", "deliveries of the whole service, from a record's message to its receipt", measureEndToEnd},
		{"table", "what a delivery uses of the table, and what the table alone allows", measureTableShare},
		{"latency", "from a record's message to its receipt at a moderate rate", measureLatency},
		{"worker", "the worker alone, before servers that only answer", measureWorker},
		{isolationSection, "what others feel of an endpoint that hangs, and of an import", measureIsolation},
	}
}

// WebhooksSections describes the sections by name, in their order. The last
// takes longer than the others together.
func WebhooksSections() [][2]string { return describe(webhooksSections()) }

// webhooks is one run of the sections.
type webhooks struct {
	*report
	cfg      WebhooksConfig
	dir      string
	receiver *receiver
	reached  float64 // events a second end to end, 0 while that is not known
}

// RunWebhooks measures the sections and writes the report. Each starts the
// processes that it needs and leaves nothing behind.
func RunWebhooks(ctx context.Context, cfg WebhooksConfig) (err error) {
	chosen, err := choose(webhooksSections(), cfg.Sections)
	if err != nil {
		return err
	}
	w := &webhooks{report: &report{out: cfg.Out, log: cfg.Log}, cfg: cfg}
	if w.dir, err = os.MkdirTemp("", "commerce-bench-"); err != nil {
		return fmt.Errorf("make a folder for the data: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(w.dir)) }()
	if w.receiver, err = newReceiver(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.receiver.close()) }()
	fmt.Fprintf(cfg.Out, "%s; load %s.\n", thisMachine(time.Now()), loadAverage())
	return runSections(ctx, w.report, w, chosen)
}

// profileOf is the file for a child's profile, "" for none.
func (w *webhooks) profileOf(name string) string {
	if w.cfg.Profiles == "" {
		return ""
	}
	return filepath.Join(w.cfg.Profiles, name+".prof")
}
