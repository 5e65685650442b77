module github.com/commerce-integration/service/pkg/client/go

go 1.26.0

require (
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
	golang.org/x/oauth2 v0.37.0
)
