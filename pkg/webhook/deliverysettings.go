package webhook

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook/pattern"
)

// Bounds of delivery settings.
const (
	MaxSelectedFields = 50 // of changed, and of fields
	MaxHeaders        = 10
	MaxHeaderName     = 64
	MaxHeaderValue    = 1024
	MaxHeaderBytes    = 2048 // of all names and values together

	// headerMask is shown in the place of a header's value. Given as a value it
	// keeps the one that is stored.
	headerMask = "****"
)

// DeliverySettings say which of the events that an endpoint subscribes to it
// gets, and which parts of them. Filter, Changed, Fields and Thin are about
// the events of records: an event about an endpoint, and a webhook.test, are
// always sent, and whole. The zero value sends everything.
type DeliverySettings struct {
	Filter  jsontext.Value `json:"filter,omitempty"`  // a pattern of package pattern, compact
	Changed []string       `json:"changed,omitempty"` // fields of which one must have changed
	Fields  []string       `json:"fields,omitempty"`  // of the object that are sent with its id; nil: all
	Thin    bool           `json:"thin,omitzero"`     // only id and updatedAt are sent
	Headers []SealedHeader `json:"headers,omitempty"` // sent with each attempt
}

// SealedHeader is a header of an endpoint's own; its value may be a credential.
type SealedHeader struct {
	Name   string `json:"name"` // in canonical form
	Sealed string `json:"sealed"`
}

// HeaderPurpose is what the value of an endpoint's header is sealed for.
func HeaderPurpose(endpoint value.ID, name string) string {
	return SecretPurpose(endpoint) + " header " + name
}

// sent are the fields of the object of such an event that the endpoint is sent;
// nil is all of them.
func (s *DeliverySettings) sent(eventType string) []string {
	switch {
	case commerce.RecordKind(eventType) == "":
		return nil
	case s.Thin:
		return thinFields()
	}
	return s.Fields
}

// thinFields are the members of the event's object in a thin payload, besides its id.
func thinFields() []string { return []string{"updatedAt"} }

func (s *DeliverySettings) equal(o *DeliverySettings) bool {
	return string(s.Filter) == string(o.Filter) && slices.Equal(s.Changed, o.Changed) && slices.Equal(s.Fields, o.Fields) &&
		s.Thin == o.Thin && slices.Equal(s.Headers, o.Headers)
}

// PayloadForm is how much of an event's object is sent.
type PayloadForm string

// The forms of payloads.
const (
	PayloadFull PayloadForm = "full"
	PayloadThin PayloadForm = "thin"
)

// Values lists every form.
func (PayloadForm) Values() []string { return []string{string(PayloadFull), string(PayloadThin)} }

// DeliverySettingsDto is the input of delivery settings, which replaces those
// that an endpoint has: absent and null members take their defaults.
type DeliverySettingsDto struct {
	Filter         *jsontext.Value    `json:"filter" required:"false" doc:"An event pattern in EventBridge's language over object, previousAttributes and siteId, such as {\"object\": {\"total\": [{\"numeric\": [\">\", 100]}]}}; an event that does not match is not sent. Conditions: values, prefix, suffix, equals-ignore-case, wildcard, numeric, anything-but, exists; $or beside fields. Numbers are exact decimals. At most 4,096 bytes as compact JSON, 12 levels, 100 conditions, and 8 asterisks in a wildcard."`
	Changed        *[]string          `json:"changed" required:"false" minItems:"1" maxItems:"50" uniqueItems:"true" doc:"Fields of the object. An event is sent only if at least one of them changed. Events of creations and deletions, which have no previousAttributes, pass."`
	Fields         *[]string          `json:"fields" required:"false" minItems:"1" maxItems:"50" uniqueItems:"true" doc:"The fields to send in object and previousAttributes; id is always sent. Absent: all. Not allowed with payload thin."`
	Payload        *PayloadForm       `json:"payload" required:"false" default:"full" doc:"thin sends only id and updatedAt of the object, and an empty previousAttributes if there is one; read the rest from the API."`
	Headers        *map[string]string `json:"headers" required:"false" doc:"Headers sent with every attempt, such as Authorization: at most 10, with names of at most 64 characters and ASCII values of at most 1,024, together at most 2,048. Headers that the service or HTTP sets are refused: webhook-*, content-*, host, user-agent and others. The value **** keeps the stored value."`
	RetryCount     *int               `json:"retryCount" required:"false" minimum:"0" maximum:"10" default:"8" doc:"Retries after a failed attempt. It applies from the next attempt, also to waiting events."`
	TimeoutSeconds *int               `json:"timeoutSeconds" required:"false" minimum:"1" maximum:"30" default:"15" doc:"The timeout of an attempt."`
}

