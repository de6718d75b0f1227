package index

import (
	"slices"
	"strings"
)

// NormalForm is a query as its terms, without stop words, sorted. A query of nothing but
// stop words keeps them.
func NormalForm(query string) []string {
	terms := Terms(fillers.Replace(query))
	kept := slices.DeleteFunc(slices.Clone(terms), func(t string) bool { return stopWords[t] })
	if len(kept) == 0 {
		kept = Terms(query)
	}
	slices.Sort(kept)
	return slices.Compact(kept)
}

// fillers are Chinese and Japanese particles: they would be parts of bigrams.
var fillers = strings.NewReplacer("的", " ", "了", " ", "吗", " ", "呢", " ", "吧", " ", "啊", " ", "は", " ", "の", " ", "を", " ", "が", " ", "に", " ")

// stopWords are terms, that is stems.
var stopWords = func() map[string]bool {
	words := map[string]bool{}
	for _, t := range Terms("a an the of in on at to for from by with about and or is are was were be been do does did has have had " +
		"what which who whom whose when where why how that this these those it its i me my you your we our they their he she him her his " +
		"can could will would should may might please tell find search show 请 什么 怎么 如何 哪里 哪个 谁") {
		words[t] = true
	}
	return words
}()
