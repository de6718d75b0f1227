package knowledge

// For the tests of this package only.
var (
	AllowedFiles = (*Service).allowedFiles
	RunPurge     = (*Service).runPurge
)

// Forget empties the cache.
func Forget(s *Service) { s.engine = newEngine(s.opts.Pipeline) }
