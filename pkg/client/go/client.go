// Package commerce is a client of the Commerce Integration Service: it reads
// records, manages applications and webhooks, and verifies deliveries. README.md
// has a program to begin with.
//
//	c := commerce.New("https://api.example.com", commerce.Config{ClientID: id, ClientSecret: secret})
//	for order, err := range c.AllOrders(ctx, &commerce.ListOrdersParams{PaymentStatus: []string{"PAID"}}) {
//
// A method is an operation of the service's OpenAPI document, and an All method
// walks through every page of a list. Requests that fail for a while are
// repeated, as [Config] says. An answer that is an error is an [*Error].
//
// Ids and enumerations are strings, for the service adds values. Amounts are
// [json.Number], which keeps each of their decimals. Times are sent with three
// decimals of a second in parameters; in a body the service cuts the
// decimals beyond them. To send a null, which clears a field, use [Client.Do].
//
// client.gen.go is made of the document by oapi-codegen: `go generate` rewrites
// it, and `make clients` in the service's repository holds it to the document.
package commerce

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

//go:generate sh -c "cd generate && go tool -modfile=../../../../.tools/go.mod oapi-codegen -config config.yaml -o ../client.gen.go ../../../api/docs/openapi.json"

// FirstID is before every id. As AfterID of a list's parameters it begins a walk
// by id, which changes cannot disturb.
const FirstID = "00000000-0000-0000-0000-000000000000"

// Config says who the client is and how it sends. One of APIKey, Token and
// ClientID with ClientSecret is given, or none for what needs no credentials.
type Config struct {
	APIKey string // of an application, for the read API
	Token  string // an access token of a user or an application

	// Of an application, for tokens of its own: the client gets one with the first
	// request, and another before it expires or when the service refuses it. When
	// the service gives none, the error is an [*oauth2.RetrieveError].
	ClientID, ClientSecret string
	Scopes                 []string // nil: all that the application's tokens may have

	// HTTP sends the requests; nil: http.DefaultClient. Its Timeout bounds a
	// request together with its repetitions.
	HTTP *http.Client

	// Retries is how often a request is repeated at most when there is no answer
	// or it is 429, 502, 503, 504 or a 409 with Retry-After; 0: 4, negative: never.
	// A repetition waits as Retry-After says, or half a second and twice as long
	// each time. It is not made when the context would end before. A PATCH is
	// repeated after 429 only. A POST has an Idempotency-Key, so that it acts once.
	Retries int
}

// Client is safe for concurrent use.
type Client struct {
	base   string
	config Config
	http   *http.Client

	mu    sync.Mutex
	token *oauth2.Token // of ClientID; nil before the first request
}

// New returns a client of the service at the base URL, its stage included.
func New(baseURL string, config Config) *Client {
	sender := http.Client{}
	if config.HTTP != nil {
		sender = *config.HTTP
	}
	sender.Transport = newRetrier(sender.Transport, config.Retries)
	return &Client{base: strings.TrimRight(baseURL, "/"), config: config, http: &sender}
}

// Error is an answer of the service that is an error, or 304 when the request had
// If-None-Match.
type Error struct {
	StatusCode int           `json:"statusCode"`
	Code       string        `json:"code"`    // for programs; a code keeps its meaning
	Message    string        `json:"message"` // says how to correct the request
	Details    []ErrorDetail `json:"details"` // at most 20 of the faults
	RequestID  string        `json:"requestId"`
}

func (e *Error) Error() string {
	return fmt.Sprintf("%d %s: %s (request %s)", e.StatusCode, e.Code, e.Message, e.RequestID)
}

// An Option changes one call.
type Option func(*call)

type call struct{ request, answer http.Header }

// Header sends a header, such as X-Site-Id, If-Match or an Idempotency-Key of
// your own.
func Header(name, value string) Option {
	return func(c *call) { c.request.Set(name, value) }
}

// AnswerHeader adds the answer's header to h: ETag, or X-Sync-From, which only the
// first page of a list has.
func AnswerHeader(h http.Header) Option {
	return func(c *call) { c.answer = h }
}

// Do sends a request that no method covers. params is nil or a pointer to a
// Params type, body is nil or encoded as JSON, and the answer's JSON is decoded
// into answer unless it is nil.
func (c *Client) Do(ctx context.Context, method, path string, params, body, answer any, options ...Option) error {
	_, err := c.do(ctx, method, path, query(params), body, answer, options)
	return err
}

// none is the answer of an operation without one.
type none struct{}

func ask[T any](ctx context.Context, c *Client, method, path string, params, body any, options []Option) (*T, error) {
	answer := new(T)
	if err := c.Do(ctx, method, path, params, body, answer, options...); err != nil {
		return nil, err
	}
	return answer, nil
}

// next is the query of the next page in a Link header (RFC 8288).
var next = regexp.MustCompile(`<[^<>?]*\?([^<>]*)>; rel="next"`)

