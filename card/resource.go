package card

import "encoding/json"

// Resource is a free-standing document that was imported: a world book, a preset
// or a set of regex scripts.
type Resource struct {
	Name     string          // from the document, else from the file name
	Format   string          // what the file was, e.g. "sillytavern", "novelai"
	Dialect  Dialect         // the rules that the document was written for
	Doc      json.RawMessage // to store; regex scripts: an array
	Warnings []Warning
}

// ImportWorldBook reads a world book: SillyTavern, NodeST, an embedded
// character_book, lorebook_v3, NovelAI, Agnai, Risu or NativeTavern. Foreign
// forms are converted to world info and kept as originalData.
//
// Errors: TooLarge, InvalidWorldBook.
func ImportWorldBook(data []byte, filename string, limits Limits) (*Resource, error) { return nil, nil }

// ImportPreset reads a chat-completion preset (NodeST or SillyTavern) or a
// system-prompt template. Addresses and passwords of proxies are dropped.
//
// Errors: TooLarge; InvalidImport, also for the text-completion templates that
// this product has no use for.
func ImportPreset(data []byte, filename string, limits Limits) (*Resource, error) { return nil, nil }

// ImportRegexScripts reads one script, an array or a script group.
//
// Errors: TooLarge, InvalidImport.
func ImportRegexScripts(data []byte, filename string, limits Limits) (*Resource, error) {
	return nil, nil
}

// ExportDocument writes a stored document as a JSON file, indented, fields and
// their order unchanged.
func ExportDocument(doc json.RawMessage, name string) (*File, error) { return nil, nil }

// Kind says what a file holds.
type Kind string

// The kinds.
const (
	KindCharacter Kind = "character"
	KindWorldBook Kind = "worldbook"
	KindPreset    Kind = "preset"
	KindRegex     Kind = "regexscript"
	KindChat      Kind = "chat"
	KindUnknown   Kind = ""
)

// Detect guesses what a file holds from its content, cheaply and without
// checking it.
func Detect(data []byte) Kind { return KindUnknown }
