package main

import (
	"context"
	"fmt"
	"io"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
)

// listsTarget says, by flags, on which lists of which organizations a command
// works.
type listsTarget struct {
	target
	list string
	json jsonFlag
}

func (t *listsTarget) flags(cmd *cobra.Command) {
	t.tableFlags(cmd)
	cmd.Flags().Var(idFlag{&t.organization}, "organization", "one organization (default: every one of which anything ever reached the indexer)")
	enumFlag(cmd, &t.list, "list", "one list, such as products (default: all)", listNames())
	t.json.flag(cmd)
}

// scope holds the lists and organizations of a [listsTarget].
type scope struct {
	table         *dynamo.Table
	owner         string // of the table: its name in AWS, or the local organization
	all           *index.Lists
	organizations []value.ID // in the order of their IDs
	lists         []*index.List
}

func (t *listsTarget) open(ctx context.Context) (*scope, error) {
	table, info, err := t.openTable(ctx)
	if err != nil {
		return nil, err
	}
	s := &scope{table: table, owner: t.table, all: index.NewLists(table, dynamo.Shards), organizations: []value.ID{t.organization}}
	if info != nil {
		s.owner = info.OrganizationID // new data has a new one
	}
	if s.lists = s.all.All(); t.list != "" {
		s.lists = []*index.List{s.all.Named(t.list)}
	}
	if t.organization.IsZero() {
		s.organizations, err = table.Organizations(ctx)
	}
	return s, err
}

// scopeResult is a scope as commands print it as JSON.
type scopeResult struct {
	Organizations []value.ID `json:"organizations"`
	Lists         []string   `json:"lists"`
}

func (s *scope) result() scopeResult {
	r := scopeResult{Organizations: s.organizations}
	for _, list := range s.lists {
		r.Lists = append(r.Lists, list.Name)
	}
	return r
}

// String counts lists and organizations.
func (s *scope) String() string {
	return fmt.Sprintf("%s of %s", counted(len(s.lists), "list"), counted(len(s.organizations), "organization"))
}

// bar shows how many lists are done.
func (s *scope) bar(errOut io.Writer, description string) *progressbar.ProgressBar {
	return newBar(errOut, description, int64(len(s.organizations)*len(s.lists)))
}
