package store_test

import (
	"errors"

	"nodest/knowledge"
	"nodest/knowledge/chunk"
	"nodest/nodest"
	"nodest/store"
)

const privateURL = "https://private.test/file"

func (x fixture) keptFile() *knowledge.File {
	return &knowledge.File{
		ID: x.file, OwnerID: x.user, Original: knowledge.Original{ContentID: x.content, SHA256: x.content, Size: 7, ContentType: "markdown"}, Name: "private/a.md", Source: knowledge.SourceWeb,
		SourceURL: privateURL, State: knowledge.Ready, Edition: 1, LastEdition: 1, Version: 1, Extract: knowledge.Extract{Language: "en"},
	}
}

func (x fixture) keptBase() *knowledge.Base {
	return &knowledge.Base{ID: x.base, OwnerID: x.user, Name: "private", ContextLines: true, Rules: &chunk.Rules{Size: 400, Overlap: 100}, Version: 1}
}

// fillKnowledge inserts the rows of files and knowledge bases of a fixture; the knowledge base
// is shared with a user who is not the intruder.
func fillKnowledge(e *env, tx nodest.Tx, x fixture) error {
	k := store.Knowledge(tx)
	f, b := x.keptFile(), x.keptBase()
	for _, err := range []error{
		k.PutPart(x.content, 0, []byte("private")),
		k.InsertFile(f),
		k.InsertBase(b),
		errOf(k.AddToBase(b, f.ID, false)),
		k.PutGrant(b, &knowledge.Grant{UserID: e.user, Role: knowledge.AccessWrite, GrantedBy: x.user}),
		k.PutBoundFile(x.character, f, true, 0),
		k.PutBoundBase(x.character, b, true),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func init() { addIntrusions(knowledgeIntrusions) }

// own stores a file and a knowledge base of the intruder, under the ids of the other.
func (x fixture) own(k knowledge.Tx) (f *knowledge.File, b *knowledge.Base, err error) {
	f, b = x.keptFile(), x.keptBase()
	f.Name, b.Name = "intruder", "intruder"
	return f, b, errors.Join(k.PutPart(x.content, 0, []byte("intruder")), k.InsertFile(f), k.InsertBase(b))
}

var knowledgeIntrusions = map[string]func(e *env, tx nodest.Tx, x fixture) error{
	"CountFiles": func(e *env, tx nodest.Tx, _ fixture) error {
		files, bytes, err := store.Knowledge(tx).CountFiles()
		return wantEmpty(e, files == 0 && bytes == 0, err)
	},
	"LockFiles": func(e *env, tx nodest.Tx, _ fixture) error {
		files, bytes, err := store.Knowledge(tx).LockFiles()
		return wantEmpty(e, files == 0 && bytes == 0, err)
	},
	"InsertFile": func(_ *env, tx nodest.Tx, x fixture) error { return store.Knowledge(tx).InsertFile(x.keptFile()) },
	"OwnFile": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Knowledge(tx).OwnFile(x.file)
		return wantNotFound(e, err)
	},
	"File": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Knowledge(tx).File(x.file)
		return wantNotFound(e, err)
	},
	"FileByHash": func(e *env, tx nodest.Tx, x fixture) error {
		f, err := store.Knowledge(tx).FileByHash(x.content)
		return wantEmpty(e, f == nil, err)
	},
	"FileByURL": func(e *env, tx nodest.Tx, _ fixture) error {
		f, err := store.Knowledge(tx).FileByURL(privateURL)
		return wantEmpty(e, f == nil, err)
	},
	"Files": func(e *env, tx nodest.Tx, _ fixture) error {
		files, _, err := store.Knowledge(tx).Files("", "", 5)
		return wantEmpty(e, len(files) == 0, err)
	},
	"UpdateFile": func(e *env, tx nodest.Tx, x fixture) error {
		f := x.keptFile()
		f.Name = "intruder"
		return wantNotFound(e, store.Knowledge(tx).UpdateFile(f))
	},
	"DeleteFile": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).DeleteFile(x.file))
	},
	"PutPart": func(_ *env, tx nodest.Tx, x fixture) error {
		return store.Knowledge(tx).PutPart(x.content, 0, []byte("intruder"))
	},
	"FilePart": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Knowledge(tx).FilePart(x.keptFile(), 0)
		return wantNotFound(e, err)
	},
	"DropParts": func(e *env, tx nodest.Tx, x fixture) error {
		n, err := store.Knowledge(tx).DropParts(x.content, 5)
		return wantEmpty(e, n == 0, err)
	},
	"DeletedFiles": func(e *env, tx nodest.Tx, _ fixture) error {
		files, err := store.Knowledge(tx).DeletedFiles(5)
		return wantEmpty(e, len(files) == 0, err)
	},
	"PurgeFiles": func(_ *env, tx nodest.Tx, x fixture) error { return store.Knowledge(tx).PurgeFiles(x.file) },

	"LockBases": func(e *env, tx nodest.Tx, _ fixture) error {
		n, err := store.Knowledge(tx).LockBases()
		return wantEmpty(e, n == 0, err)
	},
	"InsertBase": func(_ *env, tx nodest.Tx, x fixture) error { return store.Knowledge(tx).InsertBase(x.keptBase()) },
	"Base": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Knowledge(tx).Base(x.base)
		return wantNotFound(e, err)
	},
	"Bases": func(e *env, tx nodest.Tx, _ fixture) error {
		bases, _, err := store.Knowledge(tx).Bases("", 5)
		return wantEmpty(e, len(bases) == 0, err)
	},
	"UpdateBase": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).UpdateBase(x.keptBase()))
	},
	"DeleteBase": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).DeleteBase(x.base))
	},
	"PurgeBases": func(e *env, tx nodest.Tx, _ fixture) error {
		n, err := store.Knowledge(tx).PurgeBases(5)
		return wantEmpty(e, n == 0, err)
	},
	"AddToBase": func(e *env, tx nodest.Tx, x fixture) error {
		k := store.Knowledge(tx)
		if _, err := k.AddToBase(x.keptBase(), x.file, false); wantNotFound(e, err) != nil {
			return err
		}
		// An own file to the knowledge base of the other, and a file of the other to an own one.
		own := x.keptFile()
		own.ID, own.SHA256, own.ContentID = id(), "own", id()
		if err := k.InsertFile(own); err != nil {
			return err
		}
		if _, err := k.AddToBase(x.keptBase(), own.ID, false); wantNotFound(e, err) != nil {
			return err
		}
		b := x.keptBase()
		if err := k.InsertBase(b); err != nil {
			return err
		}
		_, err := k.AddToBase(b, x.file, false)
		return wantNotFound(e, err)
	},
	"RemoveFromBase": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Knowledge(tx).RemoveFromBase(x.keptBase(), x.file)
		return wantNotFound(e, err)
	},
	"BaseFiles": func(e *env, tx nodest.Tx, x fixture) error {
		files, _, err := store.Knowledge(tx).BaseFiles(x.keptBase(), "", 5)
		return wantEmpty(e, len(files) == 0, err)
	},
	"OnlyIn": func(e *env, tx nodest.Tx, x fixture) error {
		ids, err := store.Knowledge(tx).OnlyIn(x.base, 5)
		return wantEmpty(e, len(ids) == 0, err)
	},
	"InUse": func(e *env, tx nodest.Tx, x fixture) error {
		used, err := store.Knowledge(tx).InUse(x.file)
		return wantEmpty(e, used, err)
	},
	"BasesOf": func(e *env, tx nodest.Tx, x fixture) error {
		bases, err := store.Knowledge(tx).BasesOf(x.keptFile())
		return wantEmpty(e, len(bases) == 0, err)
	},
	"RulesOf": func(e *env, tx nodest.Tx, x fixture) error {
		r, err := store.Knowledge(tx).RulesOf(x.file)
		return wantEmpty(e, r == nil, err)
	},
	"WantsContext": func(e *env, tx nodest.Tx, x fixture) error {
		wants, err := store.Knowledge(tx).WantsContext(x.file)
		return wantEmpty(e, !wants, err)
	},
	"Grants": func(e *env, tx nodest.Tx, x fixture) error {
		grants, err := store.Knowledge(tx).Grants(x.keptBase())
		return wantEmpty(e, len(grants) == 0, err)
	},
	"PutGrant": func(e *env, tx nodest.Tx, x fixture) error {
		k := store.Knowledge(tx)
		return wantNotFound(e, k.PutGrant(x.keptBase(), &knowledge.Grant{UserID: k.UserID(), Role: knowledge.AccessWrite}))
	},
	"DropGrant": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).DropGrant(x.keptBase(), e.user))
	},
	"Grantee": func(e *env, tx nodest.Tx, _ fixture) error {
		// Who shares names another user: ids and names of users are no secret among users.
		_, _, err := store.Knowledge(tx).Grantee("nobody")
		return wantNotFound(e, err)
	},
	"Allowed": func(e *env, tx nodest.Tx, x fixture) error {
		k := store.Knowledge(tx)
		for _, s := range []knowledge.Scope{
			{}, {FilesOnly: true}, {FilesOnly: true, FileIDs: []string{x.file}}, {CharacterID: x.character}, {CharacterID: x.character, FilesOnly: true},
		} {
			refs, err := k.Allowed(s)
			if err := wantEmpty(e, len(refs) == 0, err); err != nil {
				return err
			}
		}
		if _, err := k.Allowed(knowledge.Scope{BaseIDs: []string{x.base}}); wantNotFound(e, err) != nil {
			return err
		}
		// With rows of one's own under the same ids only these are found.
		f, b, err := x.own(k)
		if err != nil {
			return err
		}
		if _, err := k.AddToBase(b, f.ID, false); err != nil {
			return err
		}
		refs, err := k.Allowed(knowledge.Scope{BaseIDs: []string{x.base}})
		return wantEmpty(e, len(refs) == 1 && refs[0].Name == "intruder", err)
	},

	"Bound": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := store.Knowledge(tx).Bound(x.character)
		return wantNotFound(e, err)
	},
	"PutBoundFile": func(e *env, tx nodest.Tx, x fixture) error {
		k := store.Knowledge(tx)
		if err := wantNotFound(e, k.PutBoundFile(ownCharacter(e, tx), x.keptFile(), true, 0)); err != nil {
			return err
		}
		f, _, err := x.own(k)
		return errors.Join(err, wantNotFound(e, k.PutBoundFile(x.character, f, false, 5)))
	},
	"PutBoundBase": func(e *env, tx nodest.Tx, x fixture) error {
		k := store.Knowledge(tx)
		if err := wantNotFound(e, k.PutBoundBase(ownCharacter(e, tx), x.keptBase(), true)); err != nil {
			return err
		}
		_, b, err := x.own(k)
		return errors.Join(err, wantNotFound(e, k.PutBoundBase(x.character, b, false)))
	},
	"DropBoundFile": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).DropBoundFile(x.character, x.file))
	},
	"DropBoundBase": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, store.Knowledge(tx).DropBoundBase(x.character, x.base))
	},
}
