package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
)

// wrongUsage is the error of a wrong command line. It exits with exitTrouble.
func wrongUsage(format string, args ...any) error {
	return &exitError{exitTrouble, fmt.Errorf(format, args...)}
}

// idFlag is a flag whose value is a UUID.
type idFlag struct{ *value.ID }

func (f idFlag) Set(text string) error { return f.UnmarshalText([]byte(text)) }
func (f idFlag) Type() string          { return "UUID" }

func (f idFlag) String() string {
	if f.ID == nil || f.IsZero() {
		return ""
	}
	return f.ID.String()
}

// enumFlag is a flag whose value is one of some.
type enumFlag struct {
	text   *string
	values []string
}

func (f enumFlag) Type() string { return "string" }

func (f enumFlag) String() string {
	if f.text == nil {
		return ""
	}
	return *f.text
}

func (f enumFlag) Set(text string) error {
	*f.text = text
	if !slices.Contains(f.values, text) {
		return fmt.Errorf("must be one of %s", strings.Join(f.values, ", "))
	}
	return nil
}

func addEnum(cmd *cobra.Command, to *string, name, usage string, values []string) {
	cmd.Flags().Var(enumFlag{to, values}, name, usage)
}

func kindNames() (names []string) {
	for _, kind := range commerce.Kinds() {
		names = append(names, string(kind))
	}
	return names
}

func listNames() (names []string) {
	for _, list := range index.NewLists(nil, 1).All() {
		names = append(names, list.Name)
	}
	return names
}
