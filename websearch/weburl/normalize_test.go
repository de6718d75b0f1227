package weburl

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/internal/fault"
)

func TestOnePageHasOneSpelling(t *testing.T) {
	for _, same := range [][]string{
		{"https://halden.org/", "HTTPS://WWW.Halden.ORG", "https://halden.org:443//", "https://halden.org./", `https:\\halden.org\`, " https://halden.org/ "},
		{"https://halden.org/~a-b_c.d/x", "https://halden.org/%7Ea%2Db%5fc%2e%64/x/", "https://halden.org/y/../~a-b_c.d/./x"},
		{"https://halden.org/%2Fa%3Fb%20c", "https://halden.org/%2fa%3fb%20c"},
		{"https://xn--mnchen-3ya.de/", "https://münchen.de", "https://MÜNCHEN.de/", "https://m%C3%BCnchen.de/"},
		{"http://93.184.216.34/", "http://0x5db8d822/", "http://1572395042", "http://0135.184.216.34"},
		{"https://halden.org/?a=1&b=2", "https://halden.org/?b=2&a=1&fbclid=IwAR0&utm_campaign=x&mc_eid=7&=9&&#part"},
		{"https://halden.org/?q=%C3%A4+%2B%7E", "https://halden.org?q=ä%20%2b~"},
	} {
		for _, raw := range same {
			if got, err := Normalize(raw, Options{}); err != nil || got != same[0] {
				t.Errorf("Normalize(%q) = %q, %v, want %q", raw, got, err, same[0])
			}
		}
	}
}

func TestParametersThatSelectContentStay(t *testing.T) {
	for raw, want := range map[string]string{
		"?s=lamp&term=2024&cid=77&content=full&ref=main&source=rfc":            "?cid=77&content=full&ref=main&s=lamp&source=rfc&term=2024",
		"?content=the-2024-edition-of-our-guide&term=灯塔":                       "?content=the-2024-edition-of-our-guide&term=%E7%81%AF%E5%A1%94",
		"?id=a1b2c3d4e5f60718293a4b5c&v=2":                                     "?id=a1b2c3d4e5f60718293a4b5c&v=2",
		"?cid=1234567890.1700000000&x=1":                                       "?x=1",
		"?s=9f86d081884c7d659a2feaa0&ref=twitter&source=rss----a1&x=1":         "?x=1",
		"?ref=550e8400-e29b-41d4-a716-446655440000&term=5Nd83kfjA9dkjKJ3kd9&x": "?x=",
	} {
		if got, err := Normalize("https://a.org/"+raw, Options{}); err != nil || got != "https://a.org/"+want {
			t.Errorf("%s: got %s, %v, want %s", raw, got, err, want)
		}
	}
}

func TestAddressesThatAreNeverRead(t *testing.T) {
	for _, raw := range []string{
		"", "a.org", "//a.org/x", "ftp://a.org/", "file:///etc/passwd", "data:text/html,x", "javascript:alert(1)", "https://", "http://a b.org:99999/",
		"https://u@a.org/", "http://77../", "http://a..org/", "http://.a.org/", "https://:p@a.org/", "https://example.com.@a.org/",
		"http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0177.0.0.1", "http://0/", "http://10.0.0.1/", "http://172.16.3.4/", "http://192.168.1.1/", "http://169.254.169.254/latest/meta-data",
		"http://100.64.0.1/", "http://224.0.0.1/", "http://255.255.255.255/", "http://198.18.0.1/", "http://127.0.0.1./",
		"http://[::]/", "http://[::1]/", "http://[::ffff:10.0.0.1]/", "http://[::ffff:8.8.8.8]/", "http://[::7f00:1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[fe80::1]/", "http://[fc00::1]/", "http://[ff02::1]/",
		"http://localhost/", "http://LOCALHOST./", "http://www.localhost/", "http://db.internal:8080/", "http://printer.local/", "http://ⓛocalhost/", "http://１２７.0.0.1/",
		"https://example.com", "https://www.Example.com/x", "https://docs.example.com/", "http://google.com/search?q=x", "https://www.google.com./", "https://www.baidu.com/s?wd=1",
		"https://a.org/" + strings.Repeat("x", maxURL),
		"https://a.org/" + strings.Repeat("灯", maxURL/5), // too long when encoded
	} {
		var failure *fault.Error
		if got, err := Normalize(raw, Options{}); !errors.As(err, &failure) || failure.Code != fault.Invalid {
			t.Errorf("Normalize(%.60q) = %q, %v, want fault.Invalid", raw, got, err)
		}
	}
	for _, raw := range []string{"https://docs.google.com/document/1", "https://baike.baidu.com/item/1", "https://baidu.com/", "https://myexample.com/", "http://8.8.8.8/", "http://[2606:4700::1111]/", "https://internal.org/"} {
		if _, err := Normalize(raw, Options{}); err != nil {
			t.Errorf("Normalize(%q): %v", raw, err)
		}
	}
}

func TestAllowedHostsMayBePrivate(t *testing.T) {
	o := Options{AllowPrivate: func(host string) bool { return host == "127.0.0.1" }}
	if got, err := Normalize("http://127.1:8080/x", o); err != nil || got != "http://127.0.0.1:8080/x" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := Normalize("http://10.0.0.1/x", o); err == nil {
		t.Error("a host that is not allowed was accepted")
	}
}

func FuzzNormalizeIsIdempotent(f *testing.F) {
	for _, seed := range []string{
		"https://www.halden-point.org/a/%2e%2e/b//c/?b=2&a=1&utm_source=x#top", "https://a.org/%%341/%4%31%25/%zz%", "https://a.org/?%%341=%E4&+=%2B&a=%2525",
		"https://münchen.de:443/straße?q=灯 塔", "http://0x7f.1/", "http://[2606:4700::1111]:80/", "https://x.com/a/status/1/analytics/", "https://a.org./?B=1&b=2&A=3&_=4#x y",
		"https://www.com/", "https://a.org/;v=1/%3B%2F", "https://www.wwW。a.org/", "http://a.org/\\..\\b", "https://a.org/?x=1&\u00ad=2&y",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, o := range []Options{{}, {KeepAnchor: true, KeepSessionIDs: true, KeepUTM: true, KeepTracking: true, KeepXAnalytics: true}} {
			once, err := Normalize(raw, o)
			if err != nil {
				continue
			}
			if !utf8.ValidString(once) || len(once) > maxURL {
				t.Fatalf("Normalize(%q) = %q", raw, once)
			}
			if strings.Contains(once, "://www.") {
				continue // one of several "www." was removed
			}
			if twice, err := Normalize(once, o); err != nil || twice != once {
				t.Fatalf("Normalize(%q) = %q, again %q, %v", raw, once, twice, err)
			}
			if host := Hostname(once); host == "" || isLocal(host) {
				t.Fatalf("Normalize(%q) = %q with host %q", raw, once, host)
			}
		}
	})
}

func BenchmarkNormalize(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Normalize("https://www.halden-point.org/a/b/../history/%E7%81%AF?b=2&a=1&utm_source=x#top", Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
