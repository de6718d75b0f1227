package knowledge

// For the tests of this package only.
var (
	CleanName    = cleanName
	AllowedFiles = (*Service).allowedFiles
	RunPurge     = (*Service).runPurge
)
