package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/value"
)

// listsTarget says which lists of which organizations a command is about, by
// its flags.
type listsTarget struct {
	tableTarget
	organization, list string
}

func (t *listsTarget) flags(cmd *cobra.Command) {
	t.tableTarget.flags(cmd)
	cmd.Flags().StringVar(&t.organization, "organization", "", "one organization, a UUID (default: every one of which anything ever reached the indexer)")
	cmd.Flags().StringVar(&t.list, "list", "", "one list, such as products (default: all)")
}

// scope is what a [listsTarget] names.
type scope struct {
	table         *dynamo.Table
	owner         string // whose table it is: one in AWS, or the local runner
	all           *index.Lists
	organizations []value.ID // in the order of their ids
	lists         []*index.List
}

func (t *listsTarget) open(ctx context.Context) (*scope, error) {
	var one value.ID
	if t.organization != "" {
		var err error
		if one, err = value.ParseID(t.organization); err != nil {
			return nil, fmt.Errorf("--organization %w", err)
		}
	}
	table, file, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &scope{table: table, all: index.NewLists(table, dynamo.Shards), organizations: []value.ID{one}}
	if s.owner = t.table; file != nil {
		s.owner = file.OrganizationID // new for new data
	}
	if s.lists, err = named(s.all, t.list); err != nil {
		return nil, err
	}
	if t.organization == "" {
		s.organizations, err = table.Organizations(ctx)
	}
	return s, err
}

// named returns the list of the name, or all for none.
func named(all *index.Lists, name string) ([]*index.List, error) {
	if name == "" {
		return all.All(), nil
	}
	if list := all.Named(name); list != nil {
		return []*index.List{list}, nil
	}
	names := make([]string, len(all.All()))
	for i, list := range all.All() {
		names[i] = list.Name
	}
	return nil, fmt.Errorf("--list %s: must be one of %s", name, strings.Join(names, ", "))
}

// unlessInterrupted returns the error, or in place of one that only comes from
// the interruption of the command one that says so: what is to come to an end
// by itself has failed then.
func unlessInterrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

// String counts what the scope holds.
func (s *scope) String() string {
	return fmt.Sprintf("%s of %s", counted(len(s.lists), "list"), counted(len(s.organizations), "organization"))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// listsBar shows how much of a scope is done, on a terminal only. It is safe
// for concurrent use.
type listsBar struct {
	mu   sync.Mutex
	bar  *progressbar.ProgressBar
	done int64
}

// listSteps is how finely the progress within one list is shown.
const listSteps = 100

func newListsBar(s *scope, errOut io.Writer, what string) *listsBar {
	if !isTerminal(errOut) {
		return &listsBar{}
	}
	return &listsBar{bar: progressbar.NewOptions64(int64(len(s.organizations)*len(s.lists)*listSteps),
		progressbar.OptionSetWriter(errOut), progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription(what))}
}

// list returns how to tell of the progress within one more list; at its end
// it must be told that all of it is done. A bar that cannot be drawn is no
// reason to stop.
func (b *listsBar) list() func(done, of int) {
	told := int64(0)
	return func(done, of int) {
		if b.bar == nil {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		now := int64(done * listSteps / max(of, 1))
		b.done, told = b.done+now-told, now
		_ = b.bar.Set64(b.done)
	}
}

func (b *listsBar) end() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}
