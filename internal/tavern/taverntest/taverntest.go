// Package taverntest makes folders of SillyTavern users, for tests and measurements.
package taverntest

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// Size says how much a folder has.
type Size struct {
	Cards, Books, Chats int
	Messages            int // in each chat
}

// Files are the files of a folder by their paths.
type Files map[string][]byte

// Zip writes files as an archive, in the order of their names.
func (f Files) Zip(prefix string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range sortedNames(f) {
		w, err := z.Create(prefix + name)
		if err == nil {
			_, err = w.Write(f[name])
		}
		if err != nil {
			panic(err) // it is written to memory
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// Write writes an archive with the folder data/default-user of a size. The same size makes the same folder.
func Write(w io.Writer, s Size) error {
	z := zip.NewWriter(w)
	put := func(name string, data []byte) error {
		f, err := z.CreateHeader(&zip.FileHeader{Name: "default-user/" + name, Method: zip.Deflate})
		if err == nil {
			_, err = f.Write(data)
		}
		return err
	}
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a made-up folder, the same each time
	for i := range s.Books {
		if err := put(fmt.Sprintf("worlds/Book %d.json", i), Book(r, 40)); err != nil {
			return err
		}
	}
	for i := range s.Cards {
		book := ""
		if s.Books > 0 {
			book = fmt.Sprintf("Book %d", i%s.Books)
		}
		if err := put("characters/"+CardName(i)+".png", Card(CardName(i), text(r, 300), book)); err != nil {
			return err
		}
	}
	for i := range s.Chats {
		name := CardName(i % max(s.Cards, 1))
		if err := put(fmt.Sprintf("chats/%s/%s - 2024-05-%02d@%05d.jsonl", name, name, 1+i%28, i), Chat(r, name, s.Messages, i)); err != nil {
			return err
		}
	}
	if err := put("settings.json", []byte(`{"username":"Ann","power_user":{"personas":{"ann.png":"Ann"},"persona_descriptions":{"ann.png":{"description":"A traveller."}}},"extension_settings":{"regex":[]}}`)); err != nil {
		return err
	}
	return z.Close()
}

// CardName is the name of the character with a number.
func CardName(i int) string { return fmt.Sprintf("Made %03d", i) }

// Chat is a chat with so many messages; every tenth reply has three swipes.
func Chat(r *rand.Rand, name string, messages, number int) []byte {
	var b bytes.Buffer
	line := func(v any) {
		data, _ := json.Marshal(v)
		b.Write(append(data, '\n'))
	}
	line(map[string]any{"user_name": "unused", "character_name": "unused", "chat_metadata": map[string]any{"integrity": fmt.Sprintf("%08d", number), "note_prompt": ""}})
	at := time.Date(2024, 5, 1, 12, number%60, 0, 0, time.UTC)
	for i := range messages {
		m := map[string]any{"name": name, "is_user": i%2 == 1, "is_system": false, "send_date": at.Add(time.Duration(i) * time.Minute).Format(time.RFC3339), "mes": text(r, 60), "extra": map[string]any{}}
		if i%2 == 1 {
			m["name"] = "Ann"
		} else if i%20 == 0 {
			m["swipes"], m["swipe_id"] = []string{text(r, 60), m["mes"].(string), text(r, 60)}, 1
		}
		line(m)
	}
	return b.Bytes()
}

// Line is a line of a chat in which a character says a text.
func Line(name, text string) []byte {
	data, _ := json.Marshal(map[string]any{"name": name, "is_user": false, "is_system": false, "send_date": "2024-06-01T12:00:00Z", "mes": text, "extra": map[string]any{}})
	return append(data, '\n')
}

// Book is a world book with so many entries.
func Book(r *rand.Rand, entries int) []byte {
	all := map[string]any{}
	for i := range entries {
		all[fmt.Sprint(i)] = map[string]any{"uid": i, "key": []string{words[r.IntN(len(words))]}, "keysecondary": []string{}, "comment": fmt.Sprintf("entry %d", i),
			"content": text(r, 40), "order": 100, "position": i % 2, "disable": false, "selective": true, "constant": i == 0, "depth": 4}
	}
	data, _ := json.Marshal(map[string]any{"entries": all})
	return data
}

// Card is a card as SillyTavern stores it: a picture with both chunks. book is the world book that it names; "" = none.
func Card(name, description, book string) []byte {
	card := map[string]any{
		"spec": "chara_card_v2", "spec_version": "2.0", "name": name, "description": description,
		"data": map[string]any{
			"name": name, "description": description, "personality": "calm", "scenario": "a road", "first_mes": "Hello, {{user}}.", "mes_example": "",
			"tags": []string{"made"}, "alternate_greetings": []string{"Good day."}, "extensions": map[string]any{"world": book},
		},
	}
	two, _ := json.Marshal(card)
	card["spec"], card["spec_version"] = "chara_card_v3", "3.0"
	three, _ := json.Marshal(card)
	var picture bytes.Buffer
	img := image.NewNRGBA(image.Rect(0, 0, 64, 96))
	for i := range 64 {
		img.Set(i, i, color.NRGBA{uint8(i), uint8(len(name)), 90, 255})
	}
	_ = png.Encode(&picture, img) // to memory
	plain := picture.Bytes()
	end := len(plain) - 12 // the chunk IEND
	out := append([]byte{}, plain[:end]...)
	out = append(out, chunk("tEXt", "chara\x00"+base64.StdEncoding.EncodeToString(two))...)
	out = append(out, chunk("tEXt", "ccv3\x00"+base64.StdEncoding.EncodeToString(three))...)
	return append(out, plain[end:]...)
}

func chunk(kind, data string) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	out = append(out, kind+data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE([]byte(kind+data)))
}

var words = strings.Fields("river lantern market quiet harbour letter winter garden stone bridge evening bread window traveller song copper " +
	"mountain silver promise morning forest clock story silence ribbon candle road weather sister captain island orchard thunder feather mirror kitchen")

// text is a text of so many words.
func text(r *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[r.IntN(len(words))])
		if r.IntN(9) == 0 {
			fmt.Fprintf(&b, "%d", r.IntN(10_000)) // so that texts differ
		}
	}
	return b.String() + "."
}
