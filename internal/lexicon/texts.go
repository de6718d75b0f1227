package lexicon

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"strings"
)

// Texts reads the texts of languages from the JSON files in the only folder of files, each named
// after its language. T has a member for each text. A file that cannot be read, or says something
// else, is a mistake of the program.
func Texts[L ~string, T any](files fs.FS) map[L]*T {
	names, err := fs.Glob(files, "*/*.json")
	if err != nil || len(names) == 0 {
		panic("lexicon: there are no texts")
	}
	texts := map[L]*T{}
	for _, name := range names {
		file, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err)
		}
		d := json.NewDecoder(bytes.NewReader(file))
		d.DisallowUnknownFields()
		of := new(T)
		if err := d.Decode(of); err != nil {
			panic(name + ": " + err.Error())
		}
		texts[L(strings.TrimSuffix(path.Base(name), ".json"))] = of
	}
	return texts
}
