package card_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"nodest/card"
	"nodest/internal/fault"
)

func named(name string) string { return strings.ReplaceAll(simpleV2, "Ada", name) }

func TestPNGChoosesTheCard(t *testing.T) {
	wrapped := base64.StdEncoding.EncodeToString([]byte(named("Wrapped")))
	wrapped = wrapped[:40] + "\r\n" + wrapped[40:]
	for name, c := range map[string]struct {
		chunks [][]byte
		want   string
	}{
		"ccv3 before chara":          {[][]byte{text("chara", named("Two")), text("ccv3", named("Three"))}, "Three"},
		"the first of several":       {[][]byte{text("chara", named("One")), text("chara", named("Two"))}, "One"},
		"keyword in capitals":        {[][]byte{text("Chara", named("Big"))}, "Big"},
		"other texts are ignored":    {[][]byte{text("Title", named("No")), text("chara", named("Yes"))}, "Yes"},
		"base64 with line breaks":    {[][]byte{chunk("tEXt", "chara\x00"+wrapped)}, "Wrapped"},
		"base64 without padding":     {[][]byte{chunk("tEXt", "chara\x00"+strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(named("Pads"))), "="))}, "Pads"},
		"plain JSON":                 {[][]byte{chunk("tEXt", "chara\x00"+named("Plain"))}, "Plain"},
		"compressed text":            {[][]byte{chunk("zTXt", "chara\x00\x00"+deflated(base64.StdEncoding.EncodeToString([]byte(named("Zip")))))}, "Zip"},
		"international text":         {[][]byte{chunk("iTXt", "ccv3\x00\x00\x00en\x00\x00"+named("Inter"))}, "Inter"},
		"international, compressed":  {[][]byte{chunk("iTXt", "ccv3\x00\x01\x00\x00\x00"+deflated(named("Both")))}, "Both"},
		"plain text before others":   {[][]byte{chunk("iTXt", "ccv3\x00\x00\x00\x00\x00"+named("No")), text("chara", named("Yes"))}, "Yes"},
		"a broken ccv3 gives way":    {[][]byte{text("ccv3", "{"), text("chara", named("Spare"))}, "Spare"},
		"a body that is not base64":  {[][]byte{chunk("tEXt", "ccv3\x00!!!"), text("chara", named("Spare"))}, "Spare"},
		"chunks we know nothing of":  {[][]byte{chunk("abCd", "x"), text("chara", named("Ada"))}, "Ada"},
		"a card of more than 1 MiB":  {[][]byte{text("chara", strings.Replace(named("Big"), `"d"`, `"`+strings.Repeat("x", 1<<20)+`"`, 1))}, "Big"},
		"a name that is not Latin":   {[][]byte{text("chara", named("灵脉"))}, "灵脉"},
		"an asset beside the card":   {[][]byte{text("chara-ext-asset_:a.png", "data"), text("chara", named("Ada"))}, "Ada"},
		"an asset that is no base64": {[][]byte{chunk("tEXt", "chara-ext-asset_:a.png\x00!"), text("chara", named("Ada"))}, "Ada"},
	} {
		t.Run(name, func(t *testing.T) {
			ch, err := card.Import(picture(t, c.chunks...), "x.png", card.Limits{})
			if err != nil || ch.Name != c.want {
				t.Fatalf("%v, %v; want %s", ch, err, c.want)
			}
			if !bytes.Equal(ch.Avatar, picture(t, keep(c.chunks)...)) {
				t.Error("the avatar is not the picture without card chunks")
			}
		})
	}
}

// keep returns the chunks of the image itself.
func keep(chunks [][]byte) (kept [][]byte) {
	for _, c := range chunks {
		s := strings.ToLower(string(c[8:min(len(c), 16)]))
		if !strings.HasPrefix(s, "chara") && !strings.HasPrefix(s, "ccv3") {
			kept = append(kept, c)
		}
	}
	return kept
}

