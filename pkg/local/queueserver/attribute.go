package queueserver

import (
	"cmp"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// attribute is a message attribute.
type attribute struct {
	Name string
	attributeValue
}

// attributeValue is a message attribute as the protocol writes it.
type attributeValue struct {
	DataType    string
	StringValue *string `json:",omitzero"`
	BinaryValue []byte  `json:",omitzero"`
}

const (
	maxAttributes    = 10
	maxAttributeName = 256
	traceHeader      = "AWSTraceHeader"
)

// parseAttributes checks a message's attributes and returns them sorted by name.
func parseAttributes(given map[string]attributeValue) ([]attribute, error) {
	if len(given) > maxAttributes {
		return nil, errParameter("Number of message attributes [%d] exceeds the allowed maximum [%d].", len(given), maxAttributes)
	}
	if len(given) == 0 {
		return nil, nil
	}
	attributes := make([]attribute, 0, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := checkAttributeNameSyntax(name); err != nil {
			return nil, err
		}
		a, err := parseAttribute(name, given[name])
		if err != nil {
			return nil, err
		}
		attributes = append(attributes, a)
	}
	return attributes, nil
}

func checkAttributeNameSyntax(name string) error {
	lower := strings.ToLower(name)
	switch {
	case name == "" || len(name) > maxAttributeName:
		return errParameter("Message (user) attribute name must be 1 to %d characters long.", maxAttributeName)
	case !onlyNameCharacters(strings.ReplaceAll(name, ".", "")),
		strings.HasPrefix(name, "."), strings.HasSuffix(name, "."), strings.Contains(name, ".."):
		return errParameter("Message (user) attribute name can only include alphanumeric characters, hyphens, underscores"+
			" and single inner periods: %q.", name)
	case strings.HasPrefix(lower, "aws."), strings.HasPrefix(lower, "amazon."):
		return errParameter("Message (user) attribute name must not start with a reserved prefix: %q.", name)
	}
	return nil
}

func parseAttribute(name string, v attributeValue) (attribute, error) {
	a := attribute{name, v}
	kind, _, _ := strings.Cut(v.DataType, ".")
	if len(v.DataType) > maxAttributeName || kind != "String" && kind != "Number" && kind != "Binary" {
		return a, errParameter("The type of message (user) attribute '%s' is invalid."+
			" You must use only the following supported type prefixes: Binary, Number, String.", name)
	}
	if a.value() == "" || (v.BinaryValue != nil) != (kind == "Binary") || v.BinaryValue != nil && v.StringValue != nil {
		return a, errParameter("Message (user) attribute '%s' must contain a non-empty value of type '%s'.", name, kind)
	}
	if v.StringValue != nil && !validText(*v.StringValue) {
		return a, errParameter("Message (user) attribute '%s' contains characters that are not allowed.", name)
	}
	if _, err := strconv.ParseFloat(a.value(), 64); kind == "Number" && err != nil {
		return a, errParameter("Can't cast the value of message (user) attribute '%s' to a number.", name)
	}
	return a, nil
}

// parseTrace returns the one system attribute that a sender may set.
func parseTrace(given map[string]attributeValue) (string, error) {
	for name, v := range given {
		if name != traceHeader || v.DataType != "String" || v.StringValue == nil || *v.StringValue == "" {
			return "", errParameter("Message system attribute name '%s' is invalid. Only %s, a non-empty String, can be sent.", name, traceHeader)
		}
	}
	if v, ok := given[traceHeader]; ok {
		return *v.StringValue, nil
	}
	return "", nil
}

// value returns the text, or the bytes themselves.
func (v attributeValue) value() string {
	if v.StringValue != nil {
		return *v.StringValue
	}
	return string(v.BinaryValue)
}

// size returns how many bytes the attribute adds to the size of its message.
func (a attribute) size() int { return len(a.Name) + len(a.DataType) + len(a.value()) }

// attributesMD5 is the checksum that clients compare: over each name, type and value in the order of the names, with
// lengths of 4 bytes, and a byte that tells text (1) from binary (2). It is empty for no attributes.
func attributesMD5(attributes []attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	var b []byte
	field := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	for _, a := range attributes {
		field(a.Name)
		field(a.DataType)
		if a.BinaryValue != nil {
			b = append(b, 2)
		} else {
			b = append(b, 1)
		}
		field(a.value())
	}
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

// traceMD5 is attributesMD5 for the system attributes that were sent.
func traceMD5(trace string) string {
	if trace == "" {
		return ""
	}
	return attributesMD5([]attribute{{traceHeader, attributeValue{DataType: "String", StringValue: &trace}}})
}

// selectAttributes returns the attributes that a receiver asked for: by name, by prefix ("a.*") or all ("All", ".*").
func selectAttributes(attributes []attribute, names []string) []attribute {
	if len(attributes) == 0 || len(names) == 0 {
		return nil
	}
	var selected []attribute
	for _, a := range attributes {
		if slices.ContainsFunc(names, func(n string) bool { return matches(n, a.Name) }) {
			selected = append(selected, a)
		}
	}
	slices.SortFunc(selected, func(a, b attribute) int { return cmp.Compare(a.Name, b.Name) })
	return selected
}

func matches(pattern, name string) bool {
	if pattern == "All" || pattern == ".*" || pattern == "*" || pattern == name {
		return true
	}
	prefix, ok := strings.CutSuffix(pattern, ".*")
	return ok && strings.HasPrefix(name, prefix)
}

// validText reports whether a text has only the characters of XML 1.0: Amazon SQS accepts no others.
func validText(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool {
		return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
	}) < 0
}
