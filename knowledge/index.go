package knowledge

import (
	"strconv"
	"strings"
	"time"

	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/knowledge/parse"
)

// TextPart is the length of the parts that texts are stored in, in code points.
const TextPart = 8192

// Edition is what was made of the content of a file: text, chunks, and an index. Its number is
// never given to another one of the file.
type Edition struct {
	FileID       string
	Edition      int64
	SHA256       string // hash of the content
	Name         string // name of the file then
	Size         int    // length of chunks, in code points
	Overlap      int    // likewise
	ContextLines bool   // every chunk has one
	Parser       string
	Type         string
	Title        string
	Language     string
	Chars        int
	Outline      []parse.Heading
	Pages        []parse.Page
	Chunks       int // -1 = it is not cut yet

	CreatedAt time.Time
}

// ChunkID names a chunk of an edition: "<file>.<edition>.<index>" on the wire.
type ChunkID struct {
	FileID  string
	Edition int64
	Index   int
}

func (id ChunkID) String() string {
	return id.FileID + "." + strconv.FormatInt(id.Edition, 10) + "." + strconv.Itoa(id.Index)
}

// ParseChunkID reads an id. It returns fault.NotFound for anything that String does not write.
func ParseChunkID(s string) (ChunkID, error) {
	var id ChunkID
	if parts := strings.Split(s, "."); len(parts) == 3 {
		edition, err1 := strconv.ParseInt(parts[1], 10, 64)
		index, err2 := strconv.Atoi(parts[2])
		if err1 == nil && err2 == nil && edition > 0 && index >= 0 {
			id = ChunkID{parts[0], edition, index}
		}
	}
	if id.FileID == "" || id.String() != s {
		return ChunkID{}, fault.New(fault.NotFound, "no such chunk")
	}
	return id, nil
}

// StoredChunk is a chunk of an edition.
type StoredChunk struct {
	FileID   string
	Edition  int64
	Index    int
	Start    int
	End      int
	Heading  string
	Page     int
	Kind     string
	Context  string // says what it is about, for search; "" = nobody has said
	Hash     string // names what is embedded
	Text     string
	Embedded bool // has a vector of the model that was asked for
}

// ID names the chunk.
func (c *StoredChunk) ID() ChunkID { return ChunkID{c.FileID, c.Edition, c.Index} }

// Space is an embedding model of a user's files.
type Space struct {
	Model string // llm.Embedder.ModelID
	Dim   int    // length of its vectors; 0 = not known yet
	State string
}

// The states of a space. A user has at most one that is active, and one of the others.
const (
	SpaceActive   = "active"   // it is searched
	SpaceBuilding = "building" // it becomes active when it has a vector of every chunk
	SpaceStopped  = "stopped"  // it was building until the user cancelled that
)

// FileSegment is the stored segment of the edition that is searched.
type FileSegment struct {
	FileID  string
	Edition int64
	Data    []byte
}

// FileVectors are the vectors of the edition that is searched, by the index of the chunk.
type FileVectors struct {
	FileID  string
	Edition int64
	Vectors []index.Packed // nil where there is none
	Whole   bool           // none is still to be made
}

// Query is a question that was answered from documents.
type Query struct {
	ID             string
	ConversationID *string // nil = none
	Question       string
	Answer         string
	Sources        Sources
	CreatedAt      time.Time
}

// Sources are what an answer was made from.
type Sources struct {
	FileIDs    []string         `json:"fileIds"` // all that the model was given
	References []cite.Reference `json:"references"`
}

// IndexTx stores what is made of files. Methods without an owner act on own files, and those
// that write return fault.NotFound for others.
type IndexTx interface {
	// Editions lists those of an own file, newest first.
	Editions(fileID string) ([]Edition, error)
	// PutTexts stores parts of the text of an edition, beginning with the number from, in
	// place of those that it has.
	PutTexts(fileID string, edition int64, from int, parts []string) error
	// PutChunks does it with chunks.
	PutChunks(chunks []StoredChunk) error
	// Contexts returns the context lines that were written for an own file, by hash of the chunk
	// without its line; at most 400 at once. PutContexts stores some, as those of an edition.
	Contexts(fileID string, hashes []string) (map[string]string, error)
	PutContexts(fileID string, edition int64, lines map[string]string) error
	// PutEdition stores e in place of the one with its number, and removes parts and chunks
	// that it does not have.
	PutEdition(e *Edition) error
	PutFileSegment(fileID string, edition int64, data []byte) error
	// PutProgress stores how far the running step of an own file is.
	PutProgress(fileID string, p Progress) error
	// DropEditions removes at most limit rows of the editions of an own file before one, and
	// vectors that only these needed; it returns how many rows these were.
	DropEditions(fileID string, before int64, limit int) (removed int, err error)
	// PurgeIndex removes at most limit rows that were made of a deleted own file, and returns
	// how many these were.
	PurgeIndex(fileID string, limit int) (removed int, err error)
	// Busy reports whether own files of a knowledge base that were searchable before are being
	// processed again.
	Busy(baseID string) (bool, error)
	// Unfinished returns own files that are being processed but have no open job.
	Unfinished(limit int) ([]string, error)
	// Wordless returns own files whose searched edition has no segment, by id and beginning after one.
	Wordless(after string, limit int) ([]FileEdition, error)
	// Refused returns own files that failed with one of these codes.
	Refused(codes []string, limit int) ([]string, error)
	// OwnConversation returns fault.NotFound for a conversation that is not the user's.
	OwnConversation(id string) error
	InsertQuery(q *Query) error
	// IndexRows counts what is stored of an own file, by table, also when it is deleted.
	IndexRows(fileID string) (map[string]int64, error)
}

