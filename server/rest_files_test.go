package server

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf16"

	"nodest/internal/fault"
	"nodest/server/api"
)

// onePixel is a PNG of one pixel.
var onePixel = func() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err)
	}
	return b.Bytes()
}()

const chatLog = `{"user_name":"Mia","character_name":"Alice","create_date":"2026-01-31@10h00m00s"}
{"name":"Alice","is_user":false,"mes":"Hello, traveller.","swipes":["Hello, traveller.","Oh, you again."],"swipe_id":0}
{"name":"Mia","is_user":true,"mes":"Where are we?"}
`

// chunk returns one chunk of a PNG file.
func chunk(kind string, data []byte) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.BigEndian, uint32(len(data)))
	b.WriteString(kind)
	b.Write(data)
	_ = binary.Write(&b, binary.BigEndian, crc32.ChecksumIEEE(append([]byte(kind), data...)))
	return b.Bytes()
}

// hugeChunk returns a PNG whose last chunk claims to have 200 MB.
func hugeChunk() []byte {
	b := bytes.Clone(onePixel[:33]) // signature and IHDR
	b = binary.BigEndian.AppendUint32(b, 200<<20)
	return append(b, "tEXtchara\x00eyJ9"...)
}

func TestCardsThatCannotBeImported(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	sample := h.rest("POST", "/characters/sample", "").wants(t, 201)["character"].(map[string]any)["id"].(string)
	card := h.rest("GET", "/characters/"+sample+"/export?format=png", "")
	card.wants(t, 200)
	h.rest("DELETE", "/characters/"+sample, "").wants(t, 204)
	for name, c := range map[string]struct {
		file string
		data []byte
		code string
	}{
		"a truncated PNG":             {"a.png", card.body[:len(card.body)/2], "unsupported_card"},
		"a PNG that ends in a header": {"a.png", onePixel[:10], "unsupported_card"},
		"a PNG without a card":        {"a.png", onePixel, "unsupported_card"},
		"a PNG with a 200 MB chunk":   {"a.png", hugeChunk(), "unsupported_card"},
		"a card that is not base64":   {"a.png", append(bytes.Clone(onePixel[:33]), chunk("tEXt", []byte("chara\x00{{{"))...), "unsupported_card"},
		"a card without a name":       {"a.json", []byte(`{"spec":"chara_card_v2","spec_version":"2.0","data":{"first_mes":"Hi"}}`), "unsupported_card"},
		"a card with a blank name":    {"a.json", []byte(`{"name":"  ","first_mes":"Hi"}`), "unsupported_card"},
		"an array":                    {"a.json", []byte(`[1,2]`), "unsupported_card"},
		"half an object":              {"a.json", []byte(`{"name":"Alice",`), "unsupported_card"},
		"nothing":                     {"a.json", nil, "unsupported_card"},
		"a ZIP without a card":        {"a.charx", []byte("PK\x05\x06" + strings.Repeat("\x00", 18)), "unsupported_card"},
		"plain text":                  {"a.txt", []byte("Alice is a guide."), "unsupported_card"},
	} {
		t.Run(name, func(t *testing.T) {
			h.upload("POST", "/characters/import", c.file, c.data).refuses(t, 422, c.code)
		})
	}
	if items := h.rest("GET", "/characters", "").wants(t, 200)["items"].([]any); len(items) != 0 {
		t.Errorf("something was stored: %v", items)
	}
}

