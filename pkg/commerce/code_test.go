package commerce

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/currency"
	"golang.org/x/text/language"

	"github.com/commerce-integration/service/pkg/base/value"
)

// The Unicode tables are older than the list, and know codes of the past.
func TestCurrenciesAreKnownToUnicode(t *testing.T) {
	newer := map[string]bool{"MRU": true, "SLE": true, "UYW": true, "VED": true, "VES": true, "XAD": true, "XCG": true, "ZWG": true}
	codes := strings.Fields(activeCurrencies + retiredCurrencies)
	seen := map[string]bool{}
	for _, code := range codes {
		if _, err := currency.ParseISO(code); err != nil && !newer[code] {
			t.Errorf("%s: %v", code, err)
		}
		if err := checkCurrency(code); err != nil {
			t.Errorf("currency %s: %v", code, err)
		}
		if seen[code] {
			t.Errorf("%s is listed twice", code)
		}
		seen[code] = true
	}
	for _, region := range strings.Fields(countries) {
		if unit, ok := currency.FromRegion(language.MustParseRegion(region)); ok && !seen[unit.String()] {
			t.Errorf("%s of %s is not listed", unit, region)
		}
	}
}

func TestCountriesAreKnownToUnicode(t *testing.T) {
	codes := strings.Fields(countries)
	if len(codes) != 249 || !slices.IsSorted(codes) || len(slices.Compact(slices.Clone(codes))) != len(codes) {
		t.Errorf("%d countries, want the 249 of ISO 3166-1, sorted and distinct", len(codes))
	}
	for _, code := range codes {
		region, err := language.ParseRegion(code)
		if err != nil || !region.IsCountry() || region.Canonicalize() != region {
			t.Errorf("%s: %v, no country", code, err)
		}
		if err := new(Country).UnmarshalText([]byte(code)); err != nil {
			t.Errorf("country %s: %v", code, err)
		}
	}
}

func TestCodesAreTakenExactlyAsWritten(t *testing.T) {
	for _, s := range []string{"", " ", "eur", "EU", "EURO", "EUR ", "R U", "A A", "AAA", "ÉUR"} {
		t.Run(s, func(t *testing.T) {
			if checkCurrency(s) == nil {
				t.Errorf("%q is taken as a currency", s)
			}
		})
	}
	for _, s := range []string{"", " ", "de", "D", "DEU", "UK", "EU", "D ", " D", "É"} {
		t.Run(s, func(t *testing.T) {
			if new(Country).UnmarshalText([]byte(s)) == nil {
				t.Errorf("%q is taken as a country", s)
			}
		})
	}
	for _, s := range []string{"", "Product", "products", "order "} {
		t.Run(s, func(t *testing.T) {
			if k, err := ParseKind(s); err == nil {
				t.Errorf("ParseKind(%q) = %q", s, k)
			}
		})
	}
}

func TestSlugsHoldLettersAndDigits(t *testing.T) {
	for name, want := range map[string]string{
		"Cups & mugs":      "cups-mugs",
		"  --Größe 42/XL ": "grosse-42-xl",
		"中文 分类":            "中文-分类",
		"Łódź":             "lodz",
		"!!!":              "",
		"a":                "a",
	} {
		t.Run(name, func(t *testing.T) {
			if got := value.Or(slugOf(name), ""); got != want {
				t.Errorf("slugOf(%q) = %q, want %q", name, got, want)
			}
		})
	}
}
