package worldinfo

import "nodest/card"

// Lint examines a book for what will not work as its author meant it: keys that never can fire,
// members without effect, patterns that do not compile. context is that of Input, for entries larger
// than the budget; 0 = not known.
func Lint(entries []card.Entry, s Settings, context int) []card.Warning { return nil }
