package card

import (
	"encoding/json"
	"path"
	"strings"

	"nodest/internal/fault"
)

// Resource is a free-standing document that was imported: a world book, a preset,
// a set of regex scripts, a persona or a template.
type Resource struct {
	Name     string          // from the document, else from the file name
	Format   string          // the format of the file, e.g. "sillytavern", "novelai"
	Dialect  Dialect         // the rules that the document was written for
	Doc      json.RawMessage // to store; regex scripts: an array
	Warnings []Warning
}

// resource begins an import: it checks the file and returns its document.
func (im *importer) resource(data []byte, code fault.Code) (json.RawMessage, error) {
	if err := im.checkFile(data, code); err != nil {
		return nil, err
	}
	return im.document(data, code)
}

// name is the name of a document without one: that of its file.
func (im *importer) name(named string) string {
	if named = strings.TrimSpace(named); named != "" {
		return named
	}
	base := path.Base(strings.ReplaceAll(im.filename, `\`, "/"))
	if base = strings.TrimSpace(strings.TrimSuffix(base, path.Ext(base))); base == "" || base == "." || base == "/" {
		return "Imported"
	}
	return base
}

// ImportRegexScripts reads one script, an array or a script group.
//
// Errors: TooLarge; InvalidImport, also for a file without any script.
func ImportRegexScripts(data []byte, filename string, limits Limits) (*Resource, error) {
	im := newImporter(filename, limits)
	doc, err := im.resource(data, fault.InvalidImport)
	if err != nil {
		return nil, err
	}
	list, err := scriptList(doc)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fault.New(fault.InvalidImport, "the file has no regex scripts").With("path", "scripts")
	}
	name := fieldsOf(doc).text("name", fieldsOf(doc).text("scriptName", ""))
	for i, element := range list {
		f := fieldsOf(element)
		if _, ok := textOf(f["findRegex"]); !ok {
			return nil, fault.New(fault.InvalidImport, "script %d has no findRegex: not a file of regex scripts", i+1).With("path", "findRegex")
		}
	}
	if im.dialect = SillyTavern; fieldsOf(doc).has("scripts") { // a group of the NodeST app
		im.dialect = NodeST
	}
	im.warnScripts(doc, "", false)
	return &Resource{Name: im.name(name), Format: "sillytavern", Dialect: SillyTavern, Doc: encodeList(list), Warnings: im.warnings}, nil
}

// ImportPersona reads a persona: an object with a name and a description.
//
// Errors: TooLarge, InvalidImport.
func ImportPersona(data []byte, filename string, limits Limits) (*Resource, error) {
	im := newImporter(filename, limits)
	doc, err := im.resource(data, fault.InvalidImport)
	if err != nil {
		return nil, err
	}
	f := fieldsOf(doc)
	if _, ok := textOf(f["name"]); !ok {
		return nil, fault.New(fault.InvalidImport, "a persona is an object with a name and a description").With("path", "name")
	}
	im.unused("", "persona", "", labelled{"", f})
	return &Resource{Name: im.name(f.text("name", "")), Dialect: NodeST, Doc: doc, Warnings: im.warnings}, nil
}
