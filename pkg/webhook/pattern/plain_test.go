package pattern_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/webhook/pattern"
)

// This is the language once more, written from its description with the
// standard library: decoded JSON, rational numbers and regular expressions.

type missing struct{}

func decodePlain(t testing.TB, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func plainMatch(p map[string]any, at any) bool {
	members, isObject := at.(map[string]any)
	for name, asked := range p {
		if name == "$or" {
			found := false
			for _, alternative := range asked.([]any) {
				found = found || plainMatch(alternative.(map[string]any), at)
			}
			if !found {
				return false
			}
			continue
		}
		var member any = missing{}
		if v, ok := members[name]; isObject && ok {
			member = v
		}
		if !plainField(asked, member) {
			return false
		}
	}
	return true
}

func plainField(asked, member any) bool {
	nested, isNested := asked.(map[string]any)
	var objects, values []any
	spread(member, &objects, &values)
	if isNested {
		if len(objects) == 0 {
			objects = []any{missing{}}
		}
		for _, o := range objects {
			if plainMatch(nested, o) {
				return true
			}
		}
		return false
	}
	if len(values) == 0 {
		values = []any{missing{}}
	}
	for _, v := range values {
		for _, c := range asked.([]any) {
			if plainCondition(c, v) {
				return true
			}
		}
	}
	return false
}

// spread collects the objects and the values of a member, those of arrays
// included.
func spread(member any, objects, values *[]any) {
	switch m := member.(type) {
	case []any:
		for _, e := range m {
			spread(e, objects, values)
		}
	case map[string]any:
		*objects = append(*objects, m)
	case missing:
	default:
		*values = append(*values, m)
	}
}

func plainCondition(c, v any) bool {
	operator, isOperator := c.(map[string]any)
	if !isOperator {
		return plainEqual(c, v)
	}
	for name, argument := range operator {
		if name == "exists" {
			return (v != missing{}) == argument.(bool)
		}
		if v == (missing{}) {
			return false
		}
		switch name {
		case "numeric":
			return plainNumeric(argument.([]any), v)
		case "anything-but":
			about := func(one any) bool { return plainEqual(one, v) }
			if inner, is := argument.(map[string]any); is {
				for kind, texts := range inner {
					argument = texts
					about = func(one any) bool { return plainText(kind, one, v) }
				}
			}
			all, isArray := argument.([]any)
			if !isArray {
				all = []any{argument}
			}
			for _, one := range all {
				if about(one) {
					return false
				}
			}
			return true
		}
		return plainText(name, argument, v)
	}
	panic("an operator without a name")
}

func plainEqual(a, b any) bool {
	x, isNumber := a.(json.Number)
	y, too := b.(json.Number)
	if isNumber && too {
		return rat(x).Cmp(rat(y)) == 0
	}
	return !isNumber && !too && a == b
}

func rat(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		panic("no number: " + n.String())
	}
	return r
}

