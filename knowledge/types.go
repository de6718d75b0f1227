package knowledge

import (
	"encoding/json"
	"io"
	"time"

	"nodest/internal/cite"
	"nodest/knowledge/chunk"
	"nodest/knowledge/parse"
)

// The states of a file.
const (
	Pending   = "pending"   // stored; it can be downloaded
	Parsing   = "parsing"   // its text is being extracted
	Chunking  = "chunking"  // its text can be read
	Embedding = "embedding" // it is found by words
	Ready     = "ready"     // it is found by words and vectors
	Failed    = "failed"    // FileError says why; what was reached before still works
)

// Where a file comes from.
const (
	SourceUpload = "upload"
	SourceWeb    = "web"
	SourceSync   = "sync" // in a list of a knowledge base: nodest kb sync has put it there
)

// Rights of a user on a file or knowledge base.
const (
	AccessOwner = "owner"
	AccessWrite = "write" // a knowledge base: add and remove one's own files
	AccessRead  = "read"
)

// File is a document of a user.
type File struct {
	ID      string
	OwnerID string
	Access  string // the acting user's: AccessOwner or AccessRead
	Name    string
	Original
	Source    string
	SourceURL string // for SourceWeb
	State     string
	Error     *FileError // for the state Failed
	Warnings  []string
	Progress  *Progress // progress of the running step; nil = none
	Extract
	Edition     int64 // the one that is searched and read; 0 = nothing yet
	LastEdition int64 // the newest number that was given to an edition
	Version     int64 // grows with every change of name or content
	CreatedAt   time.Time
	UpdatedAt   time.Time // when name or content changed last

	Duplicate bool // the upload brought what the user has already; not stored
}

// Original describes the content of a file as it was uploaded.
type Original struct {
	ContentType string // by its content; "" = not known yet
	Declared    string // content type that the client declared; may be ""
	Size        int64  // bytes
	SHA256      string // hash of the content, in hexadecimal
	ContentID   string // the parts that the original is stored in
}

// Extract describes the text that was taken out of a file.
type Extract struct {
	Language string // "" = not known
	Chars    int    // length of its text, in code points
	Chunks   int
}

// FileError is why a file has failed.
type FileError struct {
	Code      string `json:"code"` // docs/knowledge.md lists them
	Detail    string `json:"detail"`
	Retryable bool   `json:"retryable"`
}

// Progress is how far a step is.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// Base is a knowledge base: files that are searched together.
type Base struct {
	ID           string
	OwnerID      string
	Access       string // the acting user's
	Name         string
	Description  string       // models are told this about it
	Rules        *chunk.Rules // nil = those of the server
	ContextLines bool         // the owner's model says of each chunk of the owner's files what it is about
	Files        int
	Languages    []string // languages of its files, most frequent first
	Version      int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Grant is another user's access to a knowledge base.
type Grant struct {
	UserID    string
	Username  string
	Role      string // AccessRead or AccessWrite
	GrantedBy string
	CreatedAt time.Time
}

// Bound is what a character knows.
type Bound struct {
	Files []BoundFile // in their order: their full text is in the prompt
	Bases []BoundBase // searched and read with tools
}

// BoundFile is a file that a character has.
type BoundFile struct {
	File
	Enabled  bool
	Position int
}

// BoundBase is a knowledge base that a character has.
type BoundBase struct {
	Base
	Enabled bool
}

// NewFile is a file to be stored.
type NewFile struct {
	Name      string
	Type      string // that the client declares; may be ""
	Source    string // "" = SourceUpload; SourceSync says how it gets into the knowledge base
	SourceURL string
	Body      io.ReaderAt
	Size      int64
	BaseID    string // knowledge base that it is added to; "" = none
}

// Text is the text of a file, or a part of it.
type Text struct {
	Edition int64 // whose text it is; parts of different editions do not fit together
	Title   string
	Text    string
	Offset  int // where Text begins, in code points
	Total   int // code points of the whole text
	Outline []parse.Heading
	Pages   []parse.Page
}

// Chunk is a part of a file as it is found.
type Chunk struct {
	ID       string
	FileID   string
	Index    int
	Start    int // code points of the file's text
	End      int
	Text     string
	Heading  string
	Page     int // from 1; 0 = none
	Kind     string
	Embedded bool // has a vector of the active model
}

// SearchRequest asks for chunks.
type SearchRequest struct {
	Query    string
	More     []string // further wordings: they only add
	BaseIDs  []string // nil = all that the user may read
	TopK     int      // 1 to 100; 0 = 15
	Mode     string   // search.Hybrid, Lexical or Vector; "" = hybrid
	FileIDs  []string // only these files; nil = all
	Types    []string // only these content types, as File.ContentType has them; nil = all
	Folder   string   // only files whose name begins with this folder; "" = all
	After    time.Time
	PerFile  int  // chunks of one file; 0 = no bound
	FileOnly bool // BaseIDs is not looked at: FileIDs alone, which the user may read

	CharacterID string // whose evaluations move the chunks; "" = those of all the user's characters
	NoFeedback  bool   // evaluations move nothing
}

// SearchResult is what was found.
type SearchResult struct {
	Files     []FoundFile // most relevant first
	Chunks    []FoundChunk
	Pending   []PendingFile
	Truncated bool // only the first 8,000 characters of the query were used
	Dropped   int  // hits below the similarity that the space demands
	Degraded  []string
}

// FoundFile is a file with its best chunks.
type FoundFile struct {
	File      *File
	BaseName  string  // name of a knowledge base that has it
	Relevance float64 // mean of the best three similarities
}

// FoundChunk is a chunk that was found.
type FoundChunk struct {
	Chunk
	Similarity float64
	Lexical    int     // rank by words; 0 = not found by them
	Vector     int     // rank by vectors; 0 = not found by them
	Factor     float64 // by which evaluations moved it
}

// PendingFile is a file that cannot be searched yet.
type PendingFile struct {
	FileID string `json:"fileId"`
	Name   string `json:"name"`
	State  string `json:"state"`
}

// Reindexing is the state of a knowledge base's vectors and chunks.
type Reindexing struct {
	State      string `json:"state"` // idle, running or failed
	Model      string `json:"model"`
	Done       int    `json:"done"`       // chunks with a vector of Model
	Total      int    `json:"total"`      // chunks
	Calls      int    `json:"calls"`      // estimate of embedding calls that are missing
	SearchedBy string `json:"searchedBy"` // model whose vectors are searched meanwhile

	Error *FileError `json:"error,omitempty"` // for the state failed
}

// AskRequest is a question to knowledge bases.
type AskRequest struct {
	Question       string
	BaseIDs        []string // nil = all that the user may read
	ConversationID string   // that the question belongs to; "" = none
	TopK           int
}

// Asked is a question of a conversation with its answer.
type Asked struct {
	ConversationID   string
	Question, Answer string
	Sources          []cite.Source // that the model was shown
}

// Answer is what a model says from the documents.
type Answer struct {
	Answer     string
	FileIDs    []string // the documents that the model was given: it may have their words
	References []cite.Reference
	Model      string
	Offline    bool
	Usage      json.RawMessage // llm.Usage
}
