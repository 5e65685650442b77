package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/runner"
)

// tableTarget says which table a command talks to, by its flags.
type tableTarget struct{ data, table string }

func (t *tableTarget) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.data, "data", defaultData, "data folder of the local runner")
	cmd.Flags().StringVar(&t.table, "table", "", "name of a table in AWS, instead of the local runner's")
}

// connect returns the table, and what the local runner tells of itself where
// the table is its own. A table's name means AWS, whose region and credentials
// come from the environment; there a table that is busy is asked again with
// more patience than a request has.
func (t *tableTarget) connect(ctx context.Context) (*dynamo.Table, *runner.Info, error) {
	if t.table != "" {
		const attempts = 10
		cfg, err := awsConfig(ctx, config.WithRetryMaxAttempts(attempts))
		if err != nil {
			return nil, nil, err
		}
		return dynamo.New(dynamodb.NewFromConfig(cfg), t.table, time.Now), nil, nil
	}
	file, err := runner.ReadInfo(t.data)
	if err != nil {
		return nil, nil, fmt.Errorf("%w, or name a table with --table", err)
	}
	client := dynamodb.NewFromConfig(runner.AWSConfig(), func(o *dynamodb.Options) { o.BaseEndpoint = &file.DynamoDBEndpoint })
	return dynamo.New(client, file.TableName, time.Now), file, nil
}
