// Package web embeds the built page, so that the binary needs no other file. The source
// is in src; `make web` builds it into dist, which is committed.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns the built page: index.html and assets/.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // dist is embedded above
	}
	return files
}
