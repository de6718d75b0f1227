package claim

import (
	"embed"

	"nodest/internal/lexicon"
)

//go:embed data
var files embed.FS

// data has the words of the languages, in a file each.
var data = lexicon.New(files)
