package setup

import (
	"slices"
	"strings"

	"nodest/internal/cli"
)

// prefix begins the names of our variables.
const prefix = "NODEST_"

// foreign begin names that we do not read: those of tests, and those that Kubernetes and Docker set for a
// service called nodest.
var foreign = []string{prefix + "TEST_", prefix + "SERVICE_", prefix + "PORT_"}

// Unknown returns a sentence for each variable of an environment whose name begins like ours and that no
// setting has: most often it is misspelt.
func Unknown(environ []string) (notes []string) {
	full := map[string]string{"TOKEN": prefix + "TOKEN"} // that of the command line
	for _, s := range Settings {
		full[strings.TrimPrefix(s.Env, prefix)] = s.Env
	}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		short, ours := strings.CutPrefix(name, prefix)
		if !ours || value == "" || full[short] == name || strings.HasPrefix(value, "tcp://") ||
			slices.ContainsFunc(foreign, func(begin string) bool { return strings.HasPrefix(name, begin) }) {
			continue
		}
		var shorts []string
		for s := range full {
			shorts = append(shorts, s)
		}
		slices.Sort(shorts)
		near := cli.Near(short, shorts)
		for i, s := range near {
			near[i] = full[s]
		}
		notes = append(notes, "there is no setting "+name+cli.DidYouMean(near[:min(1, len(near))]))
	}
	slices.Sort(notes)
	return notes
}
