package commerce

import "errors"

// Kind names one of the five kinds of record.
type Kind string

// The kinds, as messages and events write them.
const (
	KindProduct  Kind = "product"
	KindCategory Kind = "category"
	KindOrder    Kind = "order"
	KindCustomer Kind = "customer"
	KindInvoice  Kind = "invoice"
)

// Kinds returns every kind.
func Kinds() []Kind {
	return []Kind{KindProduct, KindCategory, KindOrder, KindCustomer, KindInvoice}
}

var errKind = errors.New("must be one of product, category, order, customer, invoice")

// ParseKind returns the kind of that name, exactly as written.
func ParseKind(s string) (Kind, error) {
	if k := Kind(s); k.valid() {
		return k, nil
	}
	return "", errKind
}

func (k Kind) valid() bool {
	switch k {
	case KindProduct, KindCategory, KindOrder, KindCustomer, KindInvoice:
		return true
	}
	return false
}

// Plural is the name of the kind's list: its path segment and the resource
// of its scope.
func (k Kind) Plural() string {
	if k == KindCategory {
		return "categories"
	}
	return string(k) + "s"
}

// Values lists what the type accepts.
func (Kind) Values() []string { return enumNames(Kinds()) }

// UnmarshalText implements [encoding.TextUnmarshaler] with the rules of [ParseKind].
func (k *Kind) UnmarshalText(b []byte) error {
	parsed, err := ParseKind(string(b))
	if err != nil {
		return err
	}
	*k = parsed
	return nil
}

// Op is what a change does to its record.
type Op string

// The operations.
const (
	OpPut    Op = "put"
	OpDelete Op = "delete"
)

// Values lists what the type accepts.
func (Op) Values() []string { return []string{string(OpPut), string(OpDelete)} }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (o *Op) UnmarshalText(b []byte) error { return parseEnum(o, b) }
