#!/usr/bin/env bash
# github.com/tetratelabs/wazero v1.12.0, 2026-11.
# One would guess: a file of the compilation cache that was damaged is noticed, because it has a checksum,
# and is compiled again. In fact the checksum is of the machine code alone. The offsets of the functions
# stand before it, and are believed: a function that is called runs another one, or jumps anywhere. Where
# the checksum is wrong, CompileModule fails, and goes on failing, because the file stays.
# Here: a checksum of the whole file stands beside it, and a file that it does not fit is removed.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'MOD'
module offsets

go 1.26
MOD
cat >main.go <<'GO'
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"
)

// module has two functions: one returns 1, two returns 2.
var module = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x05\x01\x60\x00\x01\x7f" + "\x03\x03\x02\x00\x00" +
	"\x07\x0d\x02\x03one\x00\x00\x03two\x00\x01" + "\x0a\x0b\x02\x04\x00\x41\x01\x0b\x04\x00\x41\x02\x0b")

func main() {
	fresh, err := one()
	fmt.Println("compiled: one() =", fresh, err)
	files, _ := filepath.Glob("cache/*/*")
	data, _ := os.ReadFile(files[0])
	at := bytes.Index(data, []byte("\x02\x00\x00\x00")) + 4 // behind the number of functions
	swapped := bytes.Clone(data)
	copy(swapped[at:at+8], data[at+8:at+16])
	copy(swapped[at+8:at+16], data[at:at+8])
	os.WriteFile(files[0], swapped, 0o600)
	wrong, failed := one()
	fmt.Println("two offsets swapped in the cache: one() =", wrong, failed)
	spoilt := bytes.Clone(data)
	spoilt[at+30] ^= 1 // in the code
	os.WriteFile(files[0], spoilt, 0o600)
	_, first := one()
	_, second := one()
	fmt.Println("a bit of the code changed:", first, "and again:", second)
	if fresh != 1 || err != nil || wrong != 2 || failed != nil || first == nil || second == nil {
		fmt.Println("The behaviour has changed.")
		os.Exit(1)
	}
	fmt.Println("The cache believes offsets that were changed, and fails for good where code was.")
}

// one calls the first function of the module, compiled or from the cache.
func one() (uint64, error) {
	ctx := context.Background()
	cache, err := wazero.NewCompilationCacheWithDir("cache")
	if err != nil {
		return 0, err
	}
	defer cache.Close(ctx)
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache))
	defer r.Close(ctx)
	m, err := r.Instantiate(ctx, module)
	if err != nil {
		return 0, err
	}
	results, err := m.ExportedFunction("one").Call(ctx)
	if err != nil {
		return 0, err
	}
	return results[0], nil
}
GO
export GOFLAGS=-mod=mod GOWORK=off
go get github.com/tetratelabs/wazero@v1.12.0 2>/dev/null
go run .