// VectorTx stores spaces, and the vectors of chunks of own files.
type VectorTx interface {
	// Unembedded returns chunks of an edition without a vector of a model, with their text,
	// by index and beginning after one, at most limit, each hash once.
	Unembedded(fileID string, edition int64, model string, after, limit int) ([]StoredChunk, error)
	// PutChunkVectors stores vectors by hash; nil = the model rejects the text. What is there stays.
	PutChunkVectors(fileID, model string, vectors map[string]index.Packed) error
	// EditionCoverage counts the chunks of an edition that have a vector of a model, and those that
	// it rejects.
	EditionCoverage(fileID string, edition int64, model string) (done, rejected int, err error)
	// Incomplete returns own files whose searched edition lacks vectors of a model, by id and
	// beginning after one.
	Incomplete(model, after string, limit int) ([]FileEdition, error)
	// SpaceCoverage counts the chunks of the searched editions of own files, and those that have a
	// vector of a model or are rejected by it; baseID "" = all files, else those of an own or
	// readable knowledge base.
	SpaceCoverage(model, baseID string) (done, total int, err error)
	// DropVectors removes at most limit vectors of other models than these, by the id of their
	// file and beginning with one; next is where to go on, "" at the end.
	DropVectors(keep []string, from string, limit int) (next string, err error)
	Spaces() ([]Space, error)
	PutSpace(s Space) error
	// FixLength gives a space the length of its first vectors, and returns the one that it has;
	// length 0 = only returns it, 0 = not known yet. fault.NotFound if there is no such space.
	FixLength(model string, length int) (int, error)
	DropSpace(model string) error
}

// PassageTx reads what is made of files that the user may read.
type PassageTx interface {
	// ActiveModel returns the model that is searched in files of an owner that the user may
	// read; "" = none, or there is no such file.
	ActiveModel(ownerID string, fileIDs []string) (string, error)
	// FileSegments returns those of files of an owner that the user may read.
	FileSegments(ownerID string, fileIDs []string) ([]FileSegment, error)
	// Vectors returns those of files of an owner that the user may read, in one model.
	Vectors(ownerID, model string, fileIDs []string) ([]FileVectors, error)
	// Passages returns chunks of files of an owner that the user may read, with their texts,
	// in no order; those that are not there are left out.
	Passages(ownerID string, ids []ChunkID) ([]StoredChunk, error)
	// ChunkRange returns the chunks of an edition from one index to before another one.
	ChunkRange(ownerID, fileID string, edition int64, model string, from, to int) ([]StoredChunk, error)
	// ChunksBetween returns the chunks that have text between two code points.
	ChunksBetween(ownerID, fileID string, edition int64, from, to int) ([]StoredChunk, error)
	// EditionOf returns an edition of a file that the user may read.
	EditionOf(ownerID, fileID string, edition int64) (*Edition, error)
	// TextRange returns a part of the text of an edition, in code points; to < 0 = to its end.
	TextRange(ownerID, fileID string, edition int64, from, to int) (string, error)
}

// FileEdition names the edition of a file.
type FileEdition struct {
	FileID  string
	Edition int64
}

// cutText cuts a text into the parts that it is stored in.
func cutText(text string) (parts []string) {
	n, start := 0, 0
	for i := range text {
		if n == TextPart {
			parts, start, n = append(parts, text[start:i]), i, 0
		}
		n++
	}
	return append(parts, text[start:])
}

// embedded is what a vector is made of: where the chunk stands, what it is about, and its text.
func embedded(name, heading, about, text string) string {
	if heading != "" {
		name += " › " + heading
	}
	if about != "" {
		name += "\n" + about
	}
	return name + "\n" + text
}