func plainNumeric(bounds []any, v any) bool {
	n, is := v.(json.Number)
	for i := 0; is && i < len(bounds); i += 2 {
		order := rat(n).Cmp(rat(bounds[i+1].(json.Number)))
		is = map[string]bool{"=": order == 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[bounds[i].(string)]
	}
	return is
}

// plainText makes a regular expression of an operator on text.
func plainText(name string, argument, v any) bool {
	text, isText := v.(string)
	if !isText {
		return false
	}
	flags := "(?s)"
	if inner, is := argument.(map[string]any); is {
		flags, argument = "(?is)", inner["equals-ignore-case"]
	}
	want := regexp.QuoteMeta(argument.(string))
	switch name {
	case "prefix":
		want = "^" + want
	case "suffix":
		want += "$"
	case "equals-ignore-case":
		flags, want = "(?is)", "^"+want+"$"
	case "wildcard":
		// Escapes first, in one pass.
		want = "^" + regexp.MustCompile(`\\\\\\\*|\\\\\\\\|\\\*`).ReplaceAllStringFunc(want, func(s string) string {
			return map[string]string{`\\\*`: `\*`, `\\\\`: `\\`, `\*`: `.*`}[s]
		}) + "$"
	default:
		panic("no operator " + name)
	}
	return regexp.MustCompile(flags + want).MatchString(text)
}

// generator makes patterns and objects that often fit.
type generator struct{ *rand.Rand }

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

func (g generator) name() string { return pick(g, "a", "a", "b", `d"\`) }

func (g generator) text() string {
	n := g.IntN(4)
	var b strings.Builder
	for range n {
		b.WriteString(pick(g, "a", "A", "b", "k", "\u212a", "ß", "ſ", "s", `\`, `*`, `"`, "\n", "é", "😀"))
	}
	return b.String()
}

func (g generator) number() string {
	return pick(g, "", "-") + pick(g, "0", "1", "12", "99999999999", "100", "2"+strings.Repeat("0", g.IntN(10))) +
		pick(g, "", ".5", ".50", ".0001", ".00010", ".9999", ".0") + pick(g, "", "", "", "e1", "E+2", "e-2", "e0", "e-30", "e12")
}

// write writes a text as JSON, sometimes with escapes that it does not need.
func (g generator) quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	if g.IntN(4) == 0 {
		return strings.ReplaceAll(string(quoted), "a", `\u0061`)
	}
	return string(quoted)
}

func (g generator) scalar() string {
	return pick(g, g.quote(g.text()), g.quote(g.text()), g.number(), g.number(), "true", "false", "null")
}

func (g generator) value(levels int) string {
	switch n := g.IntN(10); {
	case n < 3 && levels > 0:
		return g.object(levels - 1)
	case n < 6 && levels > 0:
		all := make([]string, g.IntN(4))
		for i := range all {
			all[i] = g.value(levels - 1)
		}
		return "[" + strings.Join(all, pick(g, ",", " , ")) + "]"
	}
	return g.scalar()
}

func (g generator) object(levels int) string {
	return g.members(4, func() string { return g.value(levels) })
}

