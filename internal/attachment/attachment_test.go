package attachment_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"nodest/internal/attachment"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/store/storetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { os.Exit(code) }))
}

// picture is a PNG of a size.
func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White, color.Black})); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// env is a service on a fresh database.
type env struct {
	*attachment.Service
	store attachment.Store
	user  string
	other string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	db := storetest.Open(t)
	return &env{attachment.New(db.Attachments()), db.Attachments(), storetest.User(t, db), storetest.User(t, db)}
}

func (e *env) call() *op.Call { return &op.Call{UserID: e.user} }

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("error %v, want %s", err, code)
	}
}

func TestImagesAreStoredAsReceived(t *testing.T) {
	e := newEnv(t)
	small := image.NewPaletted(image.Rect(0, 0, 5, 4), color.Palette{color.White})
	var asGIF, asJPEG bytes.Buffer
	if err := errors.Join(gif.Encode(&asGIF, small, nil), jpeg.Encode(&asJPEG, small, nil)); err != nil {
		t.Fatal(err)
	}
	for contentType, data := range map[string][]byte{"image/png": picture(t, 5, 4), "image/gif": asGIF.Bytes(), "image/jpeg": asJPEG.Bytes()} {
		put, err := e.Put(t.Context(), e.call(), "tea.png", data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Get(t.Context(), e.user, put.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != "tea.png" || got.ContentType != contentType || got.Width != 5 || got.Height != 4 || got.Size != int64(len(data)) || *got != *put {
			t.Errorf("stored %+v, answered %+v", got, put)
		}
		content, err := e.Content(t.Context(), e.user, put.ID, 0)
		if err != nil || content.ContentType != contentType || !bytes.Equal(content.Data, data) {
			t.Errorf("content %v, %v", content, err)
		}
		_, err = e.Get(t.Context(), e.other, put.ID)
		wantCode(t, err, fault.NotFound)
		_, err = e.Content(t.Context(), e.other, put.ID, 16)
		wantCode(t, err, fault.NotFound)
		wantCode(t, e.Delete(t.Context(), &op.Call{UserID: e.other}, put.ID), fault.NotFound)
		if err := e.Delete(t.Context(), e.call(), put.ID); err != nil {
			t.Fatal(err)
		}
		_, err = e.Content(t.Context(), e.user, put.ID, 0)
		wantCode(t, err, fault.NotFound)
	}
}

func TestWhatIsNoAcceptableImageIsRefused(t *testing.T) {
	e := newEnv(t)
	wide := picture(t, 9000, 1)
	for name, tt := range map[string]struct {
		name string
		data []byte
		code fault.Code
	}{
		"nothing":                      {"a", nil, fault.UnsupportedMedia},
		"a text":                       {"a.png", []byte("not an image"), fault.UnsupportedMedia},
		"a vector graphic":             {"a.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), fault.UnsupportedMedia},
		"too many pixels on a side":    {"a.png", wide, fault.TooLarge},
		"too many bytes":               {"a.png", append(picture(t, 1, 1), make([]byte, 10<<20)...), fault.TooLarge},
		"a long name":                  {strings.Repeat("n", 201), picture(t, 1, 1), fault.Invalid},
		"a name with control sequence": {"a\x1b[2J", picture(t, 1, 1), fault.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := e.Put(t.Context(), e.call(), tt.name, tt.data)
			wantCode(t, err, tt.code)
		})
	}
	err := e.store.Update(t.Context(), e.user, func(tx attachment.Tx) error {
		n, err := tx.LockAttachments()
		if n != 0 {
			t.Errorf("%d bytes were stored", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAThumbnailHasTheAskedSize(t *testing.T) {
	e := newEnv(t)
	put := func(data []byte) string {
		a, err := e.Put(t.Context(), e.call(), "", data)
		if err != nil {
			t.Fatal(err)
		}
		if a.Name == "" {
			t.Error("the image has no name")
		}
		return a.ID
	}
	content, err := e.Content(t.Context(), e.user, put(picture(t, 400, 200)), 64)
	if err != nil {
		t.Fatal(err)
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(content.Data))
	if err != nil || config.Width != 64 || config.Height != 32 || content.ContentType != "image/"+format {
		t.Errorf("%s with %+v, %v", content.ContentType, config, err)
	}
	large := picture(t, 5000, 4000)
	content, err = e.Content(t.Context(), e.user, put(large), 64)
	if err != nil || !bytes.Equal(content.Data, large) {
		t.Errorf("an image that is too large to scale: %v", err)
	}
	for name, data := range map[string][]byte{"an animated WebP": animatedWebP(), "a damaged image": picture(t, 40, 40)[:60]} {
		id := put(data)
		for range 2 { // the second time it is known
			content, err := e.Content(t.Context(), e.user, id, 16)
			if err != nil || !bytes.Equal(content.Data, data) || !strings.HasPrefix(content.ContentType, "image/") {
				t.Errorf("%s is not served as it is: %v", name, err)
			}
			if kept, err := e.Cached(t.Context(), e.user, id, 16); kept != nil || err != nil {
				t.Errorf("%s: kept %v, %v", name, kept, err)
			}
		}
	}
}

// animatedWebP is a WebP file of 6 by 4 pixels whose head says that it is animated.
func animatedWebP() []byte {
	chunks := "WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x05\x00\x00\x03\x00\x00ANIM\x06\x00\x00\x00\xff\xff\xff\xff\x00\x00"
	return []byte("RIFF" + string([]byte{byte(len(chunks)), 0, 0, 0}) + chunks)
}

func TestTheImagesOfAUserHaveALimitTogether(t *testing.T) {
	e := newEnv(t)
	large := op.NewID()
	err := e.store.Update(t.Context(), e.user, func(tx attachment.Tx) error {
		return tx.InsertAttachment(&attachment.Attachment{ID: large, Size: 500<<20 - 10}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Put(t.Context(), e.call(), "a", picture(t, 1, 1))
	wantCode(t, err, fault.TooLarge)
	if _, err := e.Put(t.Context(), &op.Call{UserID: e.other}, "a", picture(t, 1, 1)); err != nil {
		t.Errorf("another user: %v", err)
	}
	if err := e.Delete(t.Context(), e.call(), large); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Put(t.Context(), e.call(), "a", picture(t, 1, 1)); err != nil {
		t.Errorf("after images were deleted: %v", err)
	}
}

func TestAnUploadIsRepeatedWithoutEffect(t *testing.T) {
	e := newEnv(t)
	var ids []string
	for range 2 {
		a, err := e.Put(t.Context(), &op.Call{UserID: e.user, Key: "k", Hash: "h"}, "a", picture(t, 1, 1))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.ID)
		text, err := json.Marshal(attachment.Wire(a))
		if want := `{"id":"` + a.ID + `","name":"a","contentType":"image/png","width":1,"height":1,"size":`; err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("wire format %s", text)
		}
	}
	if ids[0] != ids[1] {
		t.Errorf("two images: %v", ids)
	}
}
