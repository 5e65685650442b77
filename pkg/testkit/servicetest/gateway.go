package servicetest

import (
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/auth"
)

// Authorize makes a request that of the principal, as the gateway hands it to a
// function: with a credential, and with what the authorizer found for it.
func Authorize(event *events.APIGatewayProxyRequest, p auth.Principal) {
	const credential = "credential"
	p.Credential = auth.Digest(credential)
	event.RequestContext.Authorizer = map[string]any{}
	for name, v := range p.Context() {
		event.RequestContext.Authorizer[name] = v
	}
	name, text := "Authorization", "Bearer "+credential
	if p.Kind == auth.KindKey {
		name, text = http.CanonicalHeaderKey("X-API-Key"), credential
	}
	switch {
	case event.MultiValueHeaders != nil:
		event.MultiValueHeaders[name] = append(event.MultiValueHeaders[name], text)
	case event.Headers != nil:
		event.Headers[name] = text
	default:
		event.Headers = map[string]string{name: text}
	}
}
