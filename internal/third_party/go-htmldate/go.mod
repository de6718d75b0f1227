module github.com/markusmobius/go-htmldate

go 1.26.0

require golang.org/x/net v0.61.0
