package parse

import (
	"bytes"
	"mime"
	"path"
	"regexp"
	"strings"
)

// detected is what a file is, by its content first.
type detected struct {
	typ      string
	text     string // content of a type that is text, decoded and clean
	mismatch bool   // the name or declared type says something else
}

var extensions = map[string]string{
	"txt": "text", "text": "text", "log": "text", "srt": "text", "vtt": "text", "rst": "text", "org": "text", "tex": "text",
	"md": "markdown", "markdown": "markdown", "mdx": "markdown", "mkd": "markdown",
	"html": "html", "htm": "html", "xhtml": "html",
	"csv": "csv", "tsv": "csv", "tab": "csv",
	"json": "json", "jsonl": "json", "ndjson": "json", "yaml": "yaml", "yml": "yaml",
	"pdf": "pdf", "docx": "docx", "docm": "docx", "odt": "odt", "epub": "epub",
	"xlsx": "xlsx", "xlsm": "xlsx", "pptx": "pptx", "pptm": "pptx",
}

var mediaTypes = map[string]string{
	"text/markdown": "markdown", "text/html": "html", "application/xhtml+xml": "html", "text/csv": "csv",
	"text/tab-separated-values": "csv", "application/json": "json", "application/x-ndjson": "json",
	"application/yaml": "yaml", "application/x-yaml": "yaml", "text/yaml": "yaml", "application/pdf": "pdf",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   "docx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         "xlsx",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
	"application/vnd.oasis.opendocument.text":                                   "odt",
	"application/epub+zip": "epub",
}

// isText reports whether a type is text, which is parsed without unpacking anything.
func isText(typ string) bool { return parsers[typ].text != nil }

// claimed returns the type that the name, or else the media type, claims; "" = none.
func claimed(in Input) string {
	ext := extension(in.Name)
	if t := extensions[ext]; t != "" {
		return t
	}
	if _, code := languages[ext]; code {
		return "code"
	}
	if media, _, err := mime.ParseMediaType(in.DeclaredType); err == nil {
		return mediaTypes[media]
	}
	return ""
}

func extension(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
}

var pdfHead = regexp.MustCompile(`%PDF-\d\.\d`)

// container returns pdf or zip if that is what the content is, or why it is neither one of
// them nor text.
func container(data []byte) (string, *Error) {
	switch {
	case bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.HasPrefix(data, []byte("PK\x05\x06")):
		return "zip", nil
	case pdfHead.Match(data[:min(len(data), 1024)]):
		return "pdf", nil
	case bytes.HasPrefix(data, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
		if bytes.Contains(data, []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e")) {
			return "", fail(EncryptedDocument, "the document is protected by a password")
		}
		return "", fail(UnsupportedType, "documents of older office programs are not supported; save the file as DOCX, XLSX or PPTX")
	}
	for _, magic := range []string{
		"\x89PNG", "\xff\xd8\xff", "GIF87a", "GIF89a", "\x1f\x8b", "7z\xbc\xaf", "Rar!\x1a", "\x7fELF", "OggS\x00",
		"{\\rtf", "%!PS-", "SQLite format 3\x00", "\xfd7zXZ", "BZh91AY", "\x28\xb5\x2f\xfd",
	} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return "", fail(UnsupportedType, "files of this type have no text that can be read")
		}
	}
	return "", nil
}

func (p *parser) detect() (*detected, error) {
	claim := claimed(p.in)
	typ, err := container(p.in.Data)
	if err != nil {
		return nil, err
	}
	if typ == "zip" {
		if typ, err = p.archiveType(); err != nil {
			return nil, err
		}
	}
	if typ != "" {
		return &detected{typ: typ, mismatch: claim != "" && claim != typ}, nil
	}
	text, err := decode(p.in.Data, p.in.DeclaredType)
	if err != nil {
		if claim != "" && !isText(claim) {
			return nil, fail(DamagedFile, "the file is no "+strings.ToUpper(claim)+" document")
		}
		return nil, err
	}
	text = clean(text)
	if isText(claim) {
		return &detected{typ: claim, text: text}, nil
	}
	typ = textType(text)
	return &detected{typ: typ, text: text, mismatch: claim != ""}, nil
}

var (
	htmlHead     = regexp.MustCompile(`(?i)^\s*(<\?xml[^>]*>\s*)?(<!--[^>]*-->\s*)?<(!doctype html|html|head|body)\b`)
	markdownLine = regexp.MustCompile("(?m)^(#{1,6} \\S|```|[-*] \\[[ x]\\] |\\|? *:?-{3,}:? *\\|)")
)

// textType guesses the type of a text that has no telling name.
func textType(text string) string {
	head := text[:min(len(text), 4096)]
	trimmed := strings.TrimSpace(head)
	switch {
	case htmlHead.MatchString(head):
		return "html"
	case strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "["):
		if validJSON(text) {
			return "json"
		}
	case len(markdownLine.FindAllString(head, 2)) > 0:
		return "markdown"
	}
	return "text"
}
