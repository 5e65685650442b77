package template

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Lambda drops a message after 16 steps through queues and functions that lead back to the same function, unless the
// function says RecursiveLoop.
func TestFunctionsThatFeedThemselvesAllowIt(t *testing.T) {
	m, n, _ := stack(t)
	recursive := feedThemselves(m)
	if len(recursive) == 0 {
		t.Error("no function is found to feed itself, the sweeper does")
	}
	for name, f := range m.Functions {
		want := ""
		if slices.Contains(recursive, name) {
			want = "Allow"
		}
		got := ""
		if loop := n.get("Resources", f.LogicalID, "Properties", "RecursiveLoop"); loop != nil {
			got = loop.text
		}
		if got != want {
			t.Errorf("%s: RecursiveLoop is %q, want %q", name, got, want)
		}
	}
}

func TestLoopsOfMessagesAreFound(t *testing.T) {
	function := func(takes, sends string, environment ...string) Function {
		f := Function{Queues: []QueueSource{{Queue: takes}}, Environment: map[string]string{}}
		f.Permissions = []Permission{{Action: "sqs:SendMessage", Resource: "arn:aws:sqs:local:0:" + sends}, {Action: "sqs:ReceiveMessage", Resource: "arn:aws:sqs:local:0:" + takes}}
		for _, queue := range environment {
			f.Environment[queue+"_URL"] = "https://sqs/0/" + queue
		}
		return f
	}
	for name, test := range map[string]struct {
		functions map[string]Function
		want      []string
	}{
		"a queue that feeds itself":               {map[string]Function{"a": function("A", "A", "A")}, []string{"a"}},
		"two functions that feed one another":     {map[string]Function{"a": function("A", "B", "B"), "b": function("B", "A", "A")}, []string{"a", "b"}},
		"a loop and what only leads to it":        {map[string]Function{"a": function("A", "B", "B"), "b": function("B", "B", "B")}, []string{"b"}},
		"a chain that ends":                       {map[string]Function{"a": function("A", "B", "B"), "b": function("B", "C", "C")}, nil},
		"a queue that the function cannot name":   {map[string]Function{"a": function("A", "A")}, nil},
		"a queue that it names and may not write": {map[string]Function{"a": function("A", "B", "A")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := feedThemselves(&Model{Functions: test.functions}); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// feedThemselves returns the functions that a message of theirs can come back to, through any number of others: they
// may send it to a queue whose URL they have, and the queue invokes a function.
func feedThemselves(m *Model) (names []string) {
	leads := map[string][]string{}
	for from, f := range m.Functions {
		for to, other := range m.Functions {
			for _, source := range other.Queues {
				if f.sendsTo(source.Queue) {
					leads[from] = append(leads[from], to)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Functions)) {
		reached := map[string]bool{}
		for open := leads[name]; len(open) > 0; open = open[1:] {
			if !reached[open[0]] {
				reached[open[0]] = true
				open = append(open, leads[open[0]]...)
			}
		}
		if reached[name] {
			names = append(names, name)
		}
	}
	return names
}

// sendsTo reports whether the function may send to the queue and has its URL.
func (f Function) sendsTo(queue string) bool {
	may := slices.ContainsFunc(f.Permissions, func(p Permission) bool {
		action := p.Action == "sqs:SendMessage" || p.Action == "sqs:*" || p.Action == "*"
		return action && (p.Resource == "*" || strings.HasSuffix(p.Resource, ":"+queue))
	})
	for _, value := range f.Environment {
		if may && strings.HasSuffix(value, "/"+queue) {
			return true
		}
	}
	return false
}
