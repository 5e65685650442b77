package importer

import "testing"

func TestMendReadsTextInTheEncodingThatItWasWrittenIn(t *testing.T) {
	for _, c := range []struct{ name, text, want, changes string }{
		{"ASCII", "Tea <b>mug</b>\r\n\tblue", "Tea <b>mug</b>\r\n\tblue", ""},
		{"UTF-8", "Küche – 3M™ ÀÉ 茶", "Küche – 3M™ ÀÉ 茶", ""},
		{"C1", "3M\u0099 tape", "3M™ tape", `character 3 is in another encoding; from there on it is imported as "™ tape"`},
		{"C1 without a character", "a\u0081b", "ab", `character 2 is in another encoding; from there on it is imported as "b"`},
		{"Windows-1252", "K\xfcche \x96 50 \x80", "Küche – 50 €", `character 2 is in another encoding; from there on it is imported as "üche – 50 €"`},
		{"UTF-8 read as Latin-1", "3M\u00e2\u0084\u00a2!", "3M™!", `character 3 is in another encoding; from there on it is imported as "™!"`},
		{"twice", "3M\u00c2\u0099", "3M™", `character 3 is in another encoding; from there on it is imported as "™"`},
		{"C0", "a\x00b\vc", "abc", `character 2 is in another encoding; from there on it is imported as "bc"`},
		{"beside others", "é\u0099茶\xff", "é™茶ÿ", `character 2 is in another encoding; from there on it is imported as "™茶ÿ"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, changes := mend(c.text)
			if got != c.want || changes != c.changes {
				t.Errorf("got %q, %q; want %q, %q", got, changes, c.want, c.changes)
			}
			if again, changes := mend(got); again != got || changes != "" {
				t.Errorf("mended again: got %q, %q", again, changes)
			}
		})
	}
}