// A file in UTF-16 is refused with a message that says so; a UTF-8 byte order mark
// is accepted.
func TestFilesInUTF16(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	memories := h.newMemoriesPath()
	chat := h.newChat()
	character := h.characterOf(chat)
	saved := string(h.rest("GET", "/saves/"+h.createSave(chat, "at sea")+"/export", "").body)
	for path, c := range map[string]struct {
		file   string
		status int
		code   string
	}{
		"/characters/import":                       {alicesCard, 201, "unsupported_card"},
		"/worldbooks/import":                       {`{"entries":{}}`, 201, "invalid_world_book"},
		"/presets/import":                          {`{"prompts":[{"identifier":"main","content":"Be brief."}]}`, 201, "invalid_import"},
		"/regexscripts/import":                     {`[{"scriptName":"s","findRegex":"a"}]`, 201, "invalid_import"},
		"/conversations/import":                    {chatLog, 201, "invalid_import"},
		"/conversations/" + chat + "/saves/import": {saved, 201, "invalid_import"},
		memories + "/import":                       {`{"text":"Mia sails."}`, 200, "invalid_import"},
	} {
		for name, order := range map[string]binary.AppendByteOrder{"little": binary.LittleEndian, "big": binary.BigEndian} {
			var data []byte
			for _, unit := range utf16.Encode([]rune("\ufeff" + c.file)) {
				data = order.AppendUint16(data, unit)
			}
			p := h.upload("POST", path, "a.json", data, "characterId="+character).refuses(t, 422, c.code)
			if p.Detail != "the file is UTF-16; save it as UTF-8" {
				t.Errorf("%s in UTF-16, %s-endian: %s", path, name, p.Detail)
			}
		}
		h.upload("POST", path, "a.json", []byte("\ufeff"+c.file), "characterId="+character).wants(t, c.status)
	}
}

func TestUploadsThatAreNotForms(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.rest("POST", "/characters/import", `{"name":"Alice"}`).refuses(t, 415, "unsupported_media_type")
	h.rest("POST", "/characters/import", "").refuses(t, 415, "unsupported_media_type")
	h.rest("POST", "/characters/import", "--x", "Content-Type: multipart/form-data").refuses(t, 400, "bad_request")
	form := "Content-Type: multipart/form-data; boundary=x"
	h.rest("POST", "/characters/import", "--x\r\nContent-Disp", form).refuses(t, 400, "bad_request")
	h.rest("POST", "/characters/import", "--x\r\nContent-Disposition: form-data; name=\"card\"; filename=\"a\"\r\n\r\n{}\r\n--x--\r\n", form).
		refuses(t, 400, "invalid_field", "file")
	part := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.json\"\r\n\r\n" + alicesCard + "\r\n"
	h.rest("POST", "/characters/import", part+part+"--x--\r\n", form).refuses(t, 400, "invalid_field", "file")
	h.upload("POST", "/conversations/import", "a.jsonl", []byte(chatLog)).refuses(t, 400, "invalid_field", "characterId")
	h.upload("POST", "/characters/import", "a.json", []byte(alicesCard), "Idempotency-Key: "+strings.Repeat("k", 65)).
		refuses(t, 400, "invalid_field", "key")
}

func TestAFileThatIsTooLarge(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "a.png")
	h.must(err)
	_, err = part.Write(make([]byte, 5000))
	h.must(err)
	h.must(form.Close())
	for limit, code := range map[int64]fault.Code{1000: fault.TooLarge, 4999: fault.TooLarge, 10_000: ""} {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body.Bytes()))
		r.Header.Set("Content-Type", form.FormDataContentType())
		c := h.server.echo.NewContext(r, httptest.NewRecorder())
		var f api.File
		err := h.server.holding(c, holder{user: h.user.ID}, func() (err error) {
			f, err = h.server.file(c, limit)
			return err
		})
		if code == "" && (err != nil || len(f.Data) != 5000) || code != "" && !fault.Is(err, code) {
			t.Errorf("limit %d: %d bytes, %v", limit, len(f.Data), err)
		}
	}
}

// A file name in an upload is never used as a path.
func TestFileNamesAreHarmless(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`../../etc/passwd`: "passwd", `C:\cards\alice.png`: "alice.png", "a\x00b\nc.json": "abc.json", "茶.png": "茶.png", "": "",
		strings.Repeat("x", 300) + ".png": strings.Repeat("x", 196) + ".png",
	} {
		if got := plainFilename(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	h := newTestServer(t, nil)
	e := h.rest("POST", "/characters", `{"roleCard":{"name":"A\"li/ce\\茶","first_mes":"Hi"}}`).wants(t, 201)
	a := h.rest("GET", "/characters/"+e["id"].(string)+"/export", "")
	a.wants(t, 200)
	if d := a.header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment; filename") || strings.ContainsAny(d, "\n/\\") {
		t.Errorf("Content-Disposition: %s", d)
	}
}

