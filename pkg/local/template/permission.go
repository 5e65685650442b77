package template

// Permission lets a function take an action on a resource.
type Permission struct {
	Action   string // such as dynamodb:GetItem
	Resource string // as it resolves: "Table.Arn" unless a value is given for it
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
			for _, action := range x.oneOrMore(statement.get("Action")) {
				for _, resource := range x.oneOrMore(statement.get("Resource")) {
					all = append(all, Permission{action, resource})
				}
			}
		}
	}
	return all
}

// oneOrMore returns the texts of a list, or the one text in its place.
func (x *extractor) oneOrMore(n *node) []string {
	if n != nil && n.kind == list {
		return x.texts(n)
	}
	return []string{x.text(n)}
}
