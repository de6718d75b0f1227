// Package archive reads and writes conversations as files: the archive of a whole
// conversation, the file of a save point, SillyTavern's chat log, and the chat history
// of the NodeST app. Files are validated before anything is stored.
package archive

import (
	"nodest/chat"
)

// Service has the operations on files. It is safe for concurrent use.
type Service struct {
	store chat.Store
}

// New returns a Service.
func New(store chat.Store) *Service { return &Service{store} }
