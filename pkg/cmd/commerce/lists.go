package main

import (
	"context"
	"fmt"

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
}

func (t *listsTarget) flags(cmd *cobra.Command) {
	t.tableFlags(cmd)
	cmd.Flags().Var(idFlag{&t.organization}, "organization", "one organization (default: every one of which anything ever reached the indexer)")
	addEnum(cmd, &t.list, "list", "one list, such as products (default: all)", listNames())
}

// scope holds the lists and organizations of a [listsTarget].
type scope struct {
	table         *dynamo.Table
	all           *index.Lists
	organizations []value.ID // in the order of their IDs
	lists         []*index.List
}

func (t *listsTarget) open(ctx context.Context) (*scope, error) {
	table, _, err := t.openTable(ctx)
	if err != nil {
		return nil, err
	}
	s := &scope{table: table, all: index.NewLists(table, dynamo.Shards), organizations: []value.ID{t.organization}}
	if s.lists = s.all.All(); t.list != "" {
		s.lists = []*index.List{s.all.Named(t.list)}
	}
	if t.organization.IsZero() {
		s.organizations, err = table.Organizations(ctx)
	}
	return s, err
}

// String counts lists and organizations.
func (s *scope) String() string {
	return fmt.Sprintf("%s of %s", counted(len(s.lists), "list"), counted(len(s.organizations), "organization"))
}
