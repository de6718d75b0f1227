package password_test

import (
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/password"
)

// codeOf is the code with which a password is refused; "" = it may be set.
func codeOf(t *testing.T, text, username string) string {
	t.Helper()
	err := password.Check(text, username)
	if err == nil {
		return ""
	}
	e := fault.Public(err)
	if e.Code != fault.Invalid || len(e.Fields) != 1 || e.Fields[0].Field != "password" {
		t.Fatalf("%q: %+v", text, e)
	}
	return e.Fields[0].Code
}

func TestPasswordsThatAreGuessedFirstAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"password", "PASSWORD", "Password1!", "P@ssw0rd", "12345678", "123456789a", "qwertyuiop", "iloveyou",
		"Sunshine!", "$unshine", "monkey12", "woaini1314", "passwort1", "motdepasse",
		"aaaaaaaa", "abababab", "我爱你我爱你我爱你", "passwordpassword", "monkeymonkey", "abcdefgh", "87654321", "mnopqrstuv",
		"Marianne", "marianne1987",
	} {
		if code := codeOf(t, text, "Marianne"); code != "common" {
			t.Errorf("%q is refused with %q, want common", text, code)
		}
	}
}

func TestOtherPasswordsMayBeSet(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"correct horse", "a better password", "kx7#vQ2p", "Tr0ub4dour&3", "wirbelwind grüßt", "水曜日の猫は眠い夜", "我喜欢在雨天喝茶",
		"пароль не скажу", "k7mq-2hwx-9nrt", "🦊🐢🌵🎈🍋🚲🎻🧦", " leading blank", strings.Repeat("one more word ", 14),
	} {
		if code := codeOf(t, text, "Marianne"); code != "" {
			t.Errorf("%q is refused with %q", text, code)
		}
	}
}

func TestBlanksControlCharactersAndLengthsHaveCodes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"          ": "blank",
		"\u3000\u00a0\u2003\u200b\u200b\u200b\u2060\ufeff": "blank",
		"new\nline in it":              "encoding",
		"tab\tinside it":               "encoding",
		"delete\x7f it all":            "encoding",
		"broken \xff\xfe bytes":        "encoding",
		"short":                        "range",
		"e\u0301e\u0301e\u0301e\u0301": "range", // four letters
		strings.Repeat("wort ", 41):    "range",
	} {
		if code := codeOf(t, text, ""); code != want {
			t.Errorf("%q is refused with %q, want %q", text, code, want)
		}
	}
}

func TestLettersAreOneHoweverTheyAreTyped(t *testing.T) {
	t.Parallel()
	if a, b := password.Normal("pass\u00e9 compose\u0301"), password.Normal("passe\u0301 compos\u00e9"); a != b {
		t.Errorf("%q and %q differ", a, b)
	}
}
