package template

import "strings"

// Permission lets a function take an action on a resource.
type Permission struct {
	Action   string // such as dynamodb:GetItem
	Resource string // as it resolves: "Table.Arn" unless a value is given for it
	// LeadingKeys are patterns of the partition keys that the action may name,
	// separated by spaces; "" is any. A star stands for any text.
	LeadingKeys string
}

// Covers reports whether the permission is for the action, and for items with the partition key.
func (p Permission) Covers(action, partitionKey string) bool {
	if p.Action != action {
		return false
	}
	if p.LeadingKeys == "" {
		return true
	}
	for pattern := range strings.FieldsSeq(p.LeadingKeys) {
		if matches(strings.Split(pattern, "*"), partitionKey) {
			return true
		}
	}
	return false
}

// matches reports whether the text begins with the first part, ends with the last, and has those between in order.
func matches(parts []string, text string) bool {
	rest, found := strings.CutPrefix(text, parts[0])
	if !found || len(parts) == 1 {
		return found && rest == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		if _, rest, found = strings.Cut(rest, part); !found {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// permissions reads the statements of a function's policies. A managed policy is an error: its text is not here.
func (x *extractor) permissions(policies *node) []Permission {
	var all []Permission
	for _, policy := range policies.list() {
		if policy.get("Statement") == nil {
			x.fail(policy, "a policy without statements is not supported")
		}
		for _, statement := range policy.get("Statement").list() {
			if effect := x.text(statement.get("Effect")); effect != "Allow" {
				x.fail(statement, "effect %q is not supported, only Allow", effect)
			}
			keys := x.leadingKeys(statement.get("Condition"))
			for _, action := range x.oneOrMore(statement.get("Action")) {
				for _, resource := range x.oneOrMore(statement.get("Resource")) {
					all = append(all, Permission{action, resource, keys})
				}
			}
		}
	}
	return all
}

// leadingKeys reads a condition, of which only one form is supported.
func (x *extractor) leadingKeys(condition *node) string {
	if condition == nil {
		return ""
	}
	keys := x.texts(condition.get("ForAllValues:StringLike", "dynamodb:LeadingKeys"))
	if len(keys) == 0 {
		x.fail(condition, "a condition is not supported, only ForAllValues:StringLike of dynamodb:LeadingKeys")
	}
	return strings.Join(keys, " ")
}

// oneOrMore returns the texts of a list, or the one text in its place.
func (x *extractor) oneOrMore(n *node) []string {
	if n != nil && n.kind == list {
		return x.texts(n)
	}
	return []string{x.text(n)}
}