// A character survives export and import in every format.
func TestCharactersSurviveExportAndImport(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	first := h.rest("POST", "/characters/sample", "").wants(t, 201)["character"].(map[string]any)
	id := first["id"].(string)
	h.upload("PUT", "/characters/"+id+"/avatar", "a.png", onePixel).wants(t, 200)
	for _, query := range []string{"", "?format=json&spec=v2", "?format=json&spec=nodest", "?format=png", "?format=png&spec=v2", "?format=charx"} {
		t.Run(query, func(t *testing.T) {
			file := h.rest("GET", "/characters/"+id+"/export"+query, "")
			file.wants(t, 200)
			got := h.upload("POST", "/characters/import", "again", file.body).wants(t, 201)["character"].(map[string]any)
			if got["name"] != first["name"] || got["roleCard"] == nil {
				t.Errorf("came back as %v", got["name"])
			}
			if strings.Contains(query, "png") && got["hasAvatar"] != true {
				t.Error("the picture is lost")
			}
		})
	}
	h.rest("GET", "/characters/"+id+"/export?format=pdf", "").refuses(t, 400, "invalid_field", "format")
	h.rest("GET", "/characters/"+id+"/export?spec=v9", "").refuses(t, 400, "invalid_field", "spec")
}

func TestResourcesSurviveExportAndImport(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for path, document := range map[string]string{
		"worldbooks":   `{"entries":{"0":{"uid":0,"key":["tea"],"content":"Tea is green.","comment":"tea","unknown":{"kept":true}}},"name":"Drinks"}`,
		"presets":      `{"prompts":[{"identifier":"main","name":"Main","role":"system","content":"Be brief."}],"prompt_order":[],"temperature":0.5,"unknown":1}`,
		"regexscripts": `{"id":"x","scriptName":"stars","findRegex":"/\\*/g","replaceString":"","placement":[2],"unknown":"kept"}`,
	} {
		t.Run(path, func(t *testing.T) {
			got := h.upload("POST", "/"+path+"/import", "my file.json", []byte(document)).wants(t, 201)["resource"].(map[string]any)
			file := h.rest("GET", "/"+path+"/"+got["id"].(string)+"/export", "")
			file.wants(t, 200)
			if !bytes.Contains(file.body, []byte("unknown")) {
				t.Errorf("an unknown field is lost: %s", file.body)
			}
			again := h.upload("POST", "/"+path+"/import", "x.json", file.body).wants(t, 201)["resource"].(map[string]any)
			a, _ := json.Marshal(got["document"])
			b, _ := json.Marshal(again["document"])
			if !bytes.Equal(a, b) {
				t.Errorf("%s\nbecame\n%s", a, b)
			}
			h.upload("POST", "/"+path+"/import", "x.json", []byte(`"text"`)).wants(t, 422)
		})
	}
	h.keepsTemplates()
	h.upload("POST", "/personas/import", "x.json", []byte(`{"name":"Mia"}`)).refuses(t, 404, "not_found")
	before := len(h.rest("GET", "/regexscripts", "").items(t))
	p := h.upload("POST", "/regexscripts/import", "x.json", []byte(`[]`)).refuses(t, 422, "invalid_import")
	if p.Details["path"] != "scripts" || len(h.rest("GET", "/regexscripts", "").items(t)) != before {
		t.Errorf("a file without scripts: %+v", p)
	}
	h.upload("POST", "/worldbooks/import", "x.json", []byte(`{"entries":{}}`)).wants(t, 201)
}

