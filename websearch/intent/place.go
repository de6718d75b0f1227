package intent

import (
	"fmt"
	"net/url"
	"strings"
)

var placeWords = data.Words("places")

// Place reports whether a query is for places, which providers with a search of places are
// asked for first.
func Place(query string) bool {
	query = strings.ToLower(query)
	for _, w := range placeWords() {
		if strings.Contains(query, w) {
			return true
		}
	}
	return false
}

// Places is the result of a search of places, in the shape of Brave's answer.
type Places struct {
	Query struct {
		Original string `json:"original"`
	} `json:"query"`
	Local struct {
		Locations    []Location    `json:"locations"`
		Descriptions []Description `json:"descriptions"`
	} `json:"local_details"`
	Web         Pages `json:"web"`
	News        Pages `json:"news"`
	Discussions Pages `json:"discussions"`
}

// Description says what a place is.
type Description struct {
	ID          string `json:"id"`
	Description string `json:"description"`
}

// Location is one place.
type Location struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Address struct {
		Street     string `json:"streetAddress"`
		Locality   string `json:"addressLocality"`
		Region     string `json:"addressRegion"`
		PostalCode string `json:"postalCode"`
	} `json:"address"`
	Phone  string `json:"phone"`
	Rating struct {
		Value float64 `json:"ratingValue"`
		Count int     `json:"ratingCount"`
	} `json:"rating"`
	PriceRange string `json:"price_range"`
}

// Pages are the pages of one section of a result.
type Pages struct {
	Results []struct {
		Title       string `json:"title"`
		URL         string `json:"url"`
		Description string `json:"description"`
	} `json:"results"`
}

// The words of FormatPlaces.
var (
	placesZH = map[string]string{
		"results": "搜索结果", "none": "未找到相关结果。", "query": "搜索查询", "places": "位置搜索结果", "web": "网页结果", "news": "新闻结果", "discussions": "讨论结果",
		"unnamed": "未命名位置", "address": "地址", "phone": "电话", "rating": "评分", "reviews": "条评价", "price": "价格范围", "about": "简介", "source": "来源",
	}
	placesEN = map[string]string{
		"results": "Search results", "none": "No results found.", "query": "Query", "places": "Places", "web": "Web", "news": "News", "discussions": "Discussions",
		"unnamed": "Unnamed place", "address": "Address", "phone": "Phone", "rating": "Rating", "reviews": "reviews", "price": "Prices", "about": "About", "source": "Source",
	}
)

// FormatPlaces writes a result as text for a prompt: places, web, news, discussions. The words
// are Chinese if lang begins with "zh", else English. White space in the result is folded, so
// that no entry can look like several.
func FormatPlaces(r Places, lang string) string {
	word := placesEN
	if strings.HasPrefix(lang, "zh") {
		word = placesZH
	}
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", word["results"])
	if q := oneLine(r.Query.Original); q != "" {
		fmt.Fprintf(&b, "**%s**: %s\n\n", word["query"], q)
	} else if len(r.Local.Locations)+len(r.Web.Results)+len(r.News.Results)+len(r.Discussions.Results) == 0 {
		return b.String() + word["none"]
	}
	writeLocations(&b, r, word)
	for _, section := range []struct {
		name  string
		pages Pages
	}{{"web", r.Web}, {"news", r.News}, {"discussions", r.Discussions}} {
		writePages(&b, section.pages, word[section.name], word["source"])
	}
	return b.String()
}

func writeLocations(b *strings.Builder, r Places, word map[string]string) {
	if len(r.Local.Locations) == 0 {
		return
	}
	about := map[string]string{}
	for _, d := range r.Local.Descriptions {
		about[d.ID] = d.Description
	}
	fmt.Fprintf(b, "#### %s\n\n", word["places"])
	for i, l := range r.Local.Locations {
		fmt.Fprintf(b, "%d. **%s**\n", i+1, or(oneLine(l.Name), word["unnamed"]))
		var address []string
		for _, part := range []string{l.Address.Street, l.Address.Locality, l.Address.Region, l.Address.PostalCode} {
			if part = oneLine(part); part != "" {
				address = append(address, part)
			}
		}
		rating := ""
		if l.Rating.Value > 0 {
			rating = fmt.Sprintf("%v (%d %s)", l.Rating.Value, l.Rating.Count, word["reviews"])
		}
		for _, line := range [][2]string{
			{"address", or(strings.Join(address, ", "), "N/A")}, {"phone", oneLine(l.Phone)}, {"rating", rating},
			{"price", oneLine(l.PriceRange)}, {"about", oneLine(about[l.ID])},
		} {
			if line[1] != "" {
				fmt.Fprintf(b, "   %s: %s\n", word[line[0]], line[1])
			}
		}
		b.WriteByte('\n')
	}
}

func writePages(b *strings.Builder, pages Pages, title, source string) {
	if len(pages.Results) == 0 {
		return
	}
	fmt.Fprintf(b, "#### %s\n\n", title)
	for i, p := range pages.Results {
		fmt.Fprintf(b, "%d. **[%s](%s)**\n", i+1, oneLine(p.Title), oneLine(p.URL))
		if d := oneLine(p.Description); d != "" {
			fmt.Fprintf(b, "   %s\n", d)
		}
		if u, err := url.Parse(p.URL); err == nil && u.Hostname() != "" {
			fmt.Fprintf(b, "   *%s: %s*\n", source, u.Hostname())
		}
		b.WriteByte('\n')
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
