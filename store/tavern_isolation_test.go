package store_test

import (
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/tavern"
	"nodest/internal/tavern/folder"
	"nodest/nodest"
	"nodest/store"
)

func (x fixture) folderImport() *tavern.Import {
	return &tavern.Import{ID: x.folder, Filename: "private.zip", State: jobs.Done, Found: 1, Done: 1, Size: 7, Counts: tavern.Counts{folder.Chat: {Taken: 1}}}
}

func (x fixture) knownFile() *tavern.Known {
	return &tavern.Known{
		ID: x.known, Key: "chat private", Kind: folder.Chat, Path: "chats/private/a.jsonl", Digest: "private", Size: 7,
		ObjectKind: "conversation", ObjectID: x.conversation, Times: 1, Version: 1, Parts: 1,
	}
}

func (x fixture) keptImage() *tavern.Known {
	k := x.knownFile()
	k.ID, k.Key, k.Kind, k.Path, k.ObjectKind, k.ObjectID = op.NewID(), "image private", folder.Image, "user/images/private.png", "file", ""
	return k
}

// fillTavern inserts the rows of an imported folder of a fixture.
func fillTavern(tx nodest.Tx, x fixture) error {
	k := store.Tavern(tx)
	for _, err := range []error{
		k.PutUpload(x.folder, 0, []byte("private")),
		k.InsertImport(x.folderImport()),
		k.AddReports(x.folder, 0, []*tavern.File{{Path: "private", Kind: folder.Chat, Outcome: tavern.Taken, ObjectID: x.conversation, Notes: []tavern.Note{{Code: "private"}}}}),
		k.PutKnown(x.knownFile()),
		k.PutKnown(x.keptImage()),
		k.PutKnownPart(x.known, 0, []byte("private")),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func init() { addIntrusions(tavernIntrusions) }

var tavernIntrusions = map[string]func(e *env, tx nodest.Tx, x fixture) error{
	"PutUpload": func(_ *env, tx nodest.Tx, x fixture) error {
		return store.Tavern(tx).PutUpload(x.folder, 0, []byte("intruder"))
	},
	"Upload": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Tavern(tx).Upload(x.folder, 0)
		return wantNotFound(e, err)
	},
	"DropUpload": func(e *env, tx nodest.Tx, x fixture) error {
		n, err := store.Tavern(tx).DropUpload(x.folder, 5)
		return wantEmpty(e, n == 0, err)
	},
	"InsertImport": func(_ *env, tx nodest.Tx, x fixture) error {
		return store.Tavern(tx).InsertImport(x.folderImport())
	},
	"FolderImport": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Tavern(tx).FolderImport(x.folder)
		return wantNotFound(e, err)
	},
	"FolderImports": func(e *env, tx nodest.Tx, _ fixture) error {
		all, _, err := store.Tavern(tx).FolderImports("", 5)
		return wantEmpty(e, len(all) == 0, err)
	},
	"OpenImports": func(e *env, tx nodest.Tx, _ fixture) error {
		n, err := store.Tavern(tx).OpenImports()
		return wantEmpty(e, n == 0, err)
	},
	"UpdateImport": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Tavern(tx).UpdateImport(x.folderImport()))
	},
	"DeleteImport": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Tavern(tx).DeleteImport(x.folder))
	},
	"AddReports": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Tavern(tx).AddReports(x.folder, 1, []*tavern.File{{Path: "intruder"}}))
	},
	"Reports": func(e *env, tx nodest.Tx, x fixture) error {
		_, _, err := store.Tavern(tx).Reports(x.folder, tavern.Filter{}, -1, 5)
		return wantNotFound(e, err)
	},
	"KnownFile": func(e *env, tx nodest.Tx, x fixture) error {
		k, err := store.Tavern(tx).KnownFile(x.knownFile().Key)
		return wantEmpty(e, k == nil, err)
	},
	"KnownAt": func(e *env, tx nodest.Tx, x fixture) error {
		k, err := store.Tavern(tx).KnownAt(folder.Chat, x.knownFile().Path)
		return wantEmpty(e, k == nil, err)
	},
	"KnownID": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Tavern(tx).KnownID(x.known)
		return wantNotFound(e, err)
	},
	"KnownFiles": func(e *env, tx nodest.Tx, x fixture) error {
		all, _, err := store.Tavern(tx).KnownFiles("", x.conversation, false, "", 5)
		return wantEmpty(e, len(all) == 0, err)
	},
	"PutKnown": func(_ *env, tx nodest.Tx, x fixture) error {
		return store.Tavern(tx).PutKnown(x.knownFile())
	},
	"DeleteKnown": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Tavern(tx).DeleteKnown(x.known))
	},
	"PutKnownPart": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Tavern(tx).PutKnownPart(x.known, 1, []byte("intruder")))
	},
	"KnownPart": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Tavern(tx).KnownPart(x.known, 0)
		return wantNotFound(e, err)
	},
	"PutReflected": func(_ *env, tx nodest.Tx, x fixture) error {
		return store.Tavern(tx).PutReflected(x.conversation)
	},
}