func TestChatsSurviveExportAndImport(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	character := h.rest("POST", "/characters/sample", "").wants(t, 201)["character"].(map[string]any)["id"].(string)
	c := h.upload("POST", "/conversations/import", "Old days.jsonl", []byte(chatLog), "characterId="+character).wants(t, 201)
	if title := stringAt(c, "conversation.title"); title != "Old days" {
		t.Errorf("title %v", title)
	}
	id := c["id"].(string)
	items := h.rest("GET", "/conversations/"+id+"/messages", "").wants(t, 200)["items"].([]any)
	if len(items) != 2 || len(items[0].(map[string]any)["swipes"].([]any)) != 2 {
		t.Fatalf("messages: %v", items)
	}
	file := h.rest("GET", "/conversations/"+id+"/export", "")
	file.wants(t, 200)
	if n := bytes.Count(bytes.TrimSpace(file.body), []byte("\n")); n != 2 || !bytes.Contains(file.body, []byte("Oh, you again.")) {
		t.Errorf("export:\n%s", file.body)
	}
	h.upload("POST", "/conversations/import", "again.jsonl", file.body, "characterId="+character).wants(t, 201)
	h.upload("POST", "/conversations/import", "a.jsonl", []byte("no chat\x00"), "characterId="+character).refuses(t, 422, "invalid_import")
	h.rest("GET", "/conversations/"+id+"/export?format=docx", "").refuses(t, 400, "invalid_field", "format")
}

func TestAnAvatarIsFetchedOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	id := h.newCharacter()
	h.rest("GET", "/characters/"+id+"/avatar", "").refuses(t, 404, "not_found")
	h.upload("PUT", "/characters/"+id+"/avatar", "a.png", []byte("GIF89a")).refuses(t, 415, "unsupported_media_type")
	if got := h.upload("PUT", "/characters/"+id+"/avatar", "a.png", onePixel).wants(t, 200); got["hasAvatar"] != true || got["version"] != 2.0 {
		t.Errorf("character: %v", got)
	}
	a := h.rest("GET", "/characters/"+id+"/avatar", "")
	a.wants(t, 200)
	if a.header.Get("Content-Type") != "image/png" || !bytes.Equal(a.body, onePixel) {
		t.Errorf("%v %d bytes", a.header, len(a.body))
	}
	etag := a.header.Get("ETag")
	for _, tag := range []string{etag, "W/" + etag, `"other", ` + etag, "*"} {
		h.rest("GET", "/characters/"+id+"/avatar", "", "If-None-Match: "+tag).wants(t, 304)
	}
	h.rest("GET", "/characters/"+id+"/avatar", "", `If-None-Match: "other"`).wants(t, 200)
	for query, want := range map[string]string{"": "private, no-cache", "?version=2": "private, max-age=31536000, immutable"} {
		if got := h.rest("GET", "/characters/"+id+"/avatar"+query, "").header.Get("Cache-Control"); got != want {
			t.Errorf("Cache-Control of avatar%s: %s", query, got)
		}
	}
}

func TestARepeatedUploadIsImportedOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	first := h.upload("POST", "/characters/import", "a.json", []byte(alicesCard), "Idempotency-Key: up-1")
	first.wants(t, 201)
	again := h.upload("POST", "/characters/import", "a.json", []byte(alicesCard), "Idempotency-Key: up-1")
	again.wants(t, 201)
	if !bytes.Equal(first.body, again.body) || again.header.Get("Idempotency-Replayed") != "true" || first.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%s\n%s %v", first.body, again.body, again.header)
	}
	other := strings.Replace(alicesCard, "Alice", "Bob", 1)
	h.upload("POST", "/characters/import", "a.json", []byte(other), "Idempotency-Key: up-1").refuses(t, 422, "key_reused")
	h.rest("POST", "/characters/sample", "", "Idempotency-Key: up-1").refuses(t, 422, "key_reused")
	if items := h.rest("GET", "/characters", "").wants(t, 200)["items"].([]any); len(items) != 1 {
		t.Errorf("%d characters", len(items))
	}
}

func TestLintTakesDocumentsAndFiles(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.rest("POST", "/lint", alicesCard).wants(t, 200)
	h.upload("POST", "/lint", "a.json", []byte(alicesCard)).wants(t, 200)
	h.rest("POST", "/lint", `{"name":`).refuses(t, 400, "bad_request")
	h.rest("POST", "/lint", strings.Repeat("[", 33)+strings.Repeat("]", 33)).refuses(t, 400, "bad_request")
	h.rest("POST", "/lint", `42`).refuses(t, 422, "unsupported_card")
}

