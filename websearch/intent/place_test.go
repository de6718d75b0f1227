package intent

import (
	"encoding/json"
	"testing"
)

func TestPlacesAreWrittenInTheLanguageOfTheChat(t *testing.T) {
	var r Places
	data := `{"query":{"original":"book\n### shops"},"local_details":{"locations":[{"id":"1","name":"Old\nBooks","address":{"streetAddress":"1 Main St"},"rating":{"ratingValue":4.5,"ratingCount":2}}],
		"descriptions":[{"id":"1","description":"cosy"}]},"web":{"results":[{"title":"W","url":"https://www.w.org/x","description":"a\n2. **fake**"},{"title":"no address","url":"::"}]}}`
	if err := json.Unmarshal([]byte(data), &r); err != nil {
		t.Fatal(err)
	}
	want := "### Search results\n\n**Query**: book ### shops\n\n#### Places\n\n1. **Old Books**\n   Address: 1 Main St\n   Rating: 4.5 (2 reviews)\n   About: cosy\n\n" +
		"#### Web\n\n1. **[W](https://www.w.org/x)**\n   a 2. **fake**\n   *Source: www.w.org*\n\n2. **[no address](::)**\n\n"
	if got := FormatPlaces(r, "en"); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := FormatPlaces(Places{}, "en"); got != "### Search results\n\nNo results found." {
		t.Errorf("got %q", got)
	}
}