// all asks for a page of 100 entries, unless params says otherwise, and for those
// that it links to. It ends with the first error.
func all[T any](ctx context.Context, c *Client, path string, params any, options []Option) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		values := query(params)
		if !values.Has("limit") {
			values.Set("limit", "100")
		}
		for more := values.Encode(); more != ""; {
			var page struct{ Data []T }
			values, _ := url.ParseQuery(more)
			header, err := c.do(ctx, http.MethodGet, path, values, nil, &page, options)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, entry := range page.Data {
				if !yield(entry, nil) {
					return
				}
			}
			more = ""
			if link := next.FindStringSubmatch(header.Get("Link")); link != nil {
				more = link[1]
			}
		}
	}
}

func (c *Client) do(ctx context.Context, method, path string, query url.Values, body, answer any, options []Option) (http.Header, error) {
	// API Gateway decodes a compressed answer only when the request has Accept.
	call := call{request: http.Header{"Accept": {"application/json"}}}
	var payload []byte
	if v := reflect.ValueOf(body); v.IsValid() && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return nil, err
		}
		call.request.Set("Content-Type", "application/json")
	}
	if method == http.MethodPost {
		call.request.Set("Idempotency-Key", rand.Text())
	}
	for _, option := range options {
		option(&call)
	}
	response, err := c.send(ctx, method, c.base+path+"?"+query.Encode(), payload, call.request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if call.answer != nil {
		maps.Copy(call.answer, response.Header)
	}
	if response.StatusCode/100 != 2 {
		fault := &Error{StatusCode: response.StatusCode, Message: http.StatusText(response.StatusCode)}
		// What is between client and service may answer without JSON.
		_ = decode(response.Body, fault)
		return nil, fault
	}
	if answer == nil || response.StatusCode == http.StatusNoContent {
		return response.Header, nil
	}
	if err := decode(response.Body, answer); err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return response.Header, nil
}

// send sends the request, and again with another token when one of the client's
// own is refused.
func (c *Client) send(ctx context.Context, method, url string, payload []byte, header http.Header) (*http.Response, error) {
	for refused := ""; ; {
		request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(payload))
		if err != nil {
			return nil, err
		}
		request.Header = header.Clone()
		token, err := c.accessToken(ctx, refused)
		if err != nil {
			return nil, err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		if c.config.APIKey != "" {
			request.Header.Set("X-API-Key", c.config.APIKey)
		}
		response, err := c.http.Do(request)
		if err != nil || response.StatusCode != http.StatusUnauthorized || c.config.ClientID == "" || refused != "" {
			return response, err
		}
		discard(response)
		refused = token
	}
}

// accessToken returns a token that is not the refused one, made for ClientID if
// need be; "" without credentials that make tokens.
func (c *Client) accessToken(ctx context.Context, refused string) (string, error) {
	if c.config.ClientID == "" {
		return c.config.Token, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.token.Valid() || c.token.AccessToken == refused {
		source := clientcredentials.Config{
			ClientID: c.config.ClientID, ClientSecret: c.config.ClientSecret, Scopes: c.config.Scopes,
			TokenURL: c.base + "/oauth/token", AuthStyle: oauth2.AuthStyleInHeader,
		}
		token, err := source.Token(context.WithValue(ctx, oauth2.HTTPClient, c.http))
		if err != nil {
			return "", err
		}
		c.token = token
	}
	return c.token.AccessToken, nil
}

// path fills ids into the format.
func path(format string, ids ...any) string {
	for i, id := range ids {
		ids[i] = url.PathEscape(fmt.Sprint(id))
	}
	return fmt.Sprintf(format, ids...)
}

// query holds the fields of params that are set; params is nil or a pointer to a
// Params type, which names each field's parameter in the tag form, and that of a map, of
// which each key is a parameter, in the tag json.
func query(params any) url.Values {
	values := url.Values{}
	v := reflect.ValueOf(params)
	if !v.IsValid() || v.IsNil() {
		return values
	}
	v = v.Elem()
	for i := range v.NumField() {
		field, tag := v.Field(i), v.Type().Field(i).Tag
		name, _, _ := strings.Cut(cmp.Or(tag.Get("form"), tag.Get("json")), ",")
		switch {
		case field.IsZero():
		case field.Kind() == reflect.Map:
			for key, value := range field.Seq2() {
				values.Set(name+"["+key.String()+"]", text(value))
			}
		default:
			values.Set(name, text(field))
		}
	}
	return values
}

func text(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer:
		return text(v.Elem())
	case v.Kind() == reflect.Slice:
		texts := make([]string, v.Len())
		for i := range texts {
			texts[i] = text(v.Index(i))
		}
		return strings.Join(texts, ",")
	}
	if t, ok := v.Interface().(time.Time); ok {
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return fmt.Sprint(v.Interface())
}

// decode keeps numbers exact where the document does not say what an object holds.
func decode(text io.Reader, value any) error {
	decoder := json.NewDecoder(text)
	decoder.UseNumber()
	return decoder.Decode(value)
}

func discard(response *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
	_ = response.Body.Close()
}
