package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/auth"
)

// errUnauthorized makes API Gateway answer 401 and keep nothing of it, unlike a
// policy that denies. The text is API Gateway's.
var errUnauthorized = errors.New("Unauthorized") //nolint:revive // as API Gateway knows it

// Authorizer makes the function that both of the API's authorizers call.
func Authorizer(_ context.Context, d *Dependencies) (AuthorizerFunc, error) {
	verifier, err := auth.NewVerifier(auth.VerifierConfig{
		Issuer: d.Config.JWTIssuer, Audience: d.Config.JWTAudience, JWKSURL: d.Config.JWKSURL,
		HS256Secret: d.Config.HS256Secret, HS256Secrets: d.sharedSecrets(), OrganizationClaim: d.Config.OrganizationClaim,
		DefaultRole: auth.Role(d.Config.DefaultRole), Clock: d.Clock,
	})
	if err != nil {
		return nil, err
	}
	authorizer := auth.NewAuthorizer(verifier, d.Table, auth.AuthorizerConfig{Clock: d.Clock, Logger: d.Logger})
	return measured(d, func(ctx context.Context, r events.APIGatewayCustomAuthorizerRequestTypeRequest) (events.APIGatewayCustomAuthorizerResponse, error) {
		read := isRead(r.Resource)
		principal, denial, err := authorizer.Authorize(ctx, auth.Request{Headers: headersOf(r), Read: read, SourceAddress: r.RequestContext.Identity.SourceIP})
		switch {
		case err != nil:
			d.Logger.ErrorContext(ctx, "cannot authorize", "path", r.Resource, "error", err)
			return events.APIGatewayCustomAuthorizerResponse{}, fmt.Errorf("authorize: %w", err)
		case denial != nil:
			passing := denial.Passing && !read // nobody keeps answers for the read API
			if passing && denial.Of.Kind == auth.KindApplication {
				// The function refuses a suspended application's token itself, and
				// logs it.
				return policy("Allow", denial.Of.Subject(), r.MethodArn, denial.Of.Context()), nil
			}
			refused(&r, denial).Write(ctx, d.Logger)
			d.countRefusal(denial)
			if passing {
				return events.APIGatewayCustomAuthorizerResponse{}, errUnauthorized
			}
			return policy("Deny", "nobody", r.MethodArn, map[string]string{"code": denial.Code, "message": denial.Message}), nil
		}
		return policy("Allow", principal.Subject(), r.MethodArn, principal.Context()), nil
	}, nil), nil
}

// refused is the denial as the log gets it. The gateway's request id is
// the one that the client receives with a denial.
func refused(r *events.APIGatewayCustomAuthorizerRequestTypeRequest, denial *auth.Denial) *audit.Entry {
	return &audit.Entry{
		Action: audit.CredentialRefused, Actor: denial.Of, KeyText: denial.KeyText, Code: denial.Code,
		Path: r.Resource, SourceAddress: r.RequestContext.Identity.SourceIP, GatewayRequestID: r.RequestContext.RequestID,
	}
}

// isRead tells what takes API keys, the read API and the tools that ask it, from the
// rest.
func isRead(resource string) bool { return strings.HasPrefix(resource, "/api/") || resource == "/mcp" }

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