// WebhookDeliverySettings are delivery settings as the API shows them.
type WebhookDeliverySettings struct { //nolint:revive // as WebhookEndpoint
	Filter         jsontext.Value    `json:"filter" nullable:"true" doc:"The pattern that events must match. null: every event is sent."`
	Changed        *[]string         `json:"changed" doc:"The fields of which one must have changed. null: any field."`
	Fields         *[]string         `json:"fields" doc:"The fields of the object to send, besides id. null: all."`
	Payload        PayloadForm       `json:"payload" doc:"How much of the object is sent."`
	Headers        map[string]string `json:"headers" doc:"The headers sent with every attempt; each value is shown as ****."`
	RetryCount     int               `json:"retryCount" doc:"Retries after a failed attempt."`
	TimeoutSeconds int               `json:"timeoutSeconds" doc:"The timeout of an attempt."`
}

// ShapeDelivery shows the endpoint's delivery settings, the headers masked.
func (e *Endpoint) ShapeDelivery() WebhookDeliverySettings {
	s := &e.Delivery
	shape := WebhookDeliverySettings{
		Filter: s.Filter, Changed: orNull(s.Changed), Fields: orNull(s.Fields), Payload: PayloadFull, Headers: map[string]string{},
		RetryCount: e.RetryCount, TimeoutSeconds: e.TimeoutSeconds,
	}
	if s.Thin {
		shape.Payload = PayloadThin
	}
	for _, h := range s.Headers {
		shape.Headers[h.Name] = headerMask
	}
	return shape
}

func orNull(names []string) *[]string {
	if names == nil {
		return nil
	}
	return &names
}

// ConfigETag changes with the endpoint's configuration, its delivery settings
// included.
func (e *Endpoint) ConfigETag() string { return `"` + strconv.FormatInt(int64(e.UpdatedAt), 36) + `"` }

// ParseDeliverySettings reads the body of delivery settings. An error is a fault
// that names each field that is wrong in itself; [Endpoint.SetDelivery] checks
// them against the endpoint's events.
func ParseDeliverySettings(body []byte) (DeliverySettingsDto, error) {
	c, dto := checks{}, DeliverySettingsDto{}
	if err := c.Read(body, &dto); err != nil {
		return dto, err
	}
	c.filter(dto.Filter)
	c.names("changed", dto.Changed)
	c.names("fields", dto.Fields)
	if dto.Changed != nil {
		c.Refuse(slices.Contains(*dto.Changed, "updatedAt"), "changed", fault.DetailNotAllowed, "must not have updatedAt, which changes with every event")
	}
	if dto.Payload != nil {
		c.Refuse(!slices.Contains(PayloadForm("").Values(), string(*dto.Payload)), "payload", fault.DetailFormat, "must be full or thin")
		c.Refuse(*dto.Payload == PayloadThin && dto.Fields != nil, "fields", fault.DetailNotAllowed, "must be left out when payload is thin")
	}
	c.headers(dto.Headers)
	c.within("retryCount", dto.RetryCount, 0, MaxRetryCount)
	c.within("timeoutSeconds", dto.TimeoutSeconds, MinTimeoutSeconds, MaxTimeoutSeconds)
	return dto, c.Err()
}

