package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// llmsReader knows the address of /llms.txt, and reads what it links to. It calls
// operations that the OpenAPI document there declares.
type llmsReader struct {
	t        *testing.T
	known    []string // the addresses that it has seen
	unread   []string // those of them that may be pages to read
	pages    string   // what it has read
	document struct {
		Servers []struct {
			URL string `json:"url"`
		} `json:"servers"`
		Paths map[string]map[string]operation `json:"paths"`
	}
	token string
}

type operation struct {
	Summary     string `json:"summary"`
	RequestBody struct {
		Content map[string]struct {
			Example map[string]any `json:"example"`
		} `json:"content"`
	} `json:"requestBody"`
}

// read reads a page that it knows, and learns the links there.
func (l *llmsReader) read(address string) string {
	l.t.Helper()
	if !slices.Contains(l.known, address) {
		l.t.Fatalf("no page that it read links to %s", address)
	}
	text := l.send(http.MethodGet, address, "", "")
	for _, found := range regexp.MustCompile(`\]\((http[^)#]+)`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(l.known, found[1]) {
			l.known, l.unread = append(l.known, found[1]), append(l.unread, found[1])
		}
	}
	l.pages += text
	return text
}

// learn returns what a pattern finds in the pages, of which it reads as many as it
// takes.
func (l *llmsReader) learn(pattern string) []string {
	l.t.Helper()
	for {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(l.pages); found != nil {
			return found[1:]
		}
		if len(l.unread) == 0 {
			l.t.Fatalf("no page has %s", pattern)
		}
		next := l.unread[0]
		l.unread = l.unread[1:]
		if strings.HasSuffix(next, ".md") {
			l.read(next)
		}
	}
}

// call calls the operation whose summary has the words, with the example of the
// document as its body, changed by with.
func (l *llmsReader) call(words string, path *strings.Replacer, query string, with map[string]any) (answer map[string]any) {
	l.t.Helper()
	for route, methods := range l.document.Paths {
		for method, op := range methods {
			if !strings.Contains(strings.ToLower(op.Summary), words) {
				continue
			}
			address, body, mediaType := l.document.Servers[0].URL+path.Replace(route)+query, "", ""
			for kind, content := range op.RequestBody.Content {
				mediaType = kind
				if kind == "application/x-www-form-urlencoded" {
					body = formOf(with).Encode()
					continue
				}
				maps.Copy(content.Example, with)
				text, err := json.Marshal(content.Example)
				if err != nil {
					l.t.Fatal(err)
				}
				body = string(text)
			}
			if err := json.Unmarshal([]byte(l.send(strings.ToUpper(method), address, mediaType, body)), &answer); err != nil {
				l.t.Fatal(err)
			}
			return answer
		}
	}
	l.t.Fatalf("no operation is to %s", words)
	return nil
}

func formOf(values map[string]any) url.Values {
	form := url.Values{}
	for name, v := range values {
		form.Set(name, fmt.Sprint(v))
	}
	return form
}

func (l *llmsReader) send(method, address, mediaType, body string) string {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	if mediaType != "" {
		req.Header.Set("Content-Type", mediaType)
	}
	if l.token != "" {
		req.Header.Set("Authorization", "Bearer "+l.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		l.t.Fatalf("%s %s: got %d %s, %v", method, address, resp.StatusCode, text, err)
	}
	return string(text)
}

// TestAReaderOfLlmsTxtReachesAVerifiedWebhook has a program that knows the address of
// the service and an application's credentials find everything else itself.
func TestAReaderOfLlmsTxtReachesAVerifiedWebhook(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	app := s.create(t, "/developers/applications", `{"name":"Reader"}`)
	if resp, answer := s.user(t, http.MethodPut, "/developers/applications/"+app["id"].(string)+"/token-scopes",
		`{"scopes":["orders:read","products:read","webhooks:read","webhooks:write"]}`); resp.StatusCode != http.StatusOK {
		t.Fatalf("token scopes: got %d %s", resp.StatusCode, answer)
	}
	tap := newWiretap(t, func(int) int { return http.StatusNoContent })

	l := &llmsReader{t: t, known: []string{s.BaseURL + "/llms.txt"}}
	l.read(l.known[0])
	document := l.learn(`(?i)\[[^]]*OpenAPI\s+document\]\(([^)]+)\)`)[0]
	if err := json.Unmarshal([]byte(l.read(document)), &l.document); err != nil {
		t.Fatal(err)
	}
	none := strings.NewReplacer()
	l.token = l.call("get a token", none, "", map[string]any{
		"grant_type": "client_credentials", "client_id": app["clientId"], "client_secret": app["clientSecret"],
	})["access_token"].(string)
	application := l.call("read the principal", none, "", nil)["applicationId"].(string)
	endpoint := l.call("create a webhook endpoint", none, "?applicationId="+application, map[string]any{"url": tap.url})
	l.call("send a test event", strings.NewReplacer("{id}", endpoint["id"].(string)), "", nil)
	got := tap.next(t)

	rule := l.learn("The signature is `(\\S+)` and the base64 of the HMAC-SHA256 of `(\\S+)`, `(\\S+)` and the body, joined by dots\\.\\s+" +
		"The HMAC's key is the decoded base64 after `(\\S+)` in the secret")
	version, id, timestamp, prefix := rule[0], rule[1], rule[2], rule[3]
	header := l.learn(`(?m)^(\S+): ` + version)[0]
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(endpoint["secret"].(string), prefix))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, got.Header[id]+"."+got.Header[timestamp]+"."+got.Body)
	if want := version + base64.StdEncoding.EncodeToString(mac.Sum(nil)); got.Header[header] != want {
		t.Errorf("by the rule of the pages the signature is %s, got %s", want, got.Header[header])
	}
}
