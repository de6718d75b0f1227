package agent

import (
	"embed"

	"nodest/internal/lexicon"
)

//go:embed data
var dataFiles embed.FS

// data has the rules of the languages, in a file each.
var data = lexicon.New(dataFiles)