// The sample character speaks the language that is asked for.
func TestTheSampleSpeaksALanguage(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for language, want := range map[string]string{"": "Wren Halloway", "en": "Wren Halloway", "zh": "江鹂"} {
		made := h.rest("POST", "/characters/sample?language="+language, "").wants(t, 201)
		if name := made["character"].(map[string]any)["name"]; name != want {
			t.Errorf("language %q: name = %v, want %s", language, name, want)
		}
	}
	h.rest("POST", "/characters/sample?language=xx", "").refuses(t, 400, "invalid_field")
}

// Lists do not include the documents of their items.
func TestListsOmitDocuments(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.rest("POST", "/characters/sample", "").wants(t, 201)
	h.rest("POST", "/worldbooks", `{"name":"Tavern","document":{"entries":{}}}`).wants(t, 201)
	for path, documents := range map[string][]string{
		"/characters": {"roleCard", "worldBook", "preset", "authorNote", "regexScripts"},
		"/worldbooks": {"document"},
	} {
		items := h.rest("GET", path, "").wants(t, 200)["items"].([]any)
		if len(items) != 1 {
			t.Fatalf("%s: %d items", path, len(items))
		}
		for _, name := range documents {
			if _, ok := items[0].(map[string]any)[name]; ok {
				t.Errorf("%s: the list has %s", path, name)
			}
		}
	}
}

// A picture that an upload takes can be seen in every size: scaled, or as it is where it cannot
// be decoded here.
func TestEveryPictureThatIsTakenIsShownInEverySize(t *testing.T) {
	h := newTestServer(t, nil)
	id := stringAt(h.rest("POST", "/characters/sample", "").wants(t, 201), "id")
	asPNG := func(p image.Image) []byte {
		var b bytes.Buffer
		h.must(png.Encode(&b, p))
		return b.Bytes()
	}
	frame := image.NewPaletted(image.Rect(0, 0, 300, 200), color.Palette{color.White, color.Black})
	var animated bytes.Buffer
	h.must(gif.EncodeAll(&animated, &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{5, 5}}))
	webp := "WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x05\x00\x00\x03\x00\x00ANIM\x06\x00\x00\x00\xff\xff\xff\xff\x00\x00"
	for name, c := range map[string]struct {
		data  []byte
		whole bool // it is served as it is
	}{
		"animated WebP": {[]byte("RIFF" + string([]byte{byte(len(webp)), 0, 0, 0}) + webp), true},
		"animated GIF":  {animated.Bytes(), false},
		"16-bit PNG":    {asPNG(image.NewNRGBA64(image.Rect(0, 0, 300, 200))), false},
		"large PNG":     {asPNG(image.NewGray(image.Rect(0, 0, 8000, 3000))), true},
	} {
		h.upload("PUT", "/characters/"+id+"/avatar", "a", c.data).wants(t, 200)
		uploaded := stringAt(h.upload("POST", "/attachments", "a", c.data).wants(t, 201), "id")
		for _, path := range []string{"/characters/" + id + "/avatar", "/attachments/" + uploaded + "/content"} {
			for _, size := range []string{"", "?size=16", "?size=1024", "?size=16"} {
				a := h.rest("GET", path+size, "")
				a.wants(t, 200)
				if kind := a.header.Get("Content-Type"); bytes.Equal(a.body, c.data) != (c.whole || size == "") || !strings.HasPrefix(kind, "image/") {
					t.Errorf("%s, %s%s: %d bytes of %s", name, path, size, len(a.body), kind)
				}
			}
		}
	}
	for name, head := range map[string]string{"AVIF": "\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1", "HEIC": "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"} {
		p := h.upload("PUT", "/characters/"+id+"/avatar", "a", []byte(head)).refuses(t, 415, "unsupported_media_type")
		if !strings.Contains(p.Detail, "PNG, JPEG, WebP or GIF") {
			t.Errorf("%s: %q", name, p.Detail)
		}
	}
}

