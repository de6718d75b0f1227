#!/usr/bin/env bash
# temoto/robotstxt v1.1.2 (newest), 2026-11.
# One would guess: a robots.txt with a line that the parser cannot place is read without that line.
# RFC 9309 wants it so: other records, such as Crawl-delay, must not interfere with the rules. In fact
# a Crawl-delay before the first User-agent fails the whole file, and so does one that is no number:
# the caller has an error and no rules, and has to decide about a site that has said what it allows.
# Unknown records (Host) at the same place do no harm, so tests with them do not find it.
# Here: the reader has a parser of its own that keeps the rules of such a file.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'MOD'
module robots

go 1.26
MOD
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/temoto/robotstxt"
)

const rules = "User-agent: *\nDisallow: /private\n"

func main() {
	fmt.Println("temoto/robotstxt v1.1.2")
	unknown := try("Host: halden.example\n" + rules)
	first := try("Crawl-delay: 3\n" + rules)
	words := try(rules + "Crawl-delay: short\n")
	if unknown != nil || first == nil || words == nil {
		fmt.Println("The behaviour has changed.")
		os.Exit(1)
	}
	fmt.Println("A Crawl-delay that the parser cannot place or read fails the whole file.")
}

func try(file string) error {
	_, err := robotstxt.FromString(file)
	fmt.Printf("%q\n  error: %s\n", file, strings.Join(strings.Fields(fmt.Sprint(err)), " "))
	return err
}
GO
export GOFLAGS=-mod=mod GOWORK=off
go get github.com/temoto/robotstxt@v1.1.2 2>/dev/null
go run .
