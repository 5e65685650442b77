package commerce

import (
	"errors"
	"slices"
	"strings"
)

// enum is a string type with a closed set of values on input. On output the
// sets are open: a client must expect values that later releases add.
type enum interface {
	~string
	Values() []string
}

// parseEnum accepts a value exactly as written.
func parseEnum[E enum](e *E, b []byte) error {
	values := (*e).Values()
	i := slices.Index(values, string(b))
	if i < 0 {
		return errors.New("must be one of " + strings.Join(values, ", "))
	}
	*e = E(values[i])
	return nil
}

// Country is an ISO 3166-1 alpha-2 code in capitals.
type Country string

// countries are the officially assigned codes.
const countries = " AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS" +
	" BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH" +
	" ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU" +
	" ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU" +
	" LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP" +
	" NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK" +
	" SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA" +
	" VC VE VG VI VN VU WF WS YE YT ZA ZM ZW "

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *Country) UnmarshalText(b []byte) error {
	if !isCode(b, 2, countries) {
		return errors.New("must be an ISO 3166-1 alpha-2 code in capitals, such as DE")
	}
	*c = Country(b)
	return nil
}

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

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *Currency) UnmarshalText(b []byte) error {
	if !isCode(b, 3, activeCurrencies) && !isCode(b, 3, retiredCurrencies) {
		return errors.New("must be an ISO 4217 code in capitals, such as EUR")
	}
	*c = Currency(b)
	return nil
}

func checkCurrency(s string) error { return new(Currency).UnmarshalText([]byte(s)) }

// isCode reports whether code, of so many capitals, is in a list whose codes
// are separated by spaces.
func isCode(code []byte, size int, list string) bool {
	s := string(code)
	return len(s) == size && !strings.Contains(s, " ") && strings.Contains(list, " "+s+" ")
}
