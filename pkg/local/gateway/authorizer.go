package gateway

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/local/template"
)

// decision is an authorizer's answer: a policy, which may speak for other
// requests than the one that it was asked about, and a context.
type decision struct {
	policy  policy
	context map[string]string
}

// authorize asks the route's authorizer, or remembers what it said.
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
		if d, err = x.decide(authorizer); err != nil {
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

// identity returns the key of the cache: the authorizer and the values of its
// identity sources. ok is false when one of them is absent or empty.
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

func (x *exchange) decide(authorizer template.Authorizer) (decision, error) {
	d, done, err := x.decideDirectly(authorizer.Function)
	if !done {
		d, err = x.decideByPayload(authorizer.Function)
	}
	var unusable *misread
	switch {
	case errors.As(err, &unusable):
		return d, refuse("AUTHORIZER_CONFIGURATION_ERROR", "Internal server error", err)
	case err != nil && err.Error() == "Unauthorized": // the one error that is an answer
		return d, refuse("UNAUTHORIZED", "Unauthorized", nil)
	case err != nil:
		return d, refuse("AUTHORIZER_FAILURE", "Internal server error", err)
	}
	return d, nil
}

func (x *exchange) decideByPayload(function string) (decision, error) {
	payload, err := marshal(authorizerEvent{Type: "REQUEST", MethodARN: x.methodARN(), event: x.event})
	if err != nil {
		return decision{}, err
	}
	answer, err := x.call(function, payload)
	if err != nil {
		return decision{}, err
	}
	d, err := readDecision(answer)
	if err != nil {
		err = &misread{fmt.Errorf("answer of %s: %w", function, err)}
	}
	return d, err
}

// readDecision reads an authorizer's answer. All values of the context become
// strings; lists and objects are refused.
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
	clock   func() time.Time
	mu      sync.Mutex
	entries map[string]cachedDecision
}

type cachedDecision struct {
	decision
	expires time.Time
}

func newPolicyCache(clock func() time.Time) *policyCache {
	return &policyCache{clock: clock, entries: map[string]cachedDecision{}}
}

func (c *policyCache) get(key string) (decision, bool) {
	now := c.clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[key]
	return entry.decision, ok && now.Before(entry.expires)
}

func (c *policyCache) put(key string, d decision, ttl time.Duration) {
	now := c.clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxPolicies {
		c.shrink(now)
	}
	c.entries[key] = cachedDecision{d, now.Add(ttl)}
}

// shrink drops what has expired, and if that is nothing, everything: policies
// are cheap to ask for again.
func (c *policyCache) shrink(now time.Time) {
	for key, entry := range c.entries {
		if !now.Before(entry.expires) {
			delete(c.entries, key)
		}
	}
	if len(c.entries) >= maxPolicies {
		clear(c.entries)
	}
}