// filter checks a filter and leaves it compact.
func (c *checks) filter(filter *jsontext.Value) {
	if filter == nil {
		return
	}
	if err := filter.Compact(); err != nil {
		c.Add("filter", fault.DetailFormat, "must be valid JSON")
		return
	}
	var e *pattern.Error
	if _, err := pattern.Compile(*filter); errors.As(err, &e) {
		c.Add(filterField(e.At), fault.DetailFormat, "%s", e.Reason)
	}
}

// filterField is the field of the body at which a part of the filter stands.
func filterField(at string) string { return strings.TrimSuffix("filter."+at, ".") }

func (c *checks) names(field string, names *[]string) {
	if names == nil {
		return
	}
	if n := len(*names); n < 1 || n > MaxSelectedFields {
		c.Add(field, fault.DetailOutOfRange, "must have 1 to %d entries", MaxSelectedFields)
		return
	}
	for i, name := range *names {
		if slices.Contains((*names)[:i], name) {
			c.Add(entry(field, i), fault.DetailDuplicate, "must be given once")
		}
	}
}

func entry(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// headers checks headers and leaves their names in canonical form.
func (c *checks) headers(given *map[string]string) {
	if given == nil {
		return
	}
	canonical, size := map[string]string{}, 0
	if len(*given) > MaxHeaders {
		c.Add("headers", fault.DetailOutOfRange, "must be at most %d", MaxHeaders)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(*given)) {
		field, text := "headers."+name, strings.Trim((*given)[name], " \t")
		key := http.CanonicalHeaderKey(name)
		_, twice := canonical[key]
		switch {
		case !isToken(name) || len(name) > MaxHeaderName:
			c.Add(field, fault.DetailFormat, "must have as its name a header's name of 1 to %d characters", MaxHeaderName)
		case reservedHeader(key):
			c.Add(field, fault.DetailNotAllowed, "is a header that the service or HTTP itself sets")
		case twice:
			c.Add(field, fault.DetailDuplicate, "must be given once, regardless of case")
		case text == "" || len(text) > MaxHeaderValue || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
			c.Add(field, fault.DetailFormat, "must have 1 to %d printable characters of ASCII", MaxHeaderValue)
		}
		canonical[key] = text
		size += len(key) + len(text)
	}
	c.Refuse(size > MaxHeaderBytes, "headers", fault.DetailOutOfRange, "must have at most "+strconv.Itoa(MaxHeaderBytes)+" characters together")
	*given = canonical
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// reservedHeader reports whether the service, its HTTP client or the protocol
// sets the header.
func reservedHeader(canonical string) bool {
	for _, prefix := range []string{"Webhook-", "Content-", "Proxy-", "Sec-", "If-"} {
		if strings.HasPrefix(canonical, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"Host", "User-Agent", "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
		"Accept-Encoding", "Http2-Settings", "Date", "Range", "Idempotency-Key",
	}, canonical)
}

// SetDelivery returns the endpoint with the delivery settings, which
// ParseDeliverySettings has read; the same endpoint when nothing differs. seal
// encrypts a header's value for a purpose. The fault names each field that no
// event has that the endpoint subscribes to, and each condition that its field
// can never meet.
func (e *Endpoint) SetDelivery(dto DeliverySettingsDto, seal func(plain []byte, purpose string) string, now value.Time) (*Endpoint, error) {
	next := *e
	next.RetryCount = value.Or(dto.RetryCount, DefaultRetryCount)
	next.TimeoutSeconds = value.Or(dto.TimeoutSeconds, DefaultTimeoutSeconds)
	next.Delivery = DeliverySettings{
		Filter: value.Or(dto.Filter, nil), Changed: value.Or(dto.Changed, nil), Fields: value.Or(dto.Fields, nil),
		Thin: value.Or(dto.Payload, PayloadFull) == PayloadThin,
	}
	s := &next.Delivery
	details := s.misfits(e.SubscribedEvents)
	if dto.Headers != nil {
		e.sealHeaders(s, *dto.Headers, seal, &details)
	}
	switch err := details.Err(); {
	case err != nil:
		return nil, err
	case s.equal(&e.Delivery) && next.RetryCount == e.RetryCount && next.TimeoutSeconds == e.TimeoutSeconds:
		return e, nil
	}
	next.UpdatedAt = max(now, e.UpdatedAt+1)
	return &next, nil
}

// sealHeaders sets the headers, in the order of their names. One with the mask
// keeps the value that is stored.
func (e *Endpoint) sealHeaders(s *DeliverySettings, headers map[string]string, seal func([]byte, string) string, details *fault.Details) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		text, h := headers[name], SealedHeader{Name: name}
		stored := slices.IndexFunc(e.Delivery.Headers, func(h SealedHeader) bool { return h.Name == name })
		switch {
		case text != headerMask:
			h.Sealed = seal([]byte(text), HeaderPurpose(e.ID, name))
		case stored < 0:
			details.Add(fault.InBody, "headers."+name, fault.DetailNotAllowed, "must have a value: none is stored that **** could keep")
		default:
			h = e.Delivery.Headers[stored]
		}
		s.Headers = append(s.Headers, h)
	}
}