func (g generator) members(most int, value func() string) string {
	seen, all := map[string]bool{}, []string{}
	for range g.IntN(most + 1) {
		if name := g.name(); !seen[name] {
			seen[name] = true
			all = append(all, g.quote(name)+pick(g, ":", " : ")+value())
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

func (g generator) list(one func() string) string {
	all := make([]string, 1+g.IntN(3))
	for i := range all {
		all[i] = one()
	}
	return "[" + strings.Join(all, ",") + "]"
}

func (g generator) someText() string {
	for {
		if text := g.text(); text != "" {
			return g.quote(text)
		}
	}
}

func (g generator) wildcard() string {
	text := ""
	for range 1 + g.IntN(3) {
		text += pick(g, "a", "b", `\*`, `\\`, "ß")
		text += pick(g, "*", "")
	}
	return g.quote(pick(g, "*", "") + text)
}

func (g generator) about() (operator, argument string) {
	switch operator = pick(g, "prefix", "suffix", "equals-ignore-case", "wildcard"); operator {
	case "wildcard":
		return operator, g.wildcard()
	case "equals-ignore-case":
		return operator, g.quote(g.text())
	}
	return operator, g.someText()
}

func (g generator) condition() string {
	operator, argument := g.about()
	switch g.IntN(9) {
	case 0, 1, 2:
		return g.scalar()
	case 3, 4:
		if (operator == "prefix" || operator == "suffix") && g.IntN(2) == 0 {
			argument = `{"equals-ignore-case":` + argument + "}"
		}
		return fmt.Sprintf(`{%q:%s}`, operator, argument)
	case 5:
		return fmt.Sprintf(`{"numeric":[%q,%s]}`, pick(g, "=", "<", "<=", ">", ">="), g.number())
	case 6:
		low, high := g.number(), g.number()
		if rat(json.Number(low)).Cmp(rat(json.Number(high))) >= 0 {
			low = "-1e40"
			high = "0.5"
		}
		return fmt.Sprintf(`{"numeric":[%q,%s,%q,%s]}`, pick(g, ">", ">="), low, pick(g, "<", "<="), high)
	case 7:
		return pick(g, `{"exists":true}`, `{"exists":false}`)
	}
	switch g.IntN(3) {
	case 0:
		read := pick(g, g.number, func() string { return g.quote(g.text()) })
		return `{"anything-but":` + pick(g, read(), g.list(read)) + "}"
	case 1:
		return fmt.Sprintf(`{"anything-but":{%q:%s}}`, operator, argument)
	}
	return fmt.Sprintf(`{"anything-but":{%q:[%s]}}`, operator, argument)
}

// pattern makes a pattern.
func (g generator) pattern(levels int) string {
	for {
		p := g.members(2, func() string {
			if levels > 0 && g.IntN(3) == 0 {
				return g.pattern(levels - 1)
			}
			return g.list(g.condition)
		})
		if levels > 0 && g.IntN(4) == 0 {
			or := fmt.Sprintf(`"$or":[%s,%s]`, g.pattern(levels-1), g.pattern(levels-1))
			if p == "{}" {
				return "{" + or + "}"
			}
			return p[:len(p)-1] + "," + or + "}"
		}
		if p != "{}" {
			return p
		}
	}
}

// compare evaluates a random pattern on a random object in both ways.
func (g generator) compare(t testing.TB) (matched bool) {
	t.Helper()
	text, object := g.pattern(2), g.object(3)
	p, err := pattern.Compile([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	d, err := pattern.ParseDocument([]byte(object))
	if err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	want := plainMatch(decodePlain(t, text).(map[string]any), decodePlain(t, object))
	mismatch := p.Mismatch(d)
	got := mismatch == ""
	if got != want {
		t.Fatalf("%s on %s: mismatch %q, want a match %t", text, object, mismatch, want)
	}
	return got
}

func TestThePlainEvaluatorAgrees(t *testing.T) {
	const tries = 20_000
	g, matches := generator{rand.New(rand.NewPCG(13, 5))}, 0
	for range tries {
		if g.compare(t) {
			matches++
		}
	}
	if matches < tries/10 || matches > tries*9/10 {
		t.Errorf("%d of %d match: the comparison says little", matches, tries)
	}
}

func FuzzMatch(f *testing.F) {
	g := generator{rand.New(rand.NewPCG(1, 1))}
	for range 100 {
		f.Add([]byte(g.pattern(2)), []byte(g.object(3)))
	}
	f.Add([]byte(`{"a":[{"wildcard":"*a*\\\\*"}]}`), []byte(`{"a":["\\ud800"]}`))
	hugeNumber := regexp.MustCompile(`[eE][+-]?[0-9]{4}`) // which big.Rat would write out
	f.Fuzz(func(t *testing.T, text, object []byte) {
		d, docErr := pattern.ParseDocument(object)
		shallow := bytes.Count(object, []byte("["))+bytes.Count(object, []byte("{")) < 100
		valid := shallow && jsontext.Value(object).IsValid() && jsontext.Value(object).Kind() == '{'
		if valid && docErr != nil {
			t.Fatalf("%q: %v", object, docErr)
		}
		p, err := pattern.Compile(text)
		if err != nil {
			if !errors.As(err, new(*pattern.Error)) {
				t.Fatalf("%q: %v is no *pattern.Error", text, err)
			}
			return
		}
		if docErr == nil {
			p.Mismatch(d)
		}
		if valid && !hugeNumber.Match(text) && !hugeNumber.Match(object) {
			if want := plainMatch(decodePlain(t, string(text)).(map[string]any), decodePlain(t, string(object))); (p.Mismatch(d) == "") != want {
				t.Fatalf("%s on %s: %t, want %t", text, object, !want, want)
			}
		}
		for _, c := range p.Conditions() {
			if len(c.Path) == 0 || c.At == "" {
				t.Fatalf("%s: condition %+v", text, c)
			}
		}
	})
}
