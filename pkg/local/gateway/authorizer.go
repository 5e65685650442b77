package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/local/template"
)

// decision is an authorizer's answer: a policy, which may cover other requests than the one that it was asked about,
// and a context.
type decision struct {
	statements []events.IAMPolicyStatement
	context    map[string]any
}

// authorize asks the route's authorizer, unless its answer is cached.
func (x *exchange) authorize(authorizer template.Authorizer) (err error) {
	key, ok := x.identity(authorizer)
	if !ok {
		return &refusal{kind: "UNAUTHORIZED"}
	}
	d, cached := x.policies.get(key)
	if !cached {
		if d, err = x.decide(authorizer.Function); err != nil {
			return err
		}
		if authorizer.TTL > 0 && key != "" {
			x.policies.put(key, d, authorizer.TTL)
		}
	}
	x.event.RequestContext.Authorizer = d.context
	if !allows(d.statements, x.methodARN()) {
		return &refusal{kind: "ACCESS_DENIED"}
	}
	return nil
}

// identity returns the key of the cache: the authorizer and the values of its identity sources, "" where it has none. ok
// is false when one of them is absent or empty.
func (x *exchange) identity(authorizer template.Authorizer) (key string, ok bool) {
	for _, name := range authorizer.Headers {
		value := x.r.Header.Get(name)
		if value == "" {
			return "", false
		}
		key += "\x00" + value
	}
	if key != "" {
		key = authorizer.Name + key
	}
	return key, true
}

func (x *exchange) decide(function string) (decision, error) {
	answer, err := call[events.APIGatewayCustomAuthorizerResponse](x, function, x.authorizerEvent(), "")
	var unreadable answerError
	switch {
	case errors.As(err, &unreadable):
		return decision{}, &refusal{kind: "AUTHORIZER_CONFIGURATION_ERROR", cause: err}
	case err != nil && saysUnauthorized(err):
		return decision{}, &refusal{kind: "UNAUTHORIZED"}
	case err != nil:
		return decision{}, &refusal{kind: "AUTHORIZER_FAILURE", cause: err}
	}
	d, err := decisionOf(&answer)
	if err != nil {
		return decision{}, &refusal{kind: "AUTHORIZER_CONFIGURATION_ERROR", cause: fmt.Errorf("answer of %s: %w", function, err)}
	}
	return d, nil
}

// saysUnauthorized recognizes the one error that is an answer. A process's error has its type before its message.
func saysUnauthorized(err error) bool {
	return strings.HasSuffix(err.Error(), ": Unauthorized")
}

// decisionOf checks an authorizer's answer. All values of the context become strings; lists and objects are refused.
func decisionOf(answer *events.APIGatewayCustomAuthorizerResponse) (decision, error) {
	if answer.PrincipalID == "" {
		return decision{}, errors.New("principalId is missing")
	}
	if len(answer.PolicyDocument.Statement) == 0 {
		return decision{}, errors.New("policyDocument has no statement")
	}
	d := decision{statements: answer.PolicyDocument.Statement, context: map[string]any{"principalId": answer.PrincipalID}}
	for name, value := range answer.Context {
		switch value.(type) {
		case nil:
		case string, bool, int, float64:
			d.context[name] = fmt.Sprint(value)
		default:
			return decision{}, fmt.Errorf("context.%s is neither a string, a number nor a boolean", name)
		}
	}
	return d, nil
}

// allows reports whether some statement allows the request and none denies it.
func allows(statements []events.IAMPolicyStatement, methodARN string) bool {
	allowed := false
	for _, s := range statements {
		if !matches(s.Action, "execute-api:Invoke") || !matches(s.Resource, methodARN) {
			continue
		}
		if s.Effect != "Allow" {
			return false
		}
		allowed = true
	}
	return allowed
}

// matches reports whether one of the patterns matches a name.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return match(pattern, name) })
}

// match reports whether a pattern, in which * matches any text, matches a name.
func match(pattern, name string) bool {
	before, after, star := strings.Cut(pattern, "*")
	rest, ok := strings.CutPrefix(name, before)
	if !star || !ok {
		return ok && rest == ""
	}
	for i := range len(rest) + 1 {
		if match(after, rest[i:]) {
			return true
		}
	}
	return false
}

// policyCache keeps answers of authorizers, allowing and denying ones, until the gateway ends.
type policyCache struct {
	clock     func() time.Time
	mu        sync.Mutex
	decisions map[string]cachedDecision
}

type cachedDecision struct {
	decision
	expires time.Time
}

func (c *policyCache) get(key string) (decision, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, ok := c.decisions[key]
	return cached.decision, ok && c.clock().Before(cached.expires)
}

func (c *policyCache) put(key string, d decision, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decisions[key] = cachedDecision{d, c.clock().Add(ttl)}
}
