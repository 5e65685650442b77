package commerce

import (
	"errors"
	"strings"
)

// Currency is an ISO 4217 code in capitals.
type Currency string

// activeCurrencies is list one of ISO 4217 as it stood in 2026.
const activeCurrencies = " AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP" +
	" BYN BZD CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR" +
	" FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS" +
	" KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN" +
	" MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR" +
	" SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN" +
	" UYI UYU UYW UZS VED VES VND VUV WST XAF XAG XAU XBA XBB XBC XBD XCD XCG XDR XOF XPD XPF XPT XSU XTS" +
	" XUA XXX YER ZAR ZMW ZWG "

// retiredCurrencies were withdrawn since 2015; orders and invoices of before
// keep the code they were written in.
const retiredCurrencies = " ANG BGN BYR CUC HRK LTL MRO SLL STD VEF ZWL "

var errCurrency = errors.New("must be an ISO 4217 code in capitals, such as EUR")

// ParseCurrency accepts a code exactly as written.
func ParseCurrency(s string) (Currency, error) {
	if !listed(s, 3, activeCurrencies) && !listed(s, 3, retiredCurrencies) {
		return "", errCurrency
	}
	return Currency(s), nil
}

// listed reports whether code, size capitals, stands in a list whose entries
// are separated by spaces.
func listed(code string, size int, list string) bool {
	return len(code) == size && !strings.Contains(code, " ") && strings.Contains(list, " "+code+" ")
}

// UnmarshalText implements [encoding.TextUnmarshaler] with the rules of [ParseCurrency].
func (c *Currency) UnmarshalText(b []byte) error {
	parsed, err := ParseCurrency(string(b))
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}
