package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/local/tableserver"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/ops/importer"
)

// wrongUsage is the error of a wrong command line. It exits with exitTrouble.
func wrongUsage(format string, args ...any) error {
	return &exitError{exitTrouble, fmt.Errorf(format, args...)}
}

// strict makes a command and those below it refuse wrong command lines, in words of flags and
// arguments, complete what a shell asks for, and put errors of AWS plainly.
func strict(cmd *cobra.Command) {
	cmd.Long = asCalled(cmd.Long)
	switch arguments, run := cmd.Args, cmd.RunE; {
	case cmd.HasSubCommands():
		cmd.DisableFlagsInUseLine = true
		cmd.Args = onlySubcommands
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	case run != nil:
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			switch err := arguments(cmd, args); {
			case err == nil:
				return nil
			case len(args) == 1 && len(cmd.ValidArgs) > 0:
				return wrongUsage("%s: must be %s", args[0], among(cmd.ValidArgs, args[0], cmd.CommandPath()))
			}
			return wrongUsage("wrong arguments; usage: %s", cmd.UseLine())
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return plainly(run(cmd, args)) }
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if values := flagValues(f.Name); values != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for _, below := range cmd.Commands() {
		strict(below)
	}
}

// maxNamed is how many valid arguments an error names.
const maxNamed = 12

// among says what an argument must be: of many valid ones it names those that have
// a part in common with it, such as order.paid and invoice.paid with orders.paid.
func among(valid []string, given, command string) string {
	if len(valid) <= maxNamed {
		return "one of " + strings.Join(valid, ", ")
	}
	parts := strings.Split(given, ".")
	like := slices.DeleteFunc(slices.Clone(valid), func(one string) bool {
		return !slices.ContainsFunc(strings.Split(one, "."), func(part string) bool { return slices.Contains(parts, part) })
	})
	advice := command + " --help lists all"
	if len(like) == 0 || len(like) > maxNamed {
		return "one of " + fmt.Sprint(len(valid)) + " names; " + advice
	}
	return "one such as " + strings.Join(like, ", ") + "; " + advice
}

// helpOf is the help of the command that the arguments name.
func helpOf(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show the help of a command", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil {
				rest = args
			}
			if len(rest) > 0 {
				return onlySubcommands(found, rest)
			}
			return found.Help()
		},
	}
}

func onlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	advice := "see " + cmd.CommandPath() + " --help"
	cmd.SuggestionsMinimumDistance = 2
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		advice = "did you mean " + strings.Join(like, " or ") + "?"
	}
	return wrongUsage("there is no command %s %s; %s", cmd.CommandPath(), args[0], advice)
}

// wrongFlag puts an error of a flag, and of its value.
func wrongFlag(cmd *cobra.Command, err error) error {
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			given := unknown.GetSpecifiedName()
			if strings.HasPrefix(f.Name, given) || strings.HasPrefix(given, f.Name) {
				err = fmt.Errorf("%w; did you mean --%s?", unknown, f.Name)
			}
		})
	}
	wrong := (*pflag.InvalidValueError)(nil)
	if !errors.As(err, &wrong) {
		return wrongUsage("%w", err)
	}
	must := "must be of type " + wrong.GetFlag().Value.Type()
	switch wrong.GetFlag().Value.Type() {
	case "int", "int32", "uint64":
		must = "must be a whole number"
	case "float64":
		must = "must be a number"
	case "duration":
		must = "must be a duration such as 90s or 1h"
	case "bool":
		must = "must be true or false"
	}
	return wrongUsage("--%s %s: %s", wrong.GetFlag().Name, wrong.GetValue(), must)
}

// checkFlags checks the flags of a command line together, and the values of those that mean the
// same in every command.
func checkFlags(cmd *cobra.Command, _ []string) (err error) {
	if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
		return wrongUsage("%s", flagGroups(err.Error()))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if wrong := checkFlag(f.Name, v); err == nil && wrong != nil {
				err = wrongUsage("--%s %s: %w", f.Name, v, wrong)
			}
		}
	})
	return err
}

// flagGroups says what cobra says of flags that lack or exclude each other, in one line.
func flagGroups(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if found := regexp.MustCompile(`^required flag\(s\) (.*) not set$`).FindStringSubmatch(text); found != nil {
		return strings.NewReplacer(`", "`, ", --", `"`, "").Replace("--"+found[1]) + ": required"
	}
	found := regexp.MustCompile(`^if any flags in the group \[(.*?)\] are set (none|they)`).FindStringSubmatch(text)
	if found == nil {
		return text
	}
	flags := "--" + strings.ReplaceAll(found[1], " ", ", --")
	if found[2] == "none" {
		return flags + ": give only one of them"
	}
	return flags + ": give all of them or none"
}

var tableName = regexp.MustCompile(`^(arn:.+|[a-zA-Z0-9_.-]{3,255})$`)

func checkFlag(name, text string) error {
	switch {
	case name == "organization" || name == "customer" || name == "site" || name == "sites":
		_, err := value.ParseID(text)
		return err
	case name == "kind" || name == "kinds":
		_, err := commerce.ParseKind(text)
		return err
	case name == "subscribe" && !commerce.ValidSubscription(text):
		return errors.New("must be an event type such as order.created, a resource's such as order.*, or *")
	case name == "url" || strings.HasSuffix(name, "-url") || name == "endpoint" || name == "remote" || name == "forward-to":
		return checkURL(text)
	case name == "table" && !tableName.MatchString(text):
		return errors.New("must be the name or the ARN of a table: letters, digits, _, . and -, 3 to 255 of them")
	case name == "addr":
		return checkAddress(text)
	case name == "month":
		if _, err := time.Parse("2006-01", text); err != nil {
			return errors.New("must be a year and a month such as 2026-11")
		}
	case name == "alert-topic" && !strings.HasPrefix(text, "arn:"):
		return errors.New("must be the ARN of a topic")
	case name == "log-level" || name == "table-server" || name == "consumer" || name == "format":
		if known := flagValues(name); !slices.Contains(known, text) {
			return fmt.Errorf("must be one of %s", strings.Join(known, ", "))
		}
	}
	return nil
}

func checkAddress(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("must be host:port such as 127.0.0.1:4000")
	}
	return nil
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("must be a URL that starts with https:// or http://")
	}
	return nil
}

// flagValues are the values that a shell completes for a flag; nil for any.
func flagValues(name string) (values []string) {
	switch name {
	case "kind", "kinds":
		for _, kind := range commerce.Kinds() {
			values = append(values, string(kind))
		}
	case "list":
		for _, list := range index.NewLists(nil, 1).All() {
			values = append(values, list.Name)
		}
	case "format":
		for _, format := range append(importer.Formats(), exportFormat) {
			values = append(values, string(format))
		}
	case "subscribe":
		for set := range commerce.EventSets() {
			values = append(values, set)
		}
		slices.Sort(values)
		values = append(append(values, "*"), commerce.EventNames()...)
	case "consumer":
		values = []string{ops.Dispatcher, ops.Indexer}
	case "roles":
		values = roleNames()
	case "log-level":
		values = []string{"debug", "info", "warn", "error"}
	case "table-server":
		values = []string{string(tableserver.Dynoxide), string(tableserver.DynamoDBLocal)}
	}
	return values
}
