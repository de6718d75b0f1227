// Package parse turns files of any supported format into plain text with its structure.
package parse

// Document is the text of a file. Positions are code points of Text.
type Document struct {
	Type     string // the content's: markdown, html, text, code, csv, json, yaml, docx, odt, epub, xlsx, pptx or pdf
	Parser   string // name and version of what parsed it, such as "pdf/1"
	Title    string // "" = the file names none
	Language string // BCP 47 of most of the text, such as "en" or "zh"; "" = unknown
	Text     string // UTF-8 in NFC; no control characters but tab and newline

	Outline []Heading // in the order of the text
	Pages   []Page    // pages, slides, sheets or chapters; nil = the format has none
	Units   []Unit    // parts that must not be cut needlessly, in the order of the text; nil = paragraphs will do

	Warnings []string // codes such as "type_mismatch:pdf" or "damaged_pdf"
}

// Heading is the title of a section, which goes on until the next heading of its level or
// above.
type Heading struct {
	Level int    `json:"level"` // from 1
	Title string `json:"title"`
	Start int    `json:"start"`
}

// Page is a range of the text.
type Page struct {
	N     int    `json:"n"` // from 1
	Title string `json:"title,omitempty"`
	Start int    `json:"start"`
	End   int    `json:"end"`
}

// Unit is a range of the text that belongs together: a row, an entry, a declaration, a fenced
// block, a table.
type Unit struct {
	Kind   string `json:"kind"` // row, entry, code, table
	Start  int    `json:"start"`
	End    int    `json:"end"`
	Header string `json:"header,omitempty"` // for a row or table: the line that says what its cells are
	Title  string `json:"title,omitempty"`  // for a declaration or entry
}

// Error is why a file cannot be parsed. Code is one of those of docs/knowledge.md; the user
// sees both.
type Error struct {
	Code   string
	Detail string
}

func (e *Error) Error() string { return e.Code + ": " + e.Detail }