// The size of a picture or an archive does not show how much the card in it takes.
func TestWhatIsPackedAsksForMemory(t *testing.T) {
	doc := `{"spec":"chara_card_v2","data":{"name":"Ada","extensions":{"x":[` + strings.Repeat("{},", 999) + `{}]}}}`
	for name, c := range map[string]struct {
		file   []byte
		bytes  int
		values bool
	}{
		"plain JSON":  {[]byte(doc), 0, false},
		"tEXt":        {picture(t, text("chara", doc)), 0, true},
		"zTXt":        {picture(t, chunk("zTXt", "chara\x00\x00"+deflated(doc))), len(doc), true},
		"iTXt":        {picture(t, chunk("iTXt", "ccv3\x00\x01\x00\x00\x00"+deflated(doc))), len(doc), true},
		"CHARX":       {archive(t, "card.json", doc, "assets/a.txt", "12345"), len(doc) + 5, true},
		"behind JPEG": {append(jpegPicture(t), archive(t, "card.json", doc)...), len(doc), true},
		"an asset":    {picture(t, text("chara", doc), chunk("zTXt", "chara-ext-asset_:a\x00\x00"+deflated("MTIzNDU="))), 8, true},
	} {
		t.Run(name, func(t *testing.T) {
			bytes, values, asked := 0, 0, 0
			_, err := card.Import(c.file, "x", card.Limits{Room: func(b, v int) error {
				bytes, values, asked = bytes+b, values+v, asked+1
				return nil
			}})
			if err != nil || bytes != c.bytes || values > 1000 != c.values {
				t.Errorf("asked for %d bytes and %d values, %v", bytes, values, err)
			}
			for refused := range asked {
				n := -1
				_, err := card.Import(c.file, "x", card.Limits{Room: func(int, int) error {
					if n++; n == refused {
						return fault.New(fault.RateLimited, "none")
					}
					return nil
				}})
				if !fault.Is(err, fault.RateLimited) {
					t.Errorf("refused at question %d: %v", refused, err)
				}
			}
		})
	}
}

func TestPNGRefuses(t *testing.T) {
	whole := picture(t, text("chara", simpleV2))
	claim := func(n uint32) string {
		var head [4]byte
		binary.BigEndian.PutUint32(head[:], n)
		return "\x89PNG\r\n\x1a\n" + string(head[:]) + "tEXtchara\x00abc"
	}
	damaged := bytes.Replace(whole, []byte("eyJ"), []byte("eyK"), 1)
	bomb := strings.Repeat("\x00", 1<<20)
	limits := card.Limits{JSONBytes: 64 << 10}
	for name, c := range map[string]struct {
		file  string
		code  fault.Code
		words string
	}{
		"only the signature":        {"\x89PNG\r\n\x1a\n", fault.UnsupportedCard, "truncated"},
		"a chunk of 200 MB":         {claim(200 << 20), fault.UnsupportedCard, "claims 209715200 bytes"},
		"a chunk of 4 GB":           {claim(0xFFFFFFFF), fault.UnsupportedCard, "claims 4294967295 bytes"},
		"cut in the card":           {string(whole[:len(whole)-100]), fault.UnsupportedCard, "truncated"},
		"cut before its end":        {string(whole[:len(whole)-12]), fault.UnsupportedCard, "truncated"},
		"no card":                   {string(picture(t)), fault.UnsupportedCard, "no character card"},
		"a wrong checksum":          {string(damaged), fault.UnsupportedCard, "checksum"},
		"a card that is no card":    {string(picture(t, text("chara", "[]"))), fault.UnsupportedCard, "JSON object"},
		"an empty chunk":            {string(picture(t, chunk("tEXt", "chara"))), fault.UnsupportedCard, "malformed"},
		"a short zTXt":              {string(picture(t, chunk("zTXt", "chara\x00"))), fault.UnsupportedCard, "malformed"},
		"a short iTXt":              {string(picture(t, chunk("iTXt", "chara\x00\x01"))), fault.UnsupportedCard, "malformed"},
		"no zlib":                   {string(picture(t, chunk("zTXt", "chara\x00\x00abc"))), fault.UnsupportedCard, "decompression failed"},
		"a bomb in zTXt":            {string(picture(t, chunk("zTXt", "chara\x00\x00"+deflated(bomb)))), fault.TooLarge, "the card in the PNG file is too large"},
		"a bomb in iTXt":            {string(picture(t, chunk("iTXt", "ccv3\x00\x01\x00\x00\x00"+deflated(bomb)))), fault.TooLarge, "the card in the PNG file is too large"},
		"a card over the JSON size": {string(picture(t, text("chara", strings.Replace(simpleV2, `"d"`, `"`+strings.Repeat("x", 80<<10)+`"`, 1)))), fault.TooLarge, "JSON too large: 80 kB, limit 64 kB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := card.Import([]byte(c.file), "x.png", limits)
			wantCode(t, err, c.code, c.words)
		})
	}
}

