#!/usr/bin/env bash
# golang.org/x/image/webp v0.47.0, 2026-11.
# One would guess: if image.DecodeConfig accepts a picture, image.Decode reads it unless its data is
# damaged; a form that the package does not support is refused by both. In fact DecodeConfig stops at
# the header of an animated WebP and reports its size, and Decode then fails with "invalid format", as
# for a damaged file: it neither reads the first frame nor says that it is the animation.
# Whoever checks an upload with DecodeConfig stores a picture of which no thumbnail can be made.
# Here: an animated picture is stored and shown as it is, and has no smaller form.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'MOD'
module animated

go 1.26
MOD
cat >main.go <<'GO'
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	"os"

	_ "golang.org/x/image/webp"
)

// frame is the chunk with the data of a picture of one pixel.
var frame, _ = base64.StdEncoding.DecodeString("VlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")

func main() {
	still := file(frame)
	shown := append(make([]byte, 12), 100, 0, 0, 0) // at 0, 0; 1 × 1; for 100 ms
	shown = append(shown, frame...)
	animated := file(chunk("VP8X", []byte{1<<1 | 1<<4, 0, 0, 0, 0, 0, 0, 0, 0, 0}), chunk("ANIM", make([]byte, 6)), chunk("ANMF", shown), chunk("ANMF", shown))
	fmt.Println("golang.org/x/image/webp v0.47.0")
	sizes1, read1 := try("a still picture", still)
	sizes2, read2 := try("an animation", animated)
	if sizes1 != nil || read1 != nil || sizes2 != nil || read2 == nil {
		fmt.Println("The behaviour has changed.")
		os.Exit(1)
	}
	fmt.Println("DecodeConfig accepts an animated WebP, and Decode refuses it.")
}

func try(name string, data []byte) (sizes, read error) {
	config, format, sizes := image.DecodeConfig(bytes.NewReader(data))
	_, _, read = image.Decode(bytes.NewReader(data))
	fmt.Printf("%s of %d bytes: DecodeConfig: %s, %d × %d, error: %v; Decode: error: %v\n", name, len(data), format, config.Width, config.Height, sizes, read)
	return sizes, read
}

func chunk(name string, data []byte) []byte {
	c := binary.LittleEndian.AppendUint32([]byte(name), uint32(len(data)))
	return append(append(c, data...), make([]byte, len(data)%2)...)
}

func file(chunks ...[]byte) []byte {
	return chunk("RIFF", append([]byte("WEBP"), bytes.Join(chunks, nil)...))
}
GO
export GOFLAGS=-mod=mod GOWORK=off
go get golang.org/x/image@v0.47.0 2>/dev/null
go run .
