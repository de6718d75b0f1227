package store

import (
	"maps"
	"slices"
	"strings"

	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/knowledge"
	"nodest/store/sqldb"
)

// readableFiles returns those files of an owner that the user may read, with the edition that
// is searched.
func (t indexTx) readableFiles(ownerID string, ids []string) (map[string]int64, error) {
	files := map[string]int64{}
	if len(ids) == 0 {
		return files, nil
	}
	err := sqldb.Each(t, func(r *knowledge.FileEdition) error { files[r.FileID] = r.Edition; return nil }, "SELECT f.id AS file_id, f.edition FROM files f WHERE f.user_id = ? AND f.id IN (?) AND "+readableFile,
		ownerID, ids, t.userID, t.userID, t.userID)
	return files, err
}

// readable is a session on which statements return fault.NotFound unless the user may read a file.
func (t indexTx) readable(ownerID, fileID string) *sqldb.Session {
	files, err := t.readableFiles(ownerID, []string{fileID})
	if err == nil && len(files) == 0 {
		err = fault.New(fault.NotFound, "no such file")
	}
	return t.Unless(err)
}

func (t indexTx) ActiveModel(ownerID string, fileIDs []string) (string, error) {
	files, err := t.readableFiles(ownerID, fileIDs)
	if err != nil || len(files) == 0 {
		return "", err
	}
	return sqldb.Value[string](t, "SELECT model FROM knowledge_spaces WHERE user_id = ? AND state = 'active'", ownerID)
}

func (t indexTx) FileSegments(ownerID string, fileIDs []string) ([]knowledge.FileSegment, error) {
	files, err := t.readableFiles(ownerID, fileIDs)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	return sqldb.All[knowledge.FileSegment](t, `SELECT s.file_id, s.edition, s.data FROM knowledge_segments s
		JOIN files f ON f.user_id = s.user_id AND f.id = s.file_id AND f.edition = s.edition
		WHERE s.user_id = ? AND s.file_id IN (?)`, ownerID, slices.Sorted(maps.Keys(files)))
}

func (t indexTx) Vectors(ownerID, model string, fileIDs []string) ([]knowledge.FileVectors, error) {
	files, err := t.readableFiles(ownerID, fileIDs)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	type row struct {
		FileID string
		Idx    int
		Hash   *string // nil = there is none yet
		Vector sqldb.ZstdNumbers
	}
	var all []knowledge.FileVectors
	err = sqldb.Each(t, func(r *row) error {
		if len(all) == 0 || all[len(all)-1].FileID != r.FileID {
			all = append(all, knowledge.FileVectors{FileID: r.FileID, Edition: files[r.FileID], Whole: true})
		}
		f := &all[len(all)-1]
		for len(f.Vectors) < r.Idx { // a hole cannot be, but would shift all that follow
			f.Vectors = append(f.Vectors, nil)
		}
		f.Vectors = append(f.Vectors, index.Packed(r.Vector))
		f.Whole = f.Whole && r.Hash != nil
		return nil
	}, `SELECT c.file_id, c.idx, v.hash, v.vector FROM files f
		JOIN knowledge_chunks c ON c.user_id = f.user_id AND c.file_id = f.id AND c.edition = f.edition
		LEFT JOIN knowledge_vectors v ON v.user_id = c.user_id AND v.file_id = c.file_id AND v.model = ? AND v.hash = c.hash
		WHERE f.user_id = ? AND f.id IN (?) ORDER BY c.file_id, c.idx`, model, ownerID, slices.Sorted(maps.Keys(files)))
	return all, err
}

// mostTuples is how many rows one statement looks up by their keys.
const mostTuples = 200