func TestPNGExportCarriesBothVersionsOnce(t *testing.T) {
	ch, err := card.Import(picture(t, text("chara", named("Old")), text("ccv3", named("New")), chunk("tEXt", "Title\x00mine")), "x.png", card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	file := mustExport(t, ch, card.PNG, "").Data
	for keyword, spec := range map[string]string{"chara": "chara_card_v2", "ccv3": "chara_card_v3"} {
		mark := []byte("tEXt" + keyword + "\x00")
		if n := bytes.Count(file, mark); n != 1 {
			t.Fatalf("%d chunks %s", n, keyword)
		}
		start := bytes.Index(file, mark)
		size := binary.BigEndian.Uint32(file[start-4:])
		doc, err := base64.StdEncoding.DecodeString(string(file[start+len(mark) : start+4+int(size)]))
		if err != nil || at(t, doc, "spec") != spec || at(t, doc, "data", "name") != "New" {
			t.Errorf("%s: %s, %v", keyword, doc, err)
		}
	}
	if !bytes.Contains(file, []byte("Title\x00mine")) || bytes.Index(file, []byte("ccv3")) < bytes.Index(file, []byte("IDAT")) {
		t.Error("other texts were lost, or the card does not stand before the end")
	}
}

func TestPNGExportOfOtherPictures(t *testing.T) {
	ch := mustImport(t, simpleV2)
	ch.Avatar, ch.AvatarType = jpegPicture(t), "image/jpeg"
	again := mustImport(t, string(mustExport(t, ch, card.PNG, "").Data))
	if again.AvatarType != "image/png" {
		t.Errorf("a JPEG avatar came back as %q", again.AvatarType)
	}
	ch.Avatar, ch.AvatarType = []byte("RIFF____WEBPVP8 "), "image/webp"
	again = mustImport(t, string(mustExport(t, ch, card.PNG, "").Data))
	if again.Avatar != nil {
		t.Error("the placeholder was taken for an avatar")
	}
}

func TestCHARXKeepsAssetsAndFindsTheIcon(t *testing.T) {
	doc := `{"spec":"chara_card_v3","spec_version":"3.0","data":{"name":"Ada","assets":[
		{"type":"emotion","uri":"embeded://e/happy.png","name":"happy","ext":"png"},
		{"type":"icon","uri":"embedded://i/second.png","name":"second","ext":"png"},
		{"type":"icon","uri":"%s","name":"main","ext":"png"}]}}`
	for name, uri := range map[string]string{"misspelt": "embeded://i/main.png", "spelt": "embedded://i/main.png", "chunk": "__asset:i/main.png"} {
		t.Run(name, func(t *testing.T) {
			file := archive(t, "card.json", fmt.Sprintf(doc, uri), "e/happy.png", "smile", "i/main.png", string(picture(t)),
				"i/second.png", "2", "module.risum", "opaque", "../../etc/passwd", "x", `..\evil`, "x", "/abs", "x")
			ch, err := card.Import(file, "x.charx", card.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(ch.Avatar, picture(t)) || ch.AvatarType != "image/png" {
				t.Errorf("avatar %q", ch.AvatarType)
			}
			if len(ch.Assets) != 3 || ch.Assets[2].Path != "module.risum" || paths(ch.Warnings) != "not_imported module.risum, unsafe_path , unsafe_path , unsafe_path , unused_field data.assets" {
				t.Errorf("assets %v, warnings %v", ch.Assets, ch.Warnings)
			}
			roundTrips(t, ch)
		})
	}
}

func TestCHARXKeepsAnAvatarThatHasNoAsset(t *testing.T) {
	for name, assets := range map[string]string{
		"no list":          ``,
		"the default icon": `,"assets":[{"type":"icon","uri":"ccdefault:","name":"main","ext":"png"}]`,
		"an icon far away": `,"assets":[{"type":"icon","uri":"https://example.com/a.png","name":"main","ext":"png"}]`,
		"no icon":          `,"assets":[{"type":"other","uri":"embeded://x","name":"x","ext":"bin"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			ch, err := card.Import(picture(t, text("ccv3", `{"spec":"chara_card_v3","spec_version":"3.0","data":{"name":"Ada"`+assets+`}}`)), "x.png", card.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			roundTrips(t, ch)
		})
	}
}

func TestAvatarFromADataURL(t *testing.T) {
	url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture(t))
	ch := mustImport(t, `{"spec":"chara_card_v3","data":{"name":"Ada","assets":[{"type":"icon","name":"main","uri":"`+url+`"}]}}`)
	if !bytes.Equal(ch.Avatar, picture(t)) {
		t.Error("no avatar")
	}
	ch = mustImport(t, `{"spec":"chara_card_v3","data":{"name":"Ada","assets":[{"type":"icon","name":"main","uri":"data:text/html;base64,PGh0bWw+"}]}}`)
	if ch.Avatar != nil {
		t.Error("HTML became an avatar")
	}
}

func TestCHARXRefuses(t *testing.T) {
	good := archive(t, "card.json", simpleV2)
	encrypted := bytes.Clone(good)
	encrypted[6] |= 1                                              // local header
	encrypted[bytes.Index(encrypted, []byte("PK\x01\x02"))+8] |= 1 // directory
	many := make([]string, 0, 5000)
	for i := range 2500 {
		many = append(many, fmt.Sprint(i), "")
	}
	zeros := strings.Repeat("\x00", 5<<20) // more than the slack of the ratio
	for name, c := range map[string]struct {
		file  []byte
		code  fault.Code
		words string
	}{
		"no card":           {archive(t, "a.json", simpleV2), fault.UnsupportedCard, "no card.json"},
		"a card further in": {archive(t, "x/card.json", simpleV2), fault.UnsupportedCard, "no card.json"},
		"cut":               {good[:len(good)-30], fault.UnsupportedCard, "damaged"},
		"encrypted":         {encrypted, fault.UnsupportedCard, "encrypted"},
		"too many files":    {archive(t, many...), fault.TooLarge, "2500 files"},
		"a bomb":            {archive(t, "card.json", simpleV2, "a", zeros[:3<<20]), fault.TooLarge, "exceeds the size limit"},
		"many small bombs":  {archive(t, "a", zeros[:3<<19], "b", zeros[:3<<19], "card.json", simpleV2), fault.TooLarge, "exceeds the size limit"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := card.Import(c.file, "x.charx", card.Limits{TotalBytes: 2 << 20})
			wantCode(t, err, c.code, c.words)
		})
	}
	_, err := card.Import(archive(t, "card.json", simpleV2, "a", zeros), "x.charx", card.Limits{})
	wantCode(t, err, fault.TooLarge, "exceeds the size limit") // within the total, but far over its own size
	_, err = card.Import(append(jpegPicture(t), archive(t, "card.json", simpleV2, "a", zeros)...), "x.jpg", card.Limits{})
	wantCode(t, err, fault.TooLarge, "exceeds the size limit")
}

// An archive is found by the directory at its end, whatever comes before it.
func TestCHARXBehindOtherData(t *testing.T) {
	t.Parallel()
	plain := archive(t, "card.json", simpleV2)
	commented := append(bytes.Clone(plain[:len(plain)-2]), append([]byte{5, 0}, "a PK."...)...)
	icon := `{"spec":"chara_card_v3","data":{"name":"Ada","assets":[{"type":"icon","name":"main","uri":"embeded://i.png","ext":"png"}]}}`
	for name, c := range map[string]struct {
		file   []byte
		avatar []byte
	}{
		"JPEG":              {append(jpegPicture(t), plain...), jpegPicture(t)},
		"PNG":               {append(picture(t), plain...), picture(t)},
		"JPEG with an icon": {append(jpegPicture(t), archive(t, "card.json", icon, "i.png", string(picture(t)))...), picture(t)},
		"program":           {append([]byte("MZ self-extracting"), plain...), nil},
		"comment":           {append(jpegPicture(t), commented...), jpegPicture(t)},
		"damaged picture":   {append([]byte("\xff\xd8\xff\xe0 none"), plain...), nil},
		"nothing":           {plain, nil},
	} {
		ch, err := card.Import(c.file, "x", card.Limits{})
		if err != nil || ch.Name != "Ada" || !bytes.Equal(ch.Avatar, c.avatar) || card.Detect(c.file) != card.KindCharacter {
			t.Errorf("%s: %v, avatar of %d bytes, want %d, detected as %q", name, err, len(ch.Avatar), len(c.avatar), card.Detect(c.file))
		}
	}
	for name, file := range map[string][]byte{
		"a picture alone": jpegPicture(t), "a cut directory": append(jpegPicture(t), plain[:len(plain)-4]...), "a text": []byte("PK is a word, PK\x05\x06 another"),
	} {
		if kind := card.Detect(file); kind != card.KindUnknown {
			t.Errorf("%s is detected as %q", name, kind)
		}
	}
}
