#!/usr/bin/env bash
# github.com/klauspost/compress 1.20.3 (newest), package zstd, 2026-11.
# One would guess: an encoder that only gets texts of 1 KB, with a window of 1 KB and "lower encoder
# memory", takes some tens of KB, and the next level costs time. In fact the tables of a level have one size,
# whatever the window and the option say: 0.3 MB at the fastest level, 1.3 at the default one, 4.2 at the one
# above it, per encoder. A dictionary, which should make small texts cheap, doubles them, because the
# encoder keeps a second copy to start from: 8.4 MB.
# It matters where encoders are pooled: a service that compresses small rows pays by the level for each
# goroutine that does so at the same time.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'MOD'
module try

go 1.24

require github.com/klauspost/compress v1.20.3
MOD
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/klauspost/compress/zstd"
)

func dictionary() []byte {
	samples := make([][]byte, 50)
	for i := range samples {
		samples[i] = []byte(strings.Repeat(fmt.Sprintf(`{"bed":%d,"plants":"tulips and roses"}`, i*7919), 20))
	}
	d, err := zstd.BuildDict(zstd.BuildDictOptions{
		ID: 77, Contents: samples, History: []byte(strings.Repeat("tulips and roses in a bed ", 600)), Offsets: [3]int{1, 4, 8},
	})
	if err != nil {
		panic(err)
	}
	return d
}

// held is how many KiB an encoder holds that has compressed a text.
func held(text []byte, level zstd.EncoderLevel, more ...zstd.EOption) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	e, err := zstd.NewWriter(nil, append(more, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstd.MinWindowSize))...)
	if err != nil {
		panic(err)
	}
	_ = e.EncodeAll(text, nil)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(e)
	return (after.HeapAlloc - before.HeapAlloc) >> 10
}

func main() {
	text, dict := []byte(strings.Repeat("roses and tulips in a long bed. ", 32)), dictionary()
	known := true
	fmt.Printf("klauspost/compress v1.20.3, %d bytes of text, a window of %d\n", len(text), zstd.MinWindowSize)
	for _, l := range []struct {
		level zstd.EncoderLevel
		least uint64
	}{{zstd.SpeedFastest, 150}, {zstd.SpeedDefault, 1000}, {zstd.SpeedBetterCompression, 3500}} {
		alone, with := held(text, l.level), held(text, l.level, zstd.WithEncoderDict(dict))
		fmt.Printf("level %-8s one encoder holds %5d KiB, with a dictionary of %d bytes %5d KiB\n", l.level, alone, len(dict), with)
		known = known && alone >= l.least && with >= alone+alone/2
	}
	if !known {
		fmt.Println("The behaviour has changed.")
		os.Exit(1)
	}
	fmt.Println("The level decides the memory, not the window; a dictionary nearly doubles it.")
}
GO
go mod tidy >/dev/null 2>&1
go run .