func (t indexTx) Passages(ownerID string, ids []knowledge.ChunkID) ([]knowledge.StoredChunk, error) {
	var names []string
	for _, id := range ids {
		names = append(names, id.FileID)
	}
	slices.Sort(names)
	files, err := t.readableFiles(ownerID, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	var chunks []knowledge.StoredChunk
	ids = slices.DeleteFunc(slices.Clone(ids), func(id knowledge.ChunkID) bool { _, ok := files[id.FileID]; return !ok })
	for some := range slices.Chunk(ids, mostTuples) {
		args := []any{ownerID}
		for _, id := range some {
			args = append(args, sqldb.ID(id.FileID), id.Edition, id.Index)
		}
		found, err := t.chunks(t.Session, ownerID, "SELECT * FROM knowledge_chunks WHERE user_id = ? AND (file_id, edition, idx) IN ("+values(3, len(args)-1)+")", args...)
		if err != nil {
			return nil, err
		}
		chunks = append(chunks, found...)
	}
	return chunks, nil
}

// chunks returns those that a query finds for an owner, with their texts.
func (t indexTx) chunks(s *sqldb.Session, ownerID, query string, args ...any) ([]knowledge.StoredChunk, error) {
	chunks, err := sqldb.Map(s, func(r *chunkRow) knowledge.StoredChunk { return r.StoredChunk }, query, args...)
	if err != nil {
		return nil, err
	}
	return chunks, t.addTexts(ownerID, chunks)
}

// partKey names a part of a text.
type partKey struct {
	file    string
	edition int64
	part    int
}

// addTexts gives chunks of an owner their texts.
func (t indexTx) addTexts(ownerID string, chunks []knowledge.StoredChunk) error {
	var keys []partKey
	for _, c := range chunks {
		for part := c.Start / knowledge.TextPart; part*knowledge.TextPart < c.End; part++ {
			if k := (partKey{c.FileID, c.Edition, part}); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	texts := make(map[partKey]string, len(keys))
	for some := range slices.Chunk(keys, mostTuples) {
		args := []any{ownerID}
		for _, k := range some {
			args = append(args, sqldb.ID(k.file), k.edition, k.part)
		}
		err := sqldb.Each(t, func(r *textPartRow) error {
			texts[partKey{r.FileID, r.Edition, r.Part}] = r.Text
			return nil
		}, "SELECT file_id, edition, part, text FROM knowledge_texts WHERE user_id = ? AND (file_id, edition, part) IN ("+
			values(3, len(args)-1)+")", args...)
		if err != nil {
			return err
		}
	}
	for i := range chunks {
		c := &chunks[i]
		var b strings.Builder
		for part := c.Start / knowledge.TextPart; part*knowledge.TextPart < c.End; part++ {
			at := part * knowledge.TextPart
			b.WriteString(points(texts[partKey{c.FileID, c.Edition, part}], c.Start-at, c.End-at))
		}
		c.Text = b.String()
	}
	return nil
}

// points returns the code points of a text from one position to before another one, within
// the text.
func points(text string, from, to int) string {
	n, start := 0, len(text)
	if from <= 0 {
		start = 0
	}
	for i := range text {
		if n == from {
			start = i
		}
		if n == to {
			return text[min(start, i):i]
		}
		n++
	}
	return text[start:]
}

func (t indexTx) ChunkRange(ownerID, fileID string, edition int64, model string, from, to int) ([]knowledge.StoredChunk, error) {
	type row struct {
		chunkRow
		HasVector bool
	}
	chunks, err := sqldb.Map(t.readable(ownerID, fileID), func(r *row) knowledge.StoredChunk {
		r.Embedded = r.HasVector
		return r.StoredChunk
	}, `SELECT c.*, v.vector IS NOT NULL AS has_vector FROM knowledge_chunks c
		LEFT JOIN knowledge_vectors v ON v.user_id = c.user_id AND v.file_id = c.file_id AND v.model = ? AND v.hash = c.hash
		WHERE c.user_id = ? AND c.file_id = ? AND c.edition = ? AND c.idx >= ? AND c.idx < ? ORDER BY c.idx`,
		model, ownerID, fileID, edition, from, to)
	if err != nil {
		return nil, err
	}
	return chunks, t.addTexts(ownerID, chunks)
}

func (t indexTx) ChunksBetween(ownerID, fileID string, edition int64, from, to int) ([]knowledge.StoredChunk, error) {
	return t.chunks(t.readable(ownerID, fileID), ownerID,
		"SELECT * FROM knowledge_chunks"+ofFile+" AND edition = ? AND start_at < ? AND end_at > ? ORDER BY idx", ownerID, fileID, edition, to, from)
}

func (t indexTx) EditionOf(ownerID, fileID string, edition int64) (*knowledge.Edition, error) {
	return sqldb.Find(t.readable(ownerID, fileID), "text", func(r *editionRow) *knowledge.Edition { return &r.Edition },
		"SELECT * FROM knowledge_documents"+ofFile+" AND edition = ?", ownerID, fileID, edition)
}

func (t indexTx) TextRange(ownerID, fileID string, edition int64, from, to int) (string, error) {
	from = max(from, 0)
	query, args := "SELECT part, text FROM knowledge_texts"+ofFile+" AND edition = ? AND part >= ?", []any{ownerID, fileID, edition, from / knowledge.TextPart}
	if to >= 0 {
		query, args = query+" AND part <= ?", append(args, to/knowledge.TextPart)
	}
	var b strings.Builder
	err := sqldb.Each(t.readable(ownerID, fileID), func(r *textPartRow) error {
		at, end := r.Part*knowledge.TextPart, knowledge.TextPart
		if to >= 0 {
			end = to - at
		}
		b.WriteString(points(r.Text, from-at, end))
		return nil
	}, query+" ORDER BY part", args...)
	return b.String(), err
}
