package main

import (
	"errors"
	"fmt"
	"net/url"
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

// checkedFlag is a flag whose value passes a check.
type checkedFlag struct {
	text  *string
	check func(string) error
}

func (f checkedFlag) Type() string { return "string" }

func (f checkedFlag) String() string {
	if f.text == nil {
		return ""
	}
	return *f.text
}

func (f checkedFlag) Set(text string) error {
	*f.text = text
	return f.check(text)
}

// urlFlag adds a flag whose value is a URL.
func urlFlag(cmd *cobra.Command, to *string, name, usage string) {
	cmd.Flags().Var(checkedFlag{to, checkURL}, name, usage)
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("must be a URL that starts with https:// or http://")
	}
	return nil
}

// enumFlag adds a flag whose value is one of some, which a shell completes.
func enumFlag(cmd *cobra.Command, to *string, name, usage string, values []string) {
	cmd.Flags().Var(checkedFlag{to, func(text string) error {
		if !slices.Contains(values, text) {
			return fmt.Errorf("must be one of %s", strings.Join(values, ", "))
		}
		return nil
	}}, name, usage)
	complete(cmd, name, values)
}

// complete has shells complete the values of a flag.
func complete(cmd *cobra.Command, name string, values []string) {
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
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
