package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/value"
)

func newApplicationCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "application", Short: "Set what the operator decides about applications"}
	cmd.AddCommand(newApplicationSetCommand())
	return cmd
}

// tableTarget says which table a command talks to, by its flags.
type tableTarget struct{ data, table, organization string }

func (t *tableTarget) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.data, "data", defaultData, "data folder of the local runner")
	cmd.Flags().StringVar(&t.table, "table", "", "name of a table in AWS, instead of the local runner's")
	cmd.Flags().StringVar(&t.organization, "organization", "", "the organization, a UUID (default: the local runner's)")
}

// open returns the table and the organization. A table's name means AWS,
// whose region and credentials come from the environment.
func (t *tableTarget) open(ctx context.Context) (*dynamo.Table, value.ID, error) {
	var client *dynamodb.Client
	if t.table != "" {
		cfg, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			return nil, value.ID{}, fmt.Errorf("load the AWS configuration: %w", err)
		}
		client = dynamodb.NewFromConfig(cfg)
	} else {
		file, err := runner.ReadInfo(t.data)
		if err != nil {
			return nil, value.ID{}, fmt.Errorf("%w, or name a table with --table", err)
		}
		client = dynamodb.New(dynamodb.Options{
			BaseEndpoint: aws.String(file.DynamoDBEndpoint), Region: "us-east-1",
			Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		})
		t.table = file.TableName
		if t.organization == "" {
			t.organization = file.OrganizationID
		}
	}
	org, err := value.ParseID(t.organization)
	if err != nil {
		return nil, value.ID{}, fmt.Errorf("--organization %w", err)
	}
	return dynamo.New(client, t.table, time.Now), org, nil
}

func newApplicationSetCommand() *cobra.Command {
	var target tableTarget
	var rateLimit int
	cmd := &cobra.Command{
		Use: "set ID --rate-limit N", Short: "Set an application's rate limit, requests per 60 s", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := value.ParseID(args[0])
			if err != nil {
				return fmt.Errorf("ID %w", err)
			}
			table, org, err := target.open(cmd.Context())
			if err != nil {
				return err
			}
			changed, err := table.ChangeApplication(cmd.Context(), org, id, func(a *account.Application) (bool, error) {
				return a.SetRateLimit(rateLimit, value.TimeOf(time.Now()))
			})
			if err != nil {
				return err
			}
			if changed == nil {
				return fmt.Errorf("the organization %s has no application %s", org, id)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d requests per 60 s\n", changed.ID, changed.RateLimit)
			return nil
		},
	}
	target.flags(cmd)
	cmd.Flags().IntVar(&rateLimit, "rate-limit", 0, fmt.Sprintf("1 to %d (required)", account.MaxRateLimit))
	if err := cmd.MarkFlagRequired("rate-limit"); err != nil {
		panic(err) // the flag is declared above
	}
	return cmd
}
