package websearch

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"nodest/internal/cite"
	"nodest/websearch/intent"
	"nodest/websearch/provider"
	"nodest/websearch/weburl"
)

// Block is what was found as text for the prompt: places, and per source a line "[n] title
// — host (date)" with its passages. The first source has the number first.
func (f *Found) Block(first int) string {
	n := first - 1
	return f.Numbered(func(cite.Source) int {
		n++
		return n
	})
}

// Numbered is Block with numbers that the caller gives.
func (f *Found) Numbered(number func(cite.Source) int) string {
	var b strings.Builder
	if len(f.Places) > 0 {
		b.WriteString(harmless(intent.FormatPlaces(placesOf(f.Query, f.Places), f.lang)))
		b.WriteString("\n\n")
	}
	for i, source := range f.Sources {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString("[" + strconv.Itoa(number(source)) + "] " + oneLine(source.Title) + " — " + weburl.Hostname(source.URL))
		if source.DateTime != "" {
			b.WriteString(" (" + source.DateTime[:len(time.DateOnly)] + ")")
		}
		for n, p := range source.Chunks {
			if n > 0 {
				b.WriteString("\n…")
			}
			b.WriteString("\n" + harmless(p.Text))
		}
		if f.Closed[source.URL] != "" {
			b.WriteString("\n" + wordsOf(f.lang).Closed)
		}
	}
	return strings.TrimSpace(b.String())
}

// placesOf are places in the form of FormatPlaces.
func placesOf(query string, places []provider.Place) (p intent.Places) {
	p.Query.Original = query
	for i, place := range places {
		l := intent.Location{ID: strconv.Itoa(i), Name: place.Name, Phone: place.Phone, PriceRange: place.PriceRange}
		l.Address.Street, l.Rating.Value, l.Rating.Count = place.Address, place.Rating, place.Ratings
		p.Local.Locations = append(p.Local.Locations, l)
		if place.Description != "" {
			p.Local.Descriptions = append(p.Local.Descriptions, intent.Description{ID: l.ID, Description: place.Description})
		}
	}
	return p
}

var (
	// numbered is a line that looks like an entry of the block, or a citation.
	numbered = regexp.MustCompile(`(?m)^([ \t]*)\[(\d+)\]|\[\^(\d+)\]:?`)
	// special is a token by which some models' templates separate roles.
	special = regexp.MustCompile(`(?i)<[|｜][^|｜<>\n]{1,40}[|｜]>|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>|</?s>`)
)

// harmless is text of a page that cannot be taken for an entry of the block, for a
// citation or for the end of a message.
func harmless(text string) string {
	text = special.ReplaceAllStringFunc(text, func(token string) string {
		return strings.NewReplacer("<", "‹", ">", "›", "[", "(", "]", ")").Replace(token)
	})
	return numbered.ReplaceAllString(text, "$1($2$3)")
}

// oneLine is a title without line breaks, at most 200 code points.
func oneLine(title string) string {
	runes := []rune(strings.Join(strings.Fields(title), " "))
	return harmless(string(runes[:min(len(runes), 200)]))
}
