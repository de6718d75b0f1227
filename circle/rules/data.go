package rules

import (
	"embed"

	"nodest/framework"
	"nodest/internal/lexicon"
)

//go:embed data
var files embed.FS

// data has the rules and words of the languages, in a file each.
var data = lexicon.New(files)

//go:embed words
var wordFiles embed.FS

// texts are what prompts and plans say in a language.
type texts struct {
	Kinds map[Kind]string // instructions for posts
	Dates struct {
		Today, Soon                         string // name of a holiday
		Weekend, Friday, Workday            string // weekday
		MonthBegins, MonthEnds, MonthMiddle string // month
		Season, Evening                     string // season
		Weekdays                            [7]string
		Months                              [12]string
		Seasons                             [4]string // from winter on
	}
}

var textsIn = lexicon.Texts[framework.Language, texts](wordFiles)

// textsOf returns the texts in a language; English ones for any other.
func textsOf(l framework.Language) *texts {
	if t := textsIn[l]; t != nil {
		return t
	}
	return textsIn[framework.English]
}
