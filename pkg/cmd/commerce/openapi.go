package main

import (
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/openapi"
)

func newOpenAPICommand() *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Print the service's OpenAPI 3.1 document", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			document, err := openapi.Build(app.Operations())
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(document)
			return err
		},
	}
}
