package main

import (
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/api/docs"
)

func newOpenAPICommand() *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Print the service's OpenAPI 3.1 document", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(docs.OpenAPI)
			return err
		},
	}
}
