package knowledge

import "nodest/knowledge/search"

// For the tests of this package only.
var (
	AllowedFiles = (*Service).allowedFiles
	RunPurge     = (*Service).runPurge
)

// Forget empties the cache.
func Forget(s *Service) { s.engine = newEngine(s.opts.Pipeline) }

// HoldMemory takes the memory of all searches, until it is released.
func HoldMemory(s *Service) (release func()) {
	all := int64(s.opts.CacheBytes)
	if !s.engine.searches.TryAcquire(all) {
		panic("a search is running")
	}
	return func() { s.engine.searches.Release(all) }
}

// LibraryOf has the files of a search.
func LibraryOf(s *Service, userID string, refs []FileRef, model string, dim int) search.Library {
	return s.library(userID, refs, model, dim)
}
