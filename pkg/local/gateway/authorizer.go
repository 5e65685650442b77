package gateway

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/local/template"
)

// decision is an authorizer's answer: a policy, which may cover other requests than the one that it was asked about,
// and a context.
type decision struct {
	policy  policy
	context map[string]string
}

// authorize asks the route's authorizer, unless its answer is cached.
func (x *exchange) authorize(authorizer template.Authorizer) error {
	key, ok := x.identity(authorizer)
	if !ok {
		return refuse("UNAUTHORIZED", "Unauthorized", nil)
	}
	keep := authorizer.TTL > 0 && key != ""
	var d decision
	if keep {
		d, ok = x.policies.get(key)
	}
	if !keep || !ok {
		var err error
		if d, err = x.decide(authorizer.Function); err != nil {
			return err
		}
		if keep {
			x.policies.put(key, d, authorizer.TTL)
		}
	}
	x.authorizer = d.context
	if !d.policy.allows(x.methodARN()) {
		return refuse("ACCESS_DENIED", "User is not authorized to access this resource", nil)
	}
	return nil
}

// identity returns the key of the cache: the authorizer and the values of its identity sources. ok is false when one of
// them is absent or empty.
func (x *exchange) identity(authorizer template.Authorizer) (key string, ok bool) {
	if len(authorizer.Headers)+len(authorizer.QueryStrings) == 0 {
		return "", true
	}
	var b strings.Builder
	b.WriteString(authorizer.Name)
	add := func(value string) bool {
		b.WriteByte(0)
		b.WriteString(value)
		return value != ""
	}
	for _, name := range authorizer.Headers {
		if !add(x.r.Header.Get(name)) {
			return "", false
		}
	}
	for _, name := range authorizer.QueryStrings {
		if !add(x.event.QueryStringParameters[name]) {
			return "", false
		}
	}
	return b.String(), true
}

func (x *exchange) decide(function string) (d decision, err error) {
	answer, taken, err := x.call(invocation{
		function: function,
		event:    func() any { return x.authorizerRequest() },
		payload: func() ([]byte, error) {
			return marshal(authorizerEvent{Type: "REQUEST", MethodARN: x.methodARN(), event: x.event})
		},
		take: func(answer any) (same bool) { d, same = decisionOf(answer); return same },
	})
	switch {
	case err != nil && saysUnauthorized(err):
		return d, refuse("UNAUTHORIZED", "Unauthorized", nil)
	case err != nil:
		return d, refuse("AUTHORIZER_FAILURE", "Internal server error", err)
	case !taken:
		if d, err = readDecision(answer); err != nil {
			return d, refuse("AUTHORIZER_CONFIGURATION_ERROR", "Internal server error", fmt.Errorf("answer of %s: %w", function, err))
		}
	}
	return d, nil
}

// saysUnauthorized recognizes the one error that is an answer. A process's error has its type before its message.
func saysUnauthorized(err error) bool {
	text := err.Error()
	return text == "Unauthorized" || strings.HasSuffix(text, ": errorString: Unauthorized")
}

// readDecision reads an authorizer's answer. All values of the context become strings; lists and objects are refused.
func readDecision(answer []byte) (decision, error) {
	var from struct {
		PrincipalID        string                    `json:"principalId"`
		PolicyDocument     policy                    `json:"policyDocument"`
		Context            map[string]jsontext.Value `json:"context"`
		UsageIdentifierKey string                    `json:"usageIdentifierKey"`
	}
	if err := json.Unmarshal(answer, &from, json.RejectUnknownMembers(true)); err != nil {
		return decision{}, fmt.Errorf("decode: %w", err)
	}
	if from.PrincipalID == "" {
		return decision{}, errors.New("principalId is missing")
	}
	if err := from.PolicyDocument.check(); err != nil {
		return decision{}, err
	}
	d := decision{policy: from.PolicyDocument, context: make(map[string]string, len(from.Context)+1)}
	for name, value := range from.Context {
		switch value.Kind() {
		case '{', '[':
			return decision{}, fmt.Errorf("context.%s is neither a string, a number nor a boolean", name)
		case '"':
			var text string
			if err := json.Unmarshal(value, &text); err != nil {
				return decision{}, fmt.Errorf("context.%s: %w", name, err)
			}
			d.context[name] = text
		case 'n':
		default:
			d.context[name] = string(value)
		}
	}
	d.context["principalId"] = from.PrincipalID
	return d, nil
}

// maxPolicies bounds the cache.
const maxPolicies = 10_000

// policyCache keeps answers of authorizers, allowing and denying ones.
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

// put adds a decision. A full cache drops those that have expired, or everything if none has: decisions are cheap to
// get again.
func (c *policyCache) put(key string, d decision, ttl time.Duration) {
	now := c.clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.decisions) >= maxPolicies {
		maps.DeleteFunc(c.decisions, func(_ string, cached cachedDecision) bool { return !now.Before(cached.expires) })
	}
	if len(c.decisions) >= maxPolicies {
		clear(c.decisions)
	}
	c.decisions[key] = cachedDecision{d, now.Add(ttl)}
}
