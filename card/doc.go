// Package card reads and writes the documents people exchange: character cards
// V1, V2 and V3 (JSON, PNG, CHARX), the JSON of the NodeST app, world books,
// prompt presets, regex scripts and chat logs.
//
// It hides binary and legacy formats. All input is untrusted: sizes, depths and counts
// are checked before memory is allocated (Limits), and an unusable file is rejected
// with one error that gives the reason.
//
// Each document exists in two forms:
//
//   - the document itself, raw JSON (json.RawMessage). It is what is stored and
//     exported: fields we do not know, the order of keys and unusual types stay
//     as they came.
//   - a typed, normalised view of it (RoleCard, WorldBook, Preset, AuthorNote,
//     RegexScript), read with the Parse functions and never written back. The
//     views carry the defaults of the format; a field of an odd type counts as
//     missing, so that parsing fails only where the document is no object.
//
// Entry points: Import and Export for characters, ImportWorldBook,
// ImportPreset, ImportRegexScripts and ImportChat for the rest.
//
// The formats are those of the public V2 and V3 card specifications, SillyTavern 1.19,
// and the NodeST app.
package card
