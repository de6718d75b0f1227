package folder

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FileName is a name as SillyTavern makes a name of a file of it: without what some system
// forbids, and of at most 255 bytes with its extension.
func FileName(name, ext string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || strings.ContainsRune(`/?<>\:*|"`, r) {
			return -1
		}
		return r
	}, name)
	if stem, _, _ := strings.Cut(strings.ToLower(name), "."); reserved[stem] {
		name = "_" + name
	}
	for len(name)+len(ext) > 240 { // a number may follow
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	if name = strings.TrimRight(strings.TrimSpace(name), ". "); name == "" {
		name = "unnamed"
	}
	return name + ext
}

// reserved are names that Windows keeps for devices.
var reserved = func() map[string]bool {
	m := map[string]bool{"con": true, "prn": true, "aux": true, "nul": true}
	for i := range 10 {
		m["com"+strconv.Itoa(i)], m["lpt"+strconv.Itoa(i)] = true, true
	}
	return m
}()

// Names gives each file a path of its own. The zero value has given none.
type Names struct{ given map[string]bool }

// Take makes a path of a folder, a name and an extension that no file has yet, in any case of
// letters.
func (n *Names) Take(dir, name, ext string) string {
	full := path.Join(dir, FileName(name, ext))
	for i := 1; !n.Reserve(full); i++ {
		full = path.Join(dir, FileName(name, "")+strconv.Itoa(i)+ext)
	}
	return full
}

// Reserve takes a path; false = a file has it.
func (n *Names) Reserve(name string) bool {
	key := strings.ToLower(name)
	if n.given[key] {
		return false
	}
	if n.given == nil {
		n.given = map[string]bool{}
	}
	n.given[key] = true
	return true
}