// misfits names what of the settings fits none of the subscribed events.
func (s *DeliverySettings) misfits(subscribed []string) (details fault.Details) {
	var kinds []commerce.Kind
	for _, name := range commerce.EventNames() {
		if kind := commerce.RecordKind(name); kind != "" && commerce.Matches(subscribed, name) && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	// types are those of the member in the objects of the events.
	types := func(path ...string) (found []commerce.MemberType) {
		for _, kind := range kinds {
			if t := commerce.Member(kind, path...); t != "" {
				found = append(found, t)
			}
		}
		return found
	}
	const unknown = "is not a field of the events that the endpoint subscribes to"
	known := func(field string, names []string) {
		for i, name := range names {
			if len(types(name)) == 0 {
				details.Add(fault.InBody, entry(field, i), fault.DetailUnknown, "%q "+unknown, name)
			}
		}
	}
	known("changed", s.Changed)
	known("fields", s.Fields)
	if s.Filter == nil {
		return details
	}
	p, err := pattern.Compile(s.Filter)
	if err != nil {
		details.Add(fault.InBody, "filter", fault.DetailFormat, "%s", err.Error())
		return details
	}
	for _, c := range p.Conditions() {
		var found []commerce.MemberType
		switch c.Path[0] {
		case "siteId":
			if len(c.Path) == 1 {
				found = []commerce.MemberType{commerce.MemberText}
			}
		case "object", "previousAttributes":
			found = types(c.Path[1:]...)
		default:
			details.Add(fault.InBody, filterField(c.At), fault.DetailUnknown, "must be below object, previousAttributes or siteId")
			continue
		}
		switch {
		case len(found) == 0:
			details.Add(fault.InBody, filterField(c.At), fault.DetailUnknown, "%s "+unknown, strings.Join(c.Path, "."))
		case !slices.ContainsFunc(found, func(t commerce.MemberType) bool { return fits(c.Kind, t) }):
			details.Add(fault.InBody, filterField(c.At), fault.DetailType, "can never hold: %s is %s", strings.Join(c.Path, "."), found[0])
		}
	}
	return details
}

// fits reports whether a condition on values of the kind, as [pattern.Condition]
// names it, can hold for a member of the type.
func fits(kind jsontext.Kind, t commerce.MemberType) bool {
	switch {
	case t == commerce.MemberUnknown || kind == 'n':
		return true
	case kind == '"':
		return t == commerce.MemberText
	case kind == '0':
		return t == commerce.MemberNumber
	case kind == 't':
		return t == commerce.MemberBool
	}
	return t != commerce.MemberObject
}
