package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/ops"
)

func newDashboardCommand() *cobra.Command {
	var stack, region string
	cmd := &cobra.Command{
		Use: "dashboard --stack STACK --region REGION", Short: "Print a CloudWatch dashboard of a deployed service", Args: cobra.NoArgs,
		Long: `Dashboard reads the resources of both stacks and prints the body of a dashboard:

  for stack in STACK STACK-state; do
    aws cloudformation list-stack-resources --stack-name $stack
  done | commerce dashboard --stack STACK --region REGION >dashboard.json
  aws cloudwatch put-dashboard --dashboard-name STACK --dashboard-body file://dashboard.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printDashboard(cmd.OutOrStdout(), cmd.InOrStdin(), region, stack)
		},
	}
	cmd.Flags().StringVar(&stack, "stack", "", "name of the service's stack")
	cmd.Flags().StringVar(&region, "region", "", "its region")
	_, _ = cmd.MarkFlagRequired("stack"), cmd.MarkFlagRequired("region")
	return cmd
}

func printDashboard(out io.Writer, in io.Reader, region, stack string) error {
	resources, err := ops.ReadStackResources(in)
	if err != nil {
		return err
	}
	body, err := ops.Dashboard(region, stack, resources)
	if err != nil {
		return err
	}
	_, err = out.Write(append(body, '\n'))
	return err
}
