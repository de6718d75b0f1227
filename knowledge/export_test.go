package knowledge

import (
	"context"
	"time"

	"nodest/knowledge/search"
)

// RunPurge is for the tests of this package only.
var RunPurge = (*Service).runPurge

// Forget empties the cache.
func Forget(s *Service) { s.engine = newEngine(s.opts.Pipeline) }

// HoldMemory takes the memory of all searches, until it is released.
func HoldMemory(s *Service) (release func()) {
	all, err := s.engine.searches.Enter(context.Background(), "all", int64(s.opts.CacheBytes), false)
	spare, failed := s.engine.searches.Enter(context.Background(), "spare", leastOfSearch(s.opts.Pipeline), true)
	if err != nil || failed != nil {
		panic("a search is running")
	}
	return func() {
		all()
		spare()
	}
}

// HoldSearches takes the memory of searches for a user, until it is released.
func HoldSearches(s *Service, userID string) (release func()) {
	release, err := s.engine.searches.Enter(context.Background(), userID, int64(s.opts.CacheBytes), false)
	if err != nil {
		panic(err)
	}
	return release
}

// WaitLess runs f while searches wait for a millisecond only.
func WaitLess(s *Service, f func()) {
	s.engine.turnWait = time.Millisecond
	defer func() { s.engine.turnWait = turnWait }()
	f()
}

// LibraryOf has the files of a search.
func LibraryOf(s *Service, userID string, refs []FileRef, model string, dim int) search.Library {
	return s.library(userID, refs, model, dim)
}
