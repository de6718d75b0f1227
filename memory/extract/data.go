package extract

import (
	"embed"

	"nodest/internal/lexicon"
)

var (
	//go:embed data
	files embed.FS
	//go:embed prompts
	promptFiles embed.FS
)

// data has the rules and words of the languages, in a file each.
var data = lexicon.New(files)
