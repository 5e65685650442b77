package app

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// awsConfigFrom is the SDK's configuration from the variables that Lambda sets:
// the region, and the credentials of the function's role. AWS_ENDPOINT_URL, and
// AWS_ENDPOINT_URL_ with a service's name, lead to other servers. The SDK's own
// loader knows profiles, sign-on and metadata services too, which no function
// has; its clients make every binary a megabyte larger.
func awsConfigFrom(getenv func(string) string) (aws.Config, error) {
	id, secret := getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY")
	cfg := aws.Config{
		Region:        getenv("AWS_REGION"),
		Credentials:   credentials.NewStaticCredentialsProvider(id, secret, getenv("AWS_SESSION_TOKEN")),
		ConfigSources: []any{ServiceEndpoints(getenv)},
		AppID:         getenv("AWS_SDK_UA_APP_ID"), // tells AWS's logs who calls
	}
	if cfg.Region == "" || id == "" || secret == "" {
		return cfg, errors.New("AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set, as Lambda sets them")
	}
	if url := getenv("AWS_ENDPOINT_URL"); url != "" {
		cfg.BaseEndpoint = &url
	}
	return cfg, nil
}

// ServiceEndpoints tells the SDK's clients the endpoints that variables name.
type ServiceEndpoints func(variable string) string

// GetServiceBaseEndpoint is called by the SDK's clients, each with its name.
func (e ServiceEndpoints) GetServiceBaseEndpoint(_ context.Context, service string) (url string, found bool, err error) {
	url = e("AWS_ENDPOINT_URL_" + strings.ToUpper(strings.ReplaceAll(service, " ", "_")))
	return url, url != "", nil
}
