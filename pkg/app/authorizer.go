package app

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/auth"
)

// jwksTimeout bounds the request for the issuer's keys.
const jwksTimeout = 5 * time.Second

// Authorizer makes the function that both of the API's authorizers call.
func Authorizer(_ context.Context, d *Dependencies) (AuthorizerFunc, error) {
	verifier, err := auth.NewVerifier(auth.VerifierConfig{
		Issuer: d.Config.JWTIssuer, Audience: d.Config.JWTAudience, JWKSURL: d.Config.JWKSURL,
		HS256Secret: d.Config.HS256Secret, OrganizationClaim: d.Config.OrganizationClaim,
		DefaultRole: auth.Role(d.Config.DefaultRole), Client: &http.Client{Timeout: jwksTimeout}, Clock: d.Clock,
	})
	if err != nil {
		return nil, err
	}
	authorizer := auth.NewAuthorizer(verifier, d.Table, auth.AuthorizerConfig{Clock: d.Clock, Logger: d.Logger})
	return func(ctx context.Context, r events.APIGatewayCustomAuthorizerRequestTypeRequest) (events.APIGatewayCustomAuthorizerResponse, error) {
		principal, denial, err := authorizer.Authorize(ctx, auth.Request{Headers: headersOf(r), Read: isRead(r.Resource)})
		switch {
		case err != nil:
			d.Logger.ErrorContext(ctx, "cannot authorize", "path", r.Path, "error", err)
			return events.APIGatewayCustomAuthorizerResponse{}, fmt.Errorf("authorize: %w", err)
		case denial != nil:
			d.Logger.InfoContext(ctx, "denied", "path", r.Path, "code", denial.Code)
			return policy("Deny", "nobody", r.MethodArn, map[string]string{"code": denial.Code, "message": denial.Message}), nil
		}
		return policy("Allow", principal.Subject(), r.MethodArn, principal.Context()), nil
	}, nil
}

// isRead tells the read API, which takes API keys, from the rest.
func isRead(resource string) bool { return strings.HasPrefix(resource, "/api/") }

func headersOf(r events.APIGatewayCustomAuthorizerRequestTypeRequest) map[string][]string {
	if len(r.MultiValueHeaders) > 0 {
		return r.MultiValueHeaders
	}
	headers := make(map[string][]string, len(r.Headers))
	for name, v := range r.Headers {
		headers[name] = []string{v}
	}
	return headers
}

// policy answers for the whole stage: API Gateway caches it and applies it to
// the other methods that the same token is used for.
func policy(effect, subject, methodARN string, context map[string]string) events.APIGatewayCustomAuthorizerResponse {
	parts := strings.SplitN(methodARN, "/", 3)
	stage := methodARN
	if len(parts) == 3 {
		stage = parts[0] + "/" + parts[1] + "/*/*"
	}
	values := make(map[string]any, len(context))
	for name, v := range context {
		values[name] = v
	}
	return events.APIGatewayCustomAuthorizerResponse{
		PrincipalID: subject,
		PolicyDocument: events.APIGatewayCustomAuthorizerPolicy{
			Version:   "2012-10-17",
			Statement: []events.IAMPolicyStatement{{Action: []string{"execute-api:Invoke"}, Effect: effect, Resource: []string{stage}}},
		},
		Context: values,
	}
}
