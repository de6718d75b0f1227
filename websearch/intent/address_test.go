package intent

import "testing"

// Who is addressed by a name is not asked about.
func TestAddressingTheCharacterIsNoQuestionAboutIt(t *testing.T) {
	names := Options{Names: []string{"Sam", "Alice", "小禾"}}
	for text, want := range map[string]bool{
		"Alice, when was the Halden Point lighthouse automated?":                       true,
		"When was the Halden Point lighthouse automated, Alice?":                       true,
		"Hey Alice! What is the capital of Norway?":                                    true,
		"小禾，云溪灯会是哪一年开始的？":                                                              true,
		"云溪灯会是哪一年开始的？我外婆在灯会上做过什么？":                                                     true,
		"What is the default visibility window in Starling and what happens after it?": true,
		"What did the forum recommend against a stalling lens motor in the cold?":      true,
		"What did the old man whisper to the guard at the gate?":                       false,
		"What does Alice like to eat?":                                                 false,
		"小禾喜欢吃什么？":                                                                     false,
		"Alice, what do you think of me?":                                              false,
		"Does Sam have talents?":                                                       false,
	} {
		if d := Better(text, names); d.Search != want {
			t.Errorf("%q: %+v", text, d)
		}
	}
}
