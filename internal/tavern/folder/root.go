package folder

import (
	"cmp"
	"slices"
	"strings"
)

// Slashes is a name of an archive as a path with slashes; those that Windows writes have others.
func Slashes(name string) string {
	return strings.TrimPrefix(strings.ReplaceAll(name, `\`, "/"), "./")
}

// Root finds the folder of the user among the paths of an archive: the one in which most of
// SillyTavern's own folders are, such as "data/default-user/", or "" for the archive itself. known is
// false if none of them is anywhere.
func Root(paths []string) (root string, known bool) {
	found := map[string]map[string]bool{}
	for _, name := range paths {
		if !Safe(name) {
			continue
		}
		for at := 0; at < len(name); {
			end := strings.IndexByte(name[at:], '/')
			last := end < 0
			if last {
				end = len(name) - at
			}
			if part := strings.ToLower(name[at : at+end]); last && part == "settings.json" || !last && marks[part] {
				if found[name[:at]] == nil {
					found[name[:at]] = map[string]bool{}
				}
				found[name[:at]][part] = true
			}
			at += end + 1
		}
	}
	roots := make([]string, 0, len(found))
	for r := range found {
		roots = append(roots, r)
	}
	if len(roots) == 0 {
		return "", false
	}
	slices.SortFunc(roots, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(found[b]), len(found[a])), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
	return roots[0], true
}

// marks are folders by which the folder of a user is known, in small letters.
var marks = func() map[string]bool {
	m := map[string]bool{}
	for _, r := range Rules {
		for _, d := range r.Dirs {
			if !strings.Contains(d, "/") && r.Kind != Extension && r.Kind != Asset {
				m[strings.ToLower(d)] = true
			}
		}
	}
	return m
}()

// Inside is the path of a file from the root on; false for one that is elsewhere.
func Inside(root, name string) (string, bool) { return strings.CutPrefix(name, root) }
