package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lists/compactor"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/value"
)

// reindexCommand is one run of commerce reindex.
type reindexCommand struct{ target listsTarget }

func newReindexCommand() *cobra.Command {
	c := &reindexCommand{}
	cmd := &cobra.Command{
		Use: "reindex", Short: "Make the index of lists again from the table", Args: cobra.NoArgs,
		Long: `Reindex makes the index of lists again from the records in the table, of all
organizations or of one, of all lists or of one. Meanwhile the lists are
answered by the index there is, and changes are followed; each new index takes
the old one's place in one step. It is not needed for anything that the service
does by itself: it mends an index that differs from the table, as commerce
verify tells, or one that an older version of the service has left.

An interrupted run ends after the work that it has begun, within seconds, and
goes on where it was when the same command is given again within a day.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.target.flags(cmd)
	return cmd
}

// rebuilds is how many lists of an organization are rebuilt at a time.
const rebuilds = 4

func (c *reindexCommand) run(ctx context.Context, out, errOut io.Writer) error {
	s, err := c.target.open(ctx)
	if err != nil {
		return unlessInterrupted(err)
	}
	position, err := openReindexPosition(&c.target, s.owner, time.Now())
	if err != nil {
		return err
	}
	if position.known() {
		fmt.Fprintf(errOut, "going on at organization %s of an interrupted run\n", position.state.Organization)
	}
	maintainer := compactor.New(s.table, s.all.All(), time.Now, newLogger(errOut, slog.LevelError))
	bar := newListsBar(s, errOut, "reindexing")
	for _, org := range s.organizations {
		if err = reindex(ctx, s.table, maintainer, org, s.lists, position, bar); err != nil {
			break
		}
	}
	bar.end()
	if err != nil {
		return position.explain(err)
	}
	if err := position.remove(); err != nil {
		return err
	}
	fmt.Fprintf(out, "reindexed %s\n", s)
	return nil
}

// reindex rebuilds the lists of one organization, as far as an earlier run has
// not.
func reindex(ctx context.Context, storage *dynamo.Table, m *compactor.Compactor, org value.ID, lists []*index.List, position *reindexPosition, bar *listsBar) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(rebuilds)
	for _, list := range lists {
		progress := bar.list()
		if position.done(org, list.Name) {
			progress(1, 1)
			continue
		}
		group.Go(func() error {
			if err := rebuild(ctx, storage, m, org, list, progress); err != nil {
				return fmt.Errorf("reindex %s of organization %s: %w", list.Name, org, err)
			}
			progress(1, 1)
			return position.save(org, list.Name)
		})
	}
	return group.Wait()
}

// rebuild ends, when it is interrupted, after the job that is under way, which
// takes some seconds at most: a job that breaks off keeps its list for a
// minute from whoever goes on.
func rebuild(ctx context.Context, storage *dynamo.Table, m *compactor.Compactor, org value.ID, list *index.List, progress func(done, of int)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	between, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	return ops.Rebuild(between, storage, m, index.Key{Org: org, List: list}, func(done, of int) {
		progress(done, of)
		if ctx.Err() != nil {
			end()
		}
	})
}

// reindexLife is for how long an interrupted run may go on: later, what it has
// done is too old to be left out.
const reindexLife = 24 * time.Hour

// reindexState is how far a run has come, kept in a file while it runs.
// Organizations come in the order of their ids.
type reindexState struct {
	Fingerprint  string    `json:"fingerprint"` // of what is reindexed where
	Started      time.Time `json:"started"`
	Organization value.ID  `json:"organizationId"` // the last begun; those before it are done
	Lists        []string  `json:"lists"`          // of it that are done
}

// reindexPosition keeps the state. It is safe for concurrent use.
type reindexPosition struct {
	path string

	mu    sync.Mutex
	state reindexState
}

// openReindexPosition finds how far an earlier run of the same command has
// come.
func openReindexPosition(target *listsTarget, owner string, now time.Time) (*reindexPosition, error) {
	sum := sha256.Sum256(fmt.Appendln(nil, owner, os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), target.organization, target.list))
	p := &reindexPosition{state: reindexState{Fingerprint: hex.EncodeToString(sum[:]), Started: now}}
	p.path = filepath.Join(target.data, "reindex-"+p.state.Fingerprint[:16]+".json")
	text, err := os.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read how far reindexing has come: %w", err)
	}
	var stored reindexState
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, fmt.Errorf("read how far reindexing has come: %s: %w (remove the file to start over)", p.path, err)
	}
	if stored.Fingerprint == p.state.Fingerprint && now.Sub(stored.Started) < reindexLife {
		p.state = stored
	}
	return p, nil
}

// known tells whether there is something to go on from.
func (p *reindexPosition) known() bool { return !p.state.Organization.IsZero() }

func (p *reindexPosition) done(org value.ID, list string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	order := slices.Compare(org[:], p.state.Organization[:])
	return order < 0 || order == 0 && slices.Contains(p.state.Lists, list)
}

// save notes that a list is done, in one step, so that a crash leaves the old
// state or the new one.
func (p *reindexPosition) save(org value.ID, list string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if org != p.state.Organization {
		p.state.Organization, p.state.Lists = org, nil
	}
	p.state.Lists = append(p.state.Lists, list)
	text, err := json.Marshal(p.state)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(p.path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(p.path+".next", text, 0o600)
	}
	if err == nil {
		err = os.Rename(p.path+".next", p.path)
	}
	if err != nil {
		return fmt.Errorf("note how far reindexing has come: %w", err)
	}
	return nil
}

func (p *reindexPosition) remove() error {
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget how far reindexing has come: %w", err)
	}
	return nil
}

func (p *reindexPosition) explain(err error) error {
	return fmt.Errorf("%w; give the same command again to go on", unlessInterrupted(err))
}