func TestThumbnails(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	id := stringAt(h.rest("POST", "/characters/sample", "").wants(t, 201), "id")
	h.rest("GET", "/characters/"+id+"/avatar?size=64", "").refuses(t, 404, "not_found")
	var picture bytes.Buffer
	h.must(png.Encode(&picture, image.NewGray(image.Rect(0, 0, 400, 800))))
	h.upload("PUT", "/characters/"+id+"/avatar", "alice.png", picture.Bytes()).wants(t, 200)

	small := h.rest("GET", "/characters/"+id+"/avatar?size=64", "")
	small.wants(t, 200)
	config, format, err := image.DecodeConfig(bytes.NewReader(small.body))
	h.must(err)
	if format != "jpeg" || config.Width != 32 || config.Height != 64 || small.header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("a %s of %d × %d pixels, %s", format, config.Width, config.Height, small.header.Get("Content-Type"))
	}
	whole := h.rest("GET", "/characters/"+id+"/avatar", "")
	whole.wants(t, 200)
	if !bytes.Equal(whole.body, picture.Bytes()) || whole.header.Get("ETag") == small.header.Get("ETag") {
		t.Errorf("the picture itself has %d bytes and the tag %s", len(whole.body), whole.header.Get("ETag"))
	}
	again := h.rest("GET", "/characters/"+id+"/avatar?size=64", "", "If-None-Match: "+small.header.Get("ETag"))
	if again.status != 304 {
		t.Errorf("a thumbnail that the client has: status %d", again.status)
	}
	uploaded := stringAt(h.upload("POST", "/attachments", "a.png", picture.Bytes()).wants(t, 201), "id")
	h.rest("GET", "/attachments/"+uploaded+"/content?size=64", "").wants(t, 200)
	h.must(h.server.memory.take(t.Context(), holder{user: h.user.ID}, h.server.memory.each, false)) // a stored thumbnail needs none of it
	h.rest("GET", "/attachments/"+uploaded+"/content?size=64", "").wants(t, 200)
	h.rest("GET", "/characters/"+id+"/avatar?size=64", "").wants(t, 200)
	h.rest("GET", "/characters/"+id+"/avatar", "", "If-None-Match: "+whole.header.Get("ETag")).wants(t, 304)
	for _, size := range []string{"15", "1025", "big"} {
		h.rest("GET", "/characters/"+id+"/avatar?size="+size, "").refuses(t, 400, "invalid_field", "size")
	}
}

// keepsTemplates imports a template for text completion: it is listed, exported as it came, bound to nobody, another
// user's is not there, and it cannot be changed.
func (h *testServer) keepsTemplates() {
	h.t.Helper()
	character := h.rest("POST", "/characters", `{"roleCard":{"name":"Bo"}}`).wants(h.t, 201)["id"].(string)
	file := []byte("{ \"name\":\"ChatML\",\r\n  \"input_sequence\":\"<|im_start|>user\", \"output_sequence\":\"\" }\n")
	got := h.upload("POST", "/import", "x.json", file, "characterId="+character).wants(h.t, 201)
	path := "/templates/" + got["id"].(string)
	if w := got["warnings"].([]any); len(w) != 1 || w[0].(map[string]any)["code"] != "unused_template" || len(got["resource"].(map[string]any)["characterIds"].([]any)) != 0 {
		h.t.Errorf("%v", got)
	}
	if items := h.rest("GET", "/templates", "").items(h.t); len(items) != 1 {
		h.t.Errorf("%v", items)
	}
	h.rest("GET", path, "").wants(h.t, 200)
	if out := h.rest("GET", path+"/export", ""); !bytes.Equal(out.body, file) {
		h.t.Errorf("not as it came: %q", out.body)
	}
	h.upload("POST", "/templates/import", "x.json", []byte(`{"name":"a","content":"b","post_history":""}`)).refuses(h.t, 422, "invalid_import")
	h.upload("POST", "/presets/import", "x.json", file).refuses(h.t, 422, "invalid_import")
	mine := h.token
	h.token = h.newMember("other")
	for _, p := range []string{path, path + "/export"} {
		h.rest("GET", p, "").refuses(h.t, 404, "not_found")
	}
	h.rest("DELETE", path, "").refuses(h.t, 404, "not_found")
	h.token = mine
	h.rest("DELETE", path, "").wants(h.t, 204)
	h.rest("GET", path, "").refuses(h.t, 404, "not_found")
}
