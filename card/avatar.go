package card

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"image/png"
	"net/http"
	"slices"
	"strings"

	"nodest/card/picture"
	"nodest/card/pngfile"
)

// Where Export puts an avatar that the card's list of assets has no file for: in
// an entry of its own, or in the place of the entry that says "the picture of
// this file". Import undoes both.
const (
	addedIcon   = "assets/icon/nodest-main"
	defaultIcon = "assets/icon/nodest-default"

	defaultURI = "ccdefault:"
)

// embeddedSchemes begin the address of an asset in the same file. The first is
// misspelt in the specification.
var embeddedSchemes = []string{"embeded://", "embedded://", "__asset:"}

// icon is the picture of the character in a card's list of assets.
type icon struct {
	list  []json.RawMessage
	index int // in list; -1 if there is none
	uri   string
}

// mainIcon finds the icon named main, else the first icon.
func mainIcon(doc json.RawMessage) icon {
	found := icon{list: fieldsOf(fieldsOf(doc)["data"]).list("assets"), index: -1}
	for i, element := range found.list {
		f := fieldsOf(element)
		if f.text("type", "") != "icon" {
			continue
		}
		main := f.text("name", "") == "main"
		if found.index < 0 || main {
			found.index, found.uri = i, f.text("uri", "")
		}
		if main {
			break
		}
	}
	return found
}

// path returns where the icon is in the archive; "" if it is not in one.
func (i icon) path() string {
	for _, scheme := range embeddedSchemes {
		if path, ok := strings.CutPrefix(i.uri, scheme); ok {
			return cleanPath(path)
		}
	}
	return ""
}

// takeAvatar finds the picture of a character that came without one: among the
// assets, or as a data URL in the card.
func (ch *Character) takeAvatar() {
	if ch.Avatar != nil {
		return
	}
	main := mainIcon(ch.RoleCard)
	if at := slices.IndexFunc(ch.Assets, func(a Asset) bool {
		return a.Path == main.path() || strings.HasPrefix(a.Path, addedIcon)
	}); at >= 0 {
		asset := ch.Assets[at]
		if kind := pictureType(asset.Data); kind != "" {
			ch.Avatar, ch.AvatarType = asset.Data, kind
			if ch.Assets = slices.Delete(ch.Assets, at, at+1); len(ch.Assets) == 0 {
				ch.Assets = nil
			}
			ch.forgetOwnIcon()
		}
		return
	}
	if _, payload, ok := strings.Cut(main.uri, ";base64,"); ok && strings.HasPrefix(main.uri, "data:") {
		if data, err := decodeBase64([]byte(payload)); err == nil && pictureType(data) != "" {
			ch.Avatar, ch.AvatarType = data, pictureType(data)
		}
	}
}

// pictureType returns the media type of a picture that browsers show, "" of
// anything else.
func pictureType(data []byte) string {
	switch kind := http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/webp", "image/gif":
		return kind
	}
	return ""
}

// packedAssets returns the files of an archive for a card and makes the card's
// list of assets point to the avatar.
func (ch *Character) packedAssets(card *object) []Asset {
	var files []Asset
	taken := map[string]bool{cardFile: true}
	for _, a := range ch.Assets {
		if path := cleanPath(a.Path); path != "" && !taken[strings.ToLower(path)] {
			taken[strings.ToLower(path)] = true
			files = append(files, Asset{Path: path, Data: a.Data})
		}
	}
	if ch.Avatar == nil {
		return files
	}
	main := mainIcon(card.encode())
	path := main.path()
	if path == "" || taken[strings.ToLower(path)] {
		path = useOwnIcon(card, main, strings.TrimPrefix(ch.AvatarType, "image/"))
	}
	return append(files, Asset{Path: path, Data: ch.Avatar})
}

// useOwnIcon points the card to a picture in the archive and returns its path. A
// missing list means one icon that is the picture of the file. An icon that is
// elsewhere stays; ours is then found by its path.
func useOwnIcon(card *object, main icon, ext string) string {
	path := addedIcon + "." + ext
	switch {
	case main.index < 0:
		main.list = append(main.list, encode(map[string]string{
			"type": "icon", "uri": embeddedSchemes[0] + path, "name": "main", "ext": ext}))
	case main.uri == defaultURI:
		path = defaultIcon + "." + ext
		main.list[main.index] = withURI(main.list[main.index], embeddedSchemes[0]+path)
	default:
		return path
	}
	data := card.object("data")
	data.set("assets", encodeList(main.list))
	card.put("data", data)
	return path
}

func withURI(asset json.RawMessage, uri string) json.RawMessage {
	o, err := parseObject(asset)
	if err != nil {
		return asset
	}
	o.put("uri", uri)
	return o.encode()
}

// forgetOwnIcon undoes useOwnIcon, so that the card is again as it was.
func (ch *Character) forgetOwnIcon() {
	main := mainIcon(ch.RoleCard)
	added := strings.HasPrefix(main.path(), addedIcon)
	if !added && !strings.HasPrefix(main.path(), defaultIcon) {
		return
	}
	card, err := parseObject(ch.RoleCard)
	if err != nil {
		return
	}
	data := card.objectOrNew("data")
	if added {
		main.list = slices.Delete(main.list, main.index, main.index+1)
	} else {
		main.list[main.index] = withURI(main.list[main.index], defaultURI)
	}
	if len(main.list) > 0 {
		data.set("assets", encodeList(main.list))
	} else {
		data.remove("assets")
	}
	card.put("data", data)
	ch.RoleCard = card.encode()
}

// picture returns the avatar as a PNG file, or a placeholder.
func (ch *Character) picture() []byte {
	if ch.AvatarType == "image/png" {
		if _, err := pngfile.Chunks(ch.Avatar); err == nil {
			return ch.Avatar
		}
	}
	if own, _, err := picture.Decode(ch.Avatar); err == nil {
		var b bytes.Buffer
		if png.Encode(&b, own) == nil {
			return b.Bytes()
		}
	}
	return placeholder
}

// placeholder is the picture of a character without one. A text chunk marks it, so that
// it is not taken for an avatar later.
//
//go:embed placeholder.png
var placeholder []byte
